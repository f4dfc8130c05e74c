# Sourced by the scripts of tests/long that train over the launcher of another project:
#
#   . "$(dirname "$0")/lib/ranks.sh"
#   one_process                        # what all others are compared with
#   begin; some command; end "what happened" WANTED-STATUS
#   expect_bytes RUN
#   finish
#
# Prints a row of a table for each event and a line for each check; exit code 77 says that something is not
# here. The first argument of the script is the program, else that of build/.
# shellcheck disable=SC2034 # read by the scripts
set -u
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
tandem=$(realpath "${1:-$source/build/tandem}" 2>/dev/null)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tandem
work=$(mktemp -d "${TMPDIR:-/tmp}/ranks.XXXXXX")
n_failed=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
clean() { rm -rf "$work"; } # a script adds to it
trap 'clean' EXIT
trap 'exit 130' INT TERM
cd "$work" || exit 1

skip() {
    echo "skip - $*"
    exit 77
}
[ -x "$tandem" ] || skip "there is no program: build first"

ok() { echo "ok - $*"; }
not_ok() {
    echo "not ok - $*"
    n_failed=$((n_failed + 1))
}
check() { # sentence command…
    if "${@:2}"; then
        ok "$1"
    else
        not_ok "$1"
        return 1
    fi
}
finish() {
    echo "$n_failed failed"
    [ "$n_failed" = 0 ]
    exit
}

# ---- the training ------------------------------------------------------------------------------

# Long enough to be killed in; every epoch ends with a checkpoint.
epochs=${EPOCHS:-60}
options="--model convnet7 --size 32 --batch 30 --schedule constant --patience 0 --quiet --epochs $epochs"

one_process() {
    "$tandem" synth photos --classes 3 --per-class 33 --size 40 --quiet >/dev/null || exit 1
    # shellcheck disable=SC2086 # words
    "$tandem" train photos -o one $options >/dev/null || exit 1
}

bytes() { # run: of all that a training writes but times
    cat "$1/best.safetensors" "$1/last.safetensors" "$1/outcomes.safetensors" | sha256sum
}
expect_bytes() { # run [what]
    check "${2:-$1}: the bytes of one process" [ "$(bytes one)" = "$(bytes "$1" 2>/dev/null)" ]
}

wait_for_checkpoint() { # run
    for _ in $(seq 1200); do
        [ -s "$1/last.safetensors" ] && return
        sleep 0.05
    done
    not_ok "$1 has no checkpoint after a minute"
}

# Processes of one rank, by a variable of its environment: rank_process OMPI_COMM_WORLD_RANK=1 RUN
rank_process() {
    local pid
    for pid in $(pgrep -f -- "-o $2( |\$)"); do
        [ "$(readlink "/proc/$pid/exe")" = "${program:-$tandem}" ] &&
            tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx "$1" && echo "$pid"
    done
}

# ---- events ------------------------------------------------------------------------------------

out=$work/out.txt
begin() { began=$(date +%s.%N); }
# end WHAT STATUS [PATTERN]: of $status, since begin; the pattern is of a line of $out that says why.
end() {
    local took said
    took=$(awk -v a="$began" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')
    said=$(grep -Em1 -- "${3:-^\$}" "$out" | cut -c 1-160)
    echo "| $1 | $status | $took | $said |"
    # shellcheck disable=SC2053 # a pattern
    if [[ $status == $2 ]] && { [ -z "${3:-}" ] || [ -n "$said" ]; }; then
        ok "$1: status $status"
    else
        not_ok "$1: status $status, wanted $2${3:+ and a line with '$3'}"
        tail -n ${TAIL:-12} "$out" | sed 's/^/#   /'
    fi
}
