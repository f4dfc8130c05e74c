#!/bin/sh
# `make install` gives a tree that still works after it was moved: the program starts, and a C
# program outside the checkout finds the library through pkg-config and through CMake.
. "$SOURCE/tests/cli/lib.sh"

expect_exit 0 cmake --install "$BUILD" --prefix "$temp/first"
mv first second
rm -rf first

expect_true "libtandem is there" test -e second/lib/libtandem.so.0
if ldd second/lib/libtandem.so | grep -q '\.deps'; then
    fail "the library still refers to .deps"
else
    pass "nothing refers to .deps"
fi
expect_same "$(ldd second/lib/libtandem.so | grep 'not found')" "" "the library finds what it needs"
for library in second/lib/tandem/*.so*; do
    [ -e "$library" ] || continue
    expect_true "an installed library has its licence beside it" test -e second/share/doc/tandem/LICENSE.onednn
    break
done

for plugin in second/lib/tandem/libtandem_*.so; do
    [ -e "$plugin" ] || continue
    expect_same "" "$(ldd "$plugin" | grep -e 'not found' -e '\.deps')" \
        "$(basename "$plugin") finds what it needs where it was moved to"
done

if [ -x "$BUILD/tandem" ]; then
    expect_exit 0 second/bin/tandem --version
    expect_stdout_matches '^tandem 0\.'
    for file in man/man1/tandem.1 man/man1/tandem-train.1 bash-completion/completions/tandem \
        zsh/site-functions/_tandem fish/vendor_completions.d/tandem.fish; do
        expect_true "share/$file is installed" test -s "second/share/$file"
    done
    if [ -e "$BUILD/libtandem_arrow.so" ]; then
        expect_exit 3 second/bin/tandem prepare nowhere -o out --codec raw
        rm second/lib/tandem/libtandem_arrow.so
        expect_exit 4 second/bin/tandem prepare nowhere -o out --codec raw
        expect_stderr_matches 'libtandem_arrow.so: cannot open shared object file'
    fi
fi

cat >program.c <<'END'
#include <stdio.h>
#include <tandem/api.h>
#include <tandem/error.h>
int main(void)
{
    return puts(tdm_version()) < 0;
}
END
if command -v pkg-config >/dev/null; then
    PKG_CONFIG_PATH=$temp/second/lib/pkgconfig
    export PKG_CONFIG_PATH
    # shellcheck disable=SC2046 # flags are words
    expect_exit 0 "${CC:-cc}" program.c $(pkg-config --cflags --libs tandem) -o by-pkg-config
    LD_LIBRARY_PATH=$temp/second/lib expect_exit 0 ./by-pkg-config
    expect_stdout_is "$(pkg-config --modversion tandem)"
else
    skip "no pkg-config"
fi

mkdir user
mv program.c user/
cat >user/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.16)
project(user LANGUAGES C)
find_package(tandem 0.1 REQUIRED)
add_executable(program program.c)
target_link_libraries(program tandem::tandem)
END
expect_exit 0 cmake -S user -B user/build -DCMAKE_PREFIX_PATH="$temp/second"
expect_exit 0 cmake --build user/build
expect_exit 0 user/build/program
expect_stdout_matches '^0\.'
finish
