# NVIDIA's libraries in commands, by stand-ins for them, with the shim in place of libtandem_cuda.so
# (docs/design/gpu.md): doctor lists them, a profile names algorithms, a resumed run keeps its
# algorithms, with --fast in any order, and with less workspace where memory is short, also for frozen
# layers and after an unfreeze.
. "$SOURCE/tests/cli/lib.sh"

gpu=$BUILD/tests/gpu
if [ ! -f "$gpu/libtandem_cuda.so" ] || [ ! -f "$gpu/libfake_cudnn.so" ] ||
    [ ! -f "$BUILD/libtandem_cuda.so" ]; then
    skip "no shim, or a build without backend cuda"
    finish
    exit
fi
export TANDEM_FAKE_CUDNN="$gpu/libfake_cudnn.so" TANDEM_FAKE_CUBLASLT="$gpu/libfake_cublaslt.so"
export TANDEM_HOME="$PWD/home"
on_gpu() {
    env LD_LIBRARY_PATH="$gpu" "$TANDEM" "$@"
}
# The contents of a folder, as names and checksums.
contents() {
    (cd "$1" && find . -type f | sort | xargs cksum)
}

# ---- doctor ---------------------------------------------------------------------------------
expect_exit 0 on_gpu doctor --no-measure
expect_stdout_matches '^  cuDNN +9\.19\.0'
expect_stdout_matches 'libfake_cudnn\.so\)$'
expect_stdout_matches '^  cuBLASLt +13\.1\.0'
expect_exit 0 env TANDEM_FAKE_CUBLASLT=/nowhere/libcublasLt.so.13 LD_LIBRARY_PATH="$gpu" \
    "$TANDEM" doctor --no-measure
expect_stdout_matches '^  cuDNN +9\.19\.0'
expect_stdout_matches '^  cuBLASLt +not found: '
expect_true "it says what is done without" sh -c \
    "tr -s ' \n' '  ' <'$out' | grep -q 'without it dense layers are computed by kernels of tandem'"
expect_exit 0 env TANDEM_FAKE_CUDNN=libm.so.6 LD_LIBRARY_PATH="$gpu" "$TANDEM" doctor \
    --no-measure --json
expect_same CUDA "$(json_value gpu_libraries.0.name)" "the first library is part of the backend"
expect_same 13.0 "$(json_value gpu_libraries.0.version)" "its version"
expect_same cuDNN "$(json_value gpu_libraries.1.name)" "the second library"
expect_same False "$(json_value gpu_libraries.1.found)" "is none"
expect_same None "$(json_value gpu_libraries.1.version)" "so it has no version"
expect_true "and why is said" test "$(json_value gpu_libraries.1.problem)" != None
expect_same True "$(json_value gpu_libraries.2.found)" "the third is there"
expect_same 13.1.0 "$(json_value gpu_libraries.2.version)" "with its version"
expect_same "$gpu/libfake_cublaslt.so" "$(json_value gpu_libraries.2.file)" "and where it is"

# ---- a profile names what was chosen ----------------------------------------------------------
set -- bench compute --device cuda --model lenet5 --image 12 --batch 4 --threads 1 --seconds 0.5 --profile
expect_exit 0 on_gpu "$@" --json
expect_true "convolutions by cuDNN, dense layers by cuBLASLt, in each direction" python3 -c '
import json, sys
nodes = {node["name"]: node for node in json.load(open(sys.argv[1]))["profile"]}
for name, by in (("conv2", "cuDNN engine "), ("dense1", "cuBLASLt algorithm ")):
    for way in ("forward", "input_gradient", "weight_gradient"):
        assert nodes[name][way]["by"].startswith(by), (name, way, nodes[name])
        assert nodes[name][way]["workspace_bytes"] > 0
assert nodes["conv1"]["input_gradient"] is None and nodes["pool1"]["forward"] is None' "$out"
expect_exit 0 on_gpu "$@"
expect_stdout_matches '^ +weight gradient +cuDNN engine [0-9]+, [0-9.]+ .?i?B$'
expect_exit 0 "$TANDEM" bench compute --model lenet5 --batch 4 --seconds 0.5 --profile --json
expect_true "the CPU names its algorithms, too" python3 -c '
import json, sys
nodes = {node["name"]: node for node in json.load(open(sys.argv[1]))["profile"]}
assert nodes["conv1"]["forward"]["by"] and nodes["conv1"]["weight_gradient"]["by"]' "$out"

# ---- a resumed run keeps its algorithms --------------------------------------------------------
expect_exit 0 on_gpu synth pictures --classes 2 --per-class 8 --size 32 --format ppm --quiet
train() {
    on_gpu train pictures --device cuda --threads 1 --model lenet5 --size 12 --batch 4 \
        --split 0.75,0.25 --patience 0 --schedule constant --json "$@"
}
rm -rf home
expect_exit 0 train -o parts --epochs 1
expect_true "choices are in the run" test -n "$(ls parts/kernels)"
expect_true "and in the GPU's folder" test -n "$(ls home/cuda)"
contents parts/kernels >before
rm -rf home
expect_exit 0 train -o parts --epochs 3 --resume
contents parts/kernels >after
expect_true "resumed, it chooses nothing" test ! -e home/cuda
expect_true "and keeps its choices" cmp before after
expect_exit 0 train -o whole --epochs 3
expect_true "weights are those of a run that never stopped" \
    cmp parts/best.safetensors whole/best.safetensors
rm -rf home
for file in parts/kernels/*; do
    echo damaged >"$file"
    break
done
expect_exit 0 train -o parts --epochs 4 --resume
expect_same 1 "$(find home/cuda -type f | wc -l | tr -d ' ')" "what is damaged alone is asked again"

# ---- workspace where memory is short ------------------------------------------------------------
rm -rf home
export TANDEM_FAKE_WORKSPACE=9000000 # of the fastest engines
expect_exit 0 train -o roomy --epochs 1
expect_true "there is enough" sh -c "! grep -q 'of workspace at most' '$err'"
rm -rf home
# Room for an algorithm that is timed, but not for training beside validation.
export TANDEM_FAKE_BYTES=15000000
expect_exit 0 train -o short --epochs 1
expect_stderr_matches 'libraries get 8 MiB of workspace at most, .* free on the GPU are [0-9]+ MiB'
contents short/kernels >before
unset TANDEM_FAKE_BYTES
rm -rf home
expect_exit 0 train -o short --epochs 2 --resume
expect_true "with memory again it resumes as it began" sh -c "! grep -q 'of workspace at most' '$err'"
contents short/kernels >after
expect_true "with the same choices" cmp before after
expect_true "and asks nothing" test ! -e home/cuda
export TANDEM_FAKE_BYTES=15000000
expect_exit 0 train -o short --epochs 3 --resume
expect_exit 4 train -o roomy --epochs 2 --resume
expect_stderr_matches 'free on the GPU are [0-9]+ MiB'
unset TANDEM_FAKE_BYTES

# ---- a frozen backbone and an unfreeze, where memory is short -------------------------------------
# Features take 9 MiB at most, for the evaluator's workspace; training after the unfreeze takes 18, and
# is counted first.
head="--weights parts --freeze base --hidden 4 --epochs 2"
unfreeze="--weights parts --unfreeze 1 --unfreeze-layers 1 --hidden 4 --epochs 4"
short() { # name bytes options…
    name=$1 bytes=$2
    shift 2
    rm -rf home
    expect_exit 0 train -o "$name" "$@"
    expect_true "$name: there is enough" sh -c "! grep -q 'of workspace at most' '$err'"
    rm -rf home
    export TANDEM_FAKE_BYTES=$bytes
    expect_exit 0 train -o "$name-short" "$@"
    expect_same 1 "$(grep -c 'libraries get 8 MiB of workspace at most' "$err")" \
        "$name: they get less, reported once"
    expect_true "$name: before anything is trained" sh -c \
        "sed '/^ *1  /q' '$err' | grep -q 'libraries get 8 MiB'"
    expect_true "$name: what is planned fits" sh -c \
        "[ \"\$(sed -n 's/.*\"planned_bytes\": *\([0-9]*\).*/\1/p' $name-short/run.json)\" -lt $bytes ]"
    unset TANDEM_FAKE_BYTES
    # the stand-ins' engines have the same bits
    expect_true "$name: its weights are those with enough" \
        cmp "$name/best.safetensors" "$name-short/best.safetensors"
}
# shellcheck disable=SC2086 # words of their own
short rows 9170000 $head # one that is timed has room, beside weights it has not
# shellcheck disable=SC2086
short unfrozen 12000000 $unfreeze
contents unfrozen-short/kernels >before
rm -rf home
# shellcheck disable=SC2086
expect_exit 0 train -o unfrozen-short $unfreeze --epochs 5 --resume
contents unfrozen-short/kernels >after
expect_same "" "$(grep -vxF -f after before)" "it resumes with the same choices"

# ---- --batch auto leaves a tenth of memory alone, before the batch gives way -----------------------
# All that libraries want takes 18.7 MB.
export TANDEM_FAKE_BYTES=19500000
rm -rf home
expect_exit 0 train -o asked --batch 32 --epochs 1
expect_true "who asks for a batch has all of it" sh -c "! grep -q 'of workspace at most' '$err'"
rm -rf home
expect_exit 0 train -o chosen --batch auto --epochs 1
expect_stderr_matches 'batch auto: 32 images a step \(a larger batch leaves fewer'
expect_stderr_matches 'libraries get 8 MiB of workspace at most, .* free on the GPU are 18 MiB'
contents chosen/kernels >before
unset TANDEM_FAKE_BYTES
rm -rf home
expect_exit 0 train -o chosen --batch auto --epochs 2 --resume
contents chosen/kernels >after
expect_true "it resumes with the same choices" cmp before after
unset TANDEM_FAKE_WORKSPACE

# What recordings take counts: 64 pictures at a time take 1.3 MB, 32 take 0.8, and 1.1 are left beside
# two recordings. Twice as many are faster, unless the machine is too busy to say so.
python3 - <<'END'
import os, random, struct
os.mkdir("many")
random.seed(3)
n = 6600
with open("many/train-images-idx3-ubyte", "wb") as file:
    file.write(struct.pack(">IIII", 2051, n, 12, 12) + random.randbytes(n * 144))
with open("many/train-labels-idx1-ubyte", "wb") as file:
    file.write(struct.pack(">II", 2049, n) + bytes(i % 2 for i in range(n)))
END
many() {
    on_gpu train many --device cuda --threads 1 --model lenet5 --size 12 --batch auto \
        --split 0.99,0.01 --patience 0 --schedule constant --epochs 0 --steps 2 --json "$@"
}
export TANDEM_FAKE_BYTES=10000000 TANDEM_FAKE_RECORDING_BYTES=4000000 TANDEM_FAKE_REPLAY_MS=60
for i in 1 2 3; do
    rm -rf full
    expect_exit 0 many -o full
    json_value batch_reason >reason
    awk '/timed 32: / { split($0, at, /[:,;] */); exit !(at[4] + 0 > 1.1 * at[2]) } { exit 1 }' \
        reason && break
done
if [ $i -lt 3 ] || grep -q 'with what' reason; then
    expect_same 32 "$(json_value batch)" "a batch beside what is recorded"
    expect_true "and why ($(cat reason))" \
        grep -q 'with what recording steps takes 64 take 9 MiB, free on the GPU are 9' reason
else
    skip "steps of 64 were no faster than those of 32"
fi
expect_true "the run has what they took" grep -Eq '"recorded_bytes": ?4000000' full/run.json
export TANDEM_FAKE_RECORDING_BYTES=10
expect_exit 0 many -o light
expect_true "what is little changes nothing ($(json_value batch_reason))" \
    sh -c "! grep -q 'with what' light/run.json"
expect_exit 0 train -o told --epochs 1
expect_true "a run with a given batch records it, too" grep -Eq '"recorded_bytes": ?10,' told/run.json
unset TANDEM_FAKE_BYTES TANDEM_FAKE_RECORDING_BYTES TANDEM_FAKE_REPLAY_MS

# ---- any order, where it was asked for ---------------------------------------------------------
problems() {
    sed 's/",.*//' "$1"/kernels/*
}
rm -rf home
expect_exit 0 train -o fast --fast --epochs 1
problems fast >of_fast
problems whole >of_whole
expect_true "no other run has any order" sh -c '! grep -q "any order" of_whole'
expect_true "all that training alone computes has" sh -c \
    "grep -E 'conv (input|weights)|first turned' of_fast | grep -vq 'any order'; [ \$? = 1 ]"
expect_true "and nothing of validation" sh -c \
    "grep -q relu of_fast && ! grep relu of_fast | grep -q 'any order'"
contents fast/kernels >before
rm -rf home
expect_exit 0 train -o fast --fast --epochs 2 --resume
contents fast/kernels >after
expect_true "resumed, it keeps its choices" cmp before after
expect_true "and asks nothing" test ! -e home/cuda
expect_exit 0 train -o auto --fast --batch auto --precision bf16 --epochs 1
expect_true "what is timed may vary, too" sh -c \
    "sed 's/\",.*//' auto/kernels/* | grep -q 'conv weights BF16 .* any order'"
finish
