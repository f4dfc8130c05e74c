#!/bin/sh
# bench/gpu/run without a GPU: what it would run, what it refuses, and both sides in tiny shapes on the CPU.
. "$SOURCE/tests/cli/lib.sh"

command -v python3 >/dev/null || {
    skip "no python3"
    finish
}
gpu() {
    TANDEM="$TANDEM" python3 "$SOURCE/bench/gpu/run" "$@"
}

expect_exit 0 gpu --dry-run
for row in mobilenetv2-train xception-train resnet50-train xception-features mobilenetv2-features resnet20-small \
    lenet5-small kernels frozen-xception-job; do
    expect_stdout_matches "^$row:"
done
expect_stdout_matches 'bench compute --device cuda:0 --model mobilenetv2 --mode train --batch 256 --shard 256 --image 224'
expect_stdout_matches 'torch_side.py xception features 256 299 .*--setting graphs'
expect_stdout_matches 'train WORK/pictures -o WORK/run0 --model xception .*--epochs 10'
expect_exit 2 gpu --rows nothing
expect_stderr_matches "there is no row 'nothing'; there are mobilenetv2-train"
expect_exit 2 gpu --settings fast
expect_exit 2 gpu --rounds 0
expect_exit 1 gpu --tandem "$PWD/nothing" --rows lenet5-small
if ! nvidia-smi >/dev/null 2>&1; then
    expect_exit 4 gpu --rows lenet5-small
    expect_stderr_matches 'tandem sees no GPU'
fi

# A side that fails is reported with its own words, and the other is measured.
expect_exit 1 gpu --device cpu --precision f32 --tiny --rounds 1 --rows lenet5-small --settings eager --python false \
    -o refused.json
expect_stdout_matches 'eager .*-'
expect_stdout_matches 'not measured: exit code 1'
expect_exit 1 gpu --device cpu --precision f32 --tiny --rounds 1 --rows lenet5-small --settings eager --timeout 0.01 \
    -o slow.json
expect_stderr_matches 'stopped after 0\.01 s'

# Both sides measured: a stand-in shows how they are read, paired and told, whatever is installed here …
stand_in=$SOURCE/tests/tools/torch_stand_in.py
expect_exit 0 gpu --device cpu --precision f32 --tiny --rounds 2 \
    --rows lenet5-small,mobilenetv2-features,kernels,frozen-xception-job --settings eager,compile \
    --python "$stand_in" -o stood.json
expect_stdout_matches "times as good as PyTorch's best \(compile\): [0-9.]+, promised 1.2"
expect_stdout_matches "times as good as torch.compile without CUDA graphs: [0-9.]+, promised 3"
expect_stdout_matches "times as good as PyTorch's best \(compile\): [0-9.]+, promised 1.5"
expect_stdout_matches 'block_1_depthwise +depthwise +[0-9.]+'
expect_stdout_matches 'bn_Conv1 +batch_norm +[0-9.]+'
expect_stdout_matches 'resnet50 +optimizer +[0-9.]+'
expect_stdout_matches 'least: .*batch_norm [0-9.]+, depthwise [0-9.]+, .*optimizer [0-9.]+.*; promised 0.8'
expect_same '4 True images/s [0.002, 0.002] 2 True' "$(python3 -c '
import json
r = json.load(open("stood.json"))
row = r["rows"][0]
ours, theirs = row["sides"]["tandem"], row["sides"]["compile"]
print(len(r["rows"]), r["is_tiny"], row["unit"], theirs["of"], len(ours["of"]),
      row["times_best"] == ours["median"] / 0.002)')" "the JSON has every row, says that it is no figure, and holds the ratio of medians"
TORCH_WORDS=nonsense expect_exit 1 gpu --device cpu --precision f32 --tiny --rounds 1 --rows lenet5-small \
    --settings eager --python "$stand_in" -o nonsense.json
expect_stdout_matches 'not measured: '

# … and PyTorch itself, where it is beside the checkout (bench/peers/setup).
python=$SOURCE/.venv-peers/bin/python
if [ -x "$python" ] && "$python" -c 'import torch' 2>/dev/null; then
    expect_exit 0 gpu --device cpu --precision f32 --tiny --rounds 1 --rows lenet5-small,mobilenetv2-features,kernels \
        --settings eager --python "$python" -o tiny.json
    expect_stdout_matches "times as good as PyTorch's best \(eager\): [0-9.]+, promised 1.2"
    expect_stdout_matches 'block_1_depthwise +depthwise +[0-9.]+'
fi
finish
