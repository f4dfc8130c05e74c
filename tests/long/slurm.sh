#!/bin/bash
# tests/long/slurm.sh [TANDEM]: a real Slurm with four nodes on this machine, started here and ended again. Ranks are
# started by tandem run inside an allocation (its line of srun), by srun itself and by mpirun; a rank and a node are
# killed, the job is requeued, and the bytes are those of one process. Then all pairs of a build's MPI and a kind of
# srun: one training, or exit status 4 before there is a run. Exit code 77 (skipped) without root, Slurm or munge
# (tools/deps --long).
. "$(dirname "$0")/lib/ranks.sh"

for command in slurmctld slurmd srun sbatch munged unshare; do
    command -v $command >/dev/null || skip "there is no $command: tools/deps --long installs it"
done
[ "$(id -u)" = 0 ] || skip "needs root"
build=$(dirname "$tandem")
has() { [ -e "$build/libtandem_mpi_$1.so" ]; }
has openmpi || has mpich || skip "this build has no plugin for an MPI"

# ---- the cluster -------------------------------------------------------------------------------

nodes=4
slurm=$work/slurm
host=$(hostname -s)
ours() { # processes that know our configuration
    grep -lsz "^SLURM_CONF=$slurm/slurm.conf" /proc/[0-9]*/environ | cut -d / -f 3 | grep -vx $$
}
clean() {
    local round
    export -n SLURM_CONF # or grep and xargs would be ours too
    for round in TERM KILL KILL; do
        ours | xargs -r kill -$round 2>/dev/null
        sleep 0.5
    done
    [ ! -e "$slurm/munged.pid" ] || kill "$(cat "$slurm/munged.pid")" 2>/dev/null
    sleep 0.2
    rm -rf "$work"
}
mkdir -p "$slurm"/{state,log,app} && chmod 755 "$work" "$slurm"
head -c 1024 /dev/urandom >"$slurm/key" && chmod 400 "$slurm/key"
munged --force --key-file="$slurm/key" --socket="$slurm/munge.sock" --pid-file="$slurm/munged.pid" \
    --log-file="$slurm/log/munged" --seed-file="$slurm/seed" >"$out" 2>&1 || skip "munged does not start: $(tail -n 1 "$out")"
cat >"$slurm/slurm.conf" <<CONF
ClusterName=tandem
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=16817
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$slurm/munge.sock
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
KillWait=5
SlurmdTimeout=10
SchedulerParameters=sched_interval=1,bf_interval=1
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmctldLogFile=$slurm/log/slurmctld
StateSaveLocation=$slurm/state
SlurmdPidFile=$slurm/slurmd.%n.pid
SlurmdLogFile=$slurm/log/%n
SlurmdSpoolDir=$slurm/spool.%n
MpiDefault=none
NodeName=n[1-$nodes] NodeHostname=$host NodeAddr=127.0.0.1 Port=[16821-$((16820 + nodes))] CPUs=2 RealMemory=2000
PartitionName=p Nodes=ALL Default=YES OverSubscribe=FORCE:8
CONF
echo "PMIxCliTmpDirBase=$slurm/app" >"$slurm/mpi.conf"
export SLURM_CONF=$slurm/slurm.conf
start_node() { # n1: with a folder of its own for PMIx, and its own /dev/shm, where Open MPI names files by host
    mkdir -p "$slurm/t/$1" "$slurm/spool.$1"
    unshare -m sh -c "mount --bind '$slurm/t/$1' '$slurm/app' && mount -t tmpfs none /dev/shm && exec slurmd -f '$SLURM_CONF' -N $1" >>"$slurm/log/start" 2>&1
}
slurmctld -f "$SLURM_CONF" -c >"$out" 2>&1 || skip "slurmctld does not start: $(tail -n 1 "$out")"
for k in $(seq $nodes); do start_node "n$k"; done
for _ in $(seq 60); do
    [ "$(sinfo -h -t idle -o %D 2>/dev/null)" = $nodes ] && break
    sleep 0.5
done
[ "$(sinfo -h -t idle -o %D)" = $nodes ] || {
    sinfo
    tail -n 5 "$slurm"/log/*
    skip "the nodes of Slurm do not come up"
}
pmis=$(srun --mpi=list 2>&1)
# A rank knows its number by SLURM_PROCID under srun.
one_process

# job NAME OPTIONS… -- WORDS: a batch job, waited for; its output in $out
script() { # the rest is the script's only line
    printf '#!/bin/sh\ncd %s\n%s\n' "$work" "$*" >job.sh
}
submit() { # options of sbatch…; prints the job's number
    rm -f job.log
    sbatch --parsable --open-mode=append -o "$work/job.log" "$@" job.sh
}
job_state() { scontrol show job "$1" 2>/dev/null | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p'; }
exit_of() { # as a shell has it
    local code
    code=$(scontrol show job "$1" | sed -n 's/.*ExitCode=\([0-9:]*\).*/\1/p')
    [ "${code#*:}" = 0 ] && echo "${code%:*}" || echo $((128 + ${code#*:}))
}
wait_job() { # number
    local tries=0
    while [ $((tries++)) -lt 1200 ]; do
        case $(job_state "$1") in
        PENDING | RUNNING | COMPLETING | CONFIGURING | SUSPENDED | REQUEUED) sleep 0.1 ;;
        *) break ;;
        esac
    done
    status=$(exit_of "$1")
    cp job.log "$out" 2>/dev/null
}

# ---- tandem run in an allocation ---------------------------------------------------------------

begin
script "exec $tandem run -n 4 --deadline 5 -- train photos -o four $options"
wait_job "$(submit -N 4 -n 4)"
end "sbatch: tandem run on 4 nodes" 0
check "it shows its line of srun" grep -Eq '^tandem: srun -n 4 --mpi=pm' "$out"
grep -E '^tandem: srun' "$out"
expect_bytes four
check "and the record says 4" grep -q '"world": 4' four/run.json

begin
salloc -N 2 -n 4 "$tandem" run -n 4 -- train photos -o alloc $options >"$out" 2>&1
status=$?
end "salloc: tandem run on 2 nodes" 0
expect_bytes alloc

begin
salloc -N 2 -n 2 "$tandem" run -n 2 -- train photos -o alloc $options >"$out" 2>&1
status=$?
end "a mistake of the user: the run is there" 2 'holds a run already'

kind=pmix mpi=openmpi
has openmpi || kind=pmi2 mpi=mpich
begin
script "exec srun -n 4 --mpi=$kind $tandem train photos -o steps $options"
wait_job "$(submit -N 4 -n 4)"
end "sbatch: srun --mpi=$kind" 0
expect_bytes steps
if has mpich && has openmpi && [[ $pmis == *pmi2* ]]; then
    begin
    script "exec srun -n 4 --mpi=pmi2 $tandem train photos -o pmi2 $options"
    wait_job "$(submit -N 4 -n 4)"
    end "sbatch: srun --mpi=pmi2" 0
    expect_bytes pmi2
fi
for it in openmpi mpich; do
    has $it && command -v mpirun.$it >/dev/null || continue
    begin
    script "exec mpirun.$it -n 4 $tandem train photos -o mpirun-$it $options"
    wait_job "$(submit -N 4 -n 4)"
    end "sbatch: mpirun.$it" 0
    expect_bytes "mpirun-$it"
done

# ---- a rank, a job, a node ---------------------------------------------------------------------

script "exec $tandem run -n 3 --deadline 5 -- train photos -o lost $options"
job=$(submit -N 3 -n 3)
wait_for_checkpoint lost
begin
kill -9 "$(rank_process SLURM_PROCID=1 lost)"
wait_job "$job"
end "tandem run: rank 1 is killed" 5 'task 1: Killed|rank 1'
check "tandem run says so" grep -Eq '^tandem: warning: (rank 1 of 3 was|ranks were) lost' "$out"
begin
script "exec $tandem run -n 2 -- train photos -o lost --resume --quiet"
wait_job "$(submit -N 2 -n 2)"
end "continued by 2 ranks" 0
expect_bytes lost

script "exec $tandem run -n 3 --deadline 5 --restarts 1 -- train photos -o again $options"
job=$(submit -N 3 -n 3)
wait_for_checkpoint again
begin
kill -9 "$(rank_process SLURM_PROCID=2 again)"
wait_job "$job"
end "tandem run --restarts 1: rank 2 is killed" 0 'all ranks are started again'
expect_bytes again

script "exec $tandem run -n 3 --deadline 5 -- train photos -o stopped $options"
job=$(submit -N 3 -n 3)
wait_for_checkpoint stopped
begin
scancel --signal=USR1 "$job" # to the ranks of all steps
wait_job "$job"
end "scancel --signal=USR1" 1 'a checkpoint is in stopped'

# kill_node n2: its daemon, its steps and their tasks, as when a machine goes down
kill_node() { # all that shares the mounts of its daemon, at once
    local daemon space process pids=()
    daemon=$(cat "$slurm/slurmd.$1.pid")
    space=$(readlink "/proc/$daemon/ns/mnt")
    for process in /proc/[0-9]*; do
        [ "$(readlink "$process/ns/mnt")" = "$space" ] && pids+=("${process#/proc/}")
    done 2>/dev/null
    kill -9 "$daemon" "${pids[@]}" 2>/dev/null
}
restarts() { scontrol show job "$1" 2>/dev/null | sed -n 's/.*Restarts=\([0-9]*\).*/\1/p'; }
# node_is_killed WHICH WHAT: of a job that is continued by Slurm on other nodes
node_is_killed() {
    local tries=0 victim began_job
    job=$(submit -N 3 -n 3 --requeue)
    wait_for_checkpoint requeued
    begin
    victim=$(scontrol show hostnames "$(squeue -h -j "$job" -o %N)" | sed -n "$1")
    kill_node "$victim"
    while [ "$(restarts "$job")" = 0 ] && [ $((tries++)) -lt 600 ]; do sleep 0.1; done
    echo "# node $victim is killed: the job is requeued after $(awk -v a="$began" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }') s"
    # A requeued job waits two minutes; and it may first get the node that Slurm does not miss yet.
    tries=0
    while [ $((tries++)) -lt 120 ]; do
        case $(job_state "$job") in
        PENDING) scontrol update jobid="$job" StartTime=now 2>/dev/null ;;
        COMPLETED | FAILED | NODE_FAIL | CANCELLED) break ;;
        esac
        sleep 1
    done
    wait_job "$job"
    end "$2" 0
    check "it was started again by Slurm" [ "$(restarts "$job")" -ge 1 ] || tail -n 30 "$out" | sed 's/^/#   /'
    expect_bytes requeued
    rm -rf requeued
    start_node "$victim"
    tries=0
    while [ "$(sinfo -h -t idle -o %D 2>/dev/null)" != $nodes ] && [ $((tries++)) -lt 60 ]; do sleep 0.5; done
}
script "exec $tandem run -n 3 --deadline 5 -- train photos -o requeued $options --resume"
node_is_killed 1p "the node of the batch script is killed: Slurm requeues"
# The ranks miss a node before Slurm does, so the script ends first, and asks for another try.
script "$tandem run -n 3 --deadline 5 -- train photos -o requeued $options --resume || case \$? in 5) exec scontrol requeue \$SLURM_JOB_ID ;; *) exit 1 ;; esac"
node_is_killed '$p' "another node is killed: the script requeues itself"

# ---- wrong pairs -------------------------------------------------------------------------------

short="--model lenet5 --batch 16 --seed 3 --quiet --epochs 1 --patience 0"
# shellcheck disable=SC2086
"$tandem" train photos -o short $short >/dev/null
pair() { # plugins kind
    local program=$work/with-$1/tandem wanted=$3
    rm -rf pair
    if [ ! -d "with-$1" ]; then
        mkdir "with-$1"
        cp -P "$build/tandem" "$build"/lib*.so* "with-$1"
        case $1 in
        openmpi) rm -f "with-$1"/libtandem_mpi_mpich.so ;;
        mpich) rm -f "with-$1"/libtandem_mpi_openmpi.so ;;
        none) rm -f "with-$1"/libtandem_mpi_*.so ;;
        esac
    fi
    begin
    # shellcheck disable=SC2086
    srun -N 2 -n 2 --mpi="$2" "$program" train photos -o pair $short >"$out" 2>&1
    status=$?
    if [ "$wanted" = works ]; then
        end "plugins: $1, srun --mpi=$2" 0
        check "$1, $2: one training" cmp -s short/best.safetensors pair/best.safetensors
    else
        end "plugins: $1, srun --mpi=$2" 4 'srun started|srun --mpi=.* started'
        check "$1, $2: no run is made" [ ! -e pair ]
        check "$1, $2: the right command is named" grep -Eq "srun --mpi=pm|mpirun\.|mpiexec|install " "$out"
    fi
}
if has openmpi && has mpich; then
    for plugins in openmpi mpich both none; do
        pair $plugins none refused
        case $plugins in openmpi | both) wanted=works ;; *) wanted=refused ;; esac
        pair $plugins pmix $wanted
        case $plugins in mpich | both) wanted=works ;; *) wanted=refused ;; esac
        pair $plugins pmi2 $wanted
    done
fi
begin
srun -N 2 -n 2 --mpi=none "$tandem" run -n 2 -- train photos -o pair $short >"$out" 2>&1
status=$?
end "srun -n 2 tandem run -n 2" 4 "without 'tandem run|without MPI"
check "no run is made" [ ! -e pair ]
finish
