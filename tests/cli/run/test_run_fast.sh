# Several ranks with --fast: gradients travel as bf16, the run is marked as not exact, and machines may differ.
. "$SOURCE/tests/cli/lib.sh"
export TANDEM_HOME="$temp/home"

"$TANDEM" synth pictures --classes 3 --per-class 33 --size 40 --seed 3 --quiet >/dev/null

options="--model convnet7 --size 32 --batch 30 --schedule constant --patience 0"
weights() { sha256sum <"$1/last.safetensors"; }
ranks() { # number run options…
    n=$1 name=$2
    shift 2
    # shellcheck disable=SC2086 # words
    "$TANDEM" run -n "$n" --deadline 20 -- train pictures -o "$name" $options "$@"
}
is_marked() { grep -q '^ *"exact": *false' "$1/run.json"; }

# ---- a run ---------------------------------------------------------------------------------

expect_exit 0 ranks 2 exact --epochs 1
expect_true "an exact run has no mark" sh -c '! grep -q exact exact/run.json'
expect_exit 0 ranks 2 fast --epochs 1 --fast
expect_stderr_matches '^--fast: ranks send gradients as bf16; the result is not exact, and differs with the number of ranks$'
expect_true "it is marked as not exact" is_marked fast
expect_true "it records the option" grep -q '"fast": *1' fast/run.json
expect_true "gradients were rounded" test "$(weights exact)" != "$(weights fast)"
expect_exit 0 ranks 2 again --epochs 1 --fast --quiet
expect_same "$(weights fast)" "$(weights again)" "so many ranks give the same bytes again"

# ---- resumed -------------------------------------------------------------------------------

expect_exit 2 ranks 2 fast --epochs 2 --resume --no-fast
expect_stderr_matches 'option --fast is 0, but the run was started with 1'
expect_exit 2 ranks 2 exact --epochs 2 --resume --fast
expect_stderr_matches 'option --fast is 1, but the run was started with 0'
expect_exit 0 "$TANDEM" run -n 3 -- train pictures -o fast --epochs 2 --resume --fast
expect_exit 0 "$TANDEM" run -n 2 -- train pictures -o fast --epochs 3 --resume
expect_stderr_matches '^--fast: ranks send gradients as bf16'
expect_exit 0 "$TANDEM" train pictures -o fast --epochs 4 --resume
expect_stderr_matches '^--fast changes nothing in this session, which has no other ranks'
expect_true "and its mark stays" is_marked fast
expect_exit 2 "$TANDEM" train pictures -o alone --model lenet5 --fast
expect_stderr_matches 'the option changes nothing without other ranks; leave it out'

# ---- by hand: mixed options, and machines that differ --------------------------------------

port=$((21000 + $$ % 10000))
by_hand() { # rank options…: $port is that of rank 0, $run the run
    rank=$1
    shift
    # shellcheck disable=SC2086 # words
    TANDEM_RANK=$rank TANDEM_WORLD=2 TANDEM_ADDRESS=127.0.0.1:$port TANDEM_DEADLINE=20 TANDEM_TOKEN=hand \
        "$TANDEM" train pictures -o "$run" $options "$@"
}
run=mixed
by_hand 1 --epochs 1 >/dev/null 2>&1 &
expect_exit 2 by_hand 0 --epochs 1 --fast
expect_stderr_matches 'rank 1 has other options than rank 0'
wait

# oneDNN of a lesser instruction set gives the network's logits other last digits.
port=$((port + 1))
run=refused
ONEDNN_MAX_CPU_ISA=SSE41 by_hand 1 --epochs 1 >/dev/null 2>&1 &
status=0
by_hand 0 --epochs 1 >"$out" 2>"$err" || status=$?
wait
if [ $status = 0 ]; then
    skip "this build computes the same bits without AVX"
else
    expect_same 4 $status "exact: machines that compute other bits end the run"
    expect_stderr_matches 'rank 1 computes other bits than rank 0: the network gives other values'
    port=$((port + 1))
    run=other
    ONEDNN_MAX_CPU_ISA=SSE41 by_hand 1 --epochs 2 --fast >/dev/null 2>&1 &
    expect_exit 0 by_hand 0 --epochs 2 --fast
    expect_stderr_matches '^--fast: ranks compute other bits than rank 0 .rank 1 has other logits.; all get its weights before'
    wait
    expect_true "such a run is marked, too" is_marked other
    expect_exit 0 "$TANDEM" evaluate other pictures
fi
finish
