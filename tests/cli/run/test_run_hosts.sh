# tandem run --hosts-from: fewer ranks after a host is lost, and more at the next start once it is back. A stand-in for
# Open MPI's mpirun starts a rank over TCP here for each slot; a host is lost when its rank is killed.
. "$SOURCE/tests/cli/lib.sh"
export TANDEM_HOME="$temp/home"

ls "$BUILD"/libtandem_mpi_openmpi.so >/dev/null 2>&1 || {
    skip "this build has no plugin for Open MPI"
    finish
}
mkdir bin
cat >bin/mpirun <<'SH'
#!/bin/sh
if [ "$1" = --version ]; then
    echo "mpirun (Open MPI) 5.0.2"
    exit
fi
while :; do
    case $1 in
    -n) n=$2 ;;
    --host) hosts=$2 ;;
    -*) ;;
    *) break ;;
    esac
    shift 2
done
echo "$n of $hosts" >>starts.txt
case $hosts in
*down*)
    echo "no route to host" >&2
    exit 1
    ;;
esac
export TANDEM_WORLD=$n TANDEM_ADDRESS=127.0.0.1:$((20000 + $$ % 12000)) TANDEM_TOKEN=$$
pids=
while [ "$n" -gt 0 ]; do
    n=$((n - 1))
    TANDEM_RANK=$n "$@" &
    echo $! >pid.$n
    pids="$pids $!"
done
trap 'kill -USR1 $pids' USR1
while kill -0 $pids 2>/dev/null; do
    wait
done
SH
chmod +x bin/mpirun

wait_for() { # command…: until it holds, for a minute
    tries=0
    until "$@" || [ $tries -ge 600 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
}
has_trained() { # n: has the job of the n-th start written a checkpoint?
    [ "$(sed -n '$=' starts.txt 2>/dev/null)" = "$1" ] && [ run/last.safetensors -nt starts.txt ]
}
has_started() { # n
    [ "$(sed -n '$=' starts.txt)" = "$1" ]
}
lose() { # rank hosts…: that are there then
    rank=$1
    shift
    printf '%s\n' "$@" >next.txt
    mv next.txt hosts.txt
    kill -KILL "$(cat "pid.$rank")"
}

"$TANDEM" synth pictures --classes 3 --per-class 33 --size 40 --quiet >/dev/null
printf '%s\n' a b c >hosts.txt
PATH=$PWD/bin:$PATH "$TANDEM" run -n 3 --min-ranks 2 --restarts 5 --deadline 2 --hosts-from 'cat hosts.txt' -- \
    train pictures -o run --model convnet7 --size 32 --batch 30 --epochs 1000000 --patience 0 --quiet >"$out" 2>"$err" &
job=$!
wait_for has_trained 1
lose 2 a b down # the command has not noticed yet that c is gone
wait_for has_started 2
printf '%s\n' a b >hosts.txt
wait_for has_trained 3
expect_true "two ranks go on" grep -q '"world": 2' run/run.json
lose 0 a b:2 # the host that is back has another name
wait_for has_trained 4
kill -TERM $job
wait $job
expect_same 1 $? "the job is stopped on request" || show_output
expect_same "3 of a:1,b:1,c:1
3 of a:1,b:1,down:1
2 of a:1,b:1
3 of a:1,b:2" "$(cat starts.txt)" "each start has the hosts that are there"
expect_stderr_matches 'mpirun ended with status 1 before a rank began'
expect_stderr_matches '2 of 3 ranks are started'
expect_stderr_matches '3 of 3 ranks are started'
expect_true "three ranks go on" grep -q '"world": 3' run/run.json
expect_true "with the run of the first" grep -q '"status": "stopped"' run/run.json

# A launcher that starts no rank at the beginning is a mistake, no loss.
echo down >hosts.txt
PATH=$PWD/bin:$PATH expect_exit 4 "$TANDEM" run -n 1 --restarts 5 --hosts-from 'cat hosts.txt' -- train pictures -o none
finish
