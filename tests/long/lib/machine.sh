# Sourced by tests that want a fresh Debian: a minimal system in a folder, entered by chroot.
#
#   machine_needs                      exits with 77 (skipped) without root or debootstrap
#   machine_make DIR SUITE             a minimal Debian of that name (bookworm, trixie)
#   machine_open DIR                   mounts proc, sys and dev, brings the way to the packages
#   machine_run DIR COMMAND            bash runs COMMAND there, with nothing of this environment
#   machine_close DIR                  takes the mounts away again; call it in a trap on EXIT
#
# Mirror, proxy, certificates and pip settings are those of the running system, since a machine
# without a way to its packages proves nothing. MACHINE_CACHE: a folder in which new systems are kept as
# archives, so that the next one is there in seconds.

machine_variables=() # NAME=value: what machine_run shows the commands

machine_needs() {
    [ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null && return
    echo "needs root and debootstrap"
    exit 77
}

# The first archive of Debian that this system itself uses.
machine_mirror() {
    local mirror
    mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources \
        2>/dev/null | sed -nE 's/^(deb +(\[[^]]*\] +)?|URIs: *)(https?:[^ ]*debian)(\/? .*|\/?)$/\3/p' |
        grep -v security | head -n 1)
    [ -n "$mirror" ] || { echo "the files of /etc/apt name no archive of Debian" >&2; return 1; }
    echo "$mirror"
}

machine_make() { # folder suite
    local began=$SECONDS kept=${MACHINE_CACHE:+$MACHINE_CACHE/$2.tar}
    mkdir -p "$1"
    if [ -n "$kept" ] && [ -e "$kept" ]; then
        tar -C "$1" -xf "$kept"
    else
        debootstrap --variant=minbase "$2" "$1" "$(machine_mirror)" >"$1.log" 2>&1 || {
            tail -n 20 "$1.log"
            exit 1
        }
        rm -f "$1.log"
        echo "debootstrap of $2: $((SECONDS - began)) s"
        if [ -n "$kept" ]; then
            mkdir -p "$MACHINE_CACHE"
            tar -C "$1" -cf "$kept.new" .
            mv "$kept.new" "$kept"
        fi
    fi
    chmod 755 "$1" # mktemp's folder is closed to everybody else, unlike the root of a machine
}

machine_carry() { # folder path…: copied when it is there
    local machine=$1 path
    shift
    for path; do
        [ -e "$path" ] || continue
        mkdir -p "$machine$(dirname "$path")"
        cp -rL --remove-destination "$path" "$machine$(dirname "$path")/"
    done
}

machine_open() { # folder
    local machine=$1 name suite
    suite=$(sed -n 's/^VERSION_CODENAME=//p' "$machine/etc/os-release")
    machine_carry "$machine" /etc/resolv.conf /etc/hosts /etc/apt/apt.conf /etc/apt/apt.conf.d \
        /etc/apt/auth.conf.d /etc/pip.conf /etc/xdg/pip /root/.pip /root/.config/pip /root/.netrc \
        /etc/ssl/certs /usr/local/share/ca-certificates
    if grep -q "^VERSION_CODENAME=$suite\$" /etc/os-release; then
        rm -f "$machine/etc/apt/sources.list"
        machine_carry "$machine" /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/preferences.d \
            /etc/apt/keyrings /etc/apt/trusted.gpg /etc/apt/trusted.gpg.d /usr/share/keyrings
    else
        echo "deb $(machine_mirror) $suite main" >"$machine/etc/apt/sources.list"
    fi
    machine_variables=()
    while IFS= read -r name; do
        machine_variables+=("$name=${!name}")
        # A variable that names a file of certificates or wheels wants the file too.
        case ${!name} in /*) machine_carry "$machine" "${!name}" ;; esac
    done < <(compgen -e | grep -E '^(PIP_|(https?|no|all)_proxy$|(HTTPS?|NO|ALL)_PROXY$|SSL_CERT_|REQUESTS_CA|CURL_CA)')
    mkdir -p "$machine/proc" "$machine/sys" "$machine/dev"
    mountpoint -q "$machine/proc" || mount -t proc proc "$machine/proc"
    mountpoint -q "$machine/sys" || mount -t sysfs -o ro sysfs "$machine/sys"
    mountpoint -q "$machine/dev" || mount --rbind /dev "$machine/dev"
    mount --make-rslave "$machine/dev"
}

machine_close() { # folder
    local point
    for point in proc sys dev; do
        ! mountpoint -q "$1/$point" || umount -R "$1/$point"
    done
}

machine_run() { # folder command
    chroot "$1" /usr/bin/env -i HOME=/root TERM=dumb \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
        "${machine_variables[@]}" bash -c "$2"
}
