# Names of other people, of every kind that a terminal would obey or misread, through each command
# and in messages about arguments. The rules are those of src/base/text/quote.h.
. "$SOURCE/tests/cli/lib.sh"
command -v python3 >/dev/null || {
    skip "no python3 to name pictures with"
    finish
    exit
}

cat >names.py <<'END'
import itertools, os, sys

ESCAPE = b"\x1b[31m"                    # a C0 control
C1 = "\u009b2J".encode()                # a C1 control
REVERSED = "\u202egpj".encode()         # reverses what is read
MARKS = "\u061c\u200e\u2066\u2069".encode()
LINES = b"two\nlines\r" + "\u2028".encode()
INVALID = b"\x9b2J\xff\xc0\x9b\xed\xa0\x80\xf4\x90\x80\x80"
ALL = ESCAPE + C1 + REVERSED + MARKS + LINES + INVALID
SEEN = ("\\x1b[31m\\u009b2J\\u202egpj\\u061c\\u200e\\u2066\\u2069two\\x0alines\\x0d\\u2028"
        "\\x9b2J\\xff\\xc0\\x9b\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80")
FORBIDDEN = {chr(code) for code in itertools.chain(
    range(0x20), range(0x7f, 0xa0), [0x61c, 0x200e, 0x200f], range(0x2028, 0x202f), range(0x2066, 0x206a))}


def make():
    for folder, red in ((b"l" + ESCAPE + C1 + REVERSED + b"\n", 200), (b"right", 20)):
        for n in range(10):
            path = b"pictures/" + folder + b"/" + (ALL if n == 0 else b"") + b"%d.ppm" % n
            os.makedirs(os.path.dirname(path), exist_ok=True)
            pixels = bytes(red - n + i % 7 if i % 3 == 0 else 20 + i % 11 + n for i in range(3 * 64))
            open(path, "wb").write(b"P6 8 8 255\n" + pixels)
    open(b"pictures/right/bad" + ALL + b".ppm", "wb").write(b"P6 8 8 255\ncut")
    open("hostile", "wb").write(ALL)


def check(path, allowed):
    text = open(path, "rb").read().decode()  # strict
    found = {character for character in text if character in FORBIDDEN} - set(allowed)
    assert not found, f"{sorted(map(hex, map(ord, found)))} in {path}"


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make()
    else:
        for path in sys.argv[2:]:
            check(path, "\n" if sys.argv[1] == "people" else sys.argv[1])
END
python3 names.py make
all=$(cat hostile && echo .) && all=${all%.}
seen='\\x1b\[31m\\u009b2J\\u202egpj\\u061c\\u200e\\u2066\\u2069two\\x0alines\\x0d\\u2028\\x9b2J\\xff\\xc0\\x9b\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80'
label='l\\x1b\[31m\\u009b2J\\u202egpj\\x0a'

# expect_clean EXIT COMMAND…: nothing that it prints steers a terminal.
expect_clean() {
    expect_exit "$@"
    expect_true "both outputs are UTF-8 without controls" python3 names.py people "$out" "$err" ||
        show_output | cat -v
}

# ---- pictures --------------------------------------------------------------------------------
expect_clean 0 "$TANDEM" audit pictures
expect_stdout_matches "right/bad$seen.ppm: "
expect_stdout_matches "^  $label +10 +0 "
expect_clean 0 "$TANDEM" audit pictures --quarantine list.jsonl --json
expect_json classes

if "$TANDEM" prepare nowhere -o out --codec raw 2>&1 | grep -q 'no Apache Arrow'; then
    skip "no Apache Arrow to prepare with"
else
    expect_clean 0 "$TANDEM" prepare pictures -o out --size 8 --codec raw
    expect_stderr_matches "quarantined as .*'right/bad$seen.ppm': "
fi

expect_clean 0 "$TANDEM" train pictures --model lenet5 --epochs 1 --batch 4 --split 0.5,0.5 -o "run$all"
expect_stdout_matches "run         run$seen"
cp -R "run$all" run
expect_clean 0 "$TANDEM" evaluate run pictures
expect_stdout_matches "^  $label +5 "
expect_clean 0 "$TANDEM" evaluate run pictures --json
expect_json per_class
expect_true "the label in JSON is the name, to its last character" python3 -c '
import json, names
labels = [c["label"] for c in json.load(open("'"$out"'"))["per_class"]]
assert b"l" + names.ESCAPE + names.C1 + names.REVERSED + b"\n" in [name.encode() for name in labels], labels'
expect_clean 0 "$TANDEM" runs list .
expect_stdout_matches "run$seen"
expect_clean 0 "$TANDEM" runs show "run$all"
expect_clean 0 "$TANDEM" report "run$all" --out report.html
expect_true "the page is UTF-8 without controls" python3 names.py people report.html

expect_clean 0 "$TANDEM" predict run pictures
expect_stdout_matches "^.*/$seen"0.ppm
expect_stdout_matches " %  $label\$"
expect_clean 0 "$TANDEM" predict run pictures --json
expect_json predictions
expect_clean 0 "$TANDEM" predict run pictures --csv
expect_stdout_matches '^"l\\x1b\[31m\\u009b2J\\u202egpj$' # a line feed stays, between quotes
expect_true "CSV has a row for each guess" python3 -c '
import csv
rows = list(csv.DictReader(open("'"$out"'", newline="")))
assert len(rows) == 41, len(rows)
assert sum(row["problem"] != "" for row in rows) == 1
assert all(len(row) == 6 and None not in row for row in rows)'

# ---- tensors -----------------------------------------------------------------------------------
export SOURCE
python3 - <<'END'
import json, os, struct
from names import *

LENET = {"conv1.weight": [6, 1, 5, 5], "conv1.bias": [6], "conv2.weight": [16, 6, 5, 5], "conv2.bias": [16],
         "fc1.weight": [120, 400], "fc1.bias": [120], "fc2.weight": [84, 120], "fc2.bias": [84],
         "fc3.weight": [10, 84], "fc3.bias": [10]}

def write(path, names, dtype="F32", others={}):
    head, n = {"__metadata__": {"key\x1b\u202e": "value\x1b\u009b"}}, 0
    for name, shape in {**others, **{name: [1] for name in names}}.items():
        bytes_ = 4
        for side in shape:
            bytes_ *= side
        head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [n, n + bytes_]}
        n += bytes_
    text = json.dumps(head).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + bytes(n))

odd = (ESCAPE + C1 + REVERSED + MARKS + LINES).decode()
write("odd.safetensors", [odd, "plain"])
write("odd-lenet.safetensors", [odd], others=LENET)
write("unknown.safetensors", [odd], "F99")
long = "begin" + "n" * 5_000_000 + "end"
write("long.safetensors", [long])
write("long-lenet.safetensors", [long], others=LENET)
write("long-unknown.safetensors", [long], "F99")
# A description of a network that is no UTF-8.
h5 = open(os.environ["SOURCE"] + "/tests/fixtures/keras/sequential.h5", "rb").read()
open("model.h5", "wb").write(h5.replace(b'"Conv2D"', b'"Conv\xff\xfe"'))
END
expect_clean 0 "$TANDEM" weights inspect odd.safetensors
expect_stdout_matches '^  \\x1b\[31m\\u009b2J\\u202egpj\\u061c\\u200e\\u2066\\u2069two\\x0alines\\x0d\\u2028 +F32 '
expect_stdout_matches '^  key\\x1b\\u202e +value\\x1b\\u009b$'
expect_clean 0 "$TANDEM" weights inspect odd.safetensors --json
expect_clean 3 "$TANDEM" weights inspect unknown.safetensors
expect_clean 3 "$TANDEM" predict odd-lenet.safetensors --model lenet5 pictures
expect_stderr_matches 'of no use: \\x1b'

expect_clean 0 "$TANDEM" weights inspect long.safetensors
expect_true "a name of 5 MB is not printed whole" test "$(wc -c <"$out")" -lt 5000
expect_stdout_matches '^  beginn+…n+end +F32 '
expect_clean 3 "$TANDEM" weights inspect long-unknown.safetensors
expect_true "nor in a message" test "$(wc -c <"$err")" -lt 5000
expect_stderr_matches "tensor 'beginn+…[n…]+end': dtype 'F99' is not one of "
expect_clean 3 "$TANDEM" predict long-lenet.safetensors --model lenet5 pictures
expect_stderr_matches 'of no use: beginn+…n+end of 1$'

expect_clean 3 "$TANDEM" weights convert model.h5 model.safetensors
expect_stderr_matches "metadata 'model_config' is not UTF-8"
expect_true "nothing is written" test ! -e model.safetensors

# ---- arguments themselves ----------------------------------------------------------------------
expect_clean 2 "$TANDEM" "$all"
expect_clean 2 "$TANDEM" train "--$all"
expect_clean 2 "$TANDEM" train "--$all=1"
expect_clean 2 "$TANDEM" train pictures --epochs "$all"
expect_clean 2 "$TANDEM" train pictures --model "$all"
expect_clean 2 "$TANDEM" train pictures "$all"
expect_clean 2 "$TANDEM" train pictures --augment "$all"
expect_clean 2 "$TANDEM" train pictures --optimizer "sgd:$all=1"
expect_clean 2 "$TANDEM" help "$all"
expect_clean 2 "$TANDEM" runs "$all"
expect_clean 3 "$TANDEM" train "$all"
expect_stderr_matches "no such file or folder: '$seen'"
expect_clean 3 "$TANDEM" train "$all" --json
expect_json error
expect_clean 3 "$TANDEM" audit "$all"
expect_clean 3 "$TANDEM" evaluate "$all" pictures
expect_clean 3 "$TANDEM" predict run "$all"
expect_stdout_matches "^$seen\$"
expect_clean 3 "$TANDEM" predict run --files-from "$all"
expect_clean 3 "$TANDEM" weights inspect "$all"
expect_clean 3 "$TANDEM" runs show "$all"
expect_clean 3 "$TANDEM" doctor --config "$all"
printf '[%s]\n' "$all" >odd.toml
expect_clean 3 "$TANDEM" doctor --config odd.toml
printf 'time\033[31m\302\233 = 1\n' >odd.toml
expect_clean 3 "$TANDEM" doctor --no-measure --config odd.toml
expect_clean 2 env "TANDEM_DOCTOR_TIME=$all" "$TANDEM" doctor --no-measure
expect_clean 0 env "TANDEM_DOCTOR_TIM$all=3" "$TANDEM" doctor --no-measure
expect_clean 0 "$TANDEM" doctor --no-measure --folder "$all" --verbose
finish
