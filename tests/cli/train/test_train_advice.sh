# The options that train proposes as the next step are accepted as printed, after those of the run;
# and its advice for a run that ended too early, diverged or lost its best weights.
. "$SOURCE/tests/cli/lib.sh"
export TANDEM_HOME="$temp/home"

"$TANDEM" synth two --classes 2 --per-class 12 --size 16 --quiet >/dev/null
"$TANDEM" synth pictures --classes 3 --per-class 100 --size 16 --seed 4 --quiet >/dev/null

proposed() { # what the last training's next step says after "in a new run"
    sed -n 's/^next: .* in a new run \(--.*\) trains the base too.*/\1/p' "$out"
}
# expect_taken NAME OPTIONS…: a training with them proposes to unfreeze; a run with the proposal succeeds.
expect_taken() {
    name=$1
    shift
    expect_exit 0 "$TANDEM" train pictures -o "$name" "$@"
    proposal=$(proposed)
    expect_stdout_matches '^next: train more layers; '
    expect_exit 0 "$TANDEM" train pictures -o "$name-next" "$@" $proposal
}

# ---- a base that is unfrozen -----------------------------------------------------------------
for network in lenet5 convnet7; do
    expect_exit 0 "$TANDEM" train two -o "$network" --model "$network" --epochs 1 --quiet
    set -- --weights "$network" --split 0.5,0.5 --lr 0.000001
    expect_taken "$network-short" "$@" --epochs 5
    case $proposal in
    *--epochs\ 10*) pass "training must not end before anything is unfrozen" ;;
    *) fail "found '$proposal', which ends before anything is unfrozen" ;;
    esac
    case "$network $proposal" in
    lenet5*--bn* | convnet7\ --unfreeze\ 5\ --epochs*) fail "--bn frozen is for norms: '$proposal'" ;;
    *) pass "--bn frozen is proposed where there are norms" ;;
    esac
    expect_taken "$network-frozen" "$@" --freeze base --epochs 6
    expect_taken "$network-steps" "$@" --freeze base --epochs 0 --steps 25
done
expect_exit 2 "$TANDEM" train pictures -o no --weights lenet5 --epochs 5 --unfreeze 5
expect_stderr_matches 'raise --epochs above that, or use --freeze base in place of --unfreeze$'

# ---- nothing to begin with -------------------------------------------------------------------
expect_exit 0 "$TANDEM" train pictures -o drawn --model lenet5 --freeze base --lr 0.000001 --epochs 5
expect_stdout_matches '^next: use pretrained weights; lenet5 from scratch, with random frozen layers, .* a new run with --weights mobilenetv2-notop --fetch in place of --model starts'

# ---- too early to say ------------------------------------------------------------------------
expect_exit 0 "$TANDEM" train pictures -o early --weights lenet5 --lr 0.000001 --epochs 1
expect_stdout_matches '^next: train longer; .* too early to see where it leads; --epochs 10 --resume continues$'
expect_exit 0 "$TANDEM" train pictures -o early --weights lenet5 --lr 0.000001 --epochs 10 --resume
expect_exit 0 "$TANDEM" train pictures --weights lenet5 --lr 0.000001 --epochs 1
more=$(sed -n 's/^next: train longer; .*; \(--epochs .*\) continues$/\1/p' "$out")
expect_exit 0 "$TANDEM" train pictures --weights lenet5 --lr 0.000001 --epochs 1 $more
expect_stdout_matches '^10 epochs'

# ---- a rare class that is never right --------------------------------------------------------
"$TANDEM" synth uneven --classes 2 --per-class 60 --size 24 --seed 3 --quiet >/dev/null
find uneven/001-* -type f | sort | tail -n +13 | xargs rm
expect_exit 0 "$TANDEM" train uneven -o uneven-run --model lenet5 --augment none --split 0.6,0.4 --lr 1e-9 --epochs 2
rare="^next: more images; none of the 5 validation images of '001-striped-disc' is right, and the answer '000-striped-star'"
expect_stdout_matches "$rare for every image would be right for 82.8 % .* --balance"
expect_exit 0 "$TANDEM" train uneven -o uneven-run --resume
expect_stdout_matches "$rare"

# ---- a rate that is none, or far too high ----------------------------------------------------
expect_exit 2 "$TANDEM" train pictures -o no --lr 0
expect_stderr_matches "--lr takes a number from 1e-09 to 1000; found '0'"
expect_exit 0 "$TANDEM" train pictures -o high --weights lenet5 --freeze base --lr 100 --epochs 1
expect_stdout_matches '^next: lower the learning rate; training diverged: after 1 epoch the loss is .* --lr 0.01 in place of 100$'

# ---- the best weights are gone ---------------------------------------------------------------
one=$(find pictures -type f | head -n 1)
expect_exit 0 "$TANDEM" predict lenet5 "$one"
expect_true "with them there is nothing to say" test ! -s "$err"
rm lenet5/best.safetensors
expect_exit 0 "$TANDEM" predict lenet5 "$one"
expect_stderr_matches 'lenet5 has no best.safetensors, .*; last.safetensors, those of its last step, is used$'
finish
