# Sourced by tests/cli/test_<name>.sh, which tests the command as a user meets it:
#
#   . "$SOURCE/tests/cli/lib.sh"
#   expect_exit 2 "$TANDEM" trian            # runs it; keeps its output in $out and $err
#   expect_stderr_matches 'did you mean .train'
#   expect_stdout_is ''
#   finish
#
# tests/run sets TANDEM (the program), SOURCE (the checkout), BUILD, a TMPDIR of its own as the
# working folder, and TANDEM_TEST_DATA where there is any. Every check prints one line: "ok - …",
# "not ok - …" or "skip - …"; scripts are POSIX sh. By hand: tests/run --match NAME build cli.
set -u
: "${SOURCE:?run this through tests/run}"
temp=$PWD
out=$temp/stdout.txt
err=$temp/stderr.txt
n_failed=0

pass() {
    echo "ok - $*"
}

fail() {
    echo "not ok - $*"
    n_failed=$((n_failed + 1))
}

skip() {
    echo "skip - $*"
}

# Shows what the last command said, indented, below a "not ok".
show_output() {
    for file in "$out" "$err"; do
        [ -s "$file" ] || continue
        echo "# $(basename "$file" .txt) of: $last_command"
        head -n 40 "$file" | sed 's/^/#   /'
    done
}

# expect_exit CODE COMMAND…: runs it with its output in $out and $err and compares the exit code.
expect_exit() {
    expected=$1
    shift
    last_command=$*
    status=0
    "$@" >"$out" 2>"$err" </dev/null || status=$?
    if [ "$status" = "$expected" ]; then
        pass "exit $expected: $(short_command "$@")"
    else
        fail "exit $status instead of $expected: $(short_command "$@")"
        show_output
        return 1
    fi
}

short_command() {
    program=$(basename "$1")
    shift
    echo "$program $*" | tr '\n' ' ' | cat -v | sed "s|$temp/||g; s|$SOURCE/||g"
}

# Wait until a background program has its own handler of SIGTERM, which asks it to stop: on a busy machine
# a program may take seconds to start.
wait_until_stoppable() { # pid
    [ -r /proc/self/status ] || sleep 1
    tries=0
    while [ -r "/proc/$1/status" ] && [ $tries -lt 600 ] &&
        ! grep -Eq '^SigCgt:.*[4-7c-f][0-9a-f]{3}$' "/proc/$1/status"; do
        sleep 0.1
        tries=$((tries + 1))
    done
}

expect_match() { # file name pattern
    if grep -Eq -- "$3" "$1"; then
        pass "$2 matches '$3'"
    else
        fail "$2 does not match '$3'"
        show_output
        return 1
    fi
}

# Extended regular expressions, tried on each line of the last command's output.
expect_stdout_matches() {
    expect_match "$out" "standard output" "$1"
}

expect_stderr_matches() {
    expect_match "$err" "standard error" "$1"
}

expect_stdout_is() {
    if [ "$(cat "$out")" = "$1" ]; then
        pass "standard output is '$1'"
    else
        fail "standard output is not '$1'"
        show_output
        return 1
    fi
}

# expect_json KEY…: the last command wrote exactly one JSON object with at least these keys.
# The program's own reader is not asked; a second opinion is what makes this a test.
expect_json() {
    if ! command -v python3 >/dev/null; then
        skip "no python3 to read the JSON with"
        return 0
    fi
    if python3 -c '
import json, sys
value = json.load(open(sys.argv[1]))
assert isinstance(value, dict), "not an object"
missing = [key for key in sys.argv[2:] if key not in value]
assert not missing, "missing: " + " ".join(missing)
' "$out" "$@" 2>"$temp/json.txt"; then
        pass "one JSON object with: $*"
    else
        fail "standard output is no JSON object with: $* ($(tail -n 1 "$temp/json.txt"))"
        show_output
        return 1
    fi
}

# json_value EXPRESSION: prints value EXPRESSION of the last command's JSON, as in: train.n
json_value() {
    python3 -c '
import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2].split("."):
    value = value[int(key)] if isinstance(value, list) else value[key]
print(value)' "$out" "$1"
}

# expect_same A B SENTENCE / expect_true SENTENCE COMMAND…
expect_same() {
    if [ "$1" = "$2" ]; then
        pass "$3"
    else
        fail "$3 ('$1' and '$2')"
        return 1
    fi
}

expect_true() {
    sentence=$1
    shift
    if "$@"; then
        pass "$sentence"
    else
        fail "$sentence"
        return 1
    fi
}

# make_group: a group of processes with a memory of their own; false where none can be made. Its
# maker removes $group.
make_group() {
    for parent in /sys/fs/cgroup/memory /sys/fs/cgroup; do
        group=$parent/tandem-test-$$
        mkdir "$group" 2>/dev/null || continue
        limit=$group/memory.max
        [ ! -e "$group/memory.limit_in_bytes" ] || limit=$group/memory.limit_in_bytes
        [ ! -e "$limit" ] || return 0
        rmdir "$group"
    done
    return 1
}

# may_take BYTES: of memory, and of swap nothing.
may_take() {
    both=$group/memory.memsw.limit_in_bytes # never less than the memory alone: up it goes first
    [ ! -e "$both" ] || echo "$1" >"$both" 2>/dev/null || true
    echo "$1" >"$limit" 2>/dev/null || return 1
    [ ! -e "$both" ] || echo "$1" >"$both"
    [ ! -e "$group/memory.swap.max" ] || echo 0 >"$group/memory.swap.max"
}

# in_group COMMAND…: with no more memory than that.
in_group() {
    (sh -c 'echo $PPID' >"$group/cgroup.procs" && exec "$@")
}

finish() {
    [ "$n_failed" = 0 ]
    exit
}

# A program with a sanitizer in it neither loads foreign libraries nor is loaded by others.
is_sanitized() {
    # clang links its sanitizers in: only their names tell.
    readelf -W -d --dyn-syms "$TANDEM" 2>/dev/null | grep -q 'libasan\|libtsan\|__[at]san_init' ||
        [ -n "${LD_PRELOAD:-}" ]
}
