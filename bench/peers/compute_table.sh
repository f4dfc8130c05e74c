#!/bin/bash
# compute_table.sh [SECONDS [ROW…]]: every peer of every row of the compute benches once, one line of JSON
# each, in the order of the rows; ROW is a part of "MODEL MODE BATCH IMAGE". Python is PEER_PYTHON.
# A compiler is needed for torch.compile.
set -u
cd "$(dirname "$0")"
python=${PEER_PYTHON:-../../.venv-peers/bin/python}
seconds=${1:-6}
wanted=("${@:2}")
rows=("mobilenetv2 features 32 224" "resnet50 features 16 224" "xception features 16 299"
    "lenet5 train 128 28" "mobilenetv2 train 32 224" "resnet50 train 16 224" "xception train 8 299")
peers=("compute_torch.py" "compute_torch.py --tuned" "compute_torch.py --tuned --nhwc"
    "compute_torch.py --tuned --compile" "compute_keras.py" "compute_ddp.py --tuned")
for row in "${rows[@]}"; do
    chosen=$([ ${#wanted[@]} = 0 ] && echo yes)
    for part in "${wanted[@]}"; do
        [[ $row == *$part* ]] && chosen=yes
    done
    [ "$chosen" = yes ] || continue
    for peer in "${peers[@]}"; do
        [[ $peer != *ddp* || $row == *train* ]] || continue
        # shellcheck disable=SC2086 # words on purpose
        timeout 400 "$python" $peer $row --seconds "$seconds" 2>/dev/null ||
            echo "{\"failed\": \"$peer $row\"}"
    done
done
