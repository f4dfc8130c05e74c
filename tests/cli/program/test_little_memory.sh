# An address space that is nearly gone (ulimit -v). Whatever runs out, and in whichever library, a
# command ends with its result, the same as ever, or with one sentence and exit code 4.
. "$SOURCE/tests/cli/lib.sh"

if is_sanitized; then
    skip "a sanitizer takes all addresses for itself"
    finish
fi
export TANDEM_HOME=$temp/home
"$TANDEM" synth pictures --classes 2 --per-class 12 --size 48 --quiet >/dev/null
training="--model lenet5 --epochs 2 --batch 8 --quiet"
commands="train predict evaluate bench"
if "$TANDEM" prepare pictures -o table --size 32 --quiet >/dev/null 2>&1; then
    commands="$commands prepare audit-table evaluate-table train-table"
else
    skip "tables, of which this build reads none"
fi

# The command of that name, with its output in $out and $err, and what it makes in "made".
run_command() {
    case $1 in
    train) set -- train pictures -o made $training ;;
    predict) set -- predict run pictures --json ;;
    evaluate) set -- evaluate run pictures --json ;;
    bench) set -- bench compute --model lenet5 --batch 8 --seconds 0.5s --json ;;
    prepare) set -- prepare pictures -o made --size 32 --quiet ;;
    audit-table) set -- audit table --json ;;
    evaluate-table) set -- evaluate run table --json ;;
    train-table) set -- train table -o made $training ;;
    esac
    last_command="tandem $*, with ${limit:-all} KiB of addresses"
    rm -rf made
    (
        ulimit -c 0
        [ -z "$limit" ] || ulimit -v "$limit"
        exec "$TANDEM" "$@" --threads 2
    ) >"$out" 2>"$err" </dev/null
    status=$?
}

# Of what the command was made to do, what must not change.
result_of() {
    case $1 in
    train | train-table) cat made/best.safetensors ;;
    predict | evaluate | evaluate-table) cat "$out" ;;
    prepare) cat made/part-* ;;
    *) echo ;;
    esac
}

is_one_sentence() {
    [ "$(grep -c '^tandem: ' "$err")" = 1 ] && ! grep -qv '^tandem: \|^  ' "$err"
}

# Below this the loader has no room for the program's libraries, or they none for themselves.
limit=20000
while ! (ulimit -c 0; ulimit -v $limit; exec "$TANDEM" --version) >"$out" 2>&1; do
    limit=$((limit + 1000))
done
floor=$limit

"$TANDEM" train pictures -o run $training >/dev/null
for name in $commands; do
    limit=
    run_command "$name"
    result_of "$name" >wanted
    n_done=0 n_refused=0 n_wrong=0
    [ $status = 0 ] || n_wrong=1
    for more in 0 2 5 8 11 14 17 20 24 28 33 39 46 54 62 70 78 88 100 115 135; do
        limit=$((floor + 1024 * more))
        run_command "$name"
        if [ $status = 0 ] && result_of "$name" | cmp -s - wanted; then
            n_done=$((n_done + 1))
            [ "$name" != bench ] || break # the others take a second each
        elif [ $status = 4 ] && is_one_sentence; then
            n_refused=$((n_refused + 1))
        else
            n_wrong=$((n_wrong + 1))
            fail "exit $status, or another result, or other than one sentence: $last_command"
            show_output
        fi
    done
    expect_true "$name: with little memory its result or one sentence ($n_done, $n_refused)" \
        test $n_wrong = 0 -a $n_refused -gt 0
done
finish
