#!/bin/bash
# tests/long/same-threads.sh [TANDEM]: does training write the same model on any number of threads?
# Networks of every kind, batches from one image to more than all groups, all kinds of batch-norm
# statistics, dropout, changed and mixed images; 1 to 64 threads, however few CPUs there are. It
# takes some twenty minutes. NETWORKS, BATCHES, STATISTICS and THREADS choose some of them.
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

train() { # run steps options…
    rm -rf "$1"
    "$tandem" train pictures -o "$1" --size "$size" --steps "$2" --epochs 0 --eval-every 1000 \
        --split 0.8,0.2 --quiet "${@:3}" >/dev/null 2>errors ||
        { echo "not ok - training failed: ${*:3}: $(tail -1 errors)"; exit 1; }
}

# The model of every number of threads is the same: network, batch, statistics, options.
compare() {
    local wanted= found n
    for n in $threads; do
        train run 2 "${@:4}" --batch "$2" --bn "$3" --dropout 0.3 --augment flip,crop:4,mixup --threads "$n"
        found=$(sha256sum <run/last.safetensors)
        [ "${wanted:=$found}" = "$found" ] ||
            { echo "not ok - $1, batch $2, --bn $3: $n threads differ"; exit 1; }
        compared=$((compared + 1))
    done
}

compared=0 size=71
for network in $networks; do
    # Its frozen statistics must fit its weights, or nothing but infinities is compared.
    case $statistics in *frozen*) train base 60 --model "$network" --batch 30 ;; esac
    for batch in $batches; do
        for kind in $statistics; do
            [ "$kind" = shard ] || [ "$network" != lenet5 ] || continue # it has no batch norms
            start="--model $network"
            [ "$kind" != frozen ] || start="--weights base/last.safetensors --freeze none"
            # shellcheck disable=SC2086
            compare "$network" "$batch" "$kind" $start
        done
    done
    echo "# $network: the same on any number of threads"
done
# Images that are large enough for products in seven halves.
size=160
for batch in 3 8; do
    compare "xception of 160 pixels" $batch shard --model xception
done
echo "ok - $compared trainings wrote the same models"
