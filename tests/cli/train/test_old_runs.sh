# Run folders and model files that an older program wrote (tests/fixtures/make_runs.sh) are resumed
# to the bytes that the older program ended with, and evaluated to the counts that it found. Names
# inside these files are promises, whatever the code calls the same thing today.
. "$SOURCE/tests/cli/lib.sh"
. "$SOURCE/tests/fixtures/run_kinds.sh"
runs=$SOURCE/tests/fixtures/runs
export TANDEM_HOME=$PWD/home

expect_true "images are made" make_images "$TANDEM"
cp "$runs"/*.safetensors .

for kind in $kinds; do
    cp -r "$runs/$kind" .
    last_command="train --resume of a $kind run"
    if (train_kind "$TANDEM" "$kind" "$kind") >"$out" 2>"$err"; then
        hashes_of "$kind" "$kind" >found.txt
        grep " $kind " "$runs/expected.txt" >expected.txt
        expect_same "$(cat expected.txt)" "$(cat found.txt)" "$kind: resumed to the recorded bytes"
    else
        fail "$kind: was not resumed"
        show_output
    fi
    # It really was resumed: the record counts a second sitting.
    expect_true "$kind: continued, not started again" grep -q '"sittings": 2' "$kind/run.json"
done

expect_exit 0 "$TANDEM" evaluate small.safetensors pictures --device ref --json
expect_same "$(cat "$runs/evaluated.txt")" "$(json_value correct) $(json_value n)" \
    "an older model file has the counts it had"
finish
