# Several ranks over MPI, for each MPI that this build has a plugin for and whose mpirun is here: the
# bits of one process, a rank that is killed, and the launcher of the other MPI.
. "$SOURCE/tests/cli/lib.sh"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1

# launcher_of MPI: the mpirun of that MPI, by Debian's name or the plain one; nothing where it is not here.
launcher_of() {
    for name in "mpirun.$1" mpirun; do
        case $1:$("$name" --version 2>/dev/null | head -n 2 | tr '\n' ' ') in
        openmpi:*'Open MPI'* | openmpi:*OpenRTE* | mpich:*HYDRA*) echo "$name" && return ;;
        esac
    done
}

# run_ranks MPI LAUNCHER COMMAND…: two ranks, which may share a core.
run_ranks() {
    mpi=$1 launcher=$2
    shift 2
    if [ "$mpi" = openmpi ]; then
        "$launcher" --oversubscribe --bind-to none -n 2 "$@"
    else
        "$launcher" -n 2 "$@"
    fi
}

expect_same_files() { # run
    for file in best last; do
        expect_true "$file.safetensors of $1 is that of one process" \
            cmp -s "one/$file.safetensors" "$1/$file.safetensors"
    done
}

# Rank 1 is killed in the middle: the launcher ends the job.
kill_rank() { # MPI LAUNCHER
    rm -f pid.*
    # shellcheck disable=SC2016 # of the inner shell
    run_ranks "$1" "$2" sh -c 'echo $$ >"pid.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"; exec "$@"' sh \
        "$TANDEM" train pictures -o "killed-$1" $options --epochs 1000000 >"$out" 2>"$err" </dev/null &
    pid=$!
    tries=0
    while [ ! -e "killed-$1/metrics.jsonl" ] && [ $tries -lt 300 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    began=$(date +%s)
    kill -9 "$(cat pid.1)"
    status=0
    wait $pid || status=$?
    expect_true "$1: a killed rank ends the job with a status (it is $status)" test $status -ne 0
    expect_true "$1: within ten seconds" test $(($(date +%s) - began)) -le 10
}

# A program with the plugin of one MPI alone, under the launcher of the other.
wrong_launcher() { # MPI OTHER LAUNCHER-OF-OTHER
    mkdir -p "alone-$1"
    cp -P "$TANDEM" "$BUILD"/lib*.so* "alone-$1"
    rm -f "alone-$1"/libtandem_mpi_*
    cp "$BUILD/libtandem_mpi_$1.so" "alone-$1"
    expect_exit 4 run_ranks "$2" "$3" "alone-$1/tandem" train pictures -o wrong $options
    expect_stderr_matches "started 2 ranks, but this tandem talks over .*libtandem_mpi_$1\\.so"
    expect_stderr_matches "mpirun\\.$1 -n 2"
    expect_same 1 "$(grep -c 'started 2 ranks' "$err")" "one rank says it"
    expect_true "and no run is made" test ! -e wrong
    [ "$2" = mpich ] || return 0
    # As srun --mpi=pmi2 does: the plugin of the other MPI is tried, and finds itself alone.
    expect_exit 4 run_ranks "$2" "$3" env -u MPI_LOCALRANKID "alone-$1/tandem" train pictures -o wrong $options
    expect_stderr_matches 'started rank 0 of 2, but .* finds itself rank 0 of 1'
    expect_true "and no run is made" test ! -e wrong
}

# A program without any plugin: refused under MPI's launcher, and at home under torchrun.
without_mpi() { # MPI LAUNCHER
    [ -e alone-none ] || {
        mkdir alone-none
        cp -P "$TANDEM" "$BUILD"/lib*.so* alone-none
        rm -f alone-none/libtandem_mpi_*
    }
    expect_exit 4 run_ranks "$1" "$2" alone-none/tandem train pictures -o wrong $options
    expect_stderr_matches "started 2 ranks, but this tandem has no part for any MPI"
    expect_true "and no run is made" test ! -e wrong
}

# torchrun's variables mean TCP, whichever plugins there are.
torchrun_ranks() { # PROGRAM RUN
    port=$((20000 + $$ % 10000))
    # shellcheck disable=SC2086 # words
    for rank in 1 0; do
        RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port TORCHELASTIC_RUN_ID=job7 \
            "$1" train pictures -o "$2" $options --epochs 1 >/dev/null 2>"rank$rank.txt" &
        [ $rank = 1 ] || wait $!
    done
    wait
}

n_tried=0
if is_sanitized; then
    skip "MPI does not go with sanitizers"
    finish
fi
options="--model lenet5 --batch 16 --seed 3 --quiet"
"$TANDEM" synth pictures --classes 3 --per-class 20 --size 32 --seed 9 --format ppm --quiet >/dev/null
for mpi in openmpi mpich; do
    launcher=$(launcher_of $mpi)
    [ -e "$BUILD/libtandem_mpi_$mpi.so" ] && [ -n "$launcher" ] || {
        skip "this build or this machine has no $mpi"
        continue
    }
    # shellcheck disable=SC2086 # words
    [ $n_tried -gt 0 ] || expect_exit 0 "$TANDEM" train pictures -o one $options --epochs 1
    n_tried=$((n_tried + 1))
    # shellcheck disable=SC2086
    expect_exit 0 run_ranks $mpi "$launcher" "$TANDEM" train pictures -o "two-$mpi" $options --epochs 1
    expect_same 1 "$(grep -c '^ *run  *two' "$out")" "rank 0 alone prints the result"
    expect_same_files "two-$mpi"
    expect_true "it records two ranks" grep -q '"world": 2' "two-$mpi/run.json"
    kill_rank $mpi "$launcher"
    expect_exit 4 run_ranks $mpi "$launcher" "$TANDEM" run -n 2 -- train pictures -o wrong
    expect_stderr_matches "each of them would start a job of its own"
    expect_true "and no run is made" test ! -e wrong
    without_mpi $mpi "$launcher"
    other=mpich
    [ $mpi = openmpi ] || other=openmpi
    if [ -n "$(launcher_of $other)" ]; then
        wrong_launcher $mpi $other "$(launcher_of $other)"
    else
        skip "no launcher of $other"
    fi
done

[ $n_tried -gt 0 ] || finish
for program in "$TANDEM" alone-*/tandem; do
    rm -rf elastic
    torchrun_ranks "$program" elastic
    expect_same_files elastic
done

# Ranks of srun without MPI would all train the whole run.
expect_exit 4 env SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=3 "$TANDEM" train pictures -o wrong $options
expect_stderr_matches "srun started 3 tasks without MPI"
expect_true "and no run is made" test ! -e wrong
# ---- tandem run with hosts: the mpirun that fits -----------------------------------------------

if [ -n "$(launcher_of openmpi)$(launcher_of mpich)" ] && ls "$BUILD"/libtandem_mpi_*.so >/dev/null 2>&1; then
    # shellcheck disable=SC2086
    expect_exit 0 "$TANDEM" run -n 2 -H localhost:2 -- train pictures -o hosts $options --epochs 1
    expect_stderr_matches '^tandem: mpirun[.a-z]* -n 2 -+hosts? localhost:2 -+bind-to none .*tandem train pictures -o hosts'
    expect_same_files hosts
    # What launchers make of a status: MPICH's mpiexec 9, Open MPI's mpirun 2.
    for mpi in openmpi mpich; do
        launcher=$(launcher_of $mpi)
        [ -e "$BUILD/libtandem_mpi_$mpi.so" ] && [ -n "$launcher" ] || continue
        mkdir -p "only-$mpi"
        printf '#!/bin/sh\nexec "%s" "$@"\n' "$(command -v "$launcher")" >"only-$mpi/mpirun"
        chmod +x "only-$mpi/mpirun"
        expect_exit 2 env PATH="$temp/only-$mpi:$PATH" "$TANDEM" run -n 2 -H localhost:2 -- train pictures -o hosts $options
        expect_stderr_matches 'hosts holds a run already'
        expect_same 0 "$(grep -c 'ends with status' "$err")" "no report of a rank is passed on"
        # As where a host cannot be reached.
        printf '#!/bin/sh\n[ "$1" != --version ] || exec "%s" --version\nexit 213\n' "$(command -v "$launcher")" \
            >"only-$mpi/mpirun"
        expect_exit 4 env PATH="$temp/only-$mpi:$PATH" "$TANDEM" run -n 2 -H node0:2 -- train pictures -o wrong
        expect_stderr_matches 'mpirun ended with status 213 before a rank began'
    done
fi
finish
