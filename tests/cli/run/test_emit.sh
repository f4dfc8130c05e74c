# tandem run --emit: batch scripts run with a stand-in for srun, drivers with one for Spark, and manifests
# are checked against the published definitions.
. "$SOURCE/tests/cli/lib.sh"
export TANDEM_HOME="$temp/home"

"$TANDEM" synth pictures --classes 2 --per-class 20 --size 32 --quiet >/dev/null
options="--model lenet5 --epochs 1 --batch 16"
# shellcheck disable=SC2086 # words
"$TANDEM" train pictures -o one $options --quiet >/dev/null

# ---- Slurm --------------------------------------------------------------------------------------

mkdir bin
# Without its own options, srun runs the command, or ends with $SRUN_STATUS in its place.
cat >bin/srun <<'END'
#!/bin/sh
while :; do
    case $1 in --*) shift ;; *) break ;; esac
done
printf '%s\0' "$@" >words
[ -z "$SRUN_STATUS" ] || exit "$SRUN_STATUS"
exec "$@"
END
cat >bin/scontrol <<'END'
#!/bin/sh
echo "$@" >requeued
END
ln -s "$TANDEM" bin/tandem
chmod +x bin/srun bin/scontrol

# submit STATUS RESTARTS: as Slurm would run job.sh; STATUS empty: trains.
submit() {
    rm -f requeued words
    SRUN_STATUS=$1 PATH=$temp/bin:$PATH SLURM_JOB_ID=77 SLURM_JOB_NUM_NODES=3 SLURM_RESTART_COUNT=$2 \
        bash job.sh
}
emit() { # engine words of a training…
    engine=$1
    shift
    expect_exit 0 "$TANDEM" run -n 3 --emit "$engine" -- train "$@"
}

if command -v bash >/dev/null; then
    # shellcheck disable=SC2086
    emit slurm pictures -o slurm $options
    cp "$out" job.sh
    for line in --nodes=1-3 --requeue --open-mode=append --signal=USR2@180; do
        expect_true "a line for sbatch: $line" grep -qx "#SBATCH $line" job.sh
    done
    if command -v shellcheck >/dev/null; then
        expect_true "shellcheck finds nothing" shellcheck job.sh
    else
        skip "no shellcheck"
    fi
    expect_exit 0 submit 1 0
    expect_true "stopped before there was a run: queued again" grep -qx 'requeue 77' requeued
    expect_exit 0 submit '' 0
    expect_true "the run is finished" grep -q '"status": "finished"' slurm/run.json
    expect_true "and the job is not queued again" test ! -e requeued
    expect_exit 0 submit '' 1
    expect_true "started once more, it ends as well" test ! -e requeued
    sed -i 's/"status": "finished"/"status": "running"/' slurm/run.json
    expect_exit 0 submit 0 0
    expect_true "srun ends with 0 and the run has not: queued again" grep -qx 'requeue 77' requeued
    expect_exit 0 submit 143 99
    expect_true "a rank was killed: queued again" grep -qx 'requeue 77' requeued
    expect_exit 143 submit 143 100
    expect_true "but not for ever" test ! -e requeued
    expect_exit 2 submit 2 0
    expect_true "nor after wrong usage" test ! -e requeued
else
    skip "no bash to run the script with"
fi

# ---- odd words ----------------------------------------------------------------------------------

tab=$(printf '\t')
byte=$(printf 'a\377b')
marks=$(printf 'a\302\205b\342\200\250c\357\273\277d\033[2J\177e')
lines='two
lines'
odd() { # command…: with words that some language would take for its own
    # shellcheck disable=SC2016 # as they are
    "$@" train 'my photos' "it's" 'say "x"' '$HOME' '`id`' 'a\b\n' '' '*' '~' '#x' '!x' '@words@' '$(X)' '$$(X)' '$' \
        '- x: {y}' "$tab" "$lines" "$marks" 'Übung' -o'run s/$X' --resume ${extra:+"$extra"}
}
extra=
with_byte() { # with one that is no text, too
    extra=$byte
    ended=0
    odd "$@" || ended=$?
    extra=
    return $ended
}
emit_odd() { # engine how
    engine=$1
    expect_exit 0 "$2" "$TANDEM" run -n 2 --emit "$engine" --
}
words_arrive() { # as bash gives them to srun
    printf '%s\0' tandem "$@" | cmp - words
}

if command -v bash >/dev/null; then
    emit_odd slurm with_byte
    cp "$out" job.sh
    (submit 3 0) >/dev/null 2>&1
    expect_true "odd words reach srun unchanged" with_byte words_arrive
fi

python=
for candidate in python3 /usr/bin/python3; do
    [ -n "$python" ] || ! "$candidate" -c 'import yaml, jsonschema' 2>/dev/null || python=$candidate
done
read_words() { # python FILE WORD…
    LC_ALL=C.UTF-8 "$python" -B "$SOURCE/tests/launch/emitted.py" words "$file" "$@" >words.txt
}
if [ -n "$python" ]; then
    for engine in k8s mpijob; do
        emit_odd $engine odd
        file=$engine.yaml
        cp "$out" "$file"
        expect_true "$engine: odd words reach the ranks unchanged" odd read_words
    done
    emit_odd spark with_byte
    file=spark.py
    cp "$out" "$file"
    expect_true "spark: odd words reach the ranks unchanged" with_byte read_words
else
    skip "no python3 with yaml and jsonschema to read manifests with"
fi
expect_exit 2 with_byte "$TANDEM" run -n 2 --emit k8s --
expect_stderr_matches 'is no UTF-8'

# ---- manifests ----------------------------------------------------------------------------------

check() { # file
    "$python" -B "$SOURCE/tests/launch/emitted.py" check "$TANDEM_TEST_DATA/kubernetes/schemas.json" "$1"
}
# planted FILE SED-SCRIPT: the mistake is in the manifest, and found.
planted() {
    sed "$2" "$1" >planted.yaml
    expect_true "$1: '$2' changes it" test "$(cmp -s "$1" planted.yaml && echo same)" = ''
    expect_exit 1 check planted.yaml
    expect_true "and the check names it: $(head -n 1 "$out")" grep -Eq "$3" "$out"
}

if [ -z "$python" ]; then
    :
elif [ ! -e "${TANDEM_TEST_DATA:-nowhere}/kubernetes/schemas.json" ]; then
    skip "no published definitions to check manifests with (TANDEM_TEST_DATA)"
else
    for engine in k8s mpijob; do
        # The name of this run is a word of YAML's own.
        expect_exit 0 "$TANDEM" run -n 3 --emit $engine --image registry.example/tandem:1 --claim photos -- \
            train photos -o runs/yes
        cp "$out" $engine.yaml
        expect_exit 0 check $engine.yaml
        planted $engine.yaml 's/backoffLimit/backofLimit/' "'backofLimit' was unexpected"
        planted $engine.yaml 's/mountPath/mountpath/' "'mountpath' was unexpected"
        planted $engine.yaml 's/terminationGracePeriodSeconds: 180/terminationGracePeriodSeconds: 3m/' "'3m' is not of type"
        planted $engine.yaml 's/restartPolicy: Never/restartPolicy: Always/' "restartPolicy '?Always|restartPolicy: Never"
        planted $engine.yaml "s/name: 'yes'/name: 'Yes_'/" 'no DNS-1035 label'
        planted $engine.yaml "s/name: 'yes'/name: yes/" 'True is no DNS-1035 label'
        planted $engine.yaml '/limits/s/: .*/: {cpu: 1}/' 'requests and limits are not equal'
        planted $engine.yaml 's/emptyDir: .*/emptyDir: {}/' '/dev/shm is not in memory'
        planted $engine.yaml 's/name: work, /name: wrok, /' "there is no volume 'wrok'"
    done
    planted k8s.yaml 's/completions: 3/completions: three/' "'three' is not of type 'integer'"
    planted k8s.yaml 's/containerName: tandem/containerName: rank/' "names the container 'rank'"
    planted k8s.yaml 's/- name: JOBSET/- name: JOB/' 'TANDEM_ADDRESS refers to JOBSET'
    planted k8s.yaml 's/action: FailJobSet/action: FailJobset/' "'FailJobset' is not one of"
    planted mpijob.yaml 's/WaitForWorkersReady/WaitForWorkers/' "launcherCreationPolicy 'WaitForWorkers'"
    planted mpijob.yaml 's/replicas: 1/replicas: 2/' 'has one Launcher'
    planted mpijob.yaml 's/    Worker:/    Workers:/' 'has one Launcher'
fi
if [ -n "$python" ]; then
    emit k8s photos -o runs/first
    cp "$out" k8s.yaml
    expect_exit 0 "$python" -B "$SOURCE/tests/launch/emitted.py" pod k8s.yaml 2
    for line in TANDEM_RANK=2 TANDEM_WORLD=3 TANDEM_TOKEN=UID TANDEM_DEADLINE=300 \
        TANDEM_ADDRESS=first-rank-0-0.first:29500; do
        expect_true "a pod of the JobSet has $line" grep -qxF "$line" "$out"
    done
    expect_exit 0 "$TANDEM" run -n 3 --deadline 20 --restarts 4 --emit k8s -- train photos -o runs/first
    expect_stdout_matches "TANDEM_DEADLINE, value: '20'"
    expect_stdout_matches 'maxRestarts: 4$'
fi

# ---- Spark --------------------------------------------------------------------------------------

if command -v python3 >/dev/null; then
    # shellcheck disable=SC2086
    emit spark pictures -o spark $options
    cp "$out" driver.py
    expect_exit 0 python3 -B -m py_compile driver.py
    drive() { # stages that lose an executor
        LOST=$1 PATH=$temp/bin:$PATH python3 -B "$SOURCE/tests/cli/run/spark_stand_in.py" driver.py
    }
    expect_exit 0 drive 1
    expect_stderr_matches 'training ended with status 5: it is started again'
    expect_stdout_matches '^ *run  *spark'
    expect_true "three tasks write what one process does" cmp one/best.safetensors spark/best.safetensors
    expect_true "and record that they were three" grep -q '"world": 3' spark/run.json
    emit spark nowhere -o wrong
    cp "$out" driver.py
    expect_exit 3 drive 0
    expect_stderr_matches 'nowhere'
    expect_same 0 "$(grep -c 'started again' "$err")" "missing images are not tried again"
else
    skip "no python3"
fi

# ---- what is refused ----------------------------------------------------------------------------

expect_exit 0 "$TANDEM" run --json --emit slurm -- train photos -o runs/first
expect_json emit text
expect_exit 2 "$TANDEM" run -n 2 --emit slurm -- train photos
expect_stderr_matches 'a training whose run has a name is accepted: train … -o RUN'
expect_exit 2 "$TANDEM" run -n 2 --emit slurm -- bench allreduce
expect_stderr_matches 'train … -o RUN'
expect_exit 2 "$TANDEM" run -n 2 --emit spark --image x -- train photos -o r
expect_stderr_matches 'they go with --emit k8s and mpijob, not with spark'
expect_exit 2 "$TANDEM" run -n 2 --claim x -- train photos -o r
expect_stderr_matches '--emit k8s and --emit mpijob print manifests'
expect_exit 2 "$TANDEM" run -n 2 -H a:1 --emit slurm -- train photos -o r
expect_stderr_matches 'leave out -H'
expect_exit 2 "$TANDEM" run -n 2 --emit pbs -- train photos -o r
expect_stderr_matches 'slurm, k8s, mpijob,? (or )?spark'
finish
