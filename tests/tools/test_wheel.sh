#!/bin/sh
# python/build-wheel makes a wheel that pip installs where there is no compiler, that works from anywhere, and that
# leaves nothing behind.
. "$SOURCE/tests/cli/lib.sh"

if is_sanitized || ! python3 -m venv env >venv.txt 2>&1; then
    skip "a sanitizer, or no python3 -m venv (Debian: python3-venv)"
    finish
fi
expect_exit 0 cmake --install "$BUILD" --prefix "$temp/tree"
# What takes long to pack is left out.
rm -f tree/lib/tandem/libarrow* tree/lib/tandem/libparquet* tree/lib/tandem/libtandem_arrow.so tree/lib/tandem/libtandem_cuda.so
mkdir -p tree/share/doc/tandem

expect_exit 0 python3 "$SOURCE/python/build-wheel" tree out
wheel=$(cat "$out")
version=$("$TANDEM" --version | sed 's/^tandem \([0-9.]*\).*/\1/')
expect_true "the wheel is named by the version and the platform" \
    sh -c "echo '$wheel' | grep -Eq '^out/tandem-$version-py3-none-(manylinux_2_[0-9]+|linux)_[a-z0-9_]+\.whl$'"
expect_exit 0 python3 "$SOURCE/python/build-wheel" tree again
expect_true "the same tree gives the same bytes" cmp -s "$wheel" "again/${wheel#out/}"
expect_exit 0 python3 -m zipfile -l "$wheel"
for file in tandem/__init__.py tandem/_declarations.py tandem/py.typed tandem/lib/libtandem.so.0 \
    "tandem-$version.dist-info/licenses/LICENSE" "tandem-$version.dist-info/RECORD"; do
    expect_stdout_matches "^$file "
done
expect_true "it carries no GPL library, and nothing that the module does not use" \
    sh -c "! grep -Eiq 'heif|x265|de265|libtandem_(http|mpi)' '$out'"

pip="env/bin/pip --disable-pip-version-check --no-cache-dir --isolated"
find env -name '*.pyc' -prune -o -type f -print | sort >before.txt
# shellcheck disable=SC2086 # words
expect_exit 0 $pip install --no-deps --no-index "$wheel"
cat >program.py <<'END'
import sys
import tandem
print(tandem.__version__, tandem.__file__)
result = tandem.train("pictures", "run", model="lenet5", size=12, epochs=2)
print(tandem.evaluate("run", "pictures")["n"], result["val"]["n"], "numpy" in sys.modules)
END
expect_exit 0 "$TANDEM" synth pictures --classes 2 --per-class 20 --size 16 --seed 1
expect_exit 0 env -i PATH=/nowhere HOME="$temp" TANDEM_HOME="$temp/home" "$temp/env/bin/python" program.py
expect_stdout_matches "^$version $temp/env/lib/"
expect_stdout_matches '^40 4 False$'
# shellcheck disable=SC2086
expect_exit 0 $pip uninstall -y tandem
find env -name '*.pyc' -prune -o -type f -print | sort >after.txt
expect_true "pip removes all that it installed" cmp before.txt after.txt

# A plugin that needs more than the tree and every Linux have is left out, where the rest needs nothing.
cc=${CC:-cc}
if command -v "$cc" >/dev/null; then
    mkdir -p bare/lib/tandem
    cp -R tree/include bare/
    echo 'int tdm_one(void) { return 1; }' >one.c
    echo 'int tdm_one(void); int two(void) { return tdm_one(); }' >two.c
    "$cc" -shared -fPIC one.c -o bare/lib/libtandem.so.0.1.0 -Wl,-soname,libtandem.so.0
    "$cc" -shared -fPIC one.c -o libelse.so.3 -Wl,-soname,libelse.so.3
    "$cc" -shared -fPIC two.c libelse.so.3 -o bare/lib/tandem/libtandem_more.so -Wl,--no-as-needed,-soname,libtandem_more.so
    expect_exit 0 python3 "$SOURCE/python/build-wheel" bare out
    expect_stdout_matches '-manylinux_2_[0-9]+_'
    expect_stderr_matches '^libtandem_more.so is left out: it needs libelse.so.3$'
    "$cc" -shared -fPIC one.c -o bare/lib/tandem/libx265.so.199 -Wl,-soname,libx265.so.199
    expect_exit 1 python3 "$SOURCE/python/build-wheel" bare out
    expect_stderr_matches 'libx265.so.199 must not be carried'
fi
expect_exit 1 python3 "$SOURCE/python/build-wheel" nowhere out
expect_stderr_matches 'nowhere'
finish
