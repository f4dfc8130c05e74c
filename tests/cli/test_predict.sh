# predict: where pictures come from (arguments, a list, standard input) and how answers are written.
. "$SOURCE/tests/cli/lib.sh"
command -v python3 >/dev/null || {
    skip "no python3 to paint pictures with"
    finish
}

python3 - <<'END'
import os
for c, colour in enumerate(["red", "green", "blue"]):
    for n in range(8):
        os.makedirs(f"pictures/{colour}", exist_ok=True)
        pixels = bytes(200 - 9 * n + 3 * i % 7 if i % 3 == c else 20 + i % 11 for i in range(3 * 64))
        open(f"pictures/{colour}/{n}.ppm", "wb").write(b"P6 8 8 255\n" + pixels)
os.makedirs("odd")
for name in ["a, b.ppm", 'say "x".ppm', "two\nlines.ppm", "-.ppm"]:
    open("odd/" + name, "wb").write(open("pictures/green/3.ppm", "rb").read())
open("odd/none.ppm", "w").write("no picture, \"none\"")
END
expect_exit 0 "$TANDEM" train pictures --model lenet5 --epochs 1 --batch 4 --split 0.7,0.3 -o run --quiet
picture=pictures/red/1.ppm

# ---- standard input --------------------------------------------------------------------------
# expect_exit gives commands an empty standard input; this one reads a file.
from() {
    file=$1
    shift
    "$@" <"$file"
}
expect_exit 0 "$TANDEM" predict run "$picture" --json --logits
sed "s|$picture|-|" "$out" >wanted.txt
expect_exit 0 from "$picture" "$TANDEM" predict run - --json --logits
expect_same "$(cat wanted.txt)" "$(cat "$out")" "the answer for standard input is bit-identical to that for the file"
expect_exit 0 from "$picture" "$TANDEM" predict run - --top 1
expect_stdout_matches '^-$'
expect_exit 3 "$TANDEM" predict run -
expect_stdout_matches 'skipped: '
expect_exit 3 from odd/none.ppm "$TANDEM" predict run -
expect_exit 2 from "$picture" "$TANDEM" predict run - "$picture"
expect_stderr_matches 'stands alone \(a file of that name is ./-\)'
cp "$picture" ./-
expect_exit 0 "$TANDEM" predict run ./- "$picture"

# ---- lists -------------------------------------------------------------------------------------
printf '%s\n' pictures/blue/2.ppm "$picture" pictures/green/0.ppm >list.txt
expect_exit 0 "$TANDEM" predict run pictures/blue/2.ppm "$picture" pictures/green/0.ppm --json
cp "$out" wanted.txt
expect_exit 0 "$TANDEM" predict run --files-from list.txt --json
expect_same "$(cat wanted.txt)" "$(cat "$out")" "a list is answered as arguments are, in its order"
expect_exit 0 from list.txt "$TANDEM" predict run --files-from - --json
expect_same "$(cat wanted.txt)" "$(cat "$out")" "so is one from standard input"
tr '\n' '\0' <list.txt >zeros.txt
expect_exit 0 from zeros.txt "$TANDEM" predict run --files-from - --json
expect_same "$(cat wanted.txt)" "$(cat "$out")" "and one with zeros between"
echo pictures >folder.txt
expect_exit 0 "$TANDEM" predict run --files-from folder.txt --json
expect_same 24 "$(python3 -c 'import json, sys; print(len(json.load(open(sys.argv[1]))["predictions"]))' "$out")" \
    "folders in it are searched"
mkfifo late
{ sleep 1 && cat list.txt >late; } &
expect_exit 0 timeout -k 5 20 "$TANDEM" predict run --files-from late --json
expect_same "$(cat wanted.txt)" "$(cat "$out")" "a pipe may find its writer late"
"$TANDEM" predict run --files-from late >"$out" 2>"$err" &
pid=$!
exec 3>late # as soon as the program reads it
kill -TERM $pid
status=0
wait $pid || status=$?
exec 3>&-
expect_same 1 "$status" "a pipe that stays silent ends with exit 1 after SIGTERM"
expect_stderr_matches 'reading late: stopped on request'
expect_exit 3 timeout -k 5 20 "$TANDEM" predict run late
expect_exit 3 timeout -k 5 20 "$TANDEM" predict "$SOURCE/tests/fixtures/keras/sequential.h5" "$picture" --classes late
expect_stderr_matches 'cannot read late: it is a pipe, not a file'
echo nowhere.ppm >>list.txt
expect_exit 3 "$TANDEM" predict run --files-from list.txt
expect_stdout_matches "skipped: .*no such file or folder: 'nowhere.ppm'"
expect_exit 3 "$TANDEM" predict run --files-from nowhere.txt
expect_stderr_matches 'reading nowhere.txt: No such file'
expect_stderr_matches '--files-from takes a list of paths'
expect_exit 3 "$TANDEM" predict run --files-from pictures
expect_stderr_matches 'reading pictures: Is a directory'
expect_stderr_matches '--files-from takes a list of paths'
expect_exit 3 "$TANDEM" predict run --files-from -
expect_stderr_matches 'there is no path in standard input; one a line is accepted'
expect_exit 2 "$TANDEM" predict run "$picture" --files-from list.txt
expect_stderr_matches "not both; found '$picture'"
expect_exit 2 "$TANDEM" predict run
expect_stderr_matches 'needs FILE\|DIR'

# ---- the same bits in any company ----------------------------------------------------------------
expect_exit 0 "$TANDEM" predict run pictures --json --logits --threads 2
cp "$out" together.txt
n_equal=0
for file in blue/0 green/7 red/3; do
    "$TANDEM" predict run "pictures/$file.ppm" --json --logits --threads 1 >alone.txt
    n_equal=$((n_equal + $(python3 -c '
import json, sys
alone = json.load(open("alone.txt"))["predictions"][0]
all = {p["path"]: p for p in json.load(open("together.txt"))["predictions"]}
with_others = all[sys.argv[1]]
print(int(alone["logits"] == with_others["logits"] and alone["top"] == with_others["top"]))' "$file.ppm")))
done
expect_same 3 "$n_equal" "a picture alone gets the numbers that it gets among others"

# ---- CSV -----------------------------------------------------------------------------------------
expect_exit 0 "$TANDEM" predict run odd --csv --top 2
cp "$out" answers.csv
expect_exit 0 "$TANDEM" predict run odd --json --top 2
expect_true "a reader of CSV finds what JSON says, in its order" python3 - "$out" <<'END'
import csv, json, struct, sys
rows = list(csv.DictReader(open("answers.csv", newline="")))
single = lambda text: struct.pack("f", float(text))
wanted = []
for p in json.load(open(sys.argv[1]))["predictions"]:
    for rank, guess in enumerate(p["top"]):
        wanted.append((p["path"], str(rank + 1), guess["label"], single(guess["probability"]), str(guess["index"]), ""))
    if "problem" in p:
        wanted.append((p["path"], "", "", "", "", p["problem"]))
got = [(r["path"], r["rank"], r["label"], r["probability"] and single(r["probability"]), r["index"], r["problem"]) for r in rows]
assert len(got) == 9 and got == wanted, (got, wanted)
assert {"a, b.ppm", 'say "x".ppm', "two\nlines.ppm", "-.ppm", "none.ppm"} == {r["path"] for r in rows}
END
expect_same 'path,rank,label,probability,index,problem' "$(head -n 1 answers.csv)" "the first line names the columns"
expect_true "lines end as this system's do" sh -c '! grep -q "$(printf "\r")" answers.csv'
expect_exit 2 "$TANDEM" predict run "$picture" --csv --json
expect_stderr_matches 'found both --csv and --json; one of them is accepted'
expect_exit 2 "$TANDEM" predict run "$picture" --csv --logits
expect_exit 3 "$TANDEM" predict run odd/none.ppm --csv
expect_stdout_matches '^odd/none.ppm,,,,,'

# ---- what is not there -------------------------------------------------------------------------
expect_exit 3 "$TANDEM" predict run gone.ppm nowhere --csv
expect_same 3 "$(wc -l <"$out")" "when all paths are missing each has its row"
expect_stdout_matches "^gone.ppm,,,,,.*no such file or folder: 'gone.ppm'"
expect_stdout_matches '^nowhere,,,,,'
expect_stderr_matches 'none of the 2 paths given can be predicted'
expect_exit 3 "$TANDEM" predict run gone.ppm nowhere --json
expect_true "and its answer in JSON" python3 - "$out" <<'END'
import json, sys
answers = json.load(open(sys.argv[1]))["predictions"]
assert [a["path"] for a in answers] == ["gone.ppm", "nowhere"] and all("problem" in a for a in answers), answers
END
mkdir -p empty/below
expect_exit 3 "$TANDEM" predict run empty "$picture" --csv --top 1
expect_stdout_matches '^empty,,,,,no images were found in empty'
expect_stdout_matches "^$picture,1,"
expect_stderr_matches '1 of the 2 paths given cannot be predicted; no images were found in empty'
expect_exit 3 "$TANDEM" predict run empty
expect_stderr_matches 'no images were found in empty'
finish
