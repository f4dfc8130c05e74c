#!/bin/bash
# tests/long/prepare-kill.sh [KILLS]: prepare, killed at random moments again and again until it has
# run through, whole and in slices, with every codec that this build writes: the same bytes as in
# one undisturbed go. On a file system of a few MiB it must fail with a sentence and go on after
# that. TANDEM says which program (default: build/tandem). Exit code 77 without Arrow.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
tandem=${TANDEM:-$root/build/tandem}
kills=${1:-60}
work=$(mktemp -d)
clean_up() {
    ! mountpoint -q "$work/small" || umount "$work/small"
    rm -rf "$work"
}
trap clean_up EXIT
cd "$work"

if "$tandem" prepare nowhere -o out --codec raw 2>&1 | grep -q 'no Apache Arrow'; then
    echo "needs a build with Arrow"
    exit 77
fi
"$tandem" synth pictures --classes 4 --per-class 120 --size 90 --quiet >/dev/null
seed=${SEED:-$RANDOM}
RANDOM=$seed
echo "seed $seed"

# Starts the rest of the arguments and kills it after a random time, until it ends by itself.
until_done() { # most milliseconds, command…
    local most=$1 pid status
    shift
    for ((i = 0; i < kills; i++)); do
        "$@" --quiet >/dev/null 2>errors.txt &
        pid=$!
        sleep "0.$(printf %03d $((RANDOM % most)))"
        kill -9 $pid 2>/dev/null || true
        status=0
        wait $pid 2>/dev/null || status=$?
        [ $status = 0 ] && return
        [ $status = 137 ] || { cat errors.txt; echo "exit $status: $*"; exit 1; }
    done
    "$@" --quiet >/dev/null
}

for codec in jpeg png raw keep; do
    options="--size 400 --codec $codec --split 0.5,0.3"
    "$tandem" prepare pictures -o whole $options --quiet >/dev/null
    until_done 400 "$tandem" prepare pictures -o killed $options
    diff -r whole killed
    for k in 3 1 2; do
        until_done 300 "$tandem" prepare pictures -o cut $options --slice $k/3
    done
    until_done 50 "$tandem" prepare pictures -o cut $options --merge
    diff -r whole cut
    rm -rf whole killed cut
    echo "ok $codec: killed, sliced and merged, the same bytes"
done

# A source that grows and shrinks: the update too, killed at any moment; old versions stay.
grow() { # how often so far
    "$tandem" synth more --classes 5 --per-class 40 --size 90 --seed "$1" --quiet >/dev/null
    for class in more/*; do
        mkdir -p "pictures/${class##*/}"
        for file in "$class"/*; do mv "$file" "pictures/${class##*/}/$1-${file##*/}"; done
    done
    rm -rf more "$(find pictures -name '*7.jpg' | sort | sed -n "$1p")"
}
cp -r pictures kept
"$tandem" prepare pictures -o whole --size 200 --quiet >/dev/null
"$tandem" prepare pictures -o killed --size 200 --quiet >/dev/null
for round in 1 2 3; do
    grow $round
    "$tandem" prepare pictures -o whole --size 200 --quiet >/dev/null
    until_done 200 "$tandem" prepare pictures -o killed --size 200
    diff -r whole killed
    "$tandem" audit whole@v0 --json --quiet | grep '"images": 480' >/dev/null
done
rm -rf whole killed pictures
mv kept pictures
echo "ok three updates, killed: the same bytes"

# Slices at once, as a cluster runs them.
"$tandem" prepare pictures -o whole --size 64 --quiet >/dev/null
for k in 1 2 3 4; do
    "$tandem" prepare pictures -o cut --size 64 --slice $k/4 --threads 1 --quiet >/dev/null &
done
wait
"$tandem" prepare pictures -o cut --size 64 --merge --quiet >/dev/null
diff -r whole cut
echo "ok four slices at once"

mkdir small
if mount -t tmpfs -o size=2m tmpfs small 2>/dev/null; then
    status=0
    "$tandem" prepare pictures -o small/out --size 200 --codec raw --quiet 2>errors.txt >/dev/null || status=$?
    [ $status = 4 ] && grep -q 'No space left' errors.txt || { cat errors.txt; exit 1; }
    mount -o remount,size=200m small
    "$tandem" prepare pictures -o small/out --size 200 --codec raw --quiet >/dev/null
    "$tandem" prepare pictures -o roomy --size 200 --codec raw --quiet >/dev/null
    diff -r small/out roomy
    echo "ok a full disk, then one with room"
else
    echo "skip a full disk: no file system can be mounted here"
fi
