#!/bin/bash
# tests/long/same-threads.sh [TANDEM]: does training write the same model on any number of threads?
# Networks of every kind, batches from one image to more than all groups, all kinds of batch-norm
# statistics, dropout, changed and mixed images; 1 to 64 threads, however few CPUs there are. It
# takes some ten minutes.
set -u
source=$(cd "$(dirname "$0")/../.." && pwd)
tandem=$(realpath "${1:-$source/build/tandem}")
networks=${NETWORKS:-lenet5 convnet7 resnet18 mobilenetv2-0.35 resnet50 xception}
batches=${BATCHES:-1 3 8 30 64}
statistics=${STATISTICS:-shard batch frozen}
threads=${THREADS:-1 2 3 4 7 16 32 64}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export TANDEM_HOME=$work/home

"$tandem" synth pictures --classes 3 --per-class 30 --size 80 --seed 3 --quiet >/dev/null || exit 1

model_of() { # network batch statistics threads: the hash of the trained model
    rm -rf run
    "$tandem" train pictures -o run --model "$1" --size 71 --batch "$2" --bn "$3" --threads "$4" \
        --steps 2 --epochs 0 --eval-every 1000 --split 0.8,0.2 --hidden 8 --dropout 0.3 \
        --augment flip,crop:4,mixup --quiet >/dev/null 2>run.err || { cat run.err >&2; return 1; }
    sha256sum <run/last.safetensors
}

compared=0
for network in $networks; do
    for batch in $batches; do
        for kind in $statistics; do
            wanted=
            for n in $threads; do
                found=$(model_of "$network" "$batch" "$kind" "$n") ||
                    { echo "not ok - $network, batch $batch, $kind, $n threads: failed"; exit 1; }
                [ -z "$wanted" ] && wanted=$found
                [ "$found" = "$wanted" ] ||
                    { echo "not ok - $network, batch $batch, $kind: $n threads differ"; exit 1; }
                compared=$((compared + 1))
            done
        done
    done
    echo "# $network: same models"
done
echo "ok - $compared models are the same on any number of threads"
