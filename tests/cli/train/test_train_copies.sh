# train --checkpoint-to: the machine dies, the place is full or taken, the number of ranks changes; the run goes on
# from its copies with the same bytes.
. "$SOURCE/tests/cli/lib.sh"
export TANDEM_HOME="$temp/home"

"$TANDEM" synth pictures --classes 3 --per-class 40 --size 40 --quiet >/dev/null
options="--model lenet5 --epochs 12 --batch 8 --patience 0 --checkpoint-every 3 --threads 1"

same_as_whole() { # run
    for file in best last outcomes; do
        expect_true "$1 has the $file of a run that was left alone" \
            cmp "whole/$file.safetensors" "$1/$file.safetensors"
    done
}
began_ns=$(date +%s%N)
# shellcheck disable=SC2086
"$TANDEM" train pictures -o whole $options --quiet >/dev/null
whole_us=$((($(date +%s%N) - began_ns) / 1000))

# ---- a machine that is lost ----------------------------------------------------------------

# shellcheck disable=SC2086
expect_exit 0 "$TANDEM" train pictures -o run $options --checkpoint-to place --quiet
same_as_whole run
rm -rf run
# shellcheck disable=SC2086
expect_exit 0 "$TANDEM" train pictures -o run --checkpoint-to place --resume --quiet --json
expect_same "12 lenet5" "$(json_value epochs) $(json_value options.model)" "its options come back with it"
same_as_whole run
for file in run.json metrics.jsonl samples.safetensors; do
    expect_true "$file came back" test -s "run/$file"
done
expect_exit 0 "$TANDEM" evaluate run pictures --part val

# Killed at random moments, and nothing but the copies left.
RANDOM_SEED=7
moment() { # seconds: the next of a row of parts of a whole training, up to two fifths
    RANDOM_SEED=$(((RANDOM_SEED * 1103 + 12345) % 65536))
    us=$((whole_us * (RANDOM_SEED % 400) / 1000))
    echo "$((us / 1000000)).$(printf %06d $((us % 1000000)))"
}
rm -rf place run
n_killed=0
for _ in 1 2 3 4 5 6 7 8; do
    # shellcheck disable=SC2086
    "$TANDEM" train pictures -o run $options --checkpoint-to place --resume --quiet >"$out" 2>"$err" &
    pid=$!
    sleep "$(moment)"
    kill -9 $pid 2>/dev/null
    status=0
    wait $pid || status=$?
    [ $status = 137 ] && n_killed=$((n_killed + 1))
    [ $status = 137 ] || [ $status = 0 ] || { fail "it ended with $status"; show_output; }
    rm -rf run
done
expect_true "it was killed $n_killed times of 8" test $n_killed -gt 2
# shellcheck disable=SC2086
expect_exit 0 "$TANDEM" train pictures -o run $options --checkpoint-to place --resume --quiet
same_as_whole run
rm -rf run

# ---- ranks ---------------------------------------------------------------------------------

rm -rf place
# shellcheck disable=SC2086
expect_exit 0 "$TANDEM" run -n 2 -- train pictures -o ranks $options --epochs 5 --schedule constant \
    --checkpoint-to place --quiet
rm -rf ranks
expect_exit 0 "$TANDEM" run -n 3 -- train pictures -o ranks --epochs 12 --checkpoint-to place --resume --quiet
# shellcheck disable=SC2086
"$TANDEM" train pictures -o constant $options --schedule constant --quiet >/dev/null
expect_true "2 ranks, then 3 from the copies: the bytes of one process" \
    cmp constant/last.safetensors ranks/last.safetensors

# ---- what is refused -----------------------------------------------------------------------

# shellcheck disable=SC2086
expect_exit 2 "$TANDEM" train pictures -o other $options --checkpoint-to place
expect_stderr_matches "'place' holds the copies of a run already: --resume with an empty run folder"
expect_true "and no run is left" test ! -e other
# shellcheck disable=SC2086
expect_exit 3 "$TANDEM" train pictures -o other $options --checkpoint-to ftp://host/place
expect_stderr_matches 'ftp://host/place'
expect_true "and no run is left" test ! -e other

# ---- a place without room ------------------------------------------------------------------

mkdir small
if mount -t tmpfs -o size=300k tmpfs small 2>/dev/null; then
    # shellcheck disable=SC2086
    expect_exit 4 "$TANDEM" train pictures -o full $options --checkpoint-to small/place
    expect_stderr_matches 'warning: the checkpoint of step [0-9]+ is not copied to small/place'
    expect_stderr_matches 'full is complete, but its last state is not in small/place'
    expect_stderr_matches 'No space left on device'
    expect_same 1 "$(grep -c 'warning: the checkpoint' "$err")" "one warning for a row of failures"
    expect_true "the run itself is finished" grep -Eq '"status": ?"finished"' full/run.json
    same_as_whole full
    mount -o remount,size=100m small
    expect_exit 0 "$TANDEM" train pictures -o full --resume --quiet
    rm -rf full
    expect_exit 0 "$TANDEM" train pictures -o full --checkpoint-to small/place --resume --quiet
    same_as_whole full
    umount small
else
    skip "a full disk: no file system can be mounted here"
fi
finish
