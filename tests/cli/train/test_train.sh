# train, evaluate and predict as a user meets them, on a handful of pictures made here.
. "$SOURCE/tests/cli/lib.sh"

# Two classes of 12 x 12 PPM text: bright on the left, bright on the right, with a little noise.
make_pictures() { # folder count
    for class in left right; do
        mkdir -p "$1/$class"
        i=0
        while [ $i -lt "$2" ]; do
            awk -v class=$class -v seed=$i 'BEGIN {
                srand(seed + (class == "left" ? 1 : 1000))
                print "P3 12 12 255"
                for (y = 0; y < 12; y++)
                    for (x = 0; x < 12; x++) {
                        v = ((x < 6) == (class == "left") ? 190 : 40) + int(rand() * 40)
                        print v, v, v
                    }
            }' >"$1/$class/$i.ppm"
            i=$((i + 1))
        done
    done
}
make_pictures pictures 24
set -- pictures --model lenet5 --epochs 4 --batch 8 --split 0.7,0.3

# ---- train ---------------------------------------------------------------------------------
expect_exit 0 "$TANDEM" train "$@" -o runs/a --json --threads 1
expect_json run epochs best_epoch steps seconds images_per_second train val cached views world
expect_same runs/a "$(json_value run)" "the run folder is told"
expect_same 4 "$(json_value epochs)" "four epochs"
expect_same 48 $(($(json_value train.n) + $(json_value val.n))) "every picture is in one part"
n=$(json_value val.n) correct=$(json_value val.correct) loss=$(json_value val.loss)
for key in n correct accuracy low high loss; do
    expect_true "val has $key" test -n "$(json_value val.$key)"
done
expect_stderr_matches '^epoch +step +rate'
expect_true "a run record is there" test -s runs/a/run.json
expect_true "a model is there" test -s runs/a/best.safetensors

expect_exit 0 "$TANDEM" train "$@" --out=runs/b --threads 2 --quiet --json
expect_same "" "$(cat "$err")" "--quiet says nothing"
expect_same "$loss" "$(json_value val.loss)" "two threads give the bits of one"
expect_exit 0 "$TANDEM" train "$@" -oruns/c
expect_stdout_matches '^  validation +[0-9.]+ % right \(95 %: [0-9.]+ to [0-9.]+\), [0-9]+ of [0-9]+$'
expect_stdout_matches '^  run +runs/c$'

printf '[train]\nmodel = "lenet5"\nepochs = 1\nsplit = [0.7, 0.3]\n' >conf.toml
expect_exit 0 env TANDEM_BATCH=4 "$TANDEM" train pictures -o runs/d --config conf.toml --json
expect_same lenet5 "$(json_value options.model)" "model from the config file"
expect_same 4 "$(json_value options.batch)" "batch from the environment"
expect_same 0.3 "$(json_value options.split.1)" "split from the config file"

# Two runs of one second get two names.
mkdir same && for i in 1 2 3; do
    (cd same && "$TANDEM" train ../pictures --model lenet5 --epochs 1 --batch 8 --quiet >/dev/null)
done
expect_same 3 "$(ls same/runs | wc -l)" "runs begun in the same second keep apart"

# ---- again and on --------------------------------------------------------------------------
expect_exit 2 "$TANDEM" train "$@" -o runs/a
expect_exit 0 "$TANDEM" train "$@" -o runs/a --resume --json
expect_same "$loss" "$(json_value val.loss)" "a finished run answers the same"
expect_exit 2 "$TANDEM" train pictures --resume
expect_stderr_matches '^tandem: --resume needs -o RUN'
expect_exit 2 "$TANDEM" train "$@" -o runs/a --resume --seed 8
expect_stderr_matches 'seed'
expect_exit 2 "$TANDEM" train "$@" -o runs/a --resume --size 20
expect_stderr_matches "option --size is 20, but the run was started with the network's own; leave it out, or give another -o$"
expect_exit 0 "$TANDEM" train pictures --model lenet5 --epochs 6 --batch 8 --split 0.7,0.3 -o runs/a --resume --json
expect_same 6 "$(json_value epochs)" "more epochs go on"
expect_exit 0 "$TANDEM" train pictures -o runs/a --epochs 7 --resume --json
expect_same 7 "$(json_value epochs)" "going on needs no option repeated"
expect_same lenet5 "$(json_value options.model)" "what was not said comes from the run"

# A run that is stopped in the middle says so and leaves a model that can be asked.
set -- pictures --model lenet5 --epochs 100000 --batch 8 --split 0.7,0.3 --threads 1 --json
"$TANDEM" train "$@" -o runs/stopped >stopped.json 2>stopped.txt &
pid=$!
tries=0
while [ ! -s runs/stopped/last.safetensors ] && [ $tries -lt 100 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
expect_exit 4 "$TANDEM" train "$@" -o runs/stopped --resume
expect_stderr_matches 'lock is held by process'
kill -HUP $pid
status=0
wait $pid || status=$?
last_command="train, stopped by SIGHUP"
expect_same 1 "$status" "SIGHUP, of a terminal that goes away, stops with exit 1"
cp stopped.json "$out"
cp stopped.txt "$err"
expect_json error
expect_same STOPPED "$(json_value error.code)" "the code says stopped"
expect_stderr_matches '^tandem: '
expect_exit 0 "$TANDEM" evaluate runs/stopped pictures --json

# ---- optimisers, rates, schedules ------------------------------------------------------------
set -- pictures --model lenet5 --epochs 4 --batch 128 --split 0.7,0.3 --json --threads 1
expect_exit 0 "$TANDEM" train "$@" -o runs/adam --optimizer adam:beta2=0.99 --schedule step:every=1,factor=0.5 --warmup 0 --ema 0.9 --clip-norm 1
expect_stderr_matches 'adam, learning rate 0.002 \(0.001 at batch 32, times 2 by rule sqrt\)$'
expect_stderr_matches '^ +1 +1 +0.002 '
expect_stderr_matches '^ +3 +3 +0.0005 '
expect_same adam:beta2=0.99 "$(json_value options.optimizer)" "parameters are part of the name"
expect_same None "$(json_value options.momentum)" "what was not chosen is null"
expect_true "what it came to is recorded" grep -q '"beta2": 0.99' runs/adam/run.json
expect_exit 0 "$TANDEM" train pictures -o runs/adam --resume --epochs 5 --json
expect_same step:every=1,factor=0.5 "$(json_value options.schedule)" "going on keeps the schedule"
expect_exit 2 "$TANDEM" train pictures -o runs/adam --resume --optimizer adam
expect_stderr_matches "option --optimizer is 'adam', but the run was started with 'adam:beta2=0.99'"
expect_exit 2 "$TANDEM" train pictures -o runs/adam --resume --momentum 0.5
expect_exit 0 "$TANDEM" predict runs/adam pictures/left/0.ppm --json
expect_exit 0 "$TANDEM" train "$@" -o runs/scaled --lr 0.1 --lr-scaling linear --reference-batch 256
expect_stderr_matches 'sgd, learning rate 0.05 \(0.1 at batch 256, times 0.5 by rule linear\)$'
expect_exit 0 "$TANDEM" train "$@" -o runs/given --lr 0.1
expect_stderr_matches 'sgd, learning rate 0.1$'
expect_exit 2 "$TANDEM" train "$@" -o runs/bad --optimizer adam --momentum 0.9
expect_stderr_matches 'option --momentum is 0.9, but --optimizer adam has none; it is of sgd, rmsprop, lars$'
expect_exit 2 "$TANDEM" train "$@" -o runs/bad --optimizer adam:beta3=1
expect_stderr_matches "it has no 'beta3'; adam takes beta1=0.9 \(0 to 0.9999\)"
expect_exit 2 "$TANDEM" train "$@" -o runs/bad --schedule ramp:decay=2
expect_stderr_matches "decay is '2'; ramp takes start=0.1"
expect_exit 2 "$TANDEM" train "$@" -o runs/bad --lr 0.1 --reference-batch 256
expect_stderr_matches 'nothing is scaled from it: it requires --lr-scaling linear or sqrt$'
expect_exit 2 "$TANDEM" train "$@" -o runs/bad --ema 1
expect_exit 2 "$TANDEM" train "$@" -o runs/bad --lr-scaling cubic
expect_true "nothing is left of what was refused" test ! -e runs/bad

# ---- a batch that is chosen -------------------------------------------------------------------
set -- pictures --model lenet5 --epochs 1 --split 0.7,0.3 --json
expect_exit 0 "$TANDEM" train "$@" -o runs/auto --batch auto
expect_stderr_matches 'batch auto: 32 images a step \(a larger batch leaves fewer than 100 steps an epoch of [0-9]+ images\)$'
expect_same auto "$(json_value options.batch)" "what was asked for"
expect_same 32 "$(json_value batch)" "and what was taken"
expect_exit 0 "$TANDEM" train pictures -o runs/auto --resume --epochs 2
expect_stdout_matches '^  batch +32, chosen: a larger batch leaves '
expect_exit 2 "$TANDEM" train pictures -o runs/auto --resume --batch 32
expect_stderr_matches 'option --batch is 32, but the run was started with auto'
expect_exit 2 "$TANDEM" train "$@" -o runs/bad --batch auto --lr 0.1
expect_stderr_matches 'lr 0.1 is meant for one that is known; --lr-scaling linear, sqrt or none'
expect_exit 0 "$TANDEM" train "$@" -o runs/any --batch auto --lr 0.1 --lr-scaling none
expect_exit 2 "$TANDEM" train "$@" -o runs/bad --batch 0
expect_stderr_matches "from 1 to 65536 images, or auto; found '0'"
expect_true "nothing is left of what was refused" test ! -e runs/bad

# ---- changed pictures ----------------------------------------------------------------------
set -- pictures --model lenet5 --epochs 3 --batch 16 --split 0.7,0.3 --json
expect_exit 0 "$TANDEM" train "$@" -o runs/aug1 --augment flip,crop:1,mixup:0.4 --threads 1
loss=$(json_value train.loss)
expect_exit 0 "$TANDEM" train "$@" -o runs/aug2 --augment flip,crop:1,mixup:0.4 --threads 2 --cache none
expect_same "$loss" "$(json_value train.loss)" "changed pictures are the same on two threads"
expect_true "and so are the weights" cmp runs/aug1/best.safetensors runs/aug2/best.safetensors
expect_exit 0 "$TANDEM" train "$@" -o runs/plain --augment none
expect_true "they are others than without" test "$loss" != "$(json_value train.loss)"
expect_exit 2 "$TANDEM" train "$@" -o runs/aug1 --resume --epochs 4 --augment flip
expect_stderr_matches "started with 'flip,crop:1,mixup:0.4'"
expect_exit 2 "$TANDEM" train "$@" -o runs/plain --resume --epochs 4 --augment auto
expect_stderr_matches "option --augment is 'auto', but the run was started with 'none'; leave it out"
expect_exit 0 "$TANDEM" train pictures -o runs/aug1 --resume --epochs 4 --json
expect_same flip,crop:1,mixup:0.4 "$(json_value options.augment)" "what changes pictures is remembered, too"

# By default the images decide, and say how.
expect_exit 0 "$TANDEM" train "$@" -o runs/by-images --schedule constant
expect_stderr_matches '^augment: crop:[0-9]+:[0-9]+, because the images are grey and small \(12 pixels\), .* --augment none switches it off$'
expect_same auto "$(json_value options.augment)" "the option is recorded as it was given"
loss=$(json_value train.loss)
changes=$(python3 -c 'import json; print(json.load(open("runs/by-images/run.json"))["data"]["augment"])')
expect_exit 0 "$TANDEM" train "$@" -o runs/by-name --schedule constant --augment "$changes"
expect_same "$loss" "$(json_value train.loss)" "it is the same as the changes by their names"
expect_exit 0 "$TANDEM" train "$@" -o runs/by-images-2 --schedule constant --epochs 1
expect_exit 0 "$TANDEM" train pictures -o runs/by-images-2 --resume --epochs 3 --json
expect_true "a resumed run does not decide again" sh -c '! grep -q ^augment "$1"' sh "$err"
expect_true "a resumed run ends with the same weights" cmp runs/by-images/last.safetensors runs/by-images-2/last.safetensors
expect_exit 0 "$TANDEM" train "$@" -o runs/head --weights runs/plain --epochs 1 --freeze base
expect_true "a head alone is trained on unchanged images" sh -c '! grep -q augment "$1"' sh "$err"
expect_exit 2 "$TANDEM" train "$@" -o runs/bad --memory 1
expect_exit 2 "$TANDEM" train "$@" -o runs/bad --augment flop
expect_stderr_matches 'flip'
expect_exit 2 "$TANDEM" train "$@" -o runs/bad --cache attic
expect_exit 2 "$TANDEM" train "$@" -o runs/bad --memory 1K
expect_true "nothing is left of a refused run" test ! -e runs/bad/run.json

# A class of a third of the pictures is shown as often as the other.
mkdir uneven && cp -r pictures/left uneven/ && mkdir uneven/right && cp pictures/right/?.ppm uneven/right/
set -- uneven --model lenet5 --epochs 2 --batch 8 --split 0.7,0.3 --balance --json
expect_exit 0 "$TANDEM" train "$@" -o runs/even1 --threads 1
expect_exit 0 "$TANDEM" train "$@" -o runs/even2 --threads 2
expect_true "balanced runs are equal on two threads" cmp runs/even1/best.safetensors runs/even2/best.safetensors
expect_same 24 "$(json_value train.n)" "an epoch is as long as there are pictures"

# ---- pictures that cannot be read ----------------------------------------------------------
cp -r pictures broken
head -c 200 pictures/left/3.ppm >broken/left/3.ppm
expect_exit 0 "$TANDEM" train broken --model lenet5 --epochs 2 --split 0.7,0.3 -o runs/skips --json
expect_same 1 "$(json_value skipped)" "a broken picture is skipped and counted"
expect_same fix-data "$(json_value next.step)" "one of 48 is more than two of a hundred"
expect_same 'of 48 images 1 could not be used and 0 are in more than one class, 2.1 % together; tandem audit names them' \
    "$(json_value next.evidence)" "with the figures"
expect_stderr_matches 'skipped: .*left/3\.ppm'
expect_exit 3 "$TANDEM" train broken --model lenet5 --epochs 2 --split 0.7,0.3 -o runs/strict --strict
expect_stderr_matches 'strict.*left/3\.ppm'
(echo path,label && ls pictures/*/*.ppm | sed 's|pictures/\(.*\)/.*|&,\1|' && echo gone.ppm,left) >list.csv
expect_exit 0 "$TANDEM" train list.csv --model lenet5 --epochs 1 --split 0.7,0.3 -o runs/gone
expect_stderr_matches "left out: .*gone\.ppm"
expect_same 1 "$(grep -o 'gone\.ppm' "$err" | wc -l)" "it is named once"
expect_stderr_matches '^1 image could not be read and is left out$'

(echo path,label && ls pictures/*/*.ppm | sed 's|pictures/\(.*\)/.*|&,\1|' &&
    seq 25 | sed 's|.*|gone&.ppm,left|') >list.csv
expect_exit 0 "$TANDEM" train list.csv --model lenet5 --epochs 1 --split 0.7,0.3 -o runs/many
expect_same 20 "$(grep -c 'left out: .*gone' "$err")" "of many pictures 20 are named"
expect_same "$(seq 20 | tr '\n' ' ')" "$(sed -n "s/.*left out: .*gone\([0-9]*\)\.ppm.*/\1/p" "$err" | tr '\n' ' ')" \
    "they are the first of the source, whichever thread met them"
expect_stderr_matches 'warning: and 5 more are left out$'
expect_stderr_matches '^25 images could not be read and are left out$'

# ---- parts that the source gives -----------------------------------------------------------
mkdir parts && cp -r pictures parts/train && cp -r pictures parts/val
for class in left right; do
    rm parts/train/$class/?.ppm
    rm parts/val/$class/??.ppm
done
expect_exit 0 "$TANDEM" train parts --model lenet5 --epochs 1 --split 0.5,0.5 -o runs/parts
expect_stderr_matches '^48 images of 2 classes: 28 for training, 20 for validation, as the source says: --split has no effect$'
expect_exit 0 "$TANDEM" train parts --model lenet5 --epochs 1 -o runs/unasked
expect_stderr_matches '^48 images of 2 classes: 28 for training, 20 for validation, as the source says$'
expect_exit 2 "$TANDEM" train parts --split 0.5,0.6 -o runs/x
expect_stderr_matches '^tandem: --split takes fractions such as 0.9,0.1, each from 0 to 1, that sum to at most 1; found '
mv parts/val parts/test
expect_exit 0 "$TANDEM" train parts --model lenet5 --epochs 1 --split 0.5,0.5 -o runs/free
expect_stderr_matches '^48 images of 2 classes: 14 for training, 14 for validation, 20 for the test$'
expect_stdout_matches '^  test +[0-9.]+ % right .* of 20$'
expect_true "no test is advised where the source gives one" sh -c '! grep -q "0\.8,0\.1,0\.1" "$1"' - "$out"
expect_exit 0 "$TANDEM" train parts -o runs/free --resume --epochs 2
expect_exit 0 "$TANDEM" evaluate runs/free parts --part test --json
expect_same "20 0" "$(json_value n) $(json_value trained_on)" "its test is evaluated alone"

# ---- a part that is kept for the end -------------------------------------------------------
set -- pictures --model lenet5 --epochs 4 --batch 8
expect_exit 0 "$TANDEM" train "$@" --split 0.5,0.25,0.25 -o runs/tested --json
expect_json run epochs best_epoch steps seconds images_per_second train val test cached world \
    ended_by patience after_best tests_before next
expect_same 12 "$(json_value test.n)" "a quarter is kept"
expect_same data "$(json_value next.step)" "twelve validation images are too few"
evidence=$(json_value next.evidence)
expect_stderr_matches '^48 images of 2 classes: 24 for training, 12 for validation, 12 for the test$'
tested=$(json_value test.correct)
loss=$(json_value test.loss)
expect_same epochs "$(json_value ended_by)" "what ended it is said"
expect_same 10 "$(json_value patience)" "and how patient it was"
expect_exit 0 "$TANDEM" evaluate runs/tested pictures --part test --json
expect_same 12 "$(json_value n)" "its images are found again"
expect_same "$tested" "$(json_value correct)" "and as many of them right"
expect_same 0 "$(json_value trained_on)" "none of them was trained on"
expect_exit 0 "$TANDEM" runs show runs/tested --json
expect_same "$loss" "$(json_value runs.0.test.loss)" "the run keeps the number"
expect_exit 0 "$TANDEM" train pictures -o runs/tested --resume
expect_stdout_matches '^  test +[0-9.]+ % right .* of 12$'
expect_stdout_matches '^next: more images; with 12 validation images the [0-9.]+ % that are right mean [0-9.]+ to [0-9.]+ %'
expect_true "a finished run says again what it said" grep -qF "next: more images; $evidence" "$out"
expect_true "and the page says it" grep -qF "next: <b>more images</b>; $evidence" runs/tested/report.html
expect_exit 2 "$TANDEM" train pictures -o runs/tested --resume --split 0.5,0.25
expect_stderr_matches 'option --split-test is none, but the run was started with 0.25; leave it out'
expect_exit 0 "$TANDEM" train pictures --model lenet5 --batch 8 --lr 0.003 --epochs 1 --split 0.5,0.25,0.25 -o runs/twice-tested --json
loss=$(json_value test.loss)
expect_same 0 "$(json_value tests_before | tr -d -c '{' | wc -c)" "the test was not evaluated before"
expect_exit 0 "$TANDEM" train pictures -o runs/twice-tested --resume --epochs 20
expect_stdout_matches '^ +tested 2 times, since the run was resumed'
expect_stderr_matches 'the test was evaluated before, after epoch 1, .* so the result keeps both$'
expect_exit 0 "$TANDEM" train pictures -o runs/twice-tested --resume --json
expect_same "$loss" "$(json_value tests_before.0.loss)" "what it said before is kept"
expect_exit 0 "$TANDEM" runs show runs/twice-tested
expect_stdout_matches '^ +tested 2 times$'
expect_stdout_matches '^  next +[a-z ]+; '
expect_true "and the page says how often" grep -q '2 times, so the choice may have followed it' runs/twice-tested/report.html
expect_exit 0 "$TANDEM" report runs/tested
expect_true "once is said, too" grep -q '<td>test evaluated</td><td>once</td>' runs/tested/report.html
expect_true "the page has it" grep -q 'test accuracy (95&nbsp;% interval)' runs/tested/report.html
expect_exit 0 "$TANDEM" train "$@" --split 0.5,0.25 -o runs/untested
expect_stdout_matches 'it chose the epoch, so it is a little better than on new images'
expect_exit 0 "$TANDEM" prepare pictures -o table --size 28 --split 0.5,0.25,0.25
expect_exit 0 "$TANDEM" train table --model lenet5 --epochs 1 --split 0.5,0.25,0.25 -o runs/table --json
expect_same 12 "$(json_value test.n)" "the test part of a table is evaluated, too"
expect_stderr_matches ', as the source says: --split has no effect$'
expect_exit 0 "$TANDEM" train table --model lenet5 --epochs 1 -o runs/table2 --json
expect_same 12 "$(json_value test.n)" "also without --split"
expect_stderr_matches '^48 images of 2 classes: 24 for training, 12 for validation, 12 for the test, as the source says$'
expect_exit 2 "$TANDEM" prepare pictures -o table2 --split 0.5,0.25,0.1
expect_stderr_matches 'three parts that sum to 1, or two, are accepted$'

# ---- stopping ------------------------------------------------------------------------------
expect_exit 0 "$TANDEM" train "$@" --epochs 40 --lr 1e-9 --split 0.7,0.3 -o runs/still
expect_stdout_matches '^11 epochs, .*; stopped: 10 validations in a row without a better accuracy$'
expect_exit 0 "$TANDEM" train "$@" --epochs 12 --lr 1e-9 --split 0.7,0.3 --patience 0 -o runs/endless
expect_stdout_matches '^12 epochs, '
expect_exit 0 "$TANDEM" train "$@" --epochs 12 --lr 0.2 --schedule constant --split 0.7,0.3 --patience 3 \
    --monitor loss --min-delta 0.001 -o runs/unsteady --json
expect_same loss "$(json_value options.monitor)" "the monitor is an option"
expect_true "what came after the best epoch is told" python3 - "$out" <<'END'
import json, sys
v = json.load(open(sys.argv[1]))
after = v["after_best"]
if v["ended_by"] == "patience":
    assert after["epochs"] >= 3 and after["n"] == v["val"]["n"] and 0 < after["p"] <= 1
assert after["epochs"] == v["epochs"] - v["best_epoch"]
END
sed 's/"batch": [0-9]*/"batch": 1e12/' runs/unsteady/run.json >damaged.json && mv damaged.json runs/unsteady/run.json
expect_exit 3 "$TANDEM" train pictures -o runs/unsteady --resume
expect_stderr_matches 'option --batch is 1e\+12; 1 to 65536 is accepted'

# ---- copies --------------------------------------------------------------------------------
cp -r pictures twice
cp pictures/left/1.ppm twice/right/wrong.ppm
cp pictures/left/2.ppm twice/left/again.ppm
expect_exit 0 "$TANDEM" train twice --model lenet5 --epochs 1 --split 0.7,0.3 -o runs/twice
expect_stderr_matches '^2 images are in more than one class \(tandem audit names them\)$'
expect_stderr_matches '^1 image is a copy of another of the same class; copies stay on one side of the split$'

# ---- evaluate ------------------------------------------------------------------------------
expect_exit 0 "$TANDEM" evaluate runs/b pictures --part val --json
expect_json n correct accuracy low high per_class loss top5 balanced_accuracy balanced_low \
    balanced_high calibration_error calibration confusion trained_on skipped n_distinct \
    correct_distinct unseen validation
expect_same "None $(json_value correct)" "$(json_value unseen) $(json_value validation.correct)" \
    "validation images chose the epoch: none is unseen"
expect_same None "$(json_value top5)" "of two classes there are no five likeliest"
expect_true "counts of classes, pairs and bins are those of the whole" python3 - "$out" <<'END'
import json, sys
v = json.load(open(sys.argv[1]))
rows = v["confusion"]
assert len(rows) == 2 and all(len(r) == 2 for r in rows)
assert sum(map(sum, rows)) == sum(c["n"] for c in v["per_class"]) == v["n"]
assert sum(b["n"] for b in v["calibration"]) == v["n"] and len(v["calibration"]) == 15
assert rows[0][0] + rows[1][1] == v["correct"] == sum(b["correct"] for b in v["calibration"])
for i, c in enumerate(v["per_class"]):
    assert c["n"] == sum(rows[i]) and c["predicted"] == rows[0][i] + rows[1][i]
    assert c["recall"] == c["accuracy"] == c["correct"] / c["n"]
END
expect_true "the run recorded what evaluate counts" python3 - "$out" runs/b/run.json <<'END'
import json, sys
found, run = (json.load(open(p)) for p in sys.argv[1:])
kept = run["validation"]
assert kept["epoch"] == run["result"]["best_epoch"]
for key in ("n", "correct", "loss", "per_class", "confusion", "calibration", "calibration_error"):
    assert kept[key] == found[key], key
END
expect_same "$n" "$(json_value n)" "evaluate counts the pictures of the validation"
expect_same "$correct" "$(json_value correct)" "evaluate --part val counts what train counted"
expect_same 0 "$(json_value trained_on)" "none of them was trained on"
expect_same left "$(json_value per_class.0.label)" "classes by name"
expect_exit 0 "$TANDEM" evaluate runs/b/best.safetensors pictures --json
expect_same 48 "$(json_value n)" "all pictures"
expect_same $((48 - n)) "$(json_value trained_on)" "and how many of them it was trained on"
expect_same "None $n" "$(json_value unseen) $(json_value validation.n)" "none is new to it"
expect_exit 0 "$TANDEM" evaluate runs/b pictures
expect_stdout_matches "^  right +$((n / 2)) "
expect_stdout_matches "^validation accuracy .these images chose the epoch.: [0-9.]+ % right .*, $correct of $n; loss "
expect_stdout_matches '^all images: [0-9]+[.][0-9] % right .95 %: [0-9]+[.][0-9] to [0-9]+[.][0-9].,.* of 48$'
expect_stdout_matches 'was trained on [0-9]+ of these'
expect_same 0 "$(grep -c unseen "$out")" "nothing is called unseen"

# Two new pictures, one of them twice, among those of the training: they come first.
cp -r pictures grown
printf 'P6\n1 1\n255\nabc' >grown/left/new.ppm
printf 'P6\n1 1\n255\nabd' >grown/right/new.ppm
cp grown/right/new.ppm grown/right/copy.ppm
expect_exit 0 "$TANDEM" evaluate runs/b grown
expect_stdout_matches '^unseen images: [0-9.]+ % right, [0-3] of 3; without copies [0-9.]+ % .95 %: .*., [0-2] of 2; loss '
expect_true "the part that is unseen leads" python3 - "$out" <<'END'
import sys
text = open(sys.argv[1]).read()
at = [text.index(words) for words in ("unseen images: ", "validation accuracy ", "all images: ", "was trained on")]
assert at == sorted(at), at
END
expect_exit 0 "$TANDEM" evaluate runs/b grown --json
expect_same "51 50 3 2 $n" "$(json_value n) $(json_value n_distinct) $(json_value unseen.n) \
$(json_value unseen.n_distinct) $(json_value validation.n)" "copies count once, in what intervals rest on"
expect_true "the interval is that of distinct pictures" python3 - "$out" <<'END'
import json, math, sys
v = json.load(open(sys.argv[1]))
for s in (v, v["unseen"], v["validation"]):
    z, n, p = 1.959963984540054, s["n_distinct"], s["correct_distinct"] / s["n_distinct"]
    centre, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    for key, end in (("low", centre - half), ("high", centre + half)):
        assert abs(s[key] - end / (1 + z * z / n)) < 1e-9, s
    assert s["accuracy"] == s["correct"] / s["n"]
END

# One class has every picture twice: lines of epochs and classes are of distinct pictures, as their intervals are.
cp -r pictures doubled
for picture in doubled/left/*; do
    cp "$picture" "doubled/left/copy-$(basename "$picture")"
done
expect_exit 0 "$TANDEM" train doubled --model lenet5 --epochs 1 --lr 1e-9 --batch 8 --split 0.5,0.5 -o runs/doubled --json
cp "$out" doubled.json
cp "$err" doubled.txt
expect_exit 0 "$TANDEM" evaluate runs/doubled doubled --part val
cp "$out" doubled-classes.txt
expect_exit 0 "$TANDEM" evaluate runs/doubled doubled --part val --json
expect_true "figure and interval are of the same pictures" python3 - doubled.json doubled.txt doubled-classes.txt "$out" <<'END'
import json, re, sys
val = json.load(open(sys.argv[1]))["val"]
share = val["correct_distinct"] / val["n_distinct"]
assert abs(val["accuracy"] - share) > 0.002, val  # else this shows nothing
def interval(low, high):
    return f"{100 * low:.1f} to +{100 * high:.1f} %"
line = re.search(r"^ +1 +[0-9]+ .*", open(sys.argv[2]).read(), re.M).group()
assert re.search(rf" {100 * share:.1f} % +{interval(val['low'], val['high'])}", line), line
text = open(sys.argv[3]).read()
for one in json.load(open(sys.argv[4]))["per_class"]:
    n, right = one["n_distinct"], one["correct_distinct"]
    row = re.search(rf"^  {one['label']} .*", text, re.M).group()
    assert re.search(rf" {n} +{right} +{100 * right / n:.1f} % +{interval(one['low'], one['high'])}", row), row
assert "of images with equal content one is counted here" in text
END

# A class may be called anything; a terminal must not obey it.
escape=$(printf '\033[31m\302\233')
mkdir odd && cp -r pictures/left "odd/l${escape}" && cp -r pictures/right odd/right
expect_exit 0 "$TANDEM" train odd --model lenet5 --epochs 1 --batch 8 --split 0.7,0.3 -o runs/odd
expect_exit 0 "$TANDEM" evaluate runs/odd odd
expect_same 0 "$(tr -d -c '\033\233' <"$out" | wc -c)" "no control byte of a class name is printed"
expect_stdout_matches '^  l\\x1b\[31m\\u009b +7 '
expect_exit 0 "$TANDEM" predict runs/odd odd --top 2
expect_same 0 "$(tr -d -c '\033\233' <"$out" | wc -c)" "nor of a path"

# ---- predict -------------------------------------------------------------------------------
echo "no picture" >pictures/notes.ppm
expect_exit 0 "$TANDEM" predict runs/b pictures/left/1.ppm pictures/notes.ppm --json
expect_json predictions
expect_same pictures/left/1.ppm "$(json_value predictions.0.path)" "path as given"
expect_same 2 "$(json_value predictions.0.top | tr '}' '\n' | grep -c label)" "both classes"
expect_true "a guess has a probability" test -n "$(json_value predictions.0.top.0.probability)"
expect_true "no picture has a problem" test -n "$(json_value predictions.1.problem)"
expect_exit 3 "$TANDEM" predict runs/b pictures/notes.ppm --json
expect_json predictions
rm pictures/notes.ppm
expect_exit 0 "$TANDEM" predict runs/b pictures --top 1
expect_stdout_matches '^right/11.ppm$'
expect_stdout_matches '^ +[0-9.]+ %  left$'

# ---- what can be wrong ---------------------------------------------------------------------
expect_exit 3 "$TANDEM" train pictures/left/1.ppm -o runs/x
expect_stderr_matches "'pictures/left/1.ppm' is a single image; name a data set, such as the folder"
expect_exit 3 "$TANDEM" train missing -o runs/x
expect_stderr_matches "no such file or folder: 'missing'; expected a data set$"
expect_true "nothing is left of a run that never was" test ! -e runs/x
bad=$(printf 'bad\377')
mkdir -p odd/good "odd/$bad"
cp pictures/left/1.ppm pictures/left/2.ppm odd/good/
cp pictures/right/1.ppm pictures/right/2.ppm "odd/$bad/"
expect_exit 3 "$TANDEM" train odd -o runs/x
expect_stderr_matches 'is not UTF-8'
expect_true "no run folder is left of it" test ! -e runs/x/best.safetensors
expect_exit 3 "$TANDEM" evaluate missing pictures
expect_exit 3 "$TANDEM" evaluate runs/b missing
expect_exit 3 "$TANDEM" predict runs/b missing.ppm
expect_stdout_matches 'skipped: .*no such file or folder: .missing.ppm'
expect_exit 3 "$TANDEM" predict runs/b missing.ppm --csv
expect_stderr_matches "no such file or folder: 'missing.ppm'"
expect_exit 3 "$TANDEM" predict runs/b missing.ppm pictures/left/1.ppm missing-too.ppm
expect_stdout_matches '^pictures/left/1.ppm$'
expect_stdout_matches 'skipped: .*no such file or folder: .missing.ppm'
expect_stderr_matches "2 of the 3 paths given cannot be predicted; .*no such file or folder: 'missing.ppm'"
expect_exit 3 "$TANDEM" predict runs/b pictures/left/1.ppm missing.ppm --json
expect_same 2 "$(python3 -c 'import json, sys; print(len(json.load(open(sys.argv[1]))["predictions"]))' "$out")" \
    "the missing one is answered with its problem"
expect_exit 2 "$TANDEM" train
expect_stderr_matches '^tandem: tandem train needs SRC: '
expect_exit 2 "$TANDEM" predict runs/b
expect_stderr_matches "^tandem: tandem predict needs FILE\|DIR after MODEL 'runs/b': "
expect_exit 2 "$TANDEM" evaluate runs/b pictures more
expect_exit 2 "$TANDEM" evaluate runs/b pictures --part vall
expect_stderr_matches '^tandem: --part takes one of all, train, val, test; found .vall.$'
expect_exit 2 "$TANDEM" train pictures --split 0.9 -o runs/x
expect_stderr_matches 'takes two fractions with a comma, as in 0.8,0.2, .*; found 0.9$'
expect_stderr_matches 'or a third, as in 0.8,0.1,0.1, to test on; found 0.9$'
expect_exit 2 "$TANDEM" train pictures --split 0.7,0.2,0.2 -o runs/x
expect_stderr_matches 'that sum to at most 1; found .0.7,0.2,0.2.$'
expect_exit 0 "$TANDEM" evaluate runs/b pictures --memory 64M --cache encoded --quiet
expect_exit 2 "$TANDEM" evaluate runs/b pictures --memory 1
expect_stderr_matches 'bytes of memory cannot hold one batch'
expect_exit 2 "$TANDEM" train pictures --split 0.9,0.2 -o runs/x
expect_exit 2 "$TANDEM" train pictures --model lenet6 -o runs/x
expect_stderr_matches lenet5
expect_exit 2 "$TANDEM" train pictures --epochs -1 -o runs/x
expect_stderr_matches '^tandem: --epochs takes an integer of at least 0; found .-1.$'
expect_exit 4 "$TANDEM" train pictures --model lenet5 --device cuda -o runs/x
expect_exit 2 "$TANDEM" train pictures --model lenet5 --device gpu -o runs/x
expect_stderr_matches "choosing the device 'gpu': there is no such backend; there is cpu, ref, cuda$"
if [ -w /dev/full ]; then
    status=0
    "$TANDEM" predict runs/b pictures >/dev/full 2>"$err" || status=$?
    expect_same 1 "$status" "predict ends with exit 1 when the device is full"
    expect_stderr_matches 'No space left on device'
fi
if [ "$(id -u)" != 0 ]; then
    mkdir locked && chmod 500 locked
    expect_exit 4 "$TANDEM" train pictures --model lenet5 -o locked/run
else
    expect_exit 4 "$TANDEM" train pictures --model lenet5 -o /proc/run
fi

# ---- selftest ------------------------------------------------------------------------------
expect_exit 0 "$TANDEM" selftest --part ops --json
expect_true "ops alone: no network is trained" test "$(grep -c '"check": *"network gradient"' "$out")" = 0
expect_exit 2 "$TANDEM" selftest --part networks
expect_exit 0 "$TANDEM" selftest --json
expect_json passed failed failures
expect_same 0 "$(json_value failed)" "nothing failed"
if [ ! -e /dev/nvidiactl ]; then
    expect_exit 4 "$TANDEM" selftest --device cuda
    expect_stderr_matches "choosing the device 'cuda'"
    expect_stderr_matches 'there is no NVIDIA driver|this build has no cuda backend'
    expect_stderr_matches '[-]-device cpu'
fi

# ---- long names ----------------------------------------------------------------------------
long=$(printf '%0200d' 1)
expect_exit 3 "$TANDEM" train "$long"
expect_stderr_matches "no such file or folder: '$long'"
# An error has room for one kilobyte.
expect_exit 3 "$TANDEM" train "$long/$(printf '%0200d' 2)/$(printf '%0200d' 3)"
expect_stderr_matches "no such file or folder: '0+10*/0+…0+3'"
expect_exit 3 "$TANDEM" train "$long" --json
expect_true "in JSON a sentence with a long name is whole" grep -q "no such file or folder: '$long'" "$out"

# ---- commands to copy ----------------------------------------------------------------------
cp -r pictures "it's my pictures"
expect_exit 0 "$TANDEM" train "it's my pictures" --model lenet5 --epochs 1 --batch 8 -o 'my $run'
expect_stdout_matches "^then: tandem evaluate 'my .run' 'it'.''s my pictures' --part val   \\(class by class\\)$"
expect_stdout_matches "^      'my .run'/report.html   \\(curves and mistakes, for a browser\\)$"
sed -n 's/^then: tandem \(.*\)   (class by class)$/\1/p' "$out" >copied.txt
expect_true "what it says to copy is a command" sh -c "\"$TANDEM\" $(cat copied.txt) --quiet >/dev/null"

# ---- a part of an epoch --------------------------------------------------------------------
expect_exit 0 "$TANDEM" train "$@" --steps 2 -o runs/part
expect_stdout_matches '^less than an epoch, 2 steps in [0-9.]+ s \(steps alone: [0-9]+ images/s\); best: after the last step, within epoch 1$'
expect_exit 0 "$TANDEM" runs show runs/part
expect_stdout_matches '^runs/part: finished, 0 epochs, best: within the next one, '
finish
