# Words of other tools: what is typed by habit is answered with what it is called here.
. "$SOURCE/tests/cli/lib.sh"

# hint "COMMAND LINE" TEXT: exits with 2, one line that ends with TEXT
hint() {
    # shellcheck disable=SC2086 # words on purpose
    expect_exit 2 "$TANDEM" $1
    expect_same 1 "$(wc -l <"$err" | tr -d ' ')" "one line"
    case $(cat "$err") in
    *"; $2") pass "the hint is: $2" ;;
    *) fail "no hint '$2' in '$(cat "$err")'" ;;
    esac
}
hint "train p --learning-rate 0.1" "use --lr X"
hint "train p --learning_rate=0.1" "use --lr X"
hint "train p --learning-rat 0.1" "for --learning-rate use --lr X"
hint "train p --imgsz 224" "use --size PX"
hint "train p --batch-size 64" "use --batch N"
hint "train p --batchSize 64" "use --batch N"
hint "train p -b 64" "use --batch N"
hint "train p -b64" "use --batch N"
hint "train p -j8" "use --threads N"
hint "train p -lr 0.1" "did you mean '--lr'?"
hint "train p --num-workers 4" "use --threads N"
hint "train p --pretrained" "use --weights NAME (tandem weights list shows the names)"
hint "predict run x.jpg --pretrained" "MODEL is an argument of tandem predict, without an option's name"
hint "train --data-dir p" "SRC is an argument of tandem train, without an option's name"
hint "train p --validation-split 0.2" "use --split 0.8,0.2 (fractions to train and to validate on)"
hint "train p --opt adam" "use --optimizer NAME[:KEY=VALUE,…]"
hint "train p --output-dir r" "use --out RUN"
hint "audit p --output-dir r" "use --out FILE"
hint "train p --name x" "use -o runs/NAME"
hint "audit p --name x" "use --out FILE"
hint "prepare p --project x" "use --out OUT"
hint "predict r --source x.jpg" "FILE|DIR is an argument of tandem predict, without an option's name"
hint "export r --format onnx" "use --form TEXT"
hint "train p imgsz=224" "use --size PX"
hint "train p -a resnet50" "use --model NAME"
expect_exit 2 "$TANDEM" train p a=1
expect_stderr_matches "found one more: 'a=1'$"
hint "train p epochs=3" "options have two dashes: --epochs"
hint "prepare p --num-workers 4" "use --threads N"
hint "train p --dropout-rate 0.3" "use --dropout X"
hint "train p --val v" "use --split 0.8,0.2, or folders called train and val in SRC"
hint "evaluate r p --val" "use --part val"
hint "train p --num-classes 3" "use one folder for each class in SRC; they are counted"
hint "train p --no-augment" "use --augment none"
hint "train p --overwrite" "use another -o RUN, or --resume; a run is never written over"
hint "train p exist_ok=True" "use another -o RUN, or --resume; a run is never written over"
hint "train p --steps-per-epoch 10" "use --steps N (of the whole training), or --fraction F"
hint "train p --restore_best_weights" "use --monitor accuracy or loss (the best epoch is always kept)"
hint "train p --color-jitter 0.4" "use --augment jitter:0.4"
hint "train p --lrf 0.01" "use --schedule cosine:floor=0.01 (a part of the full rate)"
hint "train p --eval-only" "use tandem evaluate MODEL SRC"
hint "evaluate r p --split val" "use --part val (or train, test, all)"
hint "evaluate r p --set val" "use --part val (or train, test, all)"
# One letter is near to too many names: only the table answers it.
for option in -k --k -k3 --topk --top-k; do
    hint "predict r x.jpg $option 3" "use --top N"
done
for option in -n -V -p; do
    hint "predict r x.jpg $option" "'tandem predict --help-all' lists them all"
done
for option in -k -g -d; do
    hint "train p $option" "'tandem train --help-all' lists them all"
done
hint "evaluate r p -o x" "'tandem evaluate --help-all' lists them all"
# A word means nothing to a command that has no such option.
hint "synth p --learning-rate 1" "'tandem synth --help-all' lists them all"

# Commands of other tools, and a word that is none.
hint "next" "use tandem runs show RUN, which has the run's next step"
hint "test run p" "use tandem evaluate MODEL SRC"
hint "infer run x.jpg" "use tandem predict MODEL FILE"
hint "fit p --epochs 3" "use tandem train SRC"
hint "show run" "use tandem runs show RUN"
commands=$(sed -n 's/^    {"[a-z-]*", "\([a-z]*\)[^"]*"},$/\1/p; s/^.* or tandem \([a-z]*\).*"},$/\1/p' "$SOURCE/src/cli/commands.c" | sort -u)
expect_true "there are some" test "$(echo "$commands" | wc -l)" -ge 10
for command in $commands; do
    "$TANDEM" help "$command" >/dev/null 2>&1 || echo "$command"
done >missing
expect_same "" "$(cat missing)" "and each names a command that exists"

# Each row of the table has a target somewhere, so that none is a promise without an option.
names=$(python3 - "$SOURCE/include/tandem/hints.def" <<'END'
import json, os, re, subprocess, sys
table = json.loads(subprocess.run([os.environ["TANDEM"], "help", "--json"], stdout=subprocess.PIPE, check=True).stdout)
targets = {o["name"] for c in table["commands"] for o in c["options"]} | {a["name"] for c in table["commands"] for a in c["arguments"]}
rows = re.findall(r'^HINT\("([^"]*)", "([^"]*)"', open(sys.argv[1]).read(), re.M)
print(len(rows) >= 60, *[word for word, target in rows if target not in targets])
END
)
expect_same True "$names" "each row of hints.def names an option or an argument that exists"
taken=$(python3 - "$SOURCE/include/tandem/hints.def" <<'END'
import json, os, re, subprocess, sys
table = json.loads(subprocess.run([os.environ["TANDEM"], "help", "--json"], stdout=subprocess.PIPE, check=True).stdout)
rows = re.findall(r'^HINT\("([^"]*)", "([^"]*)"', open(sys.argv[1]).read(), re.M)
dead = []
for word, target in rows:  # a word that every command with the target takes as its own is never asked about
    having = [c for c in table["commands"] if target in {o["name"] for o in c["options"]} | {a["name"] for a in c["arguments"]}]
    if all(word in {o["name"] for o in c["options"]} for c in having):
        dead.append(word)
print(*dead)
END
)
expect_same "" "$taken" "and none that is never reached"

# Specifications in the sentences are accepted.
"$TANDEM" synth few --classes 2 --per-class 4 --size 16 --quiet >/dev/null
specifications=$(grep -o '"--\(optimizer\|schedule\|augment\) [a-z0-9.:=,-]*[a-z0-9]' "$SOURCE/include/tandem/hints.def" | tr -d '"' | sort -u)
expect_true "there are some" test "$(echo "$specifications" | wc -l)" -ge 15
echo "$specifications" | while read -r option value; do
    "$TANDEM" train few -o "few-$value" --model lenet5 --epochs 1 --quiet "$option" "$value" >/dev/null 2>&1 </dev/null ||
        echo "$option $value"
done >refused
expect_same "" "$(cat refused)" "and each is accepted"

# A misspelt network is answered like a misspelt option, wherever one is named.
for command in "train few" "bench compute" "model show"; do
    case $command in model*) name= ;; *) name=--model ;; esac
    # shellcheck disable=SC2086 # words on purpose
    expect_exit 2 "$TANDEM" $command $name mobilnetv2
    expect_stderr_matches "there is none of that name; .*; did you mean 'mobilenetv2'\?$"
done

# The case of letters is a slip like another.
expect_exit 2 "$TANDEM" train few --optimizer Adam
expect_stderr_matches "the optimizer 'Adam': .*; did you mean 'adam'\?$"
expect_exit 2 "$TANDEM" train few --optimizer SGD:momentum=0.9
expect_stderr_matches "the optimizer 'SGD': .*; did you mean 'sgd'\?$"
expect_exit 2 "$TANDEM" train few --schedule Cosine
expect_stderr_matches "the schedule 'Cosine': .*; did you mean 'cosine'\?$"
expect_exit 2 "$TANDEM" train few --model ResNet50
expect_stderr_matches "; did you mean 'resnet50'\?$"
expect_exit 2 "$TANDEM" train few --augment Flip
expect_stderr_matches "; did you mean 'flip'\?$"

# A model's path behind --model, which names a network.
mkdir run1
hint=": MODEL stands first, without an option's name, as in tandem"
expect_exit 2 "$TANDEM" predict --model runs/x new
expect_stderr_matches "^tandem: --model 'runs/x' is a path, not a network's name$hint predict runs/x FILE\|DIR$"
expect_exit 2 "$TANDEM" predict --model run1 a.jpg b.jpg
expect_stderr_matches "$hint predict run1 FILE\|DIR$"
expect_exit 2 "$TANDEM" evaluate --model run1 few
expect_stderr_matches "$hint evaluate run1 SRC$"
expect_exit 2 "$TANDEM" export --model run1
expect_stderr_matches "$hint export run1$"
mkdir lenet5
expect_exit 2 "$TANDEM" predict x --model lenet5
expect_stderr_matches "needs FILE\|DIR after MODEL 'x'"

# ---- -o everywhere, and the names from before -------------------------------------------------
expect_exit 0 "$TANDEM" synth -o painted --classes 2 --per-class 2 --size 32 --quiet
expect_true "-o of synth makes the folder" test -d painted
expect_exit 2 "$TANDEM" synth one --out two
expect_stderr_matches "^tandem: found both 'one' and --out two; one folder is made$"
expect_exit 2 "$TANDEM" synth
expect_stderr_matches '^tandem: tandem synth needs OUT: '
for name in -o --out --svg; do
    rm -f drawing.svg
    expect_exit 0 "$TANDEM" model show lenet5 $name drawing.svg --quiet
    expect_true "$name draws" test -s drawing.svg
done
for name in -o --out --quarantine; do
    rm -f bad.jsonl
    expect_exit 0 "$TANDEM" audit painted $name bad.jsonl --quiet
    expect_true "$name writes the list" test -e bad.jsonl
done
# Missing folders of the path are made, by every command.
expect_exit 0 "$TANDEM" synth -o deep/0/set --classes 2 --per-class 4 --size 16 --quiet
expect_exit 0 "$TANDEM" train deep/0/set -o deep/1/run --model lenet5 --epochs 1 --quiet
expect_exit 0 "$TANDEM" report deep/1/run -o deep/2/page.html --quiet
expect_exit 0 "$TANDEM" export deep/1/run -o deep/3/model.safetensors --quiet
expect_exit 0 "$TANDEM" weights convert deep/1/run/best.safetensors -o deep/4/weights.safetensors --quiet
expect_exit 0 "$TANDEM" audit deep/0/set -o deep/5/bad.jsonl --quiet
expect_exit 0 "$TANDEM" model show lenet5 -o deep/6/drawing.svg --quiet
expect_same "bad.jsonl drawing.svg model.safetensors page.html run set weights.safetensors" \
    "$(ls deep/[0-9] | grep -v : | sort | xargs)" "-o makes the folders above it"
expect_exit 0 env TANDEM_QUARANTINE=old.jsonl "$TANDEM" audit painted --quiet
expect_true "the variable of before works" test -e old.jsonl
expect_exit 0 env TANDEM_AUDIT_OUT=new.jsonl "$TANDEM" audit painted --quiet
expect_true "and the new one" test -e new.jsonl
expect_exit 0 env TANDEM_OUT=runs/x "$TANDEM" audit painted --quiet
expect_true "TANDEM_OUT, meant for train, makes audit write nothing" test ! -e runs
printf 'out = "runs/x"\n[audit]\nout = "section.jsonl"\n' >conf.toml
expect_exit 0 "$TANDEM" audit painted --quiet --config conf.toml
expect_true "likewise in a file, whose section counts" test -e section.jsonl -a ! -e runs
for name in -o --out --output; do
    expect_exit 2 "$TANDEM" prepare painted $name
    expect_stderr_matches "^tandem: $name needs a value OUT"
done
expect_exit 2 "$TANDEM" weights list -o x
expect_stderr_matches '^tandem: --out is for tandem weights convert$'
expect_exit 2 "$TANDEM" weights convert a
expect_stderr_matches 'needs the file to write, once: as TO or as -o TO$'
finish
