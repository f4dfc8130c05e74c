# evaluate and predict on weights of other programs, made here: a Keras model without weights that
# answers the brightest colour, and a LeNet-5 of PyTorch's names whose last bias decides.
. "$SOURCE/tests/cli/lib.sh"

python3 - "$temp" <<'END'
import json, os, struct, sys
folder = sys.argv[1]

def write(name, metadata, tensors):
    head, values = {"__metadata__": metadata}, b""
    for key, (shape, floats) in tensors.items():
        head[key] = {"dtype": "F32", "shape": shape, "data_offsets": [len(values), len(values) + 4 * len(floats)]}
        values += struct.pack(f"<{len(floats)}f", *floats)
    text = json.dumps(head).encode()
    open(os.path.join(folder, name), "wb").write(struct.pack("<Q", len(text)) + text + values)

def layer(kind, **config):
    return {"class_name": kind, "config": {"name": kind.lower(), **config}}

model = {"class_name": "Sequential", "config": {"name": "colour", "layers": [
    layer("InputLayer", batch_shape=[None, 8, 8, 3]), layer("GlobalAveragePooling2D"), layer("Softmax")]}}
write("colour.safetensors", {"model_config": json.dumps(model)}, {"optimizer/vars/0": ([1], [0.0])})
model["config"]["layers"][2] = layer("LeakyReLU")
write("leaky.safetensors", {"model_config": json.dumps(model)}, {"optimizer/vars/0": ([1], [0.0])})
model["config"]["layers"][2] = layer("Dense", units=11, activation="softmax")
write("eleven.safetensors", {"model_config": json.dumps(model)}, {
    "dense/kernel": ([3, 11], [20.0 * c for c in range(11)] + [0.0] * 22),
    "dense/bias": ([11], [-200.0 * c * c for c in range(11)])})

shapes = {"conv1.weight": [6, 1, 5, 5], "conv1.bias": [6], "conv2.weight": [16, 6, 5, 5], "conv2.bias": [16],
          "fc1.weight": [120, 400], "fc1.bias": [120], "fc2.weight": [84, 120], "fc2.bias": [84],
          "fc3.weight": [10, 84], "fc3.bias": [10]}

def filled(shape, value=0.0):
    n = 1
    for side in shape:
        n *= side
    return shape, [value] * n

tensors = {name: filled(shape) for name, shape in shapes.items()}
tensors["fc3.bias"] = ([10], [0, 0, 0, 4, 0, 0, 0, 0, 0, 0])
write("lenet.safetensors", {"license": "MIT"}, {"module." + name: tensor for name, tensor in tensors.items()})
write("more.safetensors", {}, {**tensors, "fc4.weight": ([2, 10], [0.0] * 20)})
tensors["fc1.bias"] = filled([120], float("nan"))
write("nan.safetensors", {}, tensors)

for i, colour in enumerate(["red", "green", "blue"]):
    os.makedirs(os.path.join(folder, "pictures", colour))
    for n in range(8):
        pixel = " ".join(str(200 - n) if c == i else "20" for c in range(3))
        open(os.path.join(folder, "pictures", colour, f"{n}.ppm"), "w").write("P3 8 8 255\n" + (pixel + "\n") * 64)
END
printf '0 red\n1 green\n2 blue\n' >labels.txt
printf 'red\r\ngreen\r\nblue\r\n\n' >plain.txt
printf 'red\ngreen\n' >two.txt

# ---- a file that describes its network -------------------------------------------------------------
expect_exit 0 "$TANDEM" predict colour.safetensors pictures/blue/0.ppm --classes labels.txt --json --logits --scale raw
expect_same blue "$(json_value predictions.0.top.0.label)" "the brightest colour"
expect_same 200 "$(json_value predictions.0.logits.2)" "its logit is its mean"
expect_same 20 "$(json_value predictions.0.logits.0)" "and so are the others"
expect_exit 0 "$TANDEM" predict colour.safetensors pictures/red/0.ppm --json
expect_same "class 0" "$(json_value predictions.0.top.0.label)" "without names they are numbers"
expect_exit 0 "$TANDEM" evaluate colour.safetensors pictures --classes plain.txt --scale tf --json
expect_same 24 "$(json_value correct)" "all are right"
expect_exit 3 "$TANDEM" evaluate colour.safetensors pictures
expect_stderr_matches "none is one of the model's 3 \(the first is class 0\).*--classes FILE"
expect_exit 3 "$TANDEM" predict colour.safetensors pictures --classes two.txt
expect_stderr_matches '2 names of classes for the 3 outputs'
expect_exit 3 "$TANDEM" predict colour.safetensors pictures --classes nowhere.txt
expect_exit 2 "$TANDEM" predict colour.safetensors pictures --padding same
expect_stderr_matches 'says the padding of each layer'
expect_exit 2 "$TANDEM" predict colour.safetensors pictures --scale double
expect_exit 2 "$TANDEM" predict colour.safetensors pictures --logits
expect_stderr_matches '--logits requires --json'
expect_exit 3 "$TANDEM" predict leaky.safetensors pictures
expect_stderr_matches "'leakyrelu' is a LeakyReLU, and there is no op"

# Folders that are numbers stand for the outputs of a file that names none, 10 behind 9.
python3 - <<'END'
import os, shutil
for i, colour in enumerate(["red", "green", "blue"]):
    shutil.copytree(f"pictures/{colour}", f"numbers/{i}")
    shutil.copytree(f"pictures/{colour}", f"some/{2 * i}")
for i in range(11):
    os.makedirs(f"eleven/{i}")
    pixels = ("%d 20 20\n" % (20 * i)) * 64
    open(f"eleven/{i}/0.ppm", "w").write("P3 8 8 255\n" + pixels)
END
expect_exit 0 "$TANDEM" evaluate colour.safetensors numbers --scale tf --json
expect_same 24 "$(json_value correct)" "numbers are the outputs'"
expect_stderr_matches 'do not name their 3 classes and those of .*numbers are numbers: 0 means the first'
expect_exit 3 "$TANDEM" evaluate colour.safetensors some
expect_stderr_matches "none is one of the model's 3"
expect_exit 3 "$TANDEM" evaluate colour.safetensors numbers --classes plain.txt
expect_exit 3 "$TANDEM" evaluate colour.safetensors eleven
expect_exit 0 "$TANDEM" evaluate eleven.safetensors eleven --scale raw --json
expect_same 11 "$(json_value correct)" "each by its number, not by its place among the names"

# ---- a network by name -----------------------------------------------------------------------------
expect_exit 0 "$TANDEM" predict lenet.safetensors pictures/red/0.ppm --model lenet5 --json
expect_same 3 "$(json_value predictions.0.top.0.index)" "the class that the bias names"
expect_exit 0 "$TANDEM" predict lenet.safetensors pictures/red/0.ppm --json
expect_same 3 "$(json_value predictions.0.top.0.index)" "which the tensors are enough for"
expect_stderr_matches 'by its tensors the file is a lenet5'
expect_stderr_matches 'warning: the file does not say how images become numbers; guessed: scale unit, fit pad'
expect_exit 2 "$TANDEM" predict lenet.safetensors pictures --model lenet6
expect_exit 2 "$TANDEM" predict lenet.safetensors pictures --model lenet5 --fit pad --crop-fraction 0.5
expect_exit 3 "$TANDEM" predict lenet.safetensors pictures --model resnet18
expect_stderr_matches 'of another network than resnet18: by their tensors they are those of lenet5 \(--model lenet5\)'
expect_same 0 "$(grep -c 'missing\|of no use' "$err")" "and no tensor is listed"
expect_exit 3 "$TANDEM" predict more.safetensors pictures --model lenet5
expect_stderr_matches '0 are missing, 0 of another shape, 1 of no use \(of no use: fc4.weight of 2×10\)'
expect_exit 3 "$TANDEM" predict nan.safetensors pictures --model lenet5
expect_stderr_matches "tensor 'fc1.bias' has a NaN or an infinity"

# ---- a model of ours says everything itself ----------------------------------------------------------
expect_exit 0 "$TANDEM" train pictures --model lenet5 --epochs 1 --batch 4 --split 0.7,0.3 -o run --quiet
for option in "--model lenet5" "--fit pad" "--crop-fraction 0.5" "--resample bicubic" "--size 28" "--scale tf" \
    "--padding same" "--classes labels.txt"; do
    # shellcheck disable=SC2086 # an option and its value
    expect_exit 2 "$TANDEM" predict run pictures $option
    expect_stderr_matches 'is for weights of other programs'
done
expect_exit 2 "$TANDEM" evaluate run/best.safetensors pictures --scale tf
expect_exit 3 "$TANDEM" predict labels.txt pictures
expect_stderr_matches 'of no form of weights'
finish
