# train on several fake GPUs, a process for each: the bits of one GPU with the same groups, whoever
# starts the processes, and one sentence where GPUs and ranks do not fit each other. The kernels of
# backend cuda are run by the shim (docs/design/gpu.md); GPUs of two processes are not connected.
. "$SOURCE/tests/cli/lib.sh"

if [ ! -f "$BUILD/tests/gpu/libtandem_cuda.so" ] || [ ! -f "$BUILD/libtandem_cuda.so" ]; then
    skip "no shim, or a build without backend cuda"
    finish
    exit
fi

# Two classes of 12 x 12 PPM text: bright on the left, bright on the right, with a little noise.
for class in left right; do
    mkdir -p pictures/$class
    i=0
    while [ $i -lt 12 ]; do
        awk -v class=$class -v seed=$i 'BEGIN {
            srand(seed + (class == "left" ? 1 : 1000))
            print "P3 12 12 255"
            for (y = 0; y < 12; y++)
                for (x = 0; x < 12; x++) {
                    v = ((x < 6) == (class == "left") ? 190 : 40) + int(rand() * 40)
                    print v, v, v
                }
        }' >"pictures/$class/$i.ppm"
        i=$((i + 1))
    done
done
export TANDEM_HOME="$temp/home" TANDEM_FAKE_GPUS=2 LD_LIBRARY_PATH="$BUILD/tests/gpu"
set -- --threads 1 --model convnet7 --size 8 --batch 10 --split 0.75,0.25 --patience 0
same() { # words run run
    expect_true "$1: the best weights are the same" cmp "$2/best.safetensors" "$3/best.safetensors"
}

# ---- a process for each GPU of the list, of all, or of tandem run ---------------------------------
expect_exit 0 "$TANDEM" train pictures "$@" -o one --device cuda --shard 5 --epochs 3
expect_true "one process reports no ranks" sh -c "! grep -q ' ranks: ' '$err'"
expect_exit 0 "$TANDEM" train pictures "$@" -o list --device cuda:1,0 --epochs 3 --json
expect_json run epochs options
expect_same 2 "$(json_value world)" "rank 0 prints the result of two"
expect_stderr_matches '2 ranks: of 10 images a step, in groups of 5, they compute 5, 5'
expect_stderr_matches "gradients go through the CPU's memory .rank 0: opening NCCL: "
same "--device cuda:1,0" one list
expect_exit 0 "$TANDEM" train pictures "$@" -o all --device cuda:all --epochs 3
same "--device cuda:all" one all
expect_exit 0 "$TANDEM" run -n 2 -- train pictures "$@" -o run --device cuda --epochs 3
same "tandem run -n 2" one run
TANDEM_FAKE_GPUS=1 expect_exit 0 "$TANDEM" train pictures "$@" -o k1 --device cuda:all --epochs 3 --shard 5
expect_true "one GPU is one process" sh -c "! grep -q ' ranks: ' '$err'"
same "cuda:all of one" one k1

# ---- more GPUs, groups of their own, a batch that not all take part in, resumed on fewer ----------
TANDEM_FAKE_GPUS=4 expect_exit 0 "$TANDEM" train pictures "$@" -o four --device cuda:all --shard 3 --epochs 3
expect_exit 0 "$TANDEM" train pictures "$@" -o four-one --device cuda --shard 3 --epochs 3
same "four GPUs" four four-one
set -- "$@" --schedule constant
expect_exit 0 "$TANDEM" train pictures "$@" -o parts --device cuda:all --epochs 2
expect_exit 0 "$TANDEM" train pictures "$@" -o parts --device cuda --epochs 4 --resume
expect_exit 0 "$TANDEM" train pictures "$@" -o parts --device cuda:0,1 --epochs 6 --resume
expect_exit 0 "$TANDEM" train pictures "$@" -o whole --device cuda --shard 5 --epochs 6
same "resumed on one GPU and then on two" parts whole
how="--shard 2 --precision f16 --optimizer adamw --augment mixup:0.4,crop:1 --ema 0.9 --clip-norm 0.5"
# shellcheck disable=SC2086 # words
expect_exit 0 "$TANDEM" train pictures "$@" -o f16-one --device cuda --epochs 3 $how
# shellcheck disable=SC2086
expect_exit 0 "$TANDEM" train pictures "$@" -o f16-two --device cuda:all --epochs 3 $how
same "in f16" f16-one f16-two
how="--epochs 6 --weights one/best.safetensors --unfreeze 2 --unfreeze-layers 2 --hidden 8"
# shellcheck disable=SC2086
expect_exit 0 "$TANDEM" train pictures "$@" -o unfrozen-one --device cuda --shard 5 $how
# shellcheck disable=SC2086
expect_exit 0 "$TANDEM" train pictures "$@" -o unfrozen-two --device cuda:all $how
same "unfreezing" unfrozen-one unfrozen-two
expect_exit 0 "$TANDEM" train pictures "$@" -o fast --device cuda:all --epochs 2 --fast
expect_true "fast: the run is marked" grep -q '"exact": false' fast/run.json

# ---- algorithms that rank 0 has chosen ---------------------------------------------------------
for name in cudnn cublaslt; do
    upper=$(echo $name | tr a-z A-Z)
    export "TANDEM_FAKE_$upper=$BUILD/tests/gpu/libfake_$name.so"
done
export TANDEM_HOME="$temp/home2"
expect_exit 0 "$TANDEM" train pictures "$@" -o chosen --device cuda:all --epochs 2
expect_true "rank 0 keeps its choices" [ "$(ls chosen/kernels | wc -l)" -gt 4 ]
expect_same 1 "$(ls home2/cuda | wc -l)" "and the GPU of rank 1 has chosen nothing itself"
unset TANDEM_FAKE_CUDNN TANDEM_FAKE_CUBLASLT
export TANDEM_HOME="$temp/home"

# ---- GPUs that cannot be connected: the stand-in for NCCL sees no other process -----------------
export TANDEM_FAKE_NCCL="$BUILD/tests/gpu/libfake_nccl.so"
expect_exit 0 "$TANDEM" run -n 2 --deadline 2 -- train pictures "$@" -o apart --device cuda --epochs 6
expect_stderr_matches "through the CPU's memory .rank 0: joining the GPUs of the other ranks: not all ranks were there after 2 seconds"
same "not connected" whole apart
unset TANDEM_FAKE_NCCL

# ---- a rank that is killed ------------------------------------------------------------------------
if command -v pgrep >/dev/null; then
    "$TANDEM" train pictures "$@" -o lost --device cuda:all --epochs 2000 >"$out" 2>"$err" &
    job=$!
    tries=0
    while [ ! -s lost/last.safetensors ] && [ $tries -lt 600 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    kill -KILL "$(pgrep -P $job | tail -n 1)"
    status=0
    wait $job || status=$?
    expect_same 5 "$status" "a rank is killed: exit 5"
    expect_stderr_matches 'rank 1 of 2 was lost: it was killed by signal 9'
    expect_same "" "$(pgrep -f "train pictures .*-o lost" || true)" "no rank is left behind"
else
    skip "no pgrep to find a rank with"
fi

# ---- what does not fit -------------------------------------------------------------------------
expect_exit 4 "$TANDEM" run -n 3 -- train pictures "$@" -o x --device cuda
expect_stderr_matches 'ranks 0 and 2 compute on the same GPU, and each rank needs one of its own'
expect_exit 4 "$TANDEM" train pictures "$@" -o x --device cuda:0,0
expect_stderr_matches 'ranks 0 and 1 compute on the same GPU'
expect_exit 4 "$TANDEM" train pictures "$@" -o x --device cuda:0,7
expect_stderr_matches "choosing the device 'cuda:7': this machine has 2 of them, counted from 0"
expect_exit 2 "$TANDEM" train pictures "$@" -o x --device cuda:0,x
expect_stderr_matches "':0,x' is no device number; .* for training also cuda:0,1 and cuda:all"
expect_exit 2 "$TANDEM" run -n 1 -- train pictures "$@" -o x --device cuda:0,1
expect_stderr_matches "it names 2 GPUs, and one process computes on one; .*tandem run -n 2 -- train"
expect_true "no run was made" [ ! -e x ]
finish
