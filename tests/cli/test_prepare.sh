# prepare as a user meets it; what is in the files is tested in tests/data.
. "$SOURCE/tests/cli/lib.sh"

"$TANDEM" synth pictures --classes 3 --per-class 30 --size 48 --format ppm --quiet >/dev/null
first=$(ls pictures | head -1)
head -c 500 "pictures/$first/000001.ppm" >"pictures/$first/cut.ppm"
echo "a note" >"pictures/$first/notes.txt"

if "$TANDEM" prepare nowhere -o out --codec raw 2>&1 | grep -q 'no Apache Arrow'; then
    expect_exit 4 "$TANDEM" prepare pictures -o out --codec raw
    expect_stderr_matches 'no Apache Arrow'
    finish
    exit
fi
find pictures -type f -exec cksum {} + | sort >before

expect_exit 0 "$TANDEM" prepare pictures -o new/out --size 32 --codec raw --json
expect_json images train val classes quarantined bytes seconds
expect_same 90 "$(json_value images)" "every picture that decodes"
expect_same 81 "$(json_value train)" "train"
expect_same 9 "$(json_value val)" "val"
expect_same 3 "$(json_value classes)" "classes"
expect_same 1 "$(json_value quarantined)" "what does not decode"
expect_same "$(cat new/out/part-*.parquet | wc -c | tr -d ' ')" "$(json_value bytes)" "bytes of the files"
expect_stderr_matches 'quarantined as truncated: .*cut\.ppm'
find pictures -type f -exec cksum {} + | sort >after
expect_true "nothing in the source was changed" cmp before after
expect_same '' "$(ls -A new/out | grep -v '^part-[0-9]*-[0-9a-f]*\.parquet$' | grep -v '^_')" \
    "every other name begins with _"
expect_same '' "$(ls -d new/out/_prepare 2>/dev/null)" "nothing of the work is left"

# A row is called after the file it was made of, whatever it holds now.
cp -r pictures named
for file in named/*/*.ppm; do mv "$file" "${file%.ppm}.jpg"; done
expect_exit 0 "$TANDEM" audit named --json
expect_same 90 "$(json_value 'counts.wrong extension')" "files of a wrong name"
expect_exit 0 "$TANDEM" prepare named -o called --size 32 --codec raw --quiet
expect_exit 0 "$TANDEM" audit called --json
expect_same 0 "$(json_value 'counts.wrong extension')" "rows are not"

# Rows are kept on disk under names of their own, never under the hash of the file they were made of.
expect_exit 0 "$TANDEM" prepare pictures -o cropped --size 24 --fit crop --codec jpeg --quiet
learn() { # source, run, cache
    expect_exit 0 "$TANDEM" train "$1" -o "$2" --epochs 1 --size 20 --batch 16 --cache "$3" --quiet
}
learn cropped plain none
learn pictures first disk
learn cropped second disk
learn cropped third disk
expect_true "originals in the cache are not taken for rows" cmp plain/best.safetensors second/best.safetensors
expect_true "nor are rows of the cache others" cmp plain/best.safetensors third/best.safetensors
expect_same 90 "$(find "$TANDEM_HOME/pictures" -name '*.row' | wc -l | tr -d ' ')" "rows are kept"

# Again, and with other options.
find new/out -type f -exec cksum {} + | sort >before
expect_exit 0 "$TANDEM" prepare pictures -o new/out --size 32 --codec raw --json
expect_same 90 "$(json_value images)" "the same answer"
expect_same 1 "$(json_value quarantined)" "the same answer"
find new/out -type f -exec cksum {} + | sort >after
expect_true "nothing was written again" cmp before after
expect_exit 2 "$TANDEM" prepare pictures -o new/out --size 33 --codec raw
expect_stderr_matches 'begun with --size 32, but 33 is given'
expect_exit 0 "$TANDEM" prepare pictures -o again --size 32 --codec raw --threads 1
expect_stdout_matches '^90 images of 3 classes in again: 81 train, 9 val \(2 files, '
expect_stdout_matches '^next: tandem train again$'
expect_true "one thread gives the same bytes" diff -r new/out again

# Shares and a merge.
for k in 2/2 1/2; do
    expect_exit 0 "$TANDEM" prepare pictures -o cut --size 32 --codec raw --slice $k --quiet
done
expect_stdout_matches '^slice 1 of 2: 1 of 2 parts made in cut '
expect_exit 0 "$TANDEM" prepare pictures -o cut --size 32 --codec raw --merge --json
expect_json images train val classes quarantined bytes seconds
expect_true "shares give the same bytes" diff -r new/out cut
expect_exit 1 "$TANDEM" prepare pictures -o empty --size 32 --codec raw --merge
expect_stderr_matches '2 of 2 parts of .empty. are not there'
for slice in 3 3/2 a/b 1/0 -1/2; do
    expect_exit 2 "$TANDEM" prepare pictures -o other --slice "$slice"
    expect_stderr_matches '--slice takes K/N'
done

# Killed at any moment and run again: the same bytes.
n_killed=0
for wait in 0.005 0.02 0.04 0.08 0.15; do
    rm -rf killed
    "$TANDEM" prepare pictures -o killed --size 32 --codec raw --threads 1 --quiet >/dev/null 2>&1 &
    pid=$!
    sleep $wait
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    [ $? != 137 ] || n_killed=$((n_killed + 1))
    expect_exit 0 "$TANDEM" prepare pictures -o killed --size 32 --codec raw --quiet
    expect_true "killed after $wait s, it ends with the same bytes" diff -r new/out killed
done
expect_true "one was killed at least" test $n_killed -gt 0

# No room: a sentence, and once there is some, the same bytes. (A limit on files stands for a disk.)
# ThreadSanitizer keeps its own books in files and dies of such a limit.
rm -rf killed
status=0
if grep -q __tsan_init "$TANDEM"; then
    skip "a full disk: ThreadSanitizer needs files larger than the limit that stands for it"
else
    (trap '' XFSZ && ulimit -f 60 &&
        exec "$TANDEM" prepare pictures -o killed --size 32 --codec raw --quiet) \
        >"$out" 2>"$err" || status=$?
    expect_same 4 "$status" "a full disk is the environment's fault"
    expect_stderr_matches 'cannot write .*part-00000.*: File too large'
fi
expect_exit 0 "$TANDEM" prepare pictures -o killed --size 32 --codec raw --quiet
expect_true "with room it ends with the same bytes" diff -r new/out killed
expect_exit 4 "$TANDEM" prepare pictures -o /proc/out --size 32 --codec raw

# Asked to stop: what is finished stays.
rm -rf killed
"$TANDEM" prepare pictures -o killed --size 2000 --codec png --threads 1 --quiet >"$out" 2>"$err" &
pid=$!
wait_until_stoppable $pid
sleep 0.5
kill -TERM $pid
status=0
wait $pid || status=$?
expect_same 1 "$status" "SIGTERM stops with exit 1"
expect_stderr_matches 'stopped on request after .* of .* images'

# What training makes of it.
expect_exit 0 "$TANDEM" train new/out --model lenet5 --epochs 1 -o run --json
expect_same 81 "$(json_value train.n)" "the split is kept"
expect_same 9 "$(json_value val.n)" "the split is kept"

# Where the source gives the parts, one sentence says that --split has no effect.
said='the source gives the training and validation images: --split has no effect'
expect_exit 0 "$TANDEM" prepare new/out -o given --size 16 --codec raw --split 0.5,0.5
expect_stdout_matches '81 train, 9 val'
expect_stderr_matches "^$said$"
expect_exit 0 "$TANDEM" prepare new/out -o unasked --size 16 --codec raw
expect_true "it is not said to who gave no --split" sh -c '! grep -q "$1" "$2"' sh "$said" "$err"
expect_exit 0 "$TANDEM" prepare pictures -o decided --size 16 --codec raw --split 0.5,0.5
expect_true "nothing of it is said where the option decides" sh -c '! grep -q "$1" "$2"' sh "$said" "$err"

# A table of plain pixels read in another shape: the first reason is named, not only how many there are.
expect_exit 3 "$TANDEM" train unasked --raw-shape 8x8x3 --model lenet5 --epochs 1 -o shape
expect_stderr_matches 'more than half of the 9 rows of .* cannot be used \(.*has 768 bytes; expected 192 of raw pixels\); check the options'
mkdir -p parts/val && cp -r pictures parts/train
for class in $(ls pictures); do
    mkdir "parts/val/$class"
    for picture in "pictures/$class"/*; do head -c 100 "$picture" >"parts/val/$class/$(basename "$picture")"; done
done
expect_exit 3 "$TANDEM" train parts --model lenet5 --epochs 1 -o shape
expect_stderr_matches 'none of the [0-9]+ validation images can be read; the first: .*it is truncated'

# What cannot be.
expect_exit 2 "$TANDEM" prepare pictures
expect_stderr_matches 'needs -o OUT'
expect_exit 3 "$TANDEM" prepare nowhere -o other
expect_exit 2 "$TANDEM" prepare pictures -o pictures
expect_stderr_matches 'holds something else'
for inside in pictures/out pictures/new/out ./pictures/../pictures/x "$PWD/pictures/x"; do
    expect_exit 2 "$TANDEM" prepare pictures -o "$inside"
    expect_stderr_matches 'lies in .pictures., where it would count as a class'
done
(cd pictures && expect_exit 2 "$TANDEM" prepare . -o out && expect_exit 2 "$TANDEM" prepare ../pictures -o out)
expect_true "nothing is made there" test ! -e pictures/out
expect_exit 2 "$TANDEM" prepare pictures -o before
expect_stderr_matches 'is a file'
expect_exit 2 "$TANDEM" prepare pictures -o other --codec gif
for codec in png raw keep; do
    expect_exit 2 "$TANDEM" prepare pictures -o other --codec $codec --quality 80
    expect_stderr_matches "--quality 80 with --codec $codec has no effect: .*--codec jpeg"
done
expect_exit 2 "$TANDEM" prepare pictures -o other --quality 0
expect_stderr_matches '--quality takes an integer from 1 to 100; found .0.'
expect_exit 2 "$TANDEM" prepare pictures -o other --crop-fraction 0.5
expect_stderr_matches '--crop-fraction 0\.5 with --fit pad has no effect: .*--fit crop'
expect_true "nothing is left of what was refused" test ! -e other
mkdir bad bad/a bad/b && echo x >bad/a/1.jpg && echo y >bad/b/2.jpg
expect_exit 3 "$TANDEM" prepare bad -o other --codec raw
expect_stderr_matches 'none of the 2 images can be decoded'
expect_true "no folder is left behind" test ! -e other
finish
