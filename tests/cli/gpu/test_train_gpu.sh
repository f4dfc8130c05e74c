# train on a fake GPU: the kernels of backend cuda, run by the shim in place of libtandem_cuda.so
# (docs/design/gpu.md). Half precision, replayed steps, resumed runs.
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
on_gpu() {
    env LD_LIBRARY_PATH="$BUILD/tests/gpu" "$TANDEM" train pictures --device cuda --threads 1 \
        --model convnet7 --size 8 --batch 10 --split 0.75,0.25 --patience 0 --json "$@"
}

# ---- in each precision ----------------------------------------------------------------------
expect_exit 0 on_gpu -o f32 --epochs 2 --augment none
f32=$(json_value train.loss)
expect_exit 0 "$TANDEM" train pictures --threads 1 --model convnet7 --size 8 --batch 10 \
    --shard 10 --split 0.75,0.25 --patience 0 --json -o host --epochs 2 --augment none
host=$(json_value train.loss)
close() { # a b part
    awk -v a="$1" -v b="$2" -v part="$3" 'BEGIN { exit !((a > b ? a - b : b - a) <= part * b) }'
}
expect_true "the loss is that of the processor ($f32, $host)" close "$f32" "$host" 0.001
expect_exit 0 on_gpu -o bf16 --precision bf16 --epochs 2 --augment none
expect_true "the loss in bf16 is near ($(json_value train.loss), $f32)" \
    close "$(json_value train.loss)" "$f32" 0.1
expect_stderr_matches 'precision bf16: validation during training stores activations so, too'
bf16=$(json_value val.loss)
expect_exit 0 "$TANDEM" evaluate bf16 pictures --part val --threads 1 --json
expect_true "evaluate's loss is nearly that of training ($(json_value loss), $bf16)" \
    close "$(json_value loss)" "$bf16" 0.05
# The first steps are left out, until the scale has halved often enough.
expect_exit 0 on_gpu -o f16 --precision f16 --epochs 12
expect_true "it learns in f16 ($(json_value train.loss))" \
    awk -v loss="$(json_value train.loss)" 'BEGIN { exit !(loss < 0.2) }'
expect_stderr_matches 'precision f16: [1-9][0-9]* of [0-9]+ steps were left out'

# ---- resumed: the bits of one that was not, the loss scale with it ---------------------------
expect_exit 0 on_gpu -o parts --precision f16 --schedule constant --epochs 4
expect_exit 0 on_gpu -o parts --precision f16 --schedule constant --epochs 9 --resume
expect_exit 0 on_gpu -o whole --precision f16 --schedule constant --epochs 9
expect_true "weights are the same" cmp parts/best.safetensors whole/best.safetensors
expect_true "a checkpoint has the scale" grep -q 'loss_scale' parts/last.safetensors
expect_exit 2 on_gpu -o parts --precision bf16 --schedule constant --epochs 9 --resume
expect_stderr_matches "option --precision is 'bf16', but the run was started with 'f16'"

# ---- replayed: the bits of steps that are queued, whatever changes from one to the next ------
# 18 pictures train: a batch of 10 and a ragged one of 8, in groups of 4 where that is asked for.
both() { # name least options…
    name=$1
    least=$2
    shift 2
    rm -f replays
    export TANDEM_FAKE_REPLAYS="$temp/replays"
    expect_exit 0 on_gpu -o "$name" "$@"
    unset TANDEM_FAKE_REPLAYS
    n=$(wc -c <replays)
    expect_true "$name: of its steps are replayed $least or more ($n)" [ "$n" -ge "$least" ]
    export TANDEM_FAKE_RECORDS=0
    expect_exit 0 on_gpu -o "$name-queued" "$@"
    unset TANDEM_FAKE_RECORDS
    expect_true "$name: the best weights are the same" \
        cmp "$name/best.safetensors" "$name-queued/best.safetensors"
    expect_true "$name: the last weights are the same" \
        cmp "$name/last.safetensors" "$name-queued/last.safetensors"
}
both drawn 8 --epochs 6 --augment crop:1,flip,jitter:0.2,mixup:0.4 --schedule cosine --ema 0.9 \
    --clip-norm 0.5 --label-smoothing 0.1
both unfreezing 6 --epochs 6 --weights f32/best.safetensors --unfreeze 2 --unfreeze-layers 2 \
    --hidden 8 --dropout 0.4 --schedule one-cycle --ema 0.8
both shards 16 --epochs 4 --shard 4 --precision f16 --optimizer adamw --augment mixup:0.4

# ---- batch norms that had been folded into convolutions are measured on the CPU ----------------
folded="--model mobilenetv2-0.05 --size 32 --batch 6 --shard 6 --augment none --schedule constant --ema 0.9"
for way in "--freeze none" "--unfreeze 1 --unfreeze-layers 6"; do
    # shellcheck disable=SC2086 # words
    expect_exit 0 on_gpu --weights "$SOURCE/tests/fixtures/runs/folded.safetensors" $folded $way -o "gpu$way" --epochs 3
    loss=$(json_value train.loss)
    expect_stderr_matches 'batch norms had been folded into the convolutions: means and variances are measured again'
    # shellcheck disable=SC2086
    expect_exit 0 on_gpu --weights "$SOURCE/tests/fixtures/runs/folded.safetensors" $folded $way -o "cpu$way" --epochs 3 \
        --device cpu
    expect_true "$way: the loss is that of the processor ($loss, $(json_value train.loss))" \
        close "$loss" "$(json_value train.loss)" 0.01
done

# ---- what is measured is what trains ---------------------------------------------------------
rm -f replays
export TANDEM_FAKE_REPLAYS="$temp/replays"
expect_exit 0 env LD_LIBRARY_PATH="$BUILD/tests/gpu" "$TANDEM" bench compute --mode train \
    --device cuda --model lenet5 --batch 6 --classes 3 --threads 1 --seconds 1 --json
unset TANDEM_FAKE_REPLAYS
expect_true "a batch is one group ($(json_value shard))" [ "$(json_value shard)" = 6 ]
expect_true "its steps are replayed ($(wc -c <replays), $(json_value steps))" \
    [ "$(wc -c <replays)" -eq $(($(json_value steps) + 1)) ]

# ---- cached features have the type that they were computed in --------------------------------
export TANDEM_HOME="$temp/home"
expect_exit 0 on_gpu -o rows --weights f32 --freeze base --hidden 4 --epochs 1
expect_stderr_matches 'training and validation features stay on the GPU: 0\.0 MiB'
expect_exit 0 on_gpu -o rows16 --weights f32 --freeze base --hidden 4 --epochs 1 --precision bf16
expect_same 0 "$(json_value features.reused)" "features in f32 are not those in bf16"
expect_exit 0 on_gpu -o again --weights f32 --freeze base --hidden 4 --epochs 1 --precision bf16
expect_same 24 "$(json_value features.reused)" "features in bf16 are found"
expect_true "and weights are the same" cmp rows16/best.safetensors again/best.safetensors
expect_exit 0 "$TANDEM" evaluate again pictures --threads 1 --json

# ---- and the same bits whether they stay on the GPU or are copied ----------------------------
set -- --weights f32 --freeze base --hidden 4 --augment flip,crop:1 --views 2
expect_exit 0 on_gpu "$@" -o stay --epochs 4
expect_stderr_matches 'stay on the GPU'
export TANDEM_FAKE_GATHERS=0
expect_exit 0 on_gpu "$@" -o travel --epochs 4
expect_true "nothing stays" sh -c "! grep -q 'stay on the GPU' '$err'"
unset TANDEM_FAKE_GATHERS
expect_true "the best weights are the same" cmp stay/best.safetensors travel/best.safetensors
expect_true "the last weights are the same" cmp stay/last.safetensors travel/last.safetensors
unset TANDEM_HOME

# ---- little GPU memory: parts of a batch, which a resumed run keeps ---------------------------
set -- --size 16 --batch 16 --schedule constant
export TANDEM_FAKE_BYTES=7900000 # parts of 8 need 5.3 MB beside weights of 2.3, all 16 need 5.9
expect_exit 0 on_gpu "$@" -o little --epochs 1
expect_stderr_matches 'batch 16 is computed in groups of 8 images, .* free on the GPU are [0-9]+ MiB'
export TANDEM_FAKE_BYTES=2400000
expect_exit 4 on_gpu "$@" -o least --epochs 1
expect_stderr_matches 'free on the GPU are [0-9]+ MiB; even one image at a time takes more'
export TANDEM_FAKE_BYTES=7900000
expect_exit 0 on_gpu "$@" -o chosen --batch auto --epochs 1
expect_stderr_matches 'batch auto: 8 images a step \(16 take [0-9]+ MiB, free on the GPU are [0-9]+'
expect_same 8 "$(json_value batch)" "the largest that fits whole"
# Killed before its first checkpoint: what was decided is in the record alone.
mkdir killed
python3 - <<'END'
import json
run = json.load(open("little/run.json"))
for section in ("clock", "result"):
    run.pop(section, None)
json.dump({**run, "status": "running"}, open("killed/run.json", "w"))
END
expect_exit 0 on_gpu "$@" -o killed --epochs 1 --resume
expect_true "its batches are in the same parts" cmp killed/best.safetensors little/best.safetensors
unset TANDEM_FAKE_BYTES
expect_exit 0 on_gpu "$@" -o little --epochs 2 --resume
expect_exit 0 on_gpu "$@" -o asked --shard 8 --epochs 2
expect_true "weights are those of --shard 8" cmp little/best.safetensors asked/best.safetensors

# ---- images prefetched and augmented on the GPU: the bits of a plain one -----------------------
# Copies and steps as late as a GPU may do them, so that a missing wait shows. The last one computes
# features of all images first, and trains on them.
n=0
for way in "--augment crop:2,flip" "--augment jitter:0.3:0.3:0.3:0,cutout:3,mixup:0.2" \
    "--augment rotate:10,cutmix" "--augment none" "--augment none --freeze base"; do
    n=$((n + 1))
    for gpu in plain once late slow chance; do
        unset TANDEM_FAKE_PLAIN TANDEM_FAKE_PACE
        [ $gpu = plain ] && export TANDEM_FAKE_PLAIN=1
        export TANDEM_FAKE_PACE=$gpu TANDEM_HOME="$PWD/home-$gpu"
        # shellcheck disable=SC2086 # words of their own
        expect_exit 0 on_gpu -o "$gpu$n" --batch 4 --epochs 3 --optimizer sgd $way
        for file in best last; do
            expect_true "$way, $gpu: $file weights are those of a plain GPU" \
                cmp "$gpu$n/$file.safetensors" "plain$n/$file.safetensors"
        done
    done
done
unset TANDEM_FAKE_PLAIN TANDEM_FAKE_PACE
expect_true "changes change something" sh -c '! cmp -s plain1/best.safetensors plain4/best.safetensors'

# ---- options for GPUs alone ------------------------------------------------------------------
expect_exit 2 "$TANDEM" train pictures --model lenet5 --precision bf16 -o none
expect_stderr_matches 'option --precision bf16: on --device cpu everything is computed and stored'
expect_exit 2 "$TANDEM" train pictures --model lenet5 --fast -o none
expect_stderr_matches 'option --fast lets libraries of a GPU add in any order; --device cpu'
expect_true "what is refused leaves no run" test ! -e none

# ---- --fast is reported, recorded, and kept by a resumed run ---------------------------------
expect_exit 0 on_gpu -o fast --fast --epochs 1
expect_stderr_matches 'fast: the GPU.s libraries may add in any order'
expect_true "the run records it" grep -q '"fast": 1' fast/run.json
expect_true "its page says it" grep -q '<td>fast</td><td>yes</td>' fast/report.html
expect_exit 0 on_gpu -o fast --epochs 2 --resume
expect_true "it stays" grep -q '"fast": 1' fast/run.json
expect_exit 2 on_gpu -o fast --no-fast --epochs 2 --resume
expect_stderr_matches 'option --fast is 0, but the run was started with 1'

# ---- measured as it trains: the step queued whole, nodes some times in a row ------------------
expect_exit 0 env LD_LIBRARY_PATH="$BUILD/tests/gpu" "$TANDEM" bench compute --device cuda --threads 1 \
    --model convnet7 --image 8 --batch 4 --classes 2 --precision bf16 --seconds 0.5 --profile --json
expect_same 4 "$(json_value shard)" "on a GPU one group is the batch"
expect_true "norms and the optimiser's step have rates" python3 -c '
import json, sys
v = json.load(open(sys.argv[1]))
norms = [n for n in v["profile"] if n["op"] == "batch_norm"]
assert norms and all(n["bytes_per_second"] > 0 and n["backward_milliseconds"] > 0 for n in norms), norms
assert v["update"]["bytes_per_second"] > 0 and v["update"]["milliseconds"] > 0' "$out"
finish
