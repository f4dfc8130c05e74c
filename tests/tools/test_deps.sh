#!/bin/sh
# tools/deps lists missing packages, with the lines to run, when it may not install; and it refuses a
# wheel whose checksum is another. Every program it asks is replaced here, so nothing is installed.
. "$SOURCE/tests/cli/lib.sh"

mkdir -p tree/tools bin
cp "$SOURCE/tools/deps" "$SOURCE/tools/deps.table" tree/tools/

fake() { # name body
    printf '#!/bin/sh\n%s\n' "$2" >"bin/$1"
    chmod +x "bin/$1"
}
deps() {
    PATH=$temp/bin:/usr/bin:/bin "$temp/tree/tools/deps" "$@"
}

fake id 'echo 1000'
fake sudo 'exit 1'
fake apt-get 'exit 100'
fake pkg-config 'case "$*" in *spng*|*arrow*) exit 1 ;; esac; exit 0'
expect_exit 4 deps
expect_stderr_matches '^    apt-get update$'
expect_stderr_matches '^    apt-get install -y --no-install-recommends .*libspng-dev'
expect_stderr_matches 'libspng-dev +PNG pictures; without it: '
expect_stderr_matches 'make DEPS=0'

fake id 'echo 0'
expect_exit 4 deps
expect_stderr_matches 'apt-get failed'

# A package that this release lacks is left out, said, and not asked for again.
cp -r tree lean
sed -i '/^wheel/d' lean/tools/deps.table
for folder in onednn arrow; do
    mkdir -p lean/.deps/$folder
    : >lean/.deps/$folder/wheels.txt
done
fake apt-get 'echo "$*" >>"$temp/asked"; case "$*" in *-s*libspng-dev*) exit 100 ;; esac'
export temp
expect_exit 0 env PATH="$temp/bin:/usr/bin:/bin" lean/tools/deps
expect_stderr_matches 'libspng-dev +PNG pictures; without it: '
expect_true "it is not installed" test -z "$(grep -v -e -s asked | grep libspng-dev)"
rm asked
expect_exit 0 env PATH="$temp/bin:/usr/bin:/bin" lean/tools/deps
expect_true "nor asked for again" test ! -e asked

# Everything is there but the wheels; pip brings a file with other bytes.
rm bin/id bin/sudo bin/apt-get
sed -i '/^apt/d; /onednn/d' tree/tools/deps.table
fake python3 'case "$*" in *--version*) exit 0 ;; esac
while [ "$1" != -d ]; do shift; done
echo other >"$2/pyarrow-26.0.1-cp311-cp311-manylinux_2_28_x86_64.whl"'
if [ "$(uname -m)" = x86_64 ]; then
    expect_exit 4 deps
    expect_stderr_matches 'has SHA-256 [0-9a-f]{64}'
    expect_true "nothing of it is left in .deps" test ! -e tree/.deps/arrow
    expect_true "nor half of it" test ! -e tree/.deps/arrow.new
else
    skip "wheels are for x86_64"
fi
finish
