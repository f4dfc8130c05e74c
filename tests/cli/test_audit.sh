# audit as a user meets it.
. "$SOURCE/tests/cli/lib.sh"

"$TANDEM" synth pictures --classes 3 --per-class 4 --size 48 --format ppm --quiet >/dev/null
first=$(ls pictures | head -1)
second=$(ls pictures | sed -n 2p)
cp "pictures/$first/000000.ppm" "pictures/$second/copy.ppm"
head -c 500 "pictures/$first/000001.ppm" >"pictures/$first/cut.ppm"
echo "no picture" >"pictures/$first/words.jpg"
echo "a note" >"pictures/$first/notes.txt"
find pictures -type f -exec cksum {} + | sort >before

expect_exit 0 "$TANDEM" audit pictures --json
expect_json images classes ok bad verdicts
expect_same 15 "$(json_value images)" "every picture is counted"
expect_same 3 "$(json_value classes)" "classes"
expect_same 2 "$(json_value bad)" "what holds no complete picture is bad"
expect_same 2 "$(json_value 'counts.duplicate across classes')" "copies in two classes"
expect_same 1 "$(json_value others)" "other files are counted, not decoded"
expect_same 15 "$(tr '{' '\n' <"$out" | grep -c '"verdict"')" "a verdict per file"
find pictures -type f -exec cksum {} + | sort >after
expect_true "nothing was changed" cmp before after

expect_exit 0 "$TANDEM" audit pictures
expect_stdout_matches '^15 images of 3 classes \(folder\)'
expect_stdout_matches '^  truncated  .*cut\.ppm'
expect_stdout_matches "^  corrupt  .*words\.jpg: it is text that begins with 'no picture', perhaps an error message that was saved"
expect_stdout_matches '^  same  .*000000\.ppm  =  .*copy\.ppm$'
expect_exit 3 "$TANDEM" audit pictures --strict --json
expect_json images classes ok bad verdicts

# The list that audit keeps is honoured by training.
expect_exit 0 "$TANDEM" audit pictures --quarantine lists/bad.jsonl --quiet
expect_same 2 "$(wc -l <lists/bad.jsonl)" "the bad files are listed"
expect_exit 0 "$TANDEM" train pictures --quarantine lists/bad.jsonl --model lenet5 --epochs 1 \
    --split 0.5,0.5 -o run --json
expect_same 0 "$(json_value skipped)" "nothing is left to skip"
expect_exit 0 "$TANDEM" train pictures -o run --resume --json
expect_same lists/bad.jsonl "$(json_value options.quarantine)" "the list is remembered by the run"
expect_exit 3 "$TANDEM" train pictures --quarantine nowhere.jsonl -o run2
expect_true "no run is left behind" test ! -e run2/run.json
expect_exit 0 "$TANDEM" audit pictures --quarantine lists/bad.jsonl --quiet
echo "milk, eggs" >lists/other.txt
expect_exit 2 "$TANDEM" audit pictures --quarantine lists/other.txt
expect_stderr_matches 'lists/other.txt: it exists and audit did not write it; name a new file, or an older list'
expect_same "milk, eggs" "$(cat lists/other.txt)" "what is no list is not written over"
# Lists that are sources, or a person's, have "path" too.
printf '{"path":"pictures/%s/000000.ppm","label":"a"}\n' "$first" >list.jsonl
printf '{"path":"a.ppm","verdict":"corrupt","Class":"a"}\n' >class.jsonl
printf '{"path":"a.ppm","verdict":"corrupt"}\n{"path":"b.ppm"}\n' >hand.jsonl
printf '{"path":"pictures/%s/000000.ppm","verdict":"corrupt"}\n' "$first" >older.jsonl
ln -s older.jsonl link.jsonl
cksum ./*.jsonl >lists_before
for target in list class hand; do
    expect_exit 2 "$TANDEM" audit pictures --quarantine $target.jsonl
    expect_stderr_matches "$target.jsonl: it exists and audit did not write it"
done
expect_exit 2 "$TANDEM" audit list.jsonl --quarantine list.jsonl
expect_stderr_matches 'list.jsonl: it is the source that is checked; name another file'
expect_exit 2 "$TANDEM" audit older.jsonl --quarantine link.jsonl
expect_stderr_matches 'link.jsonl: it is the source that is checked; name another file'
cksum ./*.jsonl >lists_after
expect_true "no list of another kind is written over" cmp lists_before lists_after
: >empty.jsonl
expect_exit 0 "$TANDEM" audit pictures --quarantine older.jsonl --quiet
expect_exit 0 "$TANDEM" audit pictures --quarantine empty.jsonl --quiet
expect_true "an older list is replaced, also one of no files" cmp older.jsonl empty.jsonl
expect_exit 2 "$TANDEM" audit pictures --quarantine lists
expect_stderr_matches 'lists: it is a folder; name a file'

# How many it says there are.
expect_exit 0 "$TANDEM" audit pictures --quarantine lists/bad.jsonl
expect_stdout_matches '^The 2 bad files are listed in lists/bad.jsonl; train and prepare leave them out '
mkdir -p counted/a counted/b && cp "pictures/$first/000000.ppm" counted/a/ && cp "pictures/$first/cut.ppm" counted/b/
expect_exit 0 "$TANDEM" audit counted --quarantine counted.jsonl
expect_stdout_matches '^The 1 bad file is listed in counted.jsonl; train and prepare leave it out '
rm counted/b/cut.ppm
expect_exit 0 "$TANDEM" audit counted --quarantine counted.jsonl
expect_stdout_matches '^No file is bad: the list counted.jsonl is empty$'
expect_true "and it is" test ! -s counted.jsonl

# Text under an image's name is answered by what it is, in every command.
"$TANDEM" synth strange --classes 2 --per-class 8 --size 32 --format ppm --quiet >/dev/null
printf '<!DOCTYPE html>\n<title>404</title>\n' >"strange/$first/page.jpg"
printf '{"error": "not found"}\n' >"strange/$first/reply.png"
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 123\n' >"strange/$first/pointer.jpg"
page="it is a web page: text that begins with '<!DOCTYPE html>', perhaps an error message that was saved in place"
pointer='it is a Git LFS pointer, not the image itself; git lfs pull in its repository fetches the image$'
expect_exit 0 "$TANDEM" audit strange
expect_stdout_matches "^  corrupt  .*page\.jpg: $page of the image$"
expect_stdout_matches "^  corrupt  .*reply\.png: it is JSON: text that begins with '\{\"error\": \"not found\"\}', "
expect_stdout_matches "^  corrupt  .*pointer\.jpg: $pointer"
expect_exit 0 "$TANDEM" train strange --model lenet5 --epochs 1 -o strange-run
expect_stderr_matches "skipped: .*page\.jpg.*$page"
expect_stderr_matches "skipped: .*pointer\.jpg.*$pointer"
if ! "$TANDEM" prepare nowhere -o out --codec raw 2>&1 | grep -q 'no Apache Arrow'; then
    expect_exit 0 "$TANDEM" prepare strange -o strange-table --size 32 --codec raw
    expect_stderr_matches "quarantined as corrupt: .*page\.jpg.*$page"
fi

# Copies inside a class are named, apart from those that mislead.
"$TANDEM" synth twice --classes 2 --per-class 3 --size 48 --format ppm --quiet >/dev/null
cp "twice/$first/000000.ppm" "twice/$first/a-copy.ppm"
cp "twice/$first/000001.ppm" "twice/$first/b-near.ppm"
printf '\001' | dd of="twice/$first/b-near.ppm" bs=1 seek=100 conv=notrunc 2>/dev/null
expect_exit 0 "$TANDEM" audit twice
expect_stdout_matches '^  the same or a similar image twice in a class$'
expect_stdout_matches "^  same  $first/000000\.ppm  =  $first/a-copy\.ppm$"
expect_stdout_matches "^  near  $first/000001\.ppm  =  $first/b-near\.ppm$"
expect_same 0 "$(grep -c 'two classes or splits' "$out")" "none of them is in two classes"
expect_exit 0 "$TANDEM" audit twice --show 1
expect_stdout_matches '^  … and 1 more pair \(--show 2 lists them all\)$'
expect_same 0 "$(grep -c 'b-near' "$out")" "the rest is counted"
expect_exit 0 "$TANDEM" audit twice -o twice.jsonl --quiet
expect_true "copies are not in the list of bad files" test -e twice.jsonl -a ! -s twice.jsonl
mv "twice/$first/a-copy.ppm" "twice/$first/a-copy.png"
expect_exit 0 "$TANDEM" audit twice
expect_stdout_matches '^  files with a wrong extension$'
expect_stdout_matches "^  $first/a-copy\.png$"
mv "twice/$first/a-copy.png" "twice/$first/a-copy.ppm"
mkdir loose && cp twice/"$first"/*.ppm loose/
expect_exit 0 "$TANDEM" audit loose
expect_stdout_matches '^  the same or a similar image twice$'

# A class without images ends train, so audit names it.
cp -r counted gaps && cp "pictures/$second/000002.ppm" gaps/b/ && mkdir gaps/empty gaps/lost
ln -s nowhere gaps/lost/gone.ppm
expect_exit 0 "$TANDEM" audit gaps
expect_stdout_matches "^  class 'empty' has no image: train cannot learn it; add images or remove the class$"
expect_stdout_matches "^  class 'lost' has no image that can be read, of 1: train cannot learn it; "
expect_same 2 "$(grep -c 'train cannot learn it' "$out")" "and no other class"
expect_exit 3 "$TANDEM" train gaps -o gaps-run
expect_stderr_matches "class 'empty' has no image: add some or remove the class$"
rmdir gaps/empty
expect_exit 3 "$TANDEM" audit gaps --strict
expect_exit 3 "$TANDEM" train gaps -o lost-run
expect_stderr_matches "cannot split 'gaps'$"
expect_stderr_matches "class 'lost' has no image that can be read: add some or remove the class$"
expect_same 0 "$(grep -c splitting "$err")" "the sentence has one verb"
# Damage shows when pixels are made, but a class of nothing else is refused before training.
rm gaps/lost/gone.ppm
for i in 1 2 3; do
    printf 'P6 8 8 255 %d' $i >gaps/lost/$i.ppm
done
expect_exit 3 "$TANDEM" train gaps -o damaged-run --split 0.5,0.5
expect_stderr_matches "class 'lost' has no training image that can be read, of [12]: replace them or remove the class; the first is 'lost/[123].ppm': "
expect_true "and no run is trained" test ! -e damaged-run/best.safetensors
rm -r gaps/lost
expect_exit 0 "$TANDEM" audit gaps --strict
expect_same 0 "$(grep -c 'train cannot learn it' "$out")" "nor where all have images"

# A person who works inside the folder of photos makes runs/ there, which is no class.
"$TANDEM" synth within --classes 2 --per-class 6 --size 32 --format ppm --quiet >/dev/null
cd within || exit 1
for round in 1 2; do
    expect_exit 0 "$TANDEM" train . --model lenet5 --epochs 1 -o runs/$round
done
expect_stderr_matches "'runs/1' of '\.' is the folder of a run and is passed over$"
expect_exit 0 "$TANDEM" audit . --strict --json
expect_same "2 12 0" "$(json_value classes) $(json_value images) $(json_value others)" "audit passes runs/ over"
if ! "$TANDEM" prepare nowhere -o out --codec raw 2>&1 | grep -q 'no Apache Arrow'; then
    expect_exit 0 "$TANDEM" prepare . -o ../within-table --size 32 --codec raw
    expect_stderr_matches "'runs/2' of '\.' is the folder of a run and is passed over$"
fi
cd ..

mkdir flat && cp "pictures/$first/000000.ppm" flat/
expect_exit 0 "$TANDEM" audit flat --strict --json
expect_same 0 "$(json_value classes)" "a flat folder is fine"
expect_exit 0 "$TANDEM" audit flat
expect_stdout_matches '^1 image of 0 classes '
printf 'path,label\ngone.ppm,cat\n' >list.csv
expect_exit 0 "$TANDEM" audit list.csv
expect_stdout_matches '^1 image of 1 class \(list\)'
expect_stdout_matches '^  unreadable +1  not there, not to be read, '
# A first line without a known name for the paths is a row, and a sentence says so.
printf 'img,label\ngone.ppm,cat\n' >header.csv
expect_exit 0 "$TANDEM" audit header.csv
expect_stderr_matches "line 1 of 'header.csv' is read as an image called 'img': .* path, file, "
expect_exit 3 "$TANDEM" audit nowhere
expect_exit 2 "$TANDEM" audit
expect_exit 3 "$TANDEM" audit lists
finish
