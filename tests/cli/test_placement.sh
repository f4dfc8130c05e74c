# Processes of one job on one machine: disjoint CPUs, a share of the memory, one line that says so.
. "$SOURCE/tests/cli/lib.sh"

unset TANDEM_LOCAL_RANK TANDEM_LOCAL_SIZE
wrong="TANDEM_LOCAL_RANK is 2 and TANDEM_LOCAL_SIZE is 2: the number of processes of this job"
"$TANDEM" synth pictures --classes 2 --per-class 8 --size 32 --quiet
"$TANDEM" train pictures -o run --model lenet5 --epochs 1 --quiet >/dev/null 2>&1
for command in "train pictures -o other --model lenet5 --epochs 1" "evaluate run pictures" \
    "predict run pictures" "bench compute --model lenet5 --batch 8 --seconds 0.5" \
    "bench loader pictures --size 32 --seconds 0.5"; do
    expect_exit 2 env TANDEM_LOCAL_RANK=2 TANDEM_LOCAL_SIZE=2 "$TANDEM" $command
    expect_stderr_matches "$wrong"
done
expect_true "a wrong variable makes no run" test ! -e other
expect_exit 0 env TANDEM_LOCAL_RANK=0 "$TANDEM" doctor --no-measure
expect_stdout_matches '^  threads +TANDEM_LOCAL_RANK is 0 and TANDEM_LOCAL_SIZE is not set'

expect_exit 0 "$TANDEM" train pictures -o alone --model lenet5 --epochs 1
expect_stderr_matches '^threads: [0-9]+( \(CPU quota|, one per core$)'
expect_true "the run keeps it" grep -q '"event":"note".*"text":"threads: ' alone/metrics.jsonl
expect_exit 0 "$TANDEM" train pictures -o few --model lenet5 --epochs 1 --threads 1
expect_stderr_matches '^threads: 1 \(--threads\)$'
crowd=$(($(nproc) + 1))
expect_exit 0 env TANDEM_LOCAL_RANK=1 TANDEM_LOCAL_SIZE=$crowd "$TANDEM" train pictures -o crowd --model lenet5 \
    --epochs 1
expect_stderr_matches "^threads: 1 \\($crowd processes share [0-9]+ CPUs?\\)\$"
expect_same "$(cksum <alone/best.safetensors)" "$(cksum <crowd/best.safetensors)" "the bits are those of one process"

# Memory: a hundred thousand processes have too little each.
expect_exit 4 env TANDEM_LOCAL_RANK=7 TANDEM_LOCAL_SIZE=100000 "$TANDEM" train pictures -o large \
    --model resnet50 --epochs 1
expect_stderr_matches "a process's share of this (machine|container) is [0-9]+ MiB"

# The CPUs that the threads of a process may run on.
cpus_of() {
    cat /proc/"$1"/task/*/status 2>/dev/null | awk '/^Cpus_allowed_list/ { print $2 }' | sort -u
}
if [ "$(nproc)" -lt 2 ]; then
    skip "parts of one CPU"
    finish
fi
for rank in 0 1; do
    TANDEM_LOCAL_RANK=$rank TANDEM_LOCAL_SIZE=2 "$TANDEM" bench compute --model mobilenetv2 --mode train --batch 8 \
        --threads 1 --seconds 4 --json >bench$rank.json 2>/dev/null &
    eval "process$rank=$!"
done
sleep 2
for rank in 0 1; do
    eval "process=\$process$rank"
    cpus_of "$process" >cpus$rank
done
wait
expect_true "both measured" test -s bench0.json -a -s bench1.json
whole=$(cpus_of $$)
expect_same "" "$(grep -vxF "$whole" cpus0 | grep -xF -f cpus1)" "the processes have no CPU in common"
expect_true "each is bound" test -n "$(grep -vxF "$whole" cpus0)" -a -n "$(grep -vxF "$whole" cpus1)"
finish
