# Several ranks train one run: the same bytes as one process, whatever their number, and an end for all
# when one of them fails.
. "$SOURCE/tests/cli/lib.sh"
export TANDEM_HOME="$temp/home"

"$TANDEM" synth pictures --classes 3 --per-class 33 --size 40 --quiet >/dev/null
"$TANDEM" synth more --classes 2 --per-class 40 --size 40 --seed 9 --quiet >/dev/null

bytes() { # run: of all that a training writes but times
    cat "$1/last.safetensors" "$1/best.safetensors" "$1/outcomes.safetensors" | sha256sum
}
ranks() { # number run options…
    n=$1 name=$2
    shift 2
    "$TANDEM" run -n "$n" --deadline 20 -- train "$source" -o "$name" --quiet --patience 0 "$@"
}
# same WORDS NUMBERS OPTIONS…: trains by one process, then by so many ranks.
same() {
    words=$1 numbers=$2
    shift 2
    rm -rf one home
    "$TANDEM" train "$source" -o one --quiet --patience 0 "$@" >/dev/null 2>one.txt ||
        fail "$words: $(tail -n 1 one.txt)"
    for number in $numbers; do
        rm -rf several home
        ranks "$number" several "$@" >/dev/null 2>several.txt || fail "$words: $(tail -n 1 several.txt)"
        expect_same "$(bytes one)" "$(bytes several)" "$words: $number ranks write what one process does"
    done
}

# ---- the same bytes ------------------------------------------------------------------------

source=pictures
same "groups, mixed images, dropout, a test part" "2 3 8" --model convnet7 --size 32 --epochs 2 --batch 48 \
    --augment flip,crop:4,mixup --dropout 0.2 --split 0.7,0.15,0.15 --threads 1
same "statistics of the whole batch" "2 4" --model convnet7 --size 32 --epochs 1 --batch 30 --bn batch --threads 2
# More groups a rank than arrays of gradients: subtrees are added while others run, also from the middle of the tree.
same "many groups" "3" --model convnet7 --size 24 --epochs 1 --batch 90 --shard 4 --threads 1
same "a base that every epoch computes" "2" --model convnet7 --size 24 --epochs 1 --freeze 5 --augment mixup
same "averages, clipping, adam" "3" --model convnet7 --size 32 --epochs 2 --batch 16 --ema 0.9 --clip-norm 1 \
    --optimizer adam --schedule plateau
same "balanced classes, a batch of all images" "2" --model lenet5 --epochs 2 --batch 4096 --balance
same "a batch size that is chosen" "2" --model lenet5 --epochs 1

"$TANDEM" train more -o base --model convnet7 --size 32 --epochs 1 --quiet >/dev/null
same "a head on stored features" "2 3" --weights base --epochs 3 --batch 16 --augment flip --views 2
same "layers that are unfrozen" "2" --weights base --epochs 3 --batch 16 --unfreeze 1

# ---- a run at other numbers of ranks -------------------------------------------------------

options="--model convnet7 --size 32 --batch 30 --schedule constant --patience 0"
# shellcheck disable=SC2086
"$TANDEM" train pictures -o one3 --quiet --epochs 3 $options >/dev/null
# shellcheck disable=SC2086
expect_exit 0 "$TANDEM" run -n 3 -- train pictures -o moved --epochs 1 $options
expect_stderr_matches '^3 ranks: of 30 images a step, in groups of 8, they compute 16, 14, 0; 2 would be as fast$'
expect_stderr_matches '^gradients, [0-9.]+ MB, leave in [0-9]+ parts of [0-9.]+ to [0-9.]+ MB'
expect_exit 0 "$TANDEM" run -n 2 -- train pictures -o moved --epochs 2 --resume
expect_exit 0 "$TANDEM" train pictures -o moved --epochs 3 --resume
expect_same "$(bytes one3)" "$(bytes moved)" "3 ranks, then 2, then 1: the bytes of one process"

# ---- results and failures ------------------------------------------------------------------

expect_exit 0 "$TANDEM" run -n 2 --json -- train pictures -o json --model lenet5 --epochs 1
expect_json world restarts run epochs val next
expect_same "2 0" "$(json_value world) $(json_value restarts)" "the JSON says how many there were"
expect_exit 2 "$TANDEM" run -n 2 -- train pictures -o json --model lenet5
expect_stderr_matches 'json holds a run already'
expect_same 1 "$(grep -c 'cannot train' "$err")" "one rank says why"
expect_exit 2 "$TANDEM" run -n 2 -- evaluate json pictures
expect_stderr_matches 'train and bench allreduce run as several ranks'
expect_exit 2 "$TANDEM" run -n 2 --min-ranks 3 -- train pictures
expect_stderr_matches 'at least 3 of 2 ranks: from 1 to 2 are accepted'
expect_exit 2 timeout 20 "$TANDEM" run -n 4096 -- train pictures
expect_stderr_matches 'starting 4096 ranks on this machine, which has [0-9]+ CPUs .*: up to [0-9]+ are accepted'
expect_exit 2 sh -c 'ulimit -n 64 && exec "$@"' sh "$TANDEM" run -n 17 -- train pictures
expect_stderr_matches 'lets a process open 64 files .ulimit -n.: up to 16 are accepted'
expect_exit 2 "$TANDEM" run -n 2 --hosts-from hosts -H a:2 -- train pictures
expect_stderr_matches 'one of them names the hosts'
expect_exit 3 "$TANDEM" run -n 2 --hosts-from 'echo a b' -- train pictures
expect_stderr_matches "printed 'a b': lines like host:2 are accepted"
expect_exit 5 "$TANDEM" run -n 2 --deadline 1 --hosts-from 'echo localhost' -- train pictures
expect_stderr_matches 'names hosts with 1 slots; waiting for at least 2'
expect_stderr_matches 'at least 2 are needed .waited for 10 seconds.'
expect_exit 2 "$TANDEM" run -n 2 --restarts 1 -- train pictures
expect_stderr_matches 'the run needs a name: train … -o RUN'
expect_exit 2 "$TANDEM" run -n 2 -- train pictures --epoch 3
expect_same 1 "$(grep -c 'has no option' "$err")" "one rank names the unknown option"
expect_exit 2 "$TANDEM" run -n 2 train pictures --epochs 3
expect_stderr_matches "tandem run has no option '--epochs'; .* tandem run … -- train …"
expect_exit 2 "$TANDEM" run -n 2 -- train pictures --device gpu
expect_stderr_matches "choosing the device 'gpu': there is no such backend"

expect_exit 0 "$TANDEM" run -n 3 --json -- bench allreduce --bytes 1M --seconds 0.5
expect_json world transport sums
expect_same "3 1048576" "$(json_value world) $(json_value sums.0.bytes)" "sums of three ranks are timed"
expect_exit 2 "$TANDEM" bench allreduce
expect_stderr_matches 'this process is alone'

# Ranks that are started by hand, one of them with another command.
by_hand() { # rank options…: $port is that of rank 0
    rank=$1
    shift
    TANDEM_RANK=$rank TANDEM_WORLD=2 TANDEM_ADDRESS=127.0.0.1:$port TANDEM_DEADLINE=20 \
        "$TANDEM" train "$source" -o hand --model lenet5 --epochs 1 --quiet "$@"
}
port=$((20000 + $$ % 10000))
source=pictures
by_hand 1 --batch 8 >/dev/null 2>&1 &
expect_exit 2 by_hand 0
expect_stderr_matches 'rank 1 on .*: .*rank 1 has other options than rank 0'
expect_stderr_matches 'its --batch is 8, and rank 0 has 32'
wait
for first in "" --resume; do
    port=$((port + 1))
    # shellcheck disable=SC2046,SC2086 # words
    by_hand 1 $([ "$first" ] || echo --resume) >/dev/null 2>&1 &
    # shellcheck disable=SC2086
    expect_exit 2 by_hand 0 $first
    expect_stderr_matches 'rank 1 was started with(out)? --resume, and rank 0 with(out)?;'
    wait
done
expect_true "and no run is made" test ! -e hand
port=$((port + 1))
by_hand 0 >/dev/null 2>&1 &
source=nowhere
expect_exit 3 by_hand 1 --json
expect_stderr_matches "no such file or folder: .nowhere"
expect_stdout_is '' # the JSON is that of rank 0
wait

# A rank that is killed, in the middle of an epoch.
long="--model convnet7 --size 32 --batch 30 --epochs 60 --schedule constant --patience 0"
killed() { # signal run options…: its own options after --
    signal=$1 name=$2
    shift 2
    # shellcheck disable=SC2086
    "$TANDEM" run -n 2 --deadline 2 "$@" -- train pictures -o "$name" $long >"$out" 2>"$err" &
    job=$!
    tries=0
    while [ ! -s "$name/last.safetensors" ] && [ $tries -lt 300 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    kill "-$signal" "$(pgrep -P $job | tail -n 1)"
    status=0
    wait $job || status=$?
}
if command -v pgrep >/dev/null; then
    killed KILL lost
    expect_same 5 "$status" "a rank is killed: exit 5"
    expect_stderr_matches 'rank 1 of 2 was lost: it was killed by signal 9'
    expect_same "" "$(pgrep -f "train pictures -o lost" || true)" "no rank is left behind"
    killed STOP silent
    expect_same 5 "$status" "a rank is stopped: exit 5"
    expect_stderr_matches 'rank 1 of 2 was lost: it was silent for longer than the deadline'
    expect_same "" "$(pgrep -f "train pictures -o silent" || true)" "the stopped rank is gone"
    # Rank 0 trains a head alone, so nobody waits for the stopped rank.
    before=$long
    long="--weights base --batch 16 --epochs 3000 --patience 0"
    killed STOP forgotten
    long=$before
    expect_same 5 "$status" "a rank is stopped that nobody waits for: exit 5, after the training"
    expect_stderr_matches 'rank 1 of 2 was lost: it was silent for longer than the deadline'
    expect_true "the training has ended" grep -q '"status": "finished"' forgotten/run.json
    killed KILL again --restarts 1
    expect_same 0 "$status" "with --restarts the job ends well"
    expect_stderr_matches 'all ranks are started again'
    # shellcheck disable=SC2086
    "$TANDEM" train pictures -o whole $long --quiet >/dev/null 2>&1
    expect_same "$(bytes whole)" "$(bytes again)" "and has the bytes of a run that nobody disturbed"
    killed KILL fewer --restarts 1 --min-ranks 1
    expect_same 0 "$status" "with --min-ranks a rank less continues"
    expect_stderr_matches '1 of 2 ranks are started'
    expect_same "$(bytes whole)" "$(bytes fewer)" "and the bytes stay"
    killed TERM stopped
    expect_same 1 "$status" "a rank is asked to stop: all stop"
    expect_stderr_matches 'training was stopped on request after step [0-9]+; a checkpoint is in stopped'
    for n in 3 5 8; do # the first to stop leaves rank 0 time to save
        # shellcheck disable=SC2086
        "$TANDEM" run -n $n -- train pictures -o saved$n $long --checkpoint-every 100000 >"$out" 2>"$err" &
        job=$!
        tries=0
        while [ ! -s saved$n/last.safetensors ] && [ $tries -lt 300 ]; do
            sleep 0.1
            tries=$((tries + 1))
        done
        kill -TERM $job
        wait $job
        expect_same 1 $? "$n ranks are asked to stop"
        expect_true "rank 0 of $n saves the step" grep -q '"status": "stopped"' saved$n/run.json
    done
    killed USR2 preempted
    expect_same 1 "$status" "a scheduler's signal to one rank stops all"
    expect_stderr_matches 'a checkpoint is in preempted'
    # Rank 0 trains a head alone: no message of a step carries the request of rank 1.
    before=$long
    long="--weights base --batch 16 --epochs 1000000 --patience 0"
    killed USR2 alone
    expect_same 1 "$status" "a signal to the rank that waits while a head is trained stops all"
    expect_stderr_matches 'training was stopped on request after step [0-9]+; a checkpoint is in alone'
    killed TERM asked
    expect_same 1 "$status" "and so does another one"
    long=$before
else
    skip "no pgrep to find ranks with"
fi

# ---- a slow disk ------------------------------------------------------------------------------

# A stand-in for a slow disk: the first fsync of a file below the folder $SLOW takes eight seconds, once there is a
# file `slow`. tandem run kills a rank six seconds after another has ended here.
cat >slow.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int fsync(int fd)
{
    char link[40], path[4096] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, path, sizeof path - 1) > 0 && strstr(path, getenv("SLOW")) && unlink("slow") == 0)
        sleep(8);
    return (int)syscall(SYS_fsync, fd);
}
C
slow_stop() { # name folder options…: a job is asked to stop, and its last save takes longer than it may be silent
    name=$1 folder=$2
    shift 2
    # shellcheck disable=SC2086
    SLOW=/$folder/ LD_PRELOAD=$PWD/slow.so "$TANDEM" run -n 3 --deadline 1 -- train pictures -o "$name" --quiet \
        --patience 0 --checkpoint-to "copies-$name" "$@" >"$out" 2>"$err" &
    job=$!
    tries=0
    while [ ! -s "$name/last.safetensors" ] && [ $tries -lt 300 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    : >slow
    kill -TERM $job
    wait $job
    expect_same 1 $? "$name: a stop is no loss, however slow the disk is" || show_output
    expect_true "$name: the disk was slow" test ! -e slow
    expect_true "$name: the run has its last step" grep -q '"status": "stopped"' "$name/run.json"
    expect_true "$name: its copy as well" grep -q '"status": "stopped"' "copies-$name"/*-run.json
    rm -f slow
}
if ! is_sanitized && cc -shared -fPIC -o slow.so slow.c 2>/dev/null; then
    slow_stop slow-run slow-run --model convnet7 --size 32 --batch 30 --epochs 100000 --schedule constant
    slow_stop slow-head copies-slow-head --weights base --batch 16 --epochs 1000000
else
    skip "no compiler to make a disk slow with"
fi

# ---- what every rank was last at -------------------------------------------------------------------

# Ranks that another launcher started: its status says no more than that one was killed.
last_at() { # file rank
    python3 -c '
import json, sys
print(json.load(open(sys.argv[1]))["ranks"][int(sys.argv[2])]["at"])' "$1" "$2" 2>/dev/null
}
start_two() { # run deadline: two ranks that train for long; their ids in $rank0 and $rank1
    port=$((port + 1))
    for rank in 1 0; do
        # shellcheck disable=SC2086
        TANDEM_RANK=$rank TANDEM_WORLD=2 TANDEM_ADDRESS=127.0.0.1:$port TANDEM_DEADLINE=${2:-2} \
            "$TANDEM" train pictures -o "$1" $long --quiet >"out$rank.txt" 2>"err$rank.txt" &
        eval "rank$rank=$!"
    done
    tries=0
    while ! last_at "$1/ranks.json" 1 | grep -q 'step [0-9]' && [ $tries -lt 300 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
}
if command -v python3 >/dev/null; then
    source=pictures
    long="--model convnet7 --size 32 --batch 30 --epochs 100000 --schedule constant --patience 0"
    start_two gone
    kill -KILL "$rank1"
    wait "$rank0"
    expect_same 5 $? "rank 0 lost rank 1"
    wait "$rank1" 2>/dev/null
    expect_true "the message names the file" grep -q 'what every rank was last at (ranks.json)' err0.txt
    expect_true "the file has the sentence" grep -q '"failure": ".*rank 1 on .* was lost: ' gone/ranks.json
    expect_true "and what rank 1 was at" \
        sh -c 'echo "$1" | grep -Eq "^(training epoch [0-9]+|validating)"' sh "$(last_at gone/ranks.json 1)"
    start_two orphaned
    kill -KILL "$rank0"
    wait "$rank1"
    expect_same 5 $? "rank 1 lost rank 0"
    wait "$rank0" 2>/dev/null
    expect_true "rank 0 left the file" grep -q '"failure": null' orphaned/ranks.json
    expect_true "with what the others were at" test -n "$(last_at orphaned/ranks.json 1)"
    "$TANDEM" train pictures -o orphaned --resume --quiet >/dev/null 2>&1 &
    job=$!
    tries=0
    while [ -e orphaned/ranks.json ] && [ $tries -lt 300 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    expect_true "one process that continues the run removes it" test ! -e orphaned/ranks.json
    kill -TERM $job
    wait $job
    # A rank that is slow: it stands still while the other waits.
    start_two slow 8
    tries=0
    while ! grep -q 'waited .* s for rank 1 on' slow/metrics.jsonl && [ $tries -lt 12 ]; do
        kill -STOP "$rank1"
        sleep 1.5
        kill -CONT "$rank1"
        sleep 1
        tries=$((tries + 1))
    done
    expect_true "the record names the rank that the others waited for" \
        grep -Eq 'epoch [0-9]+: the ranks waited 1.* s for rank 1 on .*, which computed [0-9]+ images/s' slow/metrics.jsonl
    kill -TERM "$rank1"
    wait "$rank0"
    expect_same 1 $? "and both are stopped"
    wait "$rank1"
    expect_true "no file is left where a run was stopped" test ! -e slow/ranks.json
else
    skip "no python3 to read the JSON with"
fi
expect_true "a run that ended well has none" test ! -e moved/ranks.json

# ---- a host whose name is known later, as that of a pod -------------------------------------------

if unshare --mount true 2>/dev/null; then
    cp /etc/hosts hosts
    # shellcheck disable=SC2016 # of the inner shell
    expect_exit 0 unshare --mount sh -c '
        mount --bind hosts /etc/hosts
        export TANDEM_WORLD=2 TANDEM_ADDRESS=tandem-rank-0.test:29511 TANDEM_TOKEN=x TANDEM_DEADLINE=30
        TANDEM_RANK=1 "$@" &
        TANDEM_RANK=0 "$@" &
        sleep 2
        echo 127.0.0.1 tandem-rank-0.test >>/etc/hosts
        wait $! && wait' sh "$TANDEM" train pictures -o named --model lenet5 --epochs 1 --quiet
    expect_true "two ranks met" grep -q '"world": 2' named/run.json
    expect_exit 5 env TANDEM_RANK=1 TANDEM_WORLD=2 TANDEM_ADDRESS=nobody.invalid:29511 TANDEM_TOKEN=x \
        TANDEM_DEADLINE=1 "$TANDEM" train pictures -o unnamed --model lenet5
    expect_stderr_matches "the host of rank 0, 'nobody.invalid': "
else
    skip "no mount namespace to change names of hosts in"
fi

# ---- a port that is taken --------------------------------------------------------------------

# Another process takes any port that a rank of tandem run would bind.
cat >taken.c <<'C'
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
int bind(int fd, const struct sockaddr *address, socklen_t length)
{
    if (!getenv("TANDEM_RANK") || ((const struct sockaddr_in *)(const void *)address)->sin_port == 0)
        return (int)syscall(SYS_bind, fd, address, length);
    errno = EADDRINUSE;
    return -1;
}
C
if ! is_sanitized && cc -shared -fPIC -o taken.so taken.c 2>/dev/null; then
    expect_exit 0 env LD_PRELOAD="$PWD/taken.so" "$TANDEM" run -n 3 --deadline 5 -- bench allreduce --bytes 1M --seconds 0.5
    # Jobs at once do not meet.
    for job in 1 2 3 4 5 6; do
        "$TANDEM" run -n 2 --json -- bench allreduce --bytes 1M --seconds 0.5 >"job$job.txt" 2>&1 &
    done
    wait
    expect_same 6 "$(cat job?.txt | grep -c '"world": *2')" "six jobs at once have two ranks each"
else
    skip "no compiler to take ports with"
fi

# torchrun's store has MASTER_PORT, and the end of somebody's connection may have the next one.
if command -v python3 >/dev/null; then
    cat >taken.py <<'PYTHON'
import os, socket, subprocess, sys
while True:
    store, other = socket.socket(), socket.socket()
    store.bind(("127.0.0.1", 0))
    store.listen()
    try:
        other.bind(("127.0.0.1", store.getsockname()[1] + 1))
        break
    except (OSError, OverflowError):
        continue
variables = dict(os.environ, WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(store.getsockname()[1]),
                 TORCHELASTIC_USE_AGENT_STORE="True", TORCHELASTIC_RUN_ID="job7", TANDEM_DEADLINE="20")
ranks = [subprocess.Popen(sys.argv[1:], env=dict(variables, RANK=str(rank))) for rank in range(2)]
sys.exit(max(rank.wait() for rank in ranks))
PYTHON
    expect_exit 0 python3 taken.py "$TANDEM" train pictures -o taken --model lenet5 --epochs 1 --quiet
    expect_true "it has two ranks" grep -q '"world": 2' taken/run.json
else
    skip "no python3 to take a port with"
fi
finish
