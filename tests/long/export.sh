#!/bin/bash
# tests/long/export.sh [BUILD]: exported models opened by onnxruntime and PyTorch answer 100 pictures
# as we do (bench/peers/checks/export_check.py says how near). Exit code 77 (skipped) without those programs:
# bench/peers/setup makes .venv-peers.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$root/build}
python=$root/.venv-peers/bin/python
if ! "$python" -c 'import onnx, onnxruntime, safetensors, torch, torchvision' 2>/dev/null; then
    echo "skip - needs .venv-peers with onnx, onnxruntime, safetensors and torchvision (bench/peers/setup)"
    exit 77
fi
cmake --build "$build" --target tandem bench_logits bench_every_op >/dev/null
exec "$python" -W ignore "$root/bench/peers/checks/export_check.py" "$build"
