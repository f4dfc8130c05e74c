# bench/gpu/sanitize where compute-sanitizer or the GPU is missing, and with a fake one: what it is asked,
# and how its answers are told.
. "$SOURCE/tests/cli/lib.sh"

sanitize() {
    env TANDEM="$TANDEM" "$@" "$SOURCE/bench/gpu/sanitize" -o logs
}
for words in '--tool initcheck' '--tools memcheck' '--device' 'all'; do
    # shellcheck disable=SC2086
    expect_exit 2 "$SOURCE/bench/gpu/sanitize" $words
done
expect_stderr_matches "bench/gpu/sanitize: all needs a value, or is no option; --device cuda"

# Nothing of that name, and a PATH without the toolkit: unless it is where toolkits are.
if [ ! -x /usr/local/cuda/bin/compute-sanitizer ] && ! ls /usr/local/cuda*/compute-sanitizer/compute-sanitizer >/dev/null 2>&1; then
    expect_exit 4 sanitize COMPUTE_SANITIZER="$PWD/nothing"
    expect_stderr_matches 'no compute-sanitizer was found on the PATH or in /usr/local/cuda; it comes with the CUDA toolkit'
fi

cat >stand-in <<'END'
#!/bin/sh
# Notes what it was asked, and runs the program that is named, on the processor where DEVICE says so.
echo "$*" >>asked.txt
while [ "${1#-}" != "$1" ]; do
    case $1 in --tool | --leak-check | --error-exitcode) shift 2 ;; *) shift ;; esac
done
echo '========= COMPUTE-SANITIZER'
if [ -n "${DEVICE:-}" ]; then
    "$1" "$2" --device "$DEVICE" --part ops
else
    "$@"
fi
status=$?
echo '========= ERROR SUMMARY'
[ -z "${FINDS:-}" ] || exit "$FINDS"
exit $status
END
chmod +x stand-in
expect_exit 2 env TANDEM="$PWD/nothing" COMPUTE_SANITIZER="$PWD/stand-in" "$SOURCE/bench/gpu/sanitize" -o logs
expect_stderr_matches 'there is no program .*nothing'

# The program itself reports that there is no GPU.
if ! nvidia-smi >/dev/null 2>&1; then
    expect_exit 4 sanitize COMPUTE_SANITIZER="$PWD/stand-in"
    expect_stderr_matches 'there is no GPU to run on: .'
fi

rm -f asked.txt
expect_exit 0 sanitize COMPUTE_SANITIZER="$PWD/stand-in" DEVICE=ref
expect_stdout_matches '^memcheck: nothing was found \([0-9]+ passed, 0 failed\); logs/memcheck.log'
expect_stdout_matches '^racecheck: nothing was found \([0-9]+ passed, 0 failed\); logs/racecheck.log'
expect_true "memcheck looks for leaks too" \
    grep -q '^--tool memcheck --leak-check full --error-exitcode 97 .* selftest --device cuda --part ops$' asked.txt
expect_true "racecheck is asked behind it" \
    grep -q '^--tool racecheck --error-exitcode 97 .* selftest --device cuda --part ops$' asked.txt
expect_exit 1 sanitize COMPUTE_SANITIZER="$PWD/stand-in" DEVICE=ref FINDS=97
expect_stdout_matches '^racecheck: exit code 97; the end of logs/racecheck.log:'
expect_stdout_matches '^    ========= ERROR SUMMARY'
finish
