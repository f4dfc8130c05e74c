#!/bin/bash
# tests/long/fresh-machine.sh [COMMAND]: does a clean clone build and pass its tests on a Debian 12
# with nothing on it? Makes a minimal system with debootstrap, copies this commit in, and runs
# COMMAND there (default: tools/deps && make demo && make test), with the time of each step.
# Exit code 77 (skipped) without root or debootstrap.
#
# FRESH_KEEP=DIR makes the system in DIR and leaves it there: the second run is quicker, though no
# longer quite fresh. TANDEM_TEST_DATA is shown to the fresh machine read-only.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
command=${1:-'time tools/deps && time make demo && time make test'}

. "$root/tests/long/lib/machine.sh"
machine_needs

machine=${FRESH_KEEP:-$(mktemp -d /var/tmp/fresh-machine.XXXXXX)}
clean_up() {
    ! mountpoint -q "$machine/tandem-test-data" || umount "$machine/tandem-test-data"
    machine_close "$machine"
    # Never remove through a mount that would not go.
    [ -n "${FRESH_KEEP:-}" ] || rm -rf --one-file-system "$machine"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

[ -e "$machine/etc/debian_version" ] || machine_make "$machine" bookworm
machine_open "$machine"
if [ -d "${TANDEM_TEST_DATA:-$root/../shared/data}" ]; then
    mkdir -p "$machine/tandem-test-data"
    mountpoint -q "$machine/tandem-test-data" ||
        mount --bind -o ro "${TANDEM_TEST_DATA:-$root/../shared/data}" "$machine/tandem-test-data"
    machine_variables+=(TANDEM_TEST_DATA=/tandem-test-data)
fi

rm -rf "$machine/root/tandem"
mkdir -p "$machine/root/tandem"
git -C "$root" archive HEAD | tar -x -C "$machine/root/tandem"

status=0
machine_run "$machine" "cd /root/tandem && $command" || status=$?
exit "$status"
