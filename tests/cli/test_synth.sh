# tandem synth as a user meets it; what the pictures look like is tested in tests/data.
. "$SOURCE/tests/cli/lib.sh"

expect_exit 0 "$TANDEM" synth new/pictures --classes 3 --per-class 4 --size 32 --seed 9 --format ppm --json
expect_json images classes
expect_same 12 "$(json_value images)" "3 x 4 images"
expect_same 3 "$(json_value classes)" "3 classes"
expect_same 12 "$(find new/pictures -name '*.ppm' | wc -l | tr -d ' ')" "12 files, parents made"
expect_exit 0 "$TANDEM" synth again --classes 3 --per-class 4 --size 32 --seed 9 --format ppm --threads 1
expect_stdout_matches '^12 images of 3 classes in again \('
expect_stdout_matches '^next: tandem train again$'
expect_true "the same seed gives the same bytes" diff -r new/pictures again
expect_exit 0 "$TANDEM" synth other --classes 3 --per-class 4 --size 32 --seed 10 --format ppm --quiet
expect_same 1 "$(wc -l <"$out" | tr -d ' ')" "--quiet leaves the result"
expect_same '' "$(cat "$err")" "and no message"
if diff -r other again >/dev/null; then
    fail "another seed gives other pictures"
else
    pass "another seed gives other pictures"
fi

expect_exit 2 "$TANDEM" synth
expect_stderr_matches '^tandem: tandem synth needs OUT: '
expect_exit 2 "$TANDEM" synth out --classes 1
expect_stderr_matches "^tandem: --classes takes an integer from 2 to 1000; found '1'$"
expect_exit 2 "$TANDEM" synth out --format gif
expect_stderr_matches "^tandem: --format takes one of jpeg, png, bmp, ppm; found 'gif'$"
expect_exit 2 "$TANDEM" synth again --classes 2 --per-class 1
expect_stderr_matches again
expect_true "a folder with files in it stays as it was" diff -r new/pictures again

# Stopped in the middle: nothing half-written under its final name.
"$TANDEM" synth stopped --classes 10 --per-class 100000 --format ppm --quiet >"$out" 2>"$err" &
pid=$!
wait_until_stoppable $pid
sleep 0.5
kill -TERM $pid
status=0
wait $pid || status=$?
expect_same 1 "$status" "SIGTERM stops with exit 1"
expect_stderr_matches '^tandem: '
expect_same '' "$(find stopped -name '.*.tmp' 2>/dev/null)" "no temporary file is left"
expect_same '' "$(find stopped -name '*.ppm' -size -100c 2>/dev/null)" "no file is cut short"
finish
