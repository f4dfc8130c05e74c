# tandem bench as a user meets it.
. "$SOURCE/tests/cli/lib.sh"

expect_exit 0 "$TANDEM" synth pictures --classes 2 --per-class 10 --size 32 --format ppm --quiet
expect_exit 0 "$TANDEM" bench loader pictures --size 24 --threads 2 --seconds 0.5 --json
expect_json images_per_second ceiling_images_per_second milliseconds fraction_of_ceiling threads \
    images skipped others source_images read decode augment
expect_same 2 "$(json_value threads)" "as many threads as requested"
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
expect_stderr_matches "tandem bench takes loader, compute, scaling or allreduce first; found 'disk'"
expect_exit 2 "$TANDEM" bench loader
expect_stderr_matches 'takes SRC'
expect_exit 2 "$TANDEM" bench loader pictures --size 0
expect_exit 2 "$TANDEM" bench loader pictures --augment mixup
expect_stderr_matches 'mixup and cutmix are work of'
expect_exit 2 "$TANDEM" bench loader pictures --augment blur
expect_exit 3 "$TANDEM" bench loader nowhere
expect_stderr_matches nowhere

# A network without pictures.
expect_exit 0 "$TANDEM" bench compute --model lenet5 --batch 9 --classes 10 --threads 2 --seconds 0.5 --json
expect_json images_per_second ceiling_images_per_second milliseconds fraction_of_ceiling \
    images_per_second_spread start_milliseconds planned_bytes peak_bytes model mode backend threads shard image
expect_same 2 "$(json_value threads)" "as many threads as requested"
expect_same train "$(json_value mode)" "training by default"
expect_same 28 "$(json_value image)" "the model's own size"
expect_true "rates are above 0" python3 -c '
import json, sys
v = json.load(open(sys.argv[1]))
assert v["images_per_second"] > 0 and v["ceiling_images_per_second"] > 0 and "profile" not in v
assert abs(v["milliseconds"] - 9e3 / v["images_per_second"]) < 1e-6 * v["milliseconds"]' "$out"
expect_exit 0 "$TANDEM" bench compute --model convnet7 --mode features --image 16 --batch 3 --seconds 0.5 \
    --profile --json
expect_true "a profile names the nodes" python3 -c '
import json, sys
v = json.load(open(sys.argv[1]))
names = [node["name"] for node in v["profile"]]
assert "conv1" in names and "softmax" in names, names' "$out"
expect_exit 0 "$TANDEM" bench compute --model convnet7 --image 16 --batch 3 --seconds 0.5 --freeze base --profile --json
expect_true "only the head has a backward pass" python3 -c '
import json, sys
v = json.load(open(sys.argv[1]))
learns = [node["name"] for node in v["profile"] if node["backward_milliseconds"] > 0]
assert v["freeze"] == "base" and "dense" in learns and set(learns) <= {"dense", "softmax"}, v' "$out"
expect_exit 2 "$TANDEM" bench compute --mode features --freeze base
expect_stderr_matches "features are without training"
expect_exit 0 "$TANDEM" bench compute --model convnet7 --image 16 --batch 3 --seconds 0.5 --profile --unfused --json
expect_true "alone, every node has a line" python3 -c '
import json, sys
v = json.load(open(sys.argv[1]))
names = [node["name"] for node in v["profile"]]
assert v["unfused"] and "bn1" in names and "relu1" in names, names' "$out"
expect_exit 0 "$TANDEM" bench compute --model lenet5 --batch 9 --classes 10 --seconds 0.5 --profile
expect_stdout_matches '^  reached +[0-9.]+ images/s \('
expect_stdout_matches '^  ceiling +[0-9.]+ images/s, '
expect_stdout_matches '^  conv2 +conv +[0-9.]+ +[0-9.]+ +[0-9.]+ % '
expect_stdout_matches "^  the optimizer's step alone +[0-9.]+ +[0-9.]+ .?B/s"
expect_exit 0 "$TANDEM" bench scaling --model convnet7 --image 16 --batch 5 --shard 2 --seconds 1 --bandwidth 1 --json
expect_true "more threads are predicted to be faster" python3 -c '
import json, sys
v = json.load(open(sys.argv[1]))
rows = {row["threads"]: row for row in v["threads"]}
assert abs(rows[1]["speedup"] - 1) < 0.01 and rows[1]["measured_milliseconds"] > 0, v
slower = v.get("busy_slowdown", 1)
assert 1.2 < rows[2]["speedup"] * slower <= 2.1 and rows[16]["members"] > 1 and rows[16]["regions"] > 10, v
assert rows[16]["speedup"] > rows[2]["speedup"], v
assert all(row["speedup_with_bandwidth"] <= row["speedup"] for row in v["threads"]), v' "$out"
expect_exit 2 "$TANDEM" bench scaling --threads 2
expect_stderr_matches 'bench scaling predicts 1 to 64 threads'
expect_exit 0 "$TANDEM" bench scaling --model resnet18 --mode features --image 160 --batch 5 --seconds 2 --json
expect_true "five images are computed by five threads, and by teams of more" python3 -c '
import json, os, sys
v = json.load(open(sys.argv[1]))
rows = {row["threads"]: row for row in v["threads"]}
assert v["mode"] == "features" and v["update_milliseconds"] == 0 and v["group_milliseconds"] > 0, v
assert abs(rows[1]["speedup"] - 1) < 0.01 and rows[1]["members"] == 1, v
assert rows[16]["members"] == 3 and rows[16]["speedup"] > rows[6]["speedup"], v
assert rows[6]["speedup"] * v.get("busy_slowdown", 1) > 3, v
assert len(os.sched_getaffinity(0)) < 2 or 1.2 < v["busy_speedup"] < 3, v' "$out"
expect_exit 0 "$TANDEM" bench scaling --model lenet5 --mode features --batch 5 --seconds 0.5
expect_stdout_matches '^lenet5, features, 28 pixels, 5 images, on one thread:'
expect_stdout_matches '^ +4 +- +0 '
expect_exit 2 "$TANDEM" bench scaling --freeze base
expect_stderr_matches 'without --freeze and --profile'
expect_exit 2 "$TANDEM" bench compute --bandwidth 10
expect_stderr_matches 'option --bandwidth belongs to bench scaling, not to bench compute'
expect_exit 2 "$TANDEM" bench compute pictures
expect_stderr_matches "tandem bench compute takes no SRC; found 1 argument"
expect_exit 2 "$TANDEM" bench compute --augment flip
expect_stderr_matches 'option --augment belongs to bench loader, not to bench compute'
expect_exit 2 "$TANDEM" bench loader pictures --model lenet5
expect_stderr_matches 'option --model belongs to bench compute, not to bench loader'
expect_exit 2 "$TANDEM" bench compute --precision int4
expect_exit 2 "$TANDEM" bench compute --model lenet6
expect_exit 2 "$TANDEM" bench compute --mode backwards
finish
