# runs list, show and compare as a user meets them, over small trainings.
. "$SOURCE/tests/cli/lib.sh"

expect_exit 0 "$TANDEM" synth pictures --classes 3 --per-class 30 --size 32 --seed 1 --quiet
set -- pictures --model lenet5 --epochs 3 --batch 16 --split 0.6,0.4 --threads 1 --quiet
expect_exit 0 "$TANDEM" train "$@" -o runs/a
expect_exit 0 "$TANDEM" train "$@" -o runs/b --lr 0.1
expect_exit 0 "$TANDEM" train "$@" -o runs/later/other --seed 8
expect_exit 0 "$TANDEM" train pictures --model lenet5 --epochs 3 --batch 16 --split 0.6,0.4 --threads 3 --quiet -o three
expect_true "outcomes are the same bytes at 1 and 3 threads" cmp runs/a/outcomes.safetensors three/outcomes.safetensors

# ---- list ----------------------------------------------------------------------------------
expect_exit 0 "$TANDEM" runs --json
expect_json runs
expect_same "runs/a runs/b runs/later/other" \
    "$(json_value runs.0.run) $(json_value runs.1.run) $(json_value runs.2.run)" "all runs below runs/, by path"
expect_same "finished lenet5 3" \
    "$(json_value runs.0.state) $(json_value runs.0.network) $(json_value runs.0.epochs)" "what each is"
expect_exit 0 "$TANDEM" runs list runs/later
expect_stdout_matches '^  runs/later/other +finished +3  lenet5 .* % right \(95 %: .*\), [0-9]+ of [0-9]+$'
mkdir empty
expect_exit 0 "$TANDEM" runs list empty
expect_stdout_is 'there is no run in empty'
expect_exit 3 "$TANDEM" runs list nowhere
expect_exit 2 "$TANDEM" runs lits
expect_stderr_matches "takes list, show or compare first; found 'lits'"
expect_exit 2 "$TANDEM" runs show
expect_stderr_matches 'takes one RUN; found 0 arguments$'
expect_exit 2 "$TANDEM" runs compare runs/a
expect_stderr_matches 'takes two runs, A and B; found 1 argument$'

# A killed run is listed with all of its epochs, not with the best.
cp -r runs/a killed
python3 - killed/run.json <<'END'
import json, sys
record = json.load(open(sys.argv[1]))
record["status"] = "running"
record["validation"]["epoch"] = 1
del record["result"]
json.dump(record, open(sys.argv[1], "w"))
END
expect_exit 0 "$TANDEM" runs list killed --json
expect_same "killed 3 1" \
    "$(json_value runs.0.state) $(json_value runs.0.epochs) $(json_value runs.0.best_epoch)" "epochs are counted"
expect_exit 0 "$TANDEM" runs show killed
expect_stdout_matches '^killed: killed, 3 epochs, best: 1, '

# Epochs after the newest checkpoint are made again by --resume: --resume and show report the same.
python3 - killed/run.json <<'END'
import json, sys
record = json.load(open(sys.argv[1]))
record["clock"].update(epochs=2, steps=8)
json.dump(record, open(sys.argv[1], "w"))
END
expect_exit 0 "$TANDEM" runs show killed --json
expect_same "2 8" "$(json_value runs.0.epochs) $(json_value runs.0.steps)" "the step that --resume continues from"
"$TANDEM" train pictures --model lenet5 --epochs 100000 --batch 16 --split 0.6,0.4 --threads 1 --quiet -o cut &
pid=$!
tries=0
while [ ! -s cut/previous.safetensors ] && [ $tries -lt 200 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
kill -KILL $pid
wait $pid 2>/dev/null
expect_exit 0 "$TANDEM" runs show cut --json
epochs=$(json_value runs.0.epochs) steps=$(json_value runs.0.steps)
"$TANDEM" train pictures --resume -o cut >"$out" 2>"$err" &
pid=$!
tries=0
while ! grep -q 'learning rate' "$err" && [ $tries -lt 600 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
kill -TERM $pid
wait $pid
expect_stderr_matches "resuming after step $steps \\(epoch $((epochs + 1))\\), learning rate [0-9.e-]+\$"
cp -r runs/a ended
expect_exit 0 "$TANDEM" train pictures --resume -o ended
expect_stderr_matches 'nothing is left to train after step [0-9]+ \(epoch 3\)$'

# ---- show ----------------------------------------------------------------------------------
expect_exit 0 "$TANDEM" runs show runs/a
expect_stdout_matches '^runs/a: finished, 3 epochs'
expect_stdout_matches '^balanced accuracy '
expect_exit 0 "$TANDEM" runs show runs/a --json
expect_json runs
expect_same "$(json_value runs.0.val.correct)" "$(json_value runs.0.validation.correct)" \
    "the count from outcomes equals that of training"
expect_same "$(json_value runs.0.val.loss)" "$(json_value runs.0.validation.loss)" "to the last digit"
expect_exit 3 "$TANDEM" runs show pictures
expect_stderr_matches 'pictures is no run'

# ---- compare -------------------------------------------------------------------------------
expect_exit 0 "$TANDEM" runs compare runs/a runs/b --json
expect_json runs comparable verdict reason margin n n_distinct both only_a only_b neither p difference low high better worse no_loss
expect_same True "$(json_value comparable)" "both were evaluated on the same images"
expect_true "the verdict follows from the test and the interval" python3 - "$out" <<'END'
import json, sys
c = json.load(open(sys.argv[1]))
wanted = ("better" if c["difference"] > 0 else "worse") if c["p"] < 0.05 else \
    "no loss" if c["low"] > -c["margin"] else "perhaps worse" if c["high"] < 0 else "cannot tell"
assert c["verdict"] == wanted, c
assert c["n"] == c["n_distinct"]
END
verdict=$(json_value verdict)
expect_same "$(json_value n)" $(($(json_value both) + $(json_value only_a) + $(json_value only_b) + $(json_value neither))) \
    "every image is counted once"
expect_same "$(json_value runs.0.val.correct)" $(($(json_value both) + $(json_value only_a))) "the counts of the first run are those of training"
expect_same "$(json_value runs.1.val.correct)" $(($(json_value both) + $(json_value only_b))) "and of the second"
expect_exit 0 "$TANDEM" runs compare runs/a runs/b
expect_stdout_matches "^runs/b compared with runs/a: $verdict"
expect_stdout_matches '^runs/b minus runs/a: [+-][0-9.]+ points \(95 %: [+-][0-9]+\.[0-9] to [+-][0-9]+\.[0-9]\)'
expect_exit 0 "$TANDEM" runs compare runs/a runs/later/other --json
expect_same "False None" "$(json_value comparable) $(json_value p)" "other pictures: no test"
expect_same "not comparable" "$(json_value verdict)" "and the verdict says so"
expect_same runs/later/other "$(json_value runs.1.run)" "they are shown side by side"
expect_exit 0 "$TANDEM" runs compare runs/a runs/later/other
expect_stdout_matches '^not comparable: they were evaluated on different images'

# ---- what was damaged ----------------------------------------------------------------------
cp -r runs/a damaged
printf X | dd of=damaged/outcomes.safetensors bs=1 seek=900 conv=notrunc 2>/dev/null
expect_exit 3 "$TANDEM" runs show damaged
expect_stderr_matches 'outcomes.safetensors'
rm damaged/outcomes.safetensors
expect_exit 0 "$TANDEM" runs show damaged
expect_exit 0 "$TANDEM" runs compare runs/a damaged
expect_stdout_matches '^not comparable: the second run has no record'
finish
