#!/bin/bash
# tests/long/packages.sh [FOLDER]: do the packages work on machines with nothing on them? FOLDER holds the
# .deb, the tarball and, if it is to be tested, a wheel; without FOLDER the first two are made
# (`make package`), and a wheel that lies beside them is taken along.
#
# On a minimal Debian 12: the tarball, moved to another place; then the .deb, installed by the lines of
# Containerfile, used, and removed without a trace. On a minimal Debian 13: the tarball. The wheel on both, in a venv.
# MACHINE_CACHE keeps the new systems for the next time. Exit code 77 without root or debootstrap.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/long/lib/machine.sh"
machine_needs

folder=${1:-}
if [ -z "$folder" ]; then
    (cd "$root" && tools/build release product && tools/package)
    folder=$root/build/package
fi
folder=$(cd "$folder" && pwd)
tar=$(echo "$folder"/tandem-*.tar.xz)
deb=$(echo "$folder"/tandem_*.deb)
wheel=$(find "$folder" -name 'tandem-*.whl')
ls -l "$tar" "$deb" $wheel

work=$(mktemp -d /var/tmp/packages.XXXXXX)
clean_up() {
    for machine in "$work"/*; do
        machine_close "$machine"
    done
    # Never remove through a mount that would not go.
    rm -rf --one-file-system "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

step() {
    echo "== $*"
}
fail() {
    echo "FAILED: $*"
    exit 1
}

# What a person does in the first minutes, with $1 as the program: run in the machine.
cat >"$work/use" <<'END'
set -eu
tandem=$1
export HOME=/tmp/person
rm -rf $HOME
mkdir -p $HOME
cd $HOME
$tandem --version
$tandem doctor --no-measure >doctor.txt
for feature in jpeg png gif webp zlib hwloc onednn arrow; do
    grep -Eq "^  $feature +on " doctor.txt || { cat doctor.txt; echo "doctor: no $feature"; exit 1; }
done
quietly() { # command…: what it prints is shown where it fails
    "$@" >said.txt 2>&1 && return
    cat said.txt
    echo "failed: $*"
    exit 1
}
quietly $tandem selftest
quietly $tandem synth photos --classes 3 --per-class 60 --size 64 --seed 1
quietly $tandem train photos -o runs/first --epochs 4
quietly $tandem evaluate runs/first photos
head -n 3 said.txt
quietly $tandem prepare photos -o table --size 32
quietly $tandem train table --model lenet5 -o runs/table --epochs 2
quietly $tandem predict runs/first photos/*/000000.* --top 1
quietly $tandem report runs/first -o report.html
test -s report.html
END
cat >"$work/serve" <<'END'
set -eu
cd /tmp/person
$1 predict runs/first --serve 127.0.0.1:8181 >serve.txt 2>&1 &
for second in 1 2 3 4 5 6 7 8 9 10; do
    sleep 1
    exec 3<>/dev/tcp/127.0.0.1/8181 && break
done 2>/dev/null
printf 'GET /healthz HTTP/1.0\r\nHost: 127.0.0.1:8181\r\n\r\n' >&3
head -n 1 <&3 | grep -q ' 200 ' || { cat serve.txt; exit 1; }
kill %1
wait %1 || true
echo "served a page"
END
cat >"$work/wheel" <<'END'
set -eu
python3 -m venv /tmp/venv
/tmp/venv/bin/pip install -q --disable-pip-version-check /tmp/*.whl
cd /tmp/person
rm -rf runs/python
set -- photos/*/000000.*
/tmp/venv/bin/python - "$1" <<'PROGRAM'
import sys, tandem
print("validation accuracy:", tandem.train("photos", "runs/python", epochs=2)["val"]["accuracy"])
print("one image:", str(tandem.predict("runs/first", sys.argv[1:], top=1))[:200])
PROGRAM
rm -rf /tmp/venv /tmp/*.whl
END

machine() { # suite
    machine=$work/$1
    step "a minimal Debian: $1"
    machine_make "$machine" "$1"
    machine_open "$machine"
    mkdir -p "$machine/tmp"
    cp "$work/use" "$work/serve" "$work/wheel" "$machine/tmp/"
}

try_tar() {
    step "the tarball on $(basename "$machine")"
    mkdir -p "$machine/tmp/unpacked"
    tar -C "$machine/tmp/unpacked" -xf "$tar"
    mv "$machine/tmp/unpacked"/tandem-* "$machine/tmp/moved"
    machine_run "$machine" "bash /tmp/use /tmp/moved/bin/tandem"
}

try_wheel() {
    [ -n "$wheel" ] || return 0
    step "the wheel on $(basename "$machine")"
    cp "$wheel" "$machine/tmp/"
    machine_run "$machine" 'apt-get -q update && apt-get install -yq --no-install-recommends python3-venv' \
        >"$work/apt.log" 2>&1 || { tail "$work/apt.log"; exit 1; }
    machine_run "$machine" "bash /tmp/wheel"
}

# Every file outside the folders of the kernel, of apt and dpkg, and of the person. Certificates are the test's own.
files() {
    (cd "$machine" && find . \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./run -o -path ./tmp \
        -o -path ./var/lib/apt -o -path ./var/lib/dpkg -o -path ./var/cache -o -path ./var/log \
        -o -path ./etc/ssl/certs \) -prune -o -print | sort)
}

if command -v lintian >/dev/null; then
    step "the rules of Debian's packages"
    lintian --allow-root --fail-on error,warning "$deb" || fail "lintian finds faults"
fi

# ---- Debian 12 -----------------------------------------------------------------------------

machine bookworm
try_tar
machine_run "$machine" "bash /tmp/serve /tmp/moved/bin/tandem"
rm -rf "$machine/tmp/moved"

step "the .deb on bookworm, by the lines of Containerfile"
files >"$work/before"
grep -E '^[A-Z]' "$root/Containerfile" | while read -r word rest; do
    case $word in
    FROM) [ "${rest##*/}" = debian:bookworm-slim ] || fail "Containerfile begins with another system" ;;
    COPY)
        target=${rest##* }
        # shellcheck disable=SC2086 # patterns and words
        (cd "$folder" && cp ${rest% *} "$machine$target")
        ;;
    RUN) machine_run "$machine" "export DEBIAN_FRONTEND=noninteractive; $rest" >"$work/apt.log" 2>&1 || {
        tail -n 20 "$work/apt.log"
        exit 1
    } ;;
    WORKDIR | ENTRYPOINT) ;;
    *) fail "Containerfile: nothing here runs $word" ;;
    esac
done
program=$(sed -n 's/^ENTRYPOINT \["\(.*\)"\]$/\1/p' "$root/Containerfile")
machine_run "$machine" "dpkg -s tandem | grep -E '^(Status|Version|Depends|Recommends)'; dpkg -V tandem; bash /tmp/use $program"
machine_run "$machine" "bash /tmp/serve $program"
for feature in tiff heif jxl; do
    grep -Eq "^  $feature +on " "$machine/tmp/person/doctor.txt" || fail "what the .deb recommends gives no $feature"
done

step "removed without a trace"
files >"$work/with"
[ "$(grep -c tandem "$work/with")" -gt 20 ] || fail "the list of files does not show the package"
# Without these two, apt keeps what came along and another package merely suggests.
machine_run "$machine" "dpkg -P tandem && apt-get -yq autoremove --purge -o APT::AutoRemove::RecommendsImportant=false \
    -o APT::AutoRemove::SuggestsImportant=false" >"$work/apt.log" 2>&1 || {
    tail -n 20 "$work/apt.log"
    exit 1
}
files >"$work/after"
diff "$work/before" "$work/after" | head -n 20 >"$work/left"
[ ! -s "$work/left" ] || { cat "$work/left"; fail "files were left behind"; }
echo "the same $(wc -l <"$work/after") files as before it was installed"
try_wheel
machine_close "$machine"

# ---- Debian 13 -----------------------------------------------------------------------------

machine trixie
try_tar
# Debian 13's apt needs no GnuTLS any more, so a minimal system has none.
machine_run "$machine" 'apt-get -q update && apt-get install -yq --no-install-recommends libgnutls30t64' \
    >"$work/apt.log" 2>&1 || { tail "$work/apt.log"; exit 1; }
machine_run "$machine" "bash /tmp/serve /tmp/moved/bin/tandem"
try_wheel
machine_close "$machine"
