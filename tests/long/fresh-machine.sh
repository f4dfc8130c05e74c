#!/bin/bash
# tests/long/fresh-machine.sh [COMMAND]: does a clean clone build and pass its tests on a Debian 12
# with nothing on it? Makes a minimal system with debootstrap, copies this commit in, and runs
# COMMAND there (default: tools/deps && make demo && make test), with the time of each step.
# Mirror, proxy, certificates and pip settings are those of the running system, since a machine
# without a way to its packages proves nothing. Exit code 77 (skipped) without root or debootstrap.
#
# FRESH_KEEP=DIR makes the system in DIR and leaves it there: the second run is quicker, though no
# longer quite fresh. TANDEM_TEST_DATA is shown to the fresh machine read-only.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
command=${1:-'time tools/deps && time make demo && time make test'}

if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
    echo "needs root and debootstrap"
    exit 77
fi

# The first archive of Debian 12 that this system itself uses; else Debian's own.
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources \
    2>/dev/null | sed -nE 's/^(deb +(\[[^]]*\] +)?|URIs: *)(https?:[^ ]*debian)(\/? .*|\/?)$/\3/p' |
    grep -v security | head -n 1)
mirror=${mirror:-http://deb.debian.org/debian}

machine=${FRESH_KEEP:-$(mktemp -d /var/tmp/fresh-machine.XXXXXX)}
clean_up() {
    for point in proc sys dev tandem-test-data; do
        ! mountpoint -q "$machine/$point" || umount -R "$machine/$point"
    done
    # Never remove through a mount that would not go.
    [ -n "${FRESH_KEEP:-}" ] || rm -rf --one-file-system "$machine"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

if [ ! -e "$machine/etc/debian_version" ]; then
    began=$SECONDS
    debootstrap --variant=minbase bookworm "$machine" "$mirror" >"$machine.log" 2>&1 || {
        tail -n 20 "$machine.log"
        exit 1
    }
    rm -f "$machine.log"
    echo "debootstrap: $((SECONDS - began)) s"
fi
chmod 755 "$machine" # mktemp's folder is closed to everybody else, unlike the root of a machine

# The way to the packages: names, proxies, mirrors, certificates, pip.
carry() { # path: copied when it is there
    for path; do
        [ -e "$path" ] || continue
        mkdir -p "$machine$(dirname "$path")"
        cp -rL --remove-destination "$path" "$machine$(dirname "$path")/"
    done
}
rm -f "$machine/etc/apt/sources.list"
carry /etc/resolv.conf /etc/hosts /etc/apt/apt.conf /etc/apt/apt.conf.d /etc/apt/auth.conf.d \
    /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/preferences.d /etc/apt/keyrings \
    /etc/apt/trusted.gpg /etc/apt/trusted.gpg.d /usr/share/keyrings \
    /etc/pip.conf /etc/xdg/pip /root/.pip /root/.config/pip /root/.netrc \
    /etc/ssl/certs /usr/local/share/ca-certificates
variables=()
while IFS= read -r name; do
    variables+=("$name=${!name}")
    # A variable that names a file of certificates or wheels wants the file too.
    case ${!name} in /*) carry "${!name}" ;; esac
done < <(compgen -e | grep -E '^(PIP_|(https?|no|all)_proxy$|(HTTPS?|NO|ALL)_PROXY$|SSL_CERT_|REQUESTS_CA|CURL_CA)')

mkdir -p "$machine/proc" "$machine/sys" "$machine/dev"
mountpoint -q "$machine/proc" || mount -t proc proc "$machine/proc"
mountpoint -q "$machine/sys" || mount -t sysfs -o ro sysfs "$machine/sys"
mountpoint -q "$machine/dev" || mount --rbind /dev "$machine/dev"
mount --make-rslave "$machine/dev"
if [ -d "${TANDEM_TEST_DATA:-$root/../shared/data}" ]; then
    mkdir -p "$machine/tandem-test-data"
    mountpoint -q "$machine/tandem-test-data" ||
        mount --bind -o ro "${TANDEM_TEST_DATA:-$root/../shared/data}" "$machine/tandem-test-data"
    variables+=(TANDEM_TEST_DATA=/tandem-test-data)
fi

rm -rf "$machine/root/tandem"
mkdir -p "$machine/root/tandem"
git -C "$root" archive HEAD | tar -x -C "$machine/root/tandem"

status=0
chroot "$machine" /usr/bin/env -i HOME=/root TERM=dumb \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
    "${variables[@]}" bash -c "cd /root/tandem && $command" || status=$?
exit "$status"
