#!/bin/bash
# tests/long/train-kill.sh [KILLS]: train, killed at random moments and resumed, ends with the
# files of a training that was left alone, byte for byte. Seven kinds: two networks from scratch; a
# head on a frozen base whose features are computed on the way, kept as f32, as f16, and of changed
# views with a third part of the split; layers that are unfrozen; and batch norms that were folded. Then the
# same where training was over, with SIGINT, SIGTERM and SIGHUP, and with a newest checkpoint that is
# damaged.
#
# Every kill hits a process that lives: what is counted is that it died of it. Where it was hit is
# told by its own progress on a terminal (script makes one) and by the files that it left half
# written. TANDEM says which program (default: build/tandem), KINDS some of the kinds, SEED repeats a
# row of moments. 100 kills take about ten minutes on two cores. Exit code 77 without script of
# util-linux.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
tandem=${TANDEM:-$root/build/tandem}
kills=${1:-100}
kinds=${KINDS:-convnet7 resnet20 frozen frozen-f16 views unfreeze folded}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cd "$work" || exit 1
command -v script >/dev/null || { echo "skip - needs script of util-linux"; exit 77; }

seed=${SEED:-$RANDOM}
RANDOM=$seed
echo "seed $seed"
export TERM=xterm COLUMNS=100
export TANDEM_HOME=$work/home

give_up() { # sentence; what the last process said
    echo "not ok - $*"
    tr '\r' '\n' <screen.txt | grep -v '^.\[K$' | tail -n 20 | sed 's/^/#   /'
    exit 1
}

# ---- the trainings --------------------------------------------------------------------------

"$tandem" synth pictures --classes 4 --per-class 90 --size 64 --quiet >/dev/null || exit 1
"$tandem" synth other --classes 3 --per-class 160 --size 96 --seed 9 --quiet >/dev/null || exit 1
"$tandem" train pictures -o base --model mobilenetv2-0.5 --size 96 --epochs 1 --quiet >/dev/null || exit 1
"$tandem" train other -o small --model mobilenetv2-0.1 --size 48 --epochs 1 --quiet >/dev/null || exit 1

# As if its batch norms stood in the convolutions; what is changed has another checksum, so none.
python3 - small/best.safetensors folded.safetensors <<'END' || exit 1
import json, struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
n = 8 + struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:n])
for name, tensor in header.items():
    if name.endswith((".running_mean", ".running_var")):
        first, end = tensor["data_offsets"]
        value = struct.pack("<f", 0.0 if name.endswith("mean") else 1.0)
        data[n + first:n + end] = value * ((end - first) // 4)
del header["__metadata__"]["tandem.checksum"]
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
open(sys.argv[2], "wb").write(struct.pack("<Q", len(text)) + text + data[n:])
END

train() { # kind run options…
    case $1 in
    convnet7) set -- "$@" pictures --model convnet7 --size 48 --epochs 3 --checkpoint-every 3 --augment flip,crop:4 ;;
    resnet20) set -- "$@" pictures --model resnet20-cifar --size 32 --epochs 3 --checkpoint-every 2 \
        --bn batch --optimizer nadam --ema 0.9 --eval-every 2 ;;
    frozen) set -- "$@" other --weights base --freeze base --hidden 32 --dropout 0.5 \
        --epochs 12 --checkpoint-every 4 ;;
    frozen-f16) set -- "$@" other --weights base --freeze base --features f16 --loss binary \
        --epochs 12 --checkpoint-every 4 ;;
    views) set -- "$@" other --weights base --freeze base --augment flip,crop:8 --split 0.4,0.3,0.3 \
        --epochs 4 --checkpoint-every 4 ;;
    unfreeze) set -- "$@" pictures --weights small --unfreeze 1 --unfreeze-layers 3 --layer-decay 0.8 \
        --optimizer nadam --augment flip --epochs 4 --checkpoint-every 4 ;;
    folded) set -- "$@" pictures --weights folded.safetensors --freeze none --ema 0.9 \
        --split 0.4,0.3,0.3 --epochs 3 --checkpoint-every 4 ;;
    esac
    local run=$2 split="--split 0.5,0.5"
    shift 2
    [[ " $* " == *" --split "* ]] && split=
    exec "$tandem" train -o "$run" --batch 16 $split --resume "$@"
}

# A terminal for it; its number is in pid.txt. The answer is its exit code.
on_terminal() { # kind run options…
    export -f train
    export tandem
    script -qec "echo \$\$ >pid.txt; exec bash -c 'train $*'" screen.txt >/dev/null </dev/null
}

fresh_home() { rm -rf "$TANDEM_HOME"; }

whole() { # kind: the training that is left alone; its milliseconds
    local began=${EPOCHREALTIME/./}
    fresh_home
    on_terminal "$1" "whole-$1" || give_up "$1 does not train"
    echo $(((${EPOCHREALTIME/./} - began) / 1000)) >"whole-$1.ms"
}

lines() { # run: of its epochs, without the clock
    grep '"event":"epoch"' "$1/metrics.jsonl" | sed 's/"seconds":[^,}]*//'
}

end() { # run: that it is finished, and what the third part said
    grep -E '"status": ' "$1/run.json"
    sed -n '/^ *"test": {/,/}/p' "$1/run.json"
}

same() { # kind run
    local file
    for file in best last outcomes; do
        cmp "whole-$1/$file.safetensors" "$2/$file.safetensors" || give_up "$2 has another $file"
    done
    cmp <(lines "whole-$1") <(lines "$2") || give_up "$2 has other lines"
    cmp <(end "whole-$1") <(end "$2") || give_up "$2 has another end"
    [ -z "$(find "$2" -name '*.tmp')" ] || give_up "$2 has half a file in it"
}

# ---- where it was ---------------------------------------------------------------------------

declare -A hits=()

where() { # run: in words
    local half
    half=$(find "$1" "$TANDEM_HOME" -name '*.tmp' 2>/dev/null | head -n 1)
    [ -e "$1/samples.safetensors" ] && { echo "ending, after the last checkpoint"; return; }
    case ${half##*/} in
    .next*) echo "writing a checkpoint"; return ;;
    .best* | .outcomes*) echo "writing the best model"; return ;;
    .run.json*) echo "writing the record"; return ;;
    esac
    local title
    title=$(tr '\r' '\n' <screen.txt | grep -aoE '^(training epoch|validating|testing|computing features|measuring batch|reading every)|^[0-9]+ epochs?,|^.\[K' |
        tail -n 1)
    case $title in
    train*) echo "training" ;;
    valid*) echo "validating" ;;
    test*) echo "evaluating the test part" ;;
    comp*) echo "computing features" ;;
    meas*) echo "measuring batch norms" ;;
    read*) echo "reading the pictures" ;;
    *epoch*) echo "ending" ;;
    *) [ -e "$1/run.json" ] && echo "between two phases" || echo "starting" ;;
    esac
}

# Starts it, sends the signal after so many milliseconds, and waits. 0: it had ended before.
strike() { # signal milliseconds kind run
    local signal=$1 ms=$2 pid status
    shift 2
    rm -f pid.txt
    on_terminal "$@" --threads $((1 + RANDOM % 2)) &
    local terminal=$!
    until [ -s pid.txt ]; do sleep 0.002; done
    sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
    pid=$(cat pid.txt)
    kill -"$signal" "$pid" 2>/dev/null
    status=0
    wait $terminal || status=$?
    return $status
}

go_on() { # kind run
    on_terminal "$1" "$2" || give_up "$2 does not go on"
    same "$1" "$2"
}

began=$SECONDS
for kind in $kinds; do
    whole $kind
done

# ---- kill -9 --------------------------------------------------------------------------------

n_kills=0 n_runs=0
while [ $n_kills -lt "$kills" ]; do
    for kind in $kinds; do
        run=killed-$kind
        rm -rf "$run"
        fresh_home
        n_runs=$((n_runs + 1))
        while :; do # half of them are hit again
            status=0
            strike KILL $((RANDOM % $(cat whole-$kind.ms))) $kind $run || status=$?
            [ $status = 0 ] && break
            [ $status = 137 ] || give_up "$run ended with exit code $status"
            n_kills=$((n_kills + 1))
            place=$(where $run)
            hits[$place]=$((${hits[$place]:-0} + 1))
            [ $((RANDOM % 2)) = 0 ] && break
        done
        go_on $kind $run
    done
done
echo "ok - $n_kills kills of $n_runs trainings, the same bytes after each ($((SECONDS - began)) s); hit while"
for place in "${!hits[@]}"; do
    echo "#   ${hits[$place]} $place"
done

# ---- kill -9 when training is over ------------------------------------------------------------

# Samples are the first that is written after the last checkpoint. Their stores are gone, too.
n_late=0
for kind in $kinds; do
    run=over-$kind
    for ((try = 0; try < 20; try++)); do
        rm -rf "$run" pid.txt
        fresh_home
        on_terminal $kind $run &
        terminal=$!
        until [ -e $run/samples.safetensors ] || ! kill -0 $terminal 2>/dev/null; do :; done
        kill -KILL "$(cat pid.txt)" 2>/dev/null
        status=0
        wait $terminal || status=$?
        [ $status = 137 ] && break
    done
    [ $status = 137 ] || continue
    fresh_home
    go_on $kind $run
    go_on $kind $run # and once more, now that its record says that it is finished
    n_late=$((n_late + 1))
done
[ $n_late -gt 0 ] || give_up "no training was hit between its last checkpoint and its end"
echo "ok - $n_late kills after the last checkpoint, ended by the next sitting"

# ---- signals that ask -------------------------------------------------------------------------

n_stops=0
for signal in INT TERM HUP INT TERM; do
    for kind in $kinds; do
        run=stopped-$kind
        rm -rf "$run"
        fresh_home
        status=0
        strike $signal $((RANDOM % $(cat whole-$kind.ms))) $kind $run || status=$?
        case $status in
        0) ;;
        1)
            n_stops=$((n_stops + 1))
            ! [ -e $run/run.json ] || grep -q '"status": "stopped"' $run/run.json ||
                give_up "$run was stopped by SIG$signal and does not say so"
            ;;
        # Before the program could install its signal handlers.
        129 | 130 | 143) ! [ -e $run ] || give_up "$run died of SIG$signal" ;;
        *) give_up "$run ended with exit code $status after SIG$signal" ;;
        esac
        go_on $kind $run
    done
done
echo "ok - $n_stops trainings stopped by SIGINT, SIGTERM or SIGHUP, the same bytes after each"

# ---- a checkpoint that is damaged -----------------------------------------------------------

damage() { # how file
    local n
    n=$(stat -c %s "$2")
    case $1 in
    empty) : >"$2" ;;
    short) truncate -s $((RANDOM * 32768 % n)) "$2" ;;
    long) echo more >>"$2" ;;
    missing) rm "$2" ;;
    bytes)
        local at=$(((RANDOM * 32768 + RANDOM) % n)) value
        value=$(od -An -tu1 -j$at -N1 "$2")
        printf "\\x$(printf %02x $((value ^ (1 + RANDOM % 255))))" |
            dd of="$2" bs=1 seek=$at conv=notrunc status=none
        ;;
    esac
}

declare -A damages=() tried=()
n_damaged=0
for how in bytes short bytes empty bytes long bytes missing; do
    for kind in $kinds; do
        run=damaged-$kind
        # Killed where there are two checkpoints, however many tries that takes; and not a third one
        # that has no name yet, which would take the place of a missing one without a word.
        for ((try = 0; try < 20; try++)); do
            rm -rf "$run"
            fresh_home
            strike KILL $((RANDOM % $(cat whole-$kind.ms))) $kind $run && continue
            [ -e $run/last.safetensors ] && [ -e $run/previous.safetensors ] &&
                [ ! -e $run/next.safetensors ] && break
        done
        [ -e $run/previous.safetensors ] && [ ! -e $run/next.safetensors ] || continue
        damage $how $run/last.safetensors
        go_on $kind $run
        grep -qa 'newest checkpoint cannot be used, so the one before it' screen.txt ||
            give_up "$run says nothing of its damaged checkpoint ($how)"
        damages[$kind]="${damages[$kind]:-} $how"
        tried[$how]=yes
        n_damaged=$((n_damaged + 1))
    done
done
for how in bytes short empty long missing; do
    [ "${tried[$how]:-}" ] || give_up "no newest checkpoint was damaged so: $how"
done
echo "ok - $n_damaged damaged newest checkpoints, the one before gone on from to the same bytes"
for kind in $kinds; do # one that never had two checkpoints in 20 tries says so
    echo "#   $kind:${damages[$kind]:- none}"
done
echo "# $((SECONDS - began)) s"
