# Data sets that nobody would choose: train, evaluate, predict and report work on them, or say what
# is needed.
. "$SOURCE/tests/cli/lib.sh"

if ! command -v python3 >/dev/null; then
    skip "needs python3 to make the pictures"
    finish
fi
python3 - <<'END_OF_PYTHON'
import csv, os, random
draw = random.Random(1)

def picture(path, light, side=8, noise=20):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    values = bytes(min(255, light + draw.randrange(noise)) if noise else light for _ in range(side * side * 3))
    with open(path, "wb") as out:
        out.write(b"P6 %d %d 255\n" % (side, side) + values)

for i in range(8):
    picture(f"one/only/{i}.ppm", 30)
for i in range(3):
    picture(f"each/class{i}/1.ppm", 60 * i)
picture("two/a/1.ppm", 10)
picture("two/b/1.ppm", 200)
picture("single/1.ppm", 10)
os.makedirs("nothing")
os.makedirs("hollow/a")
os.makedirs("hollow/b")
for k in range(257):
    for i in range(1 if k % 5 == 0 else 4):
        picture(f"many/class {k:03d}/{i}.ppm", k % 230)
for label in "ab":
    for i in range(12): # of every size, so that they are different pictures
        picture(f"black/{label}/{i}.ppm", 0, 8 + 2 * i + (label == "b"), 0)
        picture(f"same/{label}/{i}.ppm", 0, 8, 0)
        picture(f"twice/{label}/{i}.ppm", 40 if label == "a" else 160)
for k, label in enumerate(odd := ["with space", "Ünïcödé 猫", 'quo"te', "apo'strophe", "<em>&amp;", "a, b; c",
                                  "new\nline", "=SUM(A1)", "back\\slash", "tab\there", " lead", "%s%n", "-o"]):
    for i in range(8):
        picture(f"odd/{label}/" + ('pic "0",\n.ppm' if i == 0 else f"{i}.ppm"), 18 * k)
rows = sorted((f"odd/{label}/" + ('pic "0",\n.ppm' if i == 0 else f"{i}.ppm"), label)
              for label in odd for i in range(8))
for tree in ("deep", "round"):
    for label in "ab":
        for i in range(12):
            picture(f"{tree}/{label}/{i}.ppm", 40 if label == "a" else 160)
for link, to in ("a/self.ppm", "self.ppm"), ("b/up", ".."), ("again", "."), ("lone/back", "../lone"):
    os.makedirs(os.path.dirname(f"round/{link}"), exist_ok=True)
    os.symlink(to, f"round/{link}")
here = os.getcwd() # no call takes the whole path, so it is made step by step
os.chdir("deep/a")
for i in range(45):
    os.mkdir("d" * 100)
    os.chdir("d" * 100)
open("x.ppm", "w").close()
os.chdir(here)
def table(path, rows):
    with open(path, "w", newline="") as out:
        csv.writer(out).writerows([("path", "label")] + rows)
table("odd.csv", rows)
rows = [(f"twice/{label}/{i}.ppm", label) for label in "ab" for i in range(12)]
table("twice.csv", rows + rows[:9])
table("torn.csv", rows + [(path, "b") for path, _ in rows[:3]])
table("head.csv", [])
with open("labelless.csv", "w") as out:
    out.write("path\n" + "".join(path + "\n" for path, _ in rows))
END_OF_PYTHON

export TANDEM_HOME=$temp/home
options="--model lenet5 --epochs 1 --batch 8"

# ---- names that lead nowhere -------------------------------------------------------------------
# All else is used; the warnings are short.
left_out() { # source count pattern
    expect_exit 0 "$TANDEM" audit "$1" --json
    expect_same 24 "$(json_value images)" "$1: the other pictures are looked at"
    expect_same "$2" "$(json_value others)" "$1: what is left out is counted"
    expect_stderr_matches "$3"
    expect_same "" "$(awk 'length($0) > 400' "$err")" "$1: its name is cut"
    expect_exit 0 "$TANDEM" train "$1" -o "runs/$1" $options
    expect_stderr_matches '^24 images of 2 classes: 22 for training, 2 for validation$'
    expect_stderr_matches "$3"
    expect_exit 0 "$TANDEM" predict "runs/$1" "$1" --csv
    expect_same 24 "$(grep -c ',1,' "$out")" "$1: the other pictures are predicted"
    expect_stderr_matches "$3"
    expect_exit 0 "$TANDEM" prepare "$1" -o "prepared-$1" --json
    expect_same 2 "$(json_value classes)" "$1: classes of what is prepared"
    expect_stderr_matches "$3"
}
left_out deep 1 "left out of 'deep': 'a/d+…d+': its path is longer than the 4095 bytes"
left_out round 4 "left out of 'round': 'lone/back': it is a link that leads back to a folder it lies in"
expect_stderr_matches "left out of 'round': 'a/self.ppm': it is a link that leads in a circle"

# ---- what cannot be trained on ---------------------------------------------------------------
refused() { # source pattern
    expect_exit 3 "$TANDEM" train "$1" -o runs/refused $options
    expect_stderr_matches "$2"
    expect_true "no run is left of $1" test ! -e runs/refused
}
refused one "one has one class of images; at least two are required"
refused labelless.csv "labelless.csv has no class of images; at least two are required"
refused single "no image in 'single'|single has no class"
for source in each two same; do
    refused $source "no image of '$source' is left for validation: every class has only one distinct image in use [(]"
done
for source in nothing hollow head.csv; do
    refused $source "there is no image in '$source'.*expected"
done

# ---- what can --------------------------------------------------------------------------------
all_of() { # source, its pictures: every command does its work on it
    expect_exit 0 "$TANDEM" train "$1" -o "runs/$1" $options --json
    expect_exit 0 "$TANDEM" evaluate "runs/$1" "$1" --json
    expect_same "$2" "$(json_value n)" "evaluate counts all $2 pictures of $1"
    expect_exit 0 "$TANDEM" evaluate "runs/$1" "$1"
    expect_exit 0 "$TANDEM" report "runs/$1"
    expect_exit 0 "$TANDEM" runs show "runs/$1"
    expect_true "the model of $1 is exported" "$TANDEM" export "runs/$1" -o "$1.onnx" --quiet
}
all_of black 24
all_of many $((257 * 4 - 3 * 52))
all_of odd 104
all_of odd.csv 104
expect_true "a list of the same pictures trains the same model" sh -c '
    "$1" predict runs/odd odd/%s%n/1.ppm --json >a && "$1" predict runs/odd.csv odd/%s%n/1.ppm --json >b && cmp a b' - "$TANDEM"

# A picture that is listed twice counts twice, and both stand in the same part.
all_of twice.csv 33
printf '{"path": "gone.ppm"}\n' >none.txt
expect_exit 0 "$TANDEM" train torn.csv -o runs/torn $options --quarantine none.txt
expect_stdout_matches '^then: tandem evaluate runs/torn torn.csv --quarantine none.txt --part val '
expect_stderr_matches '^6 images are in more than one class \(tandem audit names them\)$'
expect_exit 0 "$TANDEM" train twice.csv -o runs/untorn $options
expect_same 0 "$(grep -c 'more than one class' "$err")" "twice under one class is no remark"

# ---- names ---------------------------------------------------------------------------------
"$TANDEM" predict runs/odd odd --json --top 13 >predicted.json
"$TANDEM" evaluate runs/odd odd --json >evaluated.json
"$TANDEM" runs show runs/odd --json >shown.json
expect_true "names of classes and pictures are themselves in JSON" python3 - <<'END_OF_PYTHON'
import json, os
classes = sorted(os.listdir("odd"))
guesses = json.load(open("predicted.json", encoding="utf-8"))["predictions"]
assert len(guesses) == 104
for guess in guesses:
    assert os.path.exists(os.path.join("odd", guess["path"])), guess["path"]
    assert sorted(top["label"] for top in guess["top"]) == classes
assert sorted(c["label"] for c in json.load(open("evaluated.json", encoding="utf-8"))["per_class"]) == classes
json.load(open("shown.json", encoding="utf-8"))
for line in open("runs/odd/metrics.jsonl", encoding="utf-8"):
    json.loads(line)
END_OF_PYTHON
expect_true "and text, not elements, in the report" python3 - <<'END_OF_PYTHON'
from html.parser import HTMLParser
text = open("runs/odd/report.html", encoding="utf-8").read()
class Page(HTMLParser):
    words, elements = "", set()
    def handle_starttag(self, tag, attributes): self.elements.add(tag)
    def handle_data(self, data): self.words += data
page = Page()
page.feed(text)
assert "em" not in page.elements, "a name became an element"
for name in ("<em>&amp;", "Ünïcödé 猫", "=SUM(A1)", 'quo"te'):
    assert name in page.words, name
END_OF_PYTHON
finish
