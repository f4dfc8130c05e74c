#!/bin/bash
# tests/long/hosts.sh [TANDEM]: ranks on several hosts. Network namespaces joined by a bridge stand for hosts; each has its
# own TANDEM_HOME and its own copy of the images at another path, and only the first has the run folder. The
# ranks find each other by TCP. A link goes down, ranks are killed and stopped, a host lacks the images,
# another is of another version. Prints a table of what ended how, and when. Needs root and iproute2.
set -u
source=$(cd "$(dirname "$0")/../.." && pwd)
tandem=$(realpath "${1:-$source/build/tandem}")
[ "$(id -u)" = 0 ] && command -v ip >/dev/null || { echo "skip - needs root and iproute2"; exit 77; }
hosts=4 deadline=4
work=$(mktemp -d)
name=tnd$$
bridge=${name}b
clean() {
    for h in $(seq 0 $((hosts - 1))); do
        ip netns pids "$name$h" 2>/dev/null | xargs -r kill -9
        ip netns del "$name$h" 2>/dev/null
    done
    ip link del "$bridge" 2>/dev/null
    rm -rf "$work"
}
trap clean EXIT
cd "$work" || exit 1

ip link add "$bridge" type bridge && ip link set "$bridge" up || { echo "skip - no bridge can be made"; exit 77; }
"$tandem" synth photos --classes 3 --per-class 40 --size 40 --quiet >/dev/null || exit 1
for h in $(seq 0 $((hosts - 1))); do
    ip netns add "$name$h" && ip link add "${name}v$h" type veth peer name eth0 netns "$name$h" || exit 1
    ip link set "${name}v$h" master "$bridge" up
    ip -n "$name$h" addr add "10.77.0.$((h + 1))/24" dev eth0
    ip -n "$name$h" link set eth0 up
    ip -n "$name$h" link set lo up
    mkdir -p "host$h/disk$h"
    cp -r photos "host$h/disk$h/pictures"
done

pids=()
# start HOST OPTIONS…: its rank, in its own folder
start() {
    local h=$1
    shift
    (cd "host$h" && exec env TANDEM_RANK="$h" TANDEM_WORLD=$hosts TANDEM_ADDRESS=10.77.0.1:29500 TANDEM_TOKEN=secret \
        TANDEM_DEADLINE=$deadline TANDEM_HOME="$work/host$h/home" \
        ip netns exec "$name$h" "${program[$h]:-$tandem}" train "disk$h/pictures" --quiet --threads 1 "$@" \
        >"log" 2>&1 </dev/null) &
    pids[h]=$!
}
start_all() {
    for h in $(seq 0 $((hosts - 1))); do start "$h" "$@"; done
}
statuses=()
await() {
    statuses=()
    for h in $(seq 0 $((hosts - 1))); do
        { wait "${pids[$h]}"; } 2>/dev/null # the shell's own "Killed"
        statuses[h]=$?
    done
}
failed=0
declare -A program
report() { # what, seconds at most, wanted statuses as a pattern, began
    local took=$(($(date +%s) - $4))
    printf '%-46s %-16s %3d s' "$1" "${statuses[*]}" "$took"
    # shellcheck disable=SC2053
    if [[ "${statuses[*]}" == $3 ]] && [ $took -le "$2" ]; then
        echo
    else
        echo "   not ok: wanted $3 within $2 s"
        tail -n 3 host*/log
        failed=1
    fi
}
long="-o run --model convnet7 --size 24 --batch 32 --epochs 10000 --patience 0"
running() { # waits until training has begun
    for _ in $(seq 100); do
        [ -s host0/run/last.safetensors ] && return
        sleep 0.1
    done
}
fresh() {
    rm -rf host*/run host*/home
}
printf '%-46s %-16s %s\n' event "exit statuses" after

start_all -o run --model convnet7 --size 24 --batch 32 --epochs 3 --patience 0
began=$(date +%s)
await
report "training on $hosts hosts" 60 "0 0 0 0" "$began"
"$tandem" train photos -o one --model convnet7 --size 24 --batch 32 --epochs 3 --patience 0 --quiet >/dev/null
for file in best last outcomes; do
    cmp -s "one/$file.safetensors" "host0/run/$file.safetensors" || { echo "not ok - $file differs from one process"; failed=1; }
done
[ -z "$(ls -d host[123]/run 2>/dev/null)" ] || { echo "not ok - a follower has a run folder"; failed=1; }

for signal in KILL STOP; do
    for rank in 1 0; do
        fresh
        # shellcheck disable=SC2086
        start_all $long
        running
        ip netns pids "$name$rank" | xargs kill -$signal
        began=$(date +%s)
        [ $signal = KILL ] || {
            sleep $((deadline + 3))
            ip netns pids "$name$rank" | xargs -r kill -9
        }
        await
        wanted="5 137 5 5"
        [ $rank = 1 ] || wanted="137 5 5 5"
        report "rank $rank gets SIG$signal" $((deadline + 5)) "$wanted" "$began"
    done
done

fresh
# shellcheck disable=SC2086
start_all $long
running
ip link set "${name}v2" down
began=$(date +%s)
await
report "the link of host 2 goes down" $((2 * deadline + 5)) "5 5 5 5" "$began"
ip link set "${name}v2" up

fresh
# shellcheck disable=SC2086
start_all $long
running
began=$(date +%s)
ip netns pids "${name}3" | xargs kill -TERM
await
report "rank 3 gets SIGTERM" 10 "1 1 1 1" "$began"
grep -q 'a checkpoint is in run' host0/log || { echo "not ok - no checkpoint is named"; failed=1; }

fresh
mv host2/disk2/pictures host2/disk2/hidden
# shellcheck disable=SC2086
start_all $long
began=$(date +%s)
await
report "host 2 does not see the images" 20 "3 3 3 3" "$began"
mv host2/disk2/hidden host2/disk2/pictures
rm "$(find host1/disk1/pictures -name '*.jpg' | head -n 1)"
# shellcheck disable=SC2086
start_all $long
began=$(date +%s)
await
report "host 1 has an image less" 20 "[23] [23] [23] [23]" "$began"
[ ! -e host0/run/last.safetensors ] || { echo "not ok - a checkpoint was written"; failed=1; }
[ $failed = 0 ] && echo "ok - ranks on $hosts hosts"
exit $failed
