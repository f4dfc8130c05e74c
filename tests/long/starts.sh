#!/bin/bash
# tests/long/starts.sh [TANDEM]: starts and stops in a row, by tandem run and by each mpirun that is here: trainings that
# end, that get SIGTERM, and of which a rank or the launcher is killed. Afterwards nothing of them is left: no process,
# listening port, file in /dev/shm or $TMPDIR, semaphore or shared memory. Runs in namespaces of its own
# (processes, network, mounts, IPC), so all that is there is theirs; needs root and iproute2. STARTS: how many (200).
if [ -z "${STARTS_INSIDE:-}" ]; then
    [ "$(id -u)" = 0 ] && unshare --mount --pid --fork --net --ipc true 2>/dev/null || {
        echo "skip - needs root and namespaces"
        exit 77
    }
    STARTS_INSIDE=yes exec unshare --mount --pid --fork --mount-proc --net --ipc bash "$0" "$@"
fi
. "$(dirname "$0")/lib/ranks.sh"
command -v ss >/dev/null && ip link set lo up && mount -t tmpfs none /dev/shm || skip "needs iproute2 and a /dev/shm"
starts=${STARTS:-200}
export TMPDIR=$work/tmp TANDEM_HOME=$work/home
mkdir "$TMPDIR"
"$tandem" synth photos --classes 2 --per-class 16 --size 28 --quiet >/dev/null || exit 1
common="--model lenet5 --batch 8 --quiet --patience 0"
build=$(dirname "$tandem")

launchers=(run)
declare -A lines=([run]="$tandem run -n 2 --deadline 5 --") rank_is=([run]=TANDEM_RANK)
if [ -e "$build/libtandem_mpi_openmpi.so" ] && command -v mpirun.openmpi >/dev/null; then
    launchers+=(openmpi)
    lines[openmpi]="mpirun.openmpi --oversubscribe --bind-to none -n 2 $tandem"
    rank_is[openmpi]=OMPI_COMM_WORLD_RANK
fi
if [ -e "$build/libtandem_mpi_mpich.so" ] && command -v mpirun.mpich >/dev/null; then
    launchers+=(mpich)
    lines[mpich]="mpirun.mpich -n 2 $tandem"
    rank_is[mpich]=PMI_RANK
fi

processes() { # number and name of each but this script and what it calls to look
    local folder name
    for folder in /proc/[0-9]*; do
        read -r name <"$folder/comm" || continue
        case $name in
        bash | sed | find | ls | ss | tail | awk | xargs | sleep) ;;
        *) echo "${folder#/proc/} $name" ;;
        esac
    done 2>/dev/null
}
left() { # all that is not ours, one a line
    processes | sed 's/^/process /'
    ss -Htln | sed 's/^/port /'
    ls -A /dev/shm | sed 's,^,/dev/shm/,'
    find "$TMPDIR" -mindepth 1 | sed "s,^$work/,,"
    tail -n +2 -q /proc/sysvipc/sem /proc/sysvipc/shm | sed 's/^ */semaphore or shared memory /'
}

# Random moments, also before the ranks have met.
interrupt() { # launcher kind
    local tries=0 victim=
    while [ -z "$victim" ] && [ $((tries++)) -lt 200 ]; do
        sleep 0.02
        victim=$(rank_process "${rank_is[$1]}=$((RANDOM % 2))" "run$i" | head -n 1)
    done
    sleep "0.$((RANDOM % 8))$((RANDOM % 10))"
    case $2 in
    rank) kill -9 "$victim" ;;
    stop) kill -TERM "$job" ;;
    kill) kill -9 "$job" ;;
    esac 2>/dev/null
}

declare -A n_of took_of leaks_of theirs_of
kinds=(end rank stop rank end kill)
began_all=$SECONDS
for i in $(seq "$starts"); do
    # Every second one by tandem run, the others by the mpiruns.
    n_mpi=$((${#launchers[@]} - 1))
    launcher=${launchers[$((i % 2 == 0 || n_mpi == 0 ? 0 : 1 + i / 2 % n_mpi))]}
    kind=${kinds[$((RANDOM % ${#kinds[@]}))]}
    epochs=1000000
    [ $kind != end ] || epochs=1
    began=$(date +%s%N)
    # shellcheck disable=SC2086 # words
    ${lines[$launcher]} train photos -o "run$i" $common --epochs $epochs >"$out" 2>&1 </dev/null &
    job=$!
    [ $kind = end ] || interrupt "$launcher" $kind
    { wait $job; } 2>/dev/null
    status=$?
    for _ in $(seq 100); do
        [ -z "$(processes)" ] && break
        sleep 0.1
    done
    took_of[$launcher,$kind]=$((${took_of[$launcher,$kind]:-0} + ($(date +%s%N) - began) / 1000000))
    n_of[$launcher,$kind]=$((${n_of[$launcher,$kind]:-0} + 1))
    case $kind in
    end) [ $status = 0 ] ;;
    stop) [ $status != 0 ] || [ $launcher = mpich ] ;; # which loses the ranks' status
    *) [ $status != 0 ] ;;
    esac || {
        not_ok "start $i ($launcher, $kind): status $status"
        tail -n 5 "$out"
    }
    found=$(left)
    # MPI's own files, where it was killed before it could remove them, are no leak of ours.
    case $launcher,$kind in
    openmpi,kill | mpich,kill | openmpi,rank | mpich,rank)
        its=$(grep -E '^(/dev/shm/(mpich_|ucx_shm_|vader_)|tmp/ompi\.)' <<<"$found")
        found=$(grep -vE '^(/dev/shm/(mpich_|ucx_shm_|vader_)|tmp/ompi\.)' <<<"$found")
        [ -z "$its" ] || theirs_of[$launcher,$kind]=$((${theirs_of[$launcher,$kind]:-0} + 1))
        ;;
    esac
    if [ -n "$found" ]; then
        leaks_of[$launcher,$kind]=$((${leaks_of[$launcher,$kind]:-0} + 1))
        echo "# start $i ($launcher, $kind) left: $(head -n 4 <<<"$found" | tr '\n' ';')"
    fi
    # The next start is not blamed for it.
    processes | awk '{ print $1 }' | xargs -r kill -9
    rm -rf /dev/shm/* "${TMPDIR:?}"/*
    rm -rf "run$i"
done
echo "| launcher | what happens | starts | seconds each | left something | files of MPI itself |"
for launcher in "${launchers[@]}"; do
    for kind in end stop rank kill; do
        n=${n_of[$launcher,$kind]:-0} n_leaks=${leaks_of[$launcher,$kind]:-0}
        [ $n -gt 0 ] || continue
        echo "| $launcher | $kind | $n | $(awk -v t="${took_of[$launcher,$kind]}" -v n="$n" 'BEGIN { printf "%.1f", t / n / 1000 }') | $n_leaks | ${theirs_of[$launcher,$kind]:-0} |"
        [ $n_leaks = 0 ] || not_ok "$launcher, $kind: $n_leaks of $n left something behind"
    done
done
echo "# $starts starts in $((SECONDS - began_all)) s"
finish
