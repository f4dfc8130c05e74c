# Damaged images that are whole: reported by audit, used, and refused only under --strict.
. "$SOURCE/tests/cli/lib.sh"

corpus=$SOURCE/fuzz/corpus/image
"$TANDEM" synth pictures --classes 2 --per-class 6 --size 48 --format ppm --quiet >/dev/null
class=$(ls pictures | head -1)
mkdir sound && cp -r pictures/. sound/
cp "$corpus/cut-end.jpg" "$corpus/checksum-pixels.png" "$corpus/bits.pbm" "pictures/$class/"

expect_exit 0 "$TANDEM" audit pictures --json
expect_same 15 "$(json_value images)" "a bitmap is a picture"
expect_same 2 "$(json_value counts.damaged)" "both are damaged"
expect_same 0 "$(json_value bad)" "none is bad"
expect_exit 0 "$TANDEM" audit pictures --quarantine usual.jsonl
expect_stdout_matches '^  damaged     .*cut-end\.jpg: it is damaged at row 62 of 70: .*premature end of data segment$'
expect_stdout_matches '^  damaged     .*checksum-pixels\.png: it is damaged: invalid chunk checksum$'
expect_stdout_matches '^No file is bad: the list usual\.jsonl is empty$'
expect_exit 3 "$TANDEM" audit pictures --strict --quarantine strict.jsonl
expect_stdout_matches '^The 2 bad or damaged files are listed in strict\.jsonl; train and prepare leave them out'

set -- --model lenet5 --epochs 1 --split 0.7,0.3
expect_exit 0 "$TANDEM" train pictures "$@" -o used --json
expect_same 0 "$(json_value skipped)" "they are used"
expect_exit 3 "$TANDEM" train pictures "$@" -o strict --strict
expect_stderr_matches 'an image cannot be used, and --strict is on: .*(cut-end\.jpg|checksum-pixels\.png)'
expect_exit 3 "$TANDEM" train pictures "$@" -o part --strict --augment resized-crop
expect_stderr_matches 'an image cannot be used, and --strict is on: .*(cut-end\.jpg|checksum-pixels\.png)'
expect_exit 0 "$TANDEM" train sound "$@" -o accepted --strict --json
# What the pass over the bytes shows is refused there, before the split and the first step.
cp -r sound strange
echo 'not an image' >"strange/$class/words.jpg"
expect_exit 3 "$TANDEM" train strange "$@" -o early --strict
expect_stderr_matches "unreadable: '.*words\.jpg': it is text that begins with 'not an image'"
expect_stderr_matches "1 image of strange cannot be read, and --strict is on: '.*words\.jpg': it is text that"
expect_same 0 "$(grep -c 'left out' "$err")" "nothing is left out"
expect_same 0 "$(grep -c 'for training' "$err")" "nothing was split"
expect_exit 0 "$TANDEM" train strange "$@" -o late --json
expect_same 1 "$(json_value skipped)" "without --strict it is skipped"
expect_exit 0 "$TANDEM" train pictures "$@" -o left --strict --quarantine strict.jsonl --json
expect_same 0 "$(json_value skipped)" "the list leaves them out"

# A head on features: those that a run without --strict stored hide nothing, though few of so many are checked.
export TANDEM_HOME="$temp/home"
"$TANDEM" synth many --classes 2 --per-class 300 --size 24 --format ppm --quiet >/dev/null
cp "$corpus/cut-end.jpg" "$corpus/checksum-pixels.png" "many/$class/"
set -- --weights used --freeze base --epochs 1 --split 0.7,0.3
expect_exit 0 "$TANDEM" train many "$@" -o head --json
expect_true "features are stored" test "$(json_value features.rows)" -ge 600
expect_exit 3 "$TANDEM" train many "$@" -o strict-head --strict
expect_stderr_matches 'an image cannot be used, and --strict is on: .*(cut-end\.jpg|checksum-pixels\.png)'
expect_exit 0 "$TANDEM" train sound "$@" -o sound-head --strict

expect_exit 0 "$TANDEM" bench loader pictures --seconds 0.5 --json
expect_same 0 "$(json_value skipped)" "bench uses them"
expect_exit 0 "$TANDEM" prepare pictures --size 32 --codec png -o table --json
expect_same 0 "$(json_value quarantined)" "prepare uses them"
expect_exit 0 "$TANDEM" prepare pictures --size 32 --codec png -o less --quarantine strict.jsonl --json
expect_same 2 "$(json_value quarantined)" "and leaves out what the list names"
finish
