#!/bin/sh
# tools/package stage: a tree that carries what a plain Debian lacks, each library with its notice and its
# licence, and that works where it was moved to. A library without a notice is refused.
. "$SOURCE/tests/cli/lib.sh"

if ! command -v patchelf >/dev/null || ! command -v dpkg-query >/dev/null; then
    skip "no patchelf and dpkg-query to make packages with"
    finish
fi
expect_exit 0 "$SOURCE/tools/package" stage "$temp/first"
mv first second

carried=$(find second/lib -type f -name '*.so*' | grep -v '/libtandem[._]')
if [ -e "$BUILD/libtandem_onednn.so" ]; then
    expect_true "oneDNN is carried" test -e second/lib/tandem/libdnnl.so.3
    case $(ldd second/lib/tandem/libtandem_onednn.so) in
    *"libgomp.so.1 => $temp/second/lib/tandem/"*) pass "and uses the OpenMP that is carried with it" ;;
    *) fail "oneDNN uses another OpenMP than the carried one" ;;
    esac
fi
for file in $carried; do
    name=$(basename "$file")
    row=$(grep "^${name%%.so*}\.so *|" second/share/doc/tandem/NOTICE)
    text=$(echo "$row" | cut -d '|' -f 4 | tr -d ' ')
    expect_true "$name is named in NOTICE" test -n "$row"
    expect_true "its licence is carried with it" test -s "second/share/doc/tandem/${text:-none}"
    expect_same "" "$(readelf -S "$file" | grep -F ' .symtab')" "it has no symbols that only a debugger reads"
done
for file in second/bin/tandem $(find second/lib -type f -name '*.so*' ! -name '*_mpi_*'); do
    expect_same "" "$(ldd "$file" | grep -e 'not found' -e "$SOURCE" -e "$BUILD")" \
        "$(basename "$file") finds what it needs, and nothing of the build"
done
for plugin in heif tiff jxl x265 curl; do
    expect_same "" "$(find second -name "lib$plugin*")" "lib$plugin is not carried"
done
expect_exit 0 second/bin/tandem doctor --no-measure
expect_exit 0 second/bin/tandem synth pictures --classes 2 --per-class 8 --size 32 --quiet
expect_exit 0 second/bin/tandem train pictures --model lenet5 --epochs 1 -o run --quiet

# A library that nobody wrote a notice for.
mkdir -p tree/tools
cp "$SOURCE/tools/package" tree/tools/
cp "$SOURCE/README.md" "$SOURCE/CHANGELOG.md" "$SOURCE/SECURITY.md" tree/
ln -s "$SOURCE/.deps" tree/.deps
carries=$(echo "$carried" | head -n 1)
name=$(basename "${carries:-none}")
grep -v "^${name%%.so*}\.so *|" "$SOURCE/NOTICE" >tree/NOTICE
if [ -n "$carries" ]; then
    expect_exit 1 tree/tools/package stage "$temp/third"
    expect_stderr_matches "${name%%.so*}.*is not in NOTICE"
fi
finish
