# What NVIDIA's libraries have to do with commands, by libraries that stand for them beside the shim
# in the place of libtandem_cuda.so (docs/gpu.md): doctor names them, a profile says what computes, a
# run goes on with what it chose, and with less workspace where memory is short.
. "$SOURCE/tests/cli/lib.sh"

card=$BUILD/tests/card
if [ ! -f "$card/libtandem_cuda.so" ] || [ ! -f "$card/libfake_cudnn.so" ] ||
    [ ! -f "$BUILD/libtandem_cuda.so" ]; then
    skip "no shim, or a build without backend cuda"
    finish
    exit
fi
export TANDEM_CARD_CUDNN="$card/libfake_cudnn.so" TANDEM_CARD_CUBLASLT="$card/libfake_cublaslt.so"
export TANDEM_HOME="$PWD/home"
on_card() {
    env LD_LIBRARY_PATH="$card" "$TANDEM" "$@"
}
# What a folder holds, to the byte.
contents() {
    (cd "$1" && find . -type f | sort | xargs cksum)
}

# ---- doctor ---------------------------------------------------------------------------------
expect_exit 0 on_card doctor --no-measure
expect_stdout_matches '^  cuDNN +9\.19\.0'
expect_stdout_matches 'libfake_cudnn\.so\)$'
expect_stdout_matches '^  cuBLASLt +13\.1\.0'
expect_exit 0 env TANDEM_CARD_CUBLASLT=/nowhere/libcublasLt.so.13 LD_LIBRARY_PATH="$card" \
    "$TANDEM" doctor --no-measure
expect_stdout_matches '^  cuDNN +9\.19\.0'
expect_stdout_matches '^  cuBLASLt +not found: '
expect_true "it says what is done without" sh -c \
    "tr -s ' \n' '  ' <'$out' | grep -q 'without it dense layers are computed by kernels of tandem'"
expect_exit 0 env TANDEM_CARD_CUDNN=libm.so.6 LD_LIBRARY_PATH="$card" "$TANDEM" doctor \
    --no-measure --json
expect_same cuDNN "$(json_value gpu_libraries.0.name)" "the first library"
expect_same False "$(json_value gpu_libraries.0.found)" "is none"
expect_same None "$(json_value gpu_libraries.0.version)" "so it has no version"
expect_true "and why is said" test "$(json_value gpu_libraries.0.problem)" != None
expect_same True "$(json_value gpu_libraries.1.found)" "the second is there"
expect_same 13.1.0 "$(json_value gpu_libraries.1.version)" "with its version"
expect_same "$card/libfake_cublaslt.so" "$(json_value gpu_libraries.1.file)" "and where it is"

# ---- a profile names what was chosen ----------------------------------------------------------
set -- bench compute --device cuda --model lenet5 --image 12 --batch 4 --threads 1 --seconds 0.5 --profile
expect_exit 0 on_card "$@" --json
expect_true "convolutions by cuDNN, dense layers by cuBLASLt, in each direction" python3 -c '
import json, sys
nodes = {node["name"]: node for node in json.load(open(sys.argv[1]))["profile"]}
for name, by in (("conv2", "cuDNN engine "), ("dense1", "cuBLASLt algorithm ")):
    for way in ("forward", "input_gradient", "weight_gradient"):
        assert nodes[name][way]["by"].startswith(by), (name, way, nodes[name])
        assert nodes[name][way]["workspace_bytes"] > 0
assert nodes["conv1"]["input_gradient"] is None and nodes["pool1"]["forward"] is None' "$out"
expect_exit 0 on_card "$@"
expect_stdout_matches '^ +weight gradient +cuDNN engine [0-9]+, [0-9.]+ .?i?B$'
expect_exit 0 "$TANDEM" bench compute --model lenet5 --batch 4 --seconds 0.5 --profile --json
expect_true "a processor has ways, too" python3 -c '
import json, sys
nodes = {node["name"]: node for node in json.load(open(sys.argv[1]))["profile"]}
assert nodes["conv1"]["forward"]["by"] and nodes["conv1"]["weight_gradient"]["by"]' "$out"

# ---- a run goes on with what it chose ----------------------------------------------------------
expect_exit 0 on_card synth pictures --classes 2 --per-class 8 --size 32 --format ppm --quiet
train() {
    on_card train pictures --device cuda --threads 1 --model lenet5 --size 12 --batch 4 \
        --split 0.75,0.25 --patience 0 --schedule constant --json "$@"
}
rm -rf home
expect_exit 0 train -o parts --epochs 1
expect_true "choices are in the run" test -n "$(ls parts/kernels)"
expect_true "and in the card's folder" test -n "$(ls home/cuda)"
contents parts/kernels >before
rm -rf home
expect_exit 0 train -o parts --epochs 3 --resume
contents parts/kernels >after
expect_true "gone on with, it asks nothing" test ! -e home/cuda
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
export TANDEM_CARD_WORKSPACE=9000000 # of the fastest engines
expect_exit 0 train -o roomy --epochs 1
expect_true "there is enough" sh -c "! grep -q 'of workspace at most' '$err'"
rm -rf home
export TANDEM_CARD_BYTES=6000000
expect_exit 0 train -o short --epochs 1
expect_stderr_matches 'libraries get 8 MiB of workspace at most, .* free on the card are [0-9]+ MiB'
contents short/kernels >before
unset TANDEM_CARD_BYTES
rm -rf home
expect_exit 0 train -o short --epochs 2 --resume
expect_true "with memory again it goes on as it began" sh -c "! grep -q 'of workspace at most' '$err'"
contents short/kernels >after
expect_true "with the same choices" cmp before after
expect_true "and asks nothing" test ! -e home/cuda
export TANDEM_CARD_BYTES=6000000
expect_exit 0 train -o short --epochs 3 --resume
expect_exit 4 train -o roomy --epochs 2 --resume
expect_stderr_matches 'free on the card are [0-9]+ MiB'
finish
