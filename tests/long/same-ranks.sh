#!/bin/bash
# tests/long/same-ranks.sh [TANDEM]: does training write the same files with any number of ranks and threads?
# Sets of several sizes, batches, both kinds of batch-norm statistics, changed and mixed images, early stopping, a
# frozen base on stored features, unfreezing, and runs that are killed and resumed with another number of
# ranks. It takes some minutes. WORLDS, IMAGES and BATCHES choose some of them.
set -u
source=$(cd "$(dirname "$0")/../.." && pwd)
tandem=$(realpath "${1:-$source/build/tandem}")
worlds=${WORLDS:-1 2 3 4 8}
images=${IMAGES:-97 1000 1013}
batches=${BATCHES:-16 30 64}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
compared=0

# A list of so many of the images.
"$tandem" synth pictures --classes 4 --per-class 254 --size 32 --seed 3 --quiet >/dev/null || exit 1
"$tandem" synth others --classes 3 --per-class 60 --size 32 --seed 4 --quiet >/dev/null || exit 1
list() { # number
    {
        echo path,label
        find pictures -name '*.jpg' | LC_ALL=C sort | awk -v n="$1" 'NR * n % 1016 < n { print }' | head -n "$1" |
            awk -F / '{ print $0 "," $2 }'
    } >"list$1.csv"
}

bytes() {
    cat "$1/last.safetensors" "$1/best.safetensors" "$1/outcomes.safetensors" | sha256sum
}
fails() {
    echo "not ok - $*"
    exit 1
}
train() { # world threads options…
    local world=$1 threads=$2
    shift 2
    TANDEM_HOME=$work/home "$tandem" run -n "$world" -- train "$@" --threads "$threads" --quiet >/dev/null 2>errors ||
        fails "$world ranks of train $*: $(tail -1 errors)"
}
# same OPTIONS…: every world, with one and two threads a rank
same() {
    local wanted='' found
    for world in $worlds; do
        for threads in 1 2; do
            rm -rf run home
            train "$world" "$threads" "$@" -o run
            found=$(bytes run)
            [ "${wanted:=$found}" = "$found" ] || fails "$* differs with $world ranks of $threads threads"
            compared=$((compared + 1))
        done
    done
}

for n in $images; do
    list "$n"
    for batch in $batches; do
        common="list$n.csv --model convnet7 --size 24 --batch $batch"
        # shellcheck disable=SC2086
        for kind in shard batch; do
            same $common --bn "$kind" --epochs 1 --augment flip,crop:4,mixup --dropout 0.2 --patience 0
        done
    done
    echo "# $n images: the same with any number of ranks"
done
list 97
same list97.csv --model convnet7 --size 24 --batch 16 --epochs 40 --patience 2 --monitor loss --lr 0.2
"$tandem" train others -o base --model convnet7 --size 24 --epochs 2 --quiet >/dev/null || exit 1
same list97.csv --weights base --batch 16 --epochs 3 --augment flip --views 3 --patience 0
same list97.csv --weights base --batch 16 --epochs 4 --unfreeze 2 --patience 0
echo "# early stopping, stored features, unfreezing: the same"

# Killed again and again, continued with other numbers of ranks.
for kind in "--model convnet7" "--weights base --unfreeze 20"; do
    options="pictures $kind --size 24 --batch 30 --epochs 40 --patience 0 --schedule constant"
    case $kind in --weights*) options=${options/--size 24 /} ;; esac
    rm -rf whole broken home
    # shellcheck disable=SC2086
    train 1 2 $options -o whole
    rm -rf home
    for world in 3 1 4 2 3 2; do
        # shellcheck disable=SC2086
        TANDEM_HOME=$work/home "$tandem" run -n "$world" --deadline 5 -- train $options -o broken --resume --quiet \
            >/dev/null 2>errors &
        job=$!
        sleep "2.$((RANDOM % 10))"
        kill -9 "$(pgrep -P $job | shuf -n 1)" 2>/dev/null
        wait $job
    done
    # shellcheck disable=SC2086
    train 2 1 $options -o broken --resume
    [ "$(bytes whole)" = "$(bytes broken)" ] || fails "$kind: killed and resumed with other numbers of ranks differs"
    compared=$((compared + 1))
done
echo "ok - $compared trainings wrote the same files"
