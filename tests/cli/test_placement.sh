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

# The CPUs that the bound threads of a process may run on, one a line.
bound_cpus_of() {
    cat /proc/"$1"/task/*/status 2>/dev/null | awk -v whole="$whole" '/^Cpus_allowed_list/ && $2 != whole {
        n = split($2, parts, ",")
        for (i = 1; i <= n; i++) {
            split(parts[i], ends, "-")
            for (cpu = ends[1] + 0; cpu <= (ends[2] == "" ? ends[1] : ends[2]) + 0; cpu++)
                print cpu
        }
    }' | sort -u
}
whole=$(awk '/^Cpus_allowed_list/ { print $2 }' /proc/self/status)
if [ "$(nproc)" -lt 2 ]; then
    skip "parts of one CPU"
    finish
fi
for rank in 0 1; do
    TANDEM_LOCAL_RANK=$rank TANDEM_LOCAL_SIZE=2 "$TANDEM" bench compute --model mobilenetv2 --mode train --batch 8 \
        --threads 1 --seconds 4 --json >bench$rank.json 2>/dev/null &
    eval "process$rank=$!"
done
for try in 1 2 3 4 5 6 7 8 9 10; do
    bound_cpus_of "$process0" >cpus0
    bound_cpus_of "$process1" >cpus1
    [ -s cpus0 ] && [ -s cpus1 ] && break
    sleep 0.4
done
wait
expect_true "both measured" test -s bench0.json -a -s bench1.json
expect_true "each is bound" test -s cpus0 -a -s cpus1
expect_same "" "$(grep -xF -f cpus0 cpus1)" "the processes have no CPU in common"
finish
