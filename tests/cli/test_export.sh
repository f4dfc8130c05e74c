# tandem export as a user meets it: a model trained on a handful of pictures, for other programs.
. "$SOURCE/tests/cli/lib.sh"

for class in 'left "1"' 'rechts ÄÖ'; do
    mkdir -p "pictures/$class"
    for i in 1 2 3 4 5 6 7 8; do
        awk -v seed="$i$class" 'BEGIN {
            srand(length(seed) * 100 + seed)
            print "P3 12 12 255"
            for (i = 0; i < 432; i++)
                print int(rand() * 256)
        }' >"pictures/$class/$i.ppm"
    done
done
expect_exit 0 "$TANDEM" train pictures -o run --model lenet5 --size 12 --epochs 1 --batch 4 --quiet

expect_exit 0 "$TANDEM" export run -o out/model.onnx --json
expect_json path form bytes network classes note
expect_same onnx "$(json_value form)" "the ending says the form"
expect_same lenet5 "$(json_value network)" "the network is reported"
expect_same 2 "$(json_value classes)" "and how many classes it has"
expect_same "$(wc -c <out/model.onnx | tr -d ' ')" "$(json_value bytes)" "bytes are those of the file"
expect_exit 0 "$TANDEM" export run -o again.onnx
expect_stdout_matches '^lenet5 with 2 classes as onnx in again.onnx \('
expect_true "the same model gives the same bytes" cmp out/model.onnx again.onnx
expect_exit 0 "$TANDEM" export run/last.safetensors -o bytes.onnx --preprocess
expect_true "preprocessing is in the file" grep -q Transpose bytes.onnx
expect_exit 0 "$TANDEM" export run -o model.safetensors
expect_exit 0 "$TANDEM" export run -o model.weights --form safetensors
expect_true "--form is the ending's equal" cmp model.safetensors model.weights
expect_true "safetensors have PyTorch's layout, and the classes as they are called" python3 -c '
import json, struct
raw = open("model.safetensors", "rb").read()
head = json.loads(raw[8:8 + struct.unpack("<Q", raw[:8])[0]])
assert head["conv1.weight"]["shape"] == [6, 1, 5, 5], head["conv1.weight"]
assert head["dense1.weight"]["shape"][0] == 120
meta = head["__metadata__"]
assert json.loads(meta["classes"]) == ["left \"1\"", "rechts ÄÖ"], meta["classes"]
assert json.loads(meta["preprocess"])["scale"] == "unit" and meta["format"] == "pt"'

expect_exit 0 "$TANDEM" export run -o model.h5
expect_exit 0 "$TANDEM" weights inspect model.h5 --json
expect_json weights

# An exported file holds no split.
expect_exit 3 "$TANDEM" evaluate model.safetensors pictures --part val
expect_stderr_matches "does not record which images of pictures are of the part 'val': exported files .*--part all$"
expect_exit 0 "$TANDEM" evaluate model.safetensors pictures --part all

# ---- refusals ------------------------------------------------------------------------------
expect_exit 2 "$TANDEM" export run
expect_stderr_matches 'no file to write was given'
expect_exit 2 "$TANDEM" export -o model.onnx
expect_exit 2 "$TANDEM" export run -o model.tflite
expect_stderr_matches 'there is .onnx, .safetensors, .h5'
expect_exit 2 "$TANDEM" export run -o model --form tflite
expect_exit 2 "$TANDEM" export run -o q.onnx --form h5
expect_stderr_matches "--form is h5, but 'q.onnx' has the extension of onnx"
expect_exit 2 "$TANDEM" export run -o model.safetensors --preprocess
expect_exit 3 "$TANDEM" export nowhere -o model.onnx
expect_exit 3 "$TANDEM" export pictures -o model.onnx
expect_exit 2 "$TANDEM" export run -o out/
expect_exit 4 "$TANDEM" export run -o /proc/model.onnx
expect_true "nothing half-written is left" [ "$(ls -A out)" = model.onnx ]
finish
