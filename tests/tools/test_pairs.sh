# bench/pairs measures what it says: wall and CPU time and rates of two commands, and which falls short.
. "$SOURCE/tests/cli/lib.sh"
command -v python3 >/dev/null || {
    skip "no python3"
    finish
}
pairs() {
    python3 "$SOURCE/bench/pairs" "$@"
}

expect_exit 1 pairs 4 'sleep 0.02' 'sleep 0.2'
expect_stdout_matches '^4 pairs, load '
expect_stdout_matches '^  wall seconds .*falls short$'
expect_exit 0 pairs --limit 100 4 'sleep 0.2' 'sleep 0.02' # of CPU time they take the same
expect_stdout_matches '^  wall seconds +[0-9.]+ +[0-9.]+ +0\.[0-9]+ +0\.[0-9]+ to 0\.[0-9]+$'
expect_exit 0 pairs --limit 100000 2 'sleep 0.02' 'sleep 0.2'

# CPU time is that of the command's own children, whichever waits less by the clock.
busy="i=0; while [ \$i -lt 200000 ]; do i=\$((i + 1)); done"
expect_exit 1 pairs 3 'sleep 0.001' "sh -c '$busy'"
expect_stdout_matches '^  CPU seconds .*falls short$'

# A higher rate is better: half the rate is a cost of 2.
expect_exit 1 pairs --limit 100000 --rate speed 3 "echo '{\"speed\": 3000000}'" "echo '{\"speed\": 2}'"
expect_stdout_matches '^  speed +3e\+06 +2 +1500000.0000 +1500000.0000 to 1500000.0000  falls short$'
expect_exit 0 pairs --limit 100000 --rate speed 3 "echo '{\"speed\": 2}'" "echo '{\"speed\": 4}'"
expect_stdout_matches '^  speed +2 +4 +0.5000 +0.5000 to 0.5000$'

# Each command begins in an empty folder, and leaves none.
expect_exit 0 pairs --limit 100000 2 'test -z "$(ls)" && echo >file' 'test -z "$(ls)" && echo >file'

expect_exit 2 pairs 2 true 'echo broken >&2; exit 3'
expect_stderr_matches 'exit 3: failed with status 3'
expect_stderr_matches '^broken$'
expect_exit 2 pairs --rate speed 2 true true
expect_stderr_matches 'true: printed no JSON object with speed, but: '
expect_exit 2 pairs 1 true true
expect_stderr_matches 'two pairs or more'
finish
