# tandem bench as a user meets it.
. "$SOURCE/tests/cli/lib.sh"

expect_exit 0 "$TANDEM" synth pictures --classes 2 --per-class 10 --size 32 --format ppm --quiet
expect_exit 0 "$TANDEM" bench loader pictures --size 24 --threads 2 --seconds 0.5 --json
expect_json images_per_second ceiling_images_per_second milliseconds fraction_of_ceiling threads \
    images skipped others source_images read decode augment
expect_same 2 "$(json_value threads)" "as many threads as asked for"
expect_same 20 "$(json_value source_images)" "20 pictures"
expect_same 0 "$(json_value skipped)" "none skipped"
expect_same True "$(json_value draft)" "large pictures are decoded as training does"
expect_true "rates are above 0" python3 -c '
import json, sys
v = json.load(open(sys.argv[1]))
assert v["images_per_second"] > 0 and v["ceiling_images_per_second"] > 0 and v["images"] > 0
assert abs(v["milliseconds"] - 64e3 / v["images_per_second"]) < 1e-6 * v["milliseconds"]
assert v["decode"]["images"] >= v["images"] and v["augment"]["images"] == 0' "$out"

# A flat folder, files that are no images, no image among them: counted, never fatal.
mkdir flat
cp pictures/*/*1.ppm flat/ 2>/dev/null
for file in pictures/*/*; do cp "$file" "flat/$(echo "$file" | tr / -)"; done
echo words >flat/broken.ppm
echo words >flat/notes.txt
expect_exit 0 "$TANDEM" bench loader flat --size 24 --seconds 0.5 --batch 7 --augment flip,jitter --json
expect_same 1 "$(json_value skipped)" "the damaged picture is counted"
expect_same 1 "$(json_value others)" "the other file is counted"
expect_true "augmentation is a stage" [ "$(json_value augment.images)" -gt 0 ]
mkdir bad
echo words >bad/a.ppm
expect_exit 0 "$TANDEM" bench loader bad --size 24 --seconds 0.5 --json
expect_same 1 "$(json_value skipped)" "nothing but damage is no failure"

expect_exit 0 "$TANDEM" bench loader pictures --size 24 --seconds 0.5
expect_stdout_matches '^  loader +[0-9]+ images/s \('
expect_stdout_matches '^  ceiling +[0-9]+ images/s .* decoding alone$'
expect_stdout_matches 'the loader reaches [0-9.]+ % of its ceiling'

expect_exit 2 "$TANDEM" bench
expect_exit 2 "$TANDEM" bench disk pictures
expect_stderr_matches "tandem bench measures: loader; found 'disk'"
expect_exit 2 "$TANDEM" bench loader pictures --size 0
expect_exit 2 "$TANDEM" bench loader pictures --augment mixup
expect_stderr_matches 'mixup and cutmix are work of'
expect_exit 2 "$TANDEM" bench loader pictures --augment blur
expect_exit 3 "$TANDEM" bench loader nowhere
expect_stderr_matches nowhere
finish
