#!/bin/bash
# tests/long/same-bytes.sh OLD NEW: do two builds of the program write the same model files and the
# same prepared data? For changes that must not change results. Seven kinds of training on backend
# cpu, three steps of the larger networks (of those with large products the first by OLD, because
# a run keeps the products that it was started with), and prepare with every codec and fit are run with both and compared byte for byte. It takes some
# minutes. Exit code 77 without two programs.
set -u
[ $# = 2 ] || { echo "skip - needs two programs to compare: same-bytes.sh OLD NEW"; exit 77; }
old=$(realpath "$1") new=$(realpath "$2")
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$source/tests/fixtures/run_kinds.sh"

make_images "$old" || exit 1
"$old" synth large --classes 3 --per-class 10 --size 320 --seed 3 --quiet >/dev/null || exit 1
cp "$source"/tests/fixtures/runs/*.safetensors .

three_steps() { # program run model options…
    "$1" train pictures -o "$2" --model "$3" --augment none --steps 3 --epochs 0 --batch 4 --split 0.5,0.5 \
        --eval-every 1000 --quiet "${@:4}" >/dev/null
}

resumed_steps() { # program run model options…
    three_steps "$old" "$2" "$3" "${@:4}" --schedule constant --steps 1 &&
        three_steps "$1" "$2" "$3" "${@:4}" --schedule constant --resume
}

run_all() { # program: everything, below the current folder
    export TANDEM_HOME=$PWD/home
    local kind codec fit
    cp -r ../pictures ../other ../*.safetensors .
    for kind in $kinds; do
        # Backend cpu in place of ref, whose bits the test of old runs compares.
        (train_kind "$1" "$kind" "$kind" --device cpu) >/dev/null || return 1
    done
    three_steps "$1" lenet5 lenet5 --batch 64 || return 1
    three_steps "$1" alexnet alexnet --size 96 || return 1
    resumed_steps "$1" xception xception --size 96 || return 1
    resumed_steps "$1" resnet50 resnet50 --size 96 || return 1
    three_steps "$1" mobilenetv2 mobilenetv2 --size 96 || return 1
    for codec in jpeg png raw keep; do
        for fit in pad crop stretch; do
            "$1" prepare ../large -o "prepared-$codec-$fit" --size 96 --codec $codec --fit $fit \
                --quiet >/dev/null 2>&1 || echo "$?" >"prepared-$codec-$fit.status"
        done
    done
}

for side in old new; do
    mkdir $side
    (cd $side && run_all "${!side}") || { echo "not ok - the $side program failed"; exit 1; }
done
hashes() {
    (cd "$1" && find . \( -name '*.safetensors' -o -path './prepared-*' \) -type f | sort | xargs sha256sum)
}
hashes old >old.txt
hashes new >new.txt
n=$(wc -l <old.txt)
if diff old.txt new.txt; then
    echo "ok - $n files are the same bytes"
else
    echo "not ok - files differ"
    exit 1
fi
