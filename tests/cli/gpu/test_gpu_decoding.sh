# train --decode card: images decoded by the stand-in for nvJPEG, with the shim in place of
# libtandem_cuda.so (docs/design/gpu.md). It has the host's inverse transform, so trainings, features
# and messages about bad files are those of --decode cpu.
. "$SOURCE/tests/cli/lib.sh"

gpu=$BUILD/tests/gpu
if [ ! -f "$gpu/libtandem_cuda.so" ] || [ ! -f "$gpu/libfake_nvjpeg.so" ] ||
    [ ! -f "$BUILD/libtandem_cuda.so" ]; then
    skip "no shim, or a build without backend cuda or JPEG"
    finish
    exit
fi
export TANDEM_HOME="$PWD/home"
export TANDEM_FAKE_NVJPEG="$gpu/libfake_nvjpeg.so" TANDEM_FAKE_NVJPEG_DECODED="$PWD/decoded"
on_gpu() {
    env LD_LIBRARY_PATH="$gpu" "$TANDEM" "$@"
}
train() {
    on_gpu train pictures --device cuda --threads 2 --model convnet7 --size 24 --batch 8 \
        --split 0.7,0.3 --patience 0 --schedule constant --json "$@"
}
n_decoded() {
    wc -c <decoded | tr -d ' '
}
expect_exit 0 "$TANDEM" synth pictures --classes 2 --per-class 15 --size 40 --quiet
first=$(find pictures -name '*.jpg' | sort | head -n 1)
head -c 700 "$first" >"$(dirname "$first")/cut.jpg"
printf 'P3 2 2 255\n255 0 0  0 255 0  0 0 255  9 9 9\n' >"$(dirname "$first")/other.ppm"

# ---- trainings have the bits of the host's ------------------------------------------------------
least=20 # pictures that are decoded at least, of 30
same() { # name options…
    name=$1
    shift
    : >decoded
    expect_exit 0 train -o "$name-cpu" --decode cpu "$@"
    said=$(grep -o 'skipped: .*' "$err" | sort)
    expect_same 0 "$(n_decoded)" "$name: --decode cpu gives no file away"
    expect_exit 0 train -o "$name-gpu" --decode card "$@"
    expect_true "$name: the GPU decodes ($(n_decoded) pictures)" [ "$(n_decoded)" -gt "$least" ]
    expect_same "$said" "$(grep -o 'skipped: .*' "$err" | sort)" "$name: what is skipped"
    for file in best last; do
        expect_true "$name: $file weights are the same" \
            cmp "$name-cpu/$file.safetensors" "$name-gpu/$file.safetensors"
    done
}
same plain --epochs 2
expect_stderr_matches 'cut\.jpg: .*truncated'
expect_stderr_matches 'decode card: JPEG files that nvJPEG 12\.4\.0 takes are decoded on cuda'
expect_true "the run says who decoded" grep -q '"decoder": "nvJPEG 12\.4\.0"' plain-gpu/run.json
expect_true "and so does that of the host" grep -q '"decoder": "cpu"' plain-cpu/run.json
same changed --epochs 1 --augment resized-crop,flip,rotate:10,mixup:0.2 --cache none
same kept --epochs 2 --cache encoded --memory 64M
TANDEM_FAKE_NVJPEG_REFUSES=2
export TANDEM_FAKE_NVJPEG_REFUSES
least=8
same refused --epochs 1 --cache none
least=20
unset TANDEM_FAKE_NVJPEG_REFUSES

# ---- features are the same, and are not taken for each other ------------------------------------
set -- --weights plain-cpu/best.safetensors --freeze base --hidden 4 --epochs 1
same frozen "$@"
expect_same 0 "$(json_value features.reused)" "features of another decoder are others"
expect_exit 0 train -o frozen-again --decode card "$@"
expect_true "those of the same are found" [ "$(json_value features.reused)" -gt 20 ]

# ---- resumed ------------------------------------------------------------------------------------
expect_exit 0 train -o parts --decode card --epochs 1
: >decoded
expect_exit 0 train -o parts --decode card --epochs 2 --resume
expect_true "it still decodes on the GPU" [ "$(n_decoded)" -gt 20 ]
expect_true "weights are those of a run that never stopped" \
    cmp parts/best.safetensors plain-gpu/best.safetensors
: >decoded
expect_exit 0 on_gpu train pictures -o parts --epochs 3 --resume --json
expect_true "nothing has to be said again" [ "$(n_decoded)" -gt 20 ]
expect_exit 2 train -o parts --decode cpu --epochs 4 --resume
expect_stderr_matches "option --decode is 'cpu', but the run was started with 'card'"
expect_exit 4 env TANDEM_FAKE_NVJPEG_VERSION=13 LD_LIBRARY_PATH="$gpu" "$TANDEM" train pictures \
    -o parts --epochs 4 --resume
expect_stderr_matches 'were decoded by nvJPEG 12\.4\.0, and here is nvJPEG 13\.4\.0'

# ---- what is missing ----------------------------------------------------------------------------
expect_exit 2 "$TANDEM" train pictures -o none --model lenet5 --decode card
expect_stderr_matches 'option --decode card: --device cpu decodes no images; --device cuda'
expect_exit 2 "$TANDEM" train pictures -o none --model lenet5 --decode gpu
expect_exit 4 env TANDEM_FAKE_NVJPEG=/nowhere/libnvjpeg.so.13 LD_LIBRARY_PATH="$gpu" "$TANDEM" \
    train pictures -o none --model lenet5 --device cuda --decode card
expect_stderr_matches 'option --decode card: --device cuda cannot decode images here; --decode cpu'
expect_stderr_matches '/nowhere/libnvjpeg\.so\.13'
expect_exit 4 env TANDEM_FAKE_NVJPEG_VERSION=10 LD_LIBRARY_PATH="$gpu" "$TANDEM" train pictures \
    -o none --model lenet5 --device cuda --decode card
expect_stderr_matches 'found version 10\.4, and 11\.0 or newer is needed'
expect_true "what is refused leaves no run" test ! -e none

# ---- doctor -------------------------------------------------------------------------------------
export TANDEM_FAKE_CUDNN=/nowhere/libcudnn.so.9
expect_exit 0 on_gpu doctor --no-measure
expect_stdout_matches '^  nvJPEG +12\.4\.0'
expect_exit 0 env TANDEM_FAKE_NVJPEG=libm.so.6 LD_LIBRARY_PATH="$gpu" "$TANDEM" doctor --no-measure
expect_stdout_matches '^  nvJPEG +not found: '
expect_true "it says what is done without" sh -c \
    "tr -s ' \n' '  ' <'$out' | grep -q 'without it JPEG files are decoded on the CPU'"
finish
