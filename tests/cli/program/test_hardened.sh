# The defences of cmake/harden.cmake, read back from the files: each where this compiler has it, in
# everything that is built and installed.
. "$SOURCE/tests/cli/lib.sh"

if ! command -v readelf >/dev/null; then
    skip "no readelf to look into programs with"
    finish
fi
cache() { # variable of CMake
    sed -n "s/^$1:[A-Z]*=//p" "$BUILD/CMakeCache.txt"
}
if [ "$(cache TANDEM_HARDEN)" = OFF ]; then
    skip "this build is one without them (TANDEM_HARDEN=OFF)"
    finish
fi

# read_words FILE…: "file word" for each defence that headers and symbols show, to words.txt.
read_words() {
    for file; do
        echo "File: $file"
        readelf -W -l -d -n --dyn-syms "$file" 2>/dev/null
    done | awk '
        function has(word) { print file, word }
        /^File: /                                   { file = $2 }
        $1 == "GNU_RELRO"                           { has("relro") }
        $1 == "GNU_STACK" && !/ RWE /               { has("data-stack") }
        /\(FLAGS_1\)/ && / NOW/                     { has("now") }
        /\(FLAGS_1\)/ && / PIE/                     { has("pie") }
        $1 == "INTERP"                              { has("program") }
        /IBT, SHSTK/                                { has("landing-marks") }
        / UND __stack_chk_fail(@|$)/                { has("canaries") }
        / UND __[a-z]+_chk(@|$)/                    { has("sizes") }' | sort -u >>words.txt
}
# with WORD FILE… / lacking WORD FILE…: those of the files that have it, or do not.
with() {
    list 1 "$@"
}
lacking() {
    list 0 "$@"
}
list() {
    printf '%s\n' "$@" | awk '
        FILENAME == "words.txt" { found[$1, $2] = 1; next }
        FNR == 1                { wanted = $0; next }
        FNR == 2                { word = $0; next }
        (($0, word) in found) == wanted' words.txt -
}

expect_exit 0 cmake --install "$BUILD" --prefix "$temp/installed"
# What make package and make wheel carry is not ours.
files=$(find "$BUILD" \( -name CMakeFiles -o -path "$BUILD/wheel" -o -path "$BUILD/package" \) -prune -o \
    -type f -size +1k \( -perm -u+x -o -name '*.so*' \) -print |
    while read -r file; do readelf -h "$file" >/dev/null 2>&1 && echo "$file"; done)
# Ours only: libraries of .deps are installed beside them.
installed="$temp/installed/bin/tandem $temp/installed/lib/libtandem.so.0 $(echo "$temp"/installed/lib/tandem/libtandem_*.so)"
ours="$TANDEM $BUILD/libtandem.so"
for plugin in "$BUILD"/libtandem_*.so; do
    [ ! -e "$plugin" ] || ours="$ours $plugin"
done
# shellcheck disable=SC2086 # file names of a build hold no blanks
{
    read_words $files $installed $BUILD/libtandem.so
    expect_true "there are programs and libraries ($(echo "$files" | wc -l))" test "$(echo "$files" | wc -l)" -gt 3
    expect_same "" "$(lacking relro $files $installed)" "the loader's tables are read-only when a file is loaded"
    expect_same "" "$(lacking now $files $installed)" "all of them, because all addresses are looked up then"
    expect_same "" "$(lacking data-stack $files $installed)" "no stack holds code"
    programs=$(with program $files $installed)
    expect_same "" "$(lacking pie $programs)" "programs lie at another address each time"
}

# What the compiler does, compared with what it does for this program.
compiler=$(cache CMAKE_C_COMPILER)
cat >probe.c <<'END'
#include <string.h>
#include <stdio.h>
int main(int n, char **words)
{
    char text[32];
    memcpy(text, words[0], (size_t)n);
    return puts(text);
}
END
compiled() { # name flags…: makes the program, false where this compiler does not take the flags
    made=$1
    shift
    "$compiler" -O2 "$@" -Werror probe.c -o "$made" 2>probe.txt && read_words "$made"
}
if compiled canary -fstack-protector-strong; then
    # shellcheck disable=SC2086
    [ -z "$(with canaries canary)" ] ||
        expect_same "" "$(lacking canaries $ours $installed)" "stack frames have canaries"
fi
if compiled fortify -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2; then
    optimized=$(cache CMAKE_BUILD_TYPE | grep -v Debug)
    if [ -z "$(with sizes fortify)" ] || is_sanitized || [ -z "$optimized" ]; then
        skip "this build does not check sizes in calls of the C library"
    else
        expect_same "" "$(lacking sizes "$TANDEM" "$BUILD/libtandem.so")" "calls of the C library check sizes"
    fi
fi
if compiled marked -fcf-protection=full && "$compiler" -c -fcf-protection=full probe.c -o probe.o &&
    readelf -n probe.o | grep -q 'IBT, SHSTK'; then
    n_objects=$(ar t "$BUILD/libtandem.a" | wc -l)
    expect_true "the library has objects" test "$n_objects" -gt 0
    expect_same "$n_objects" "$(readelf -n "$BUILD/libtandem.a" | grep -c 'IBT, SHSTK')" \
        "all $n_objects objects of the library mark where indirect jumps may land"
    # shellcheck disable=SC2086
    [ -z "$(with landing-marks marked)" ] || # the C library's own objects may lack it
        expect_same "" "$(lacking landing-marks $ours)" "and so do programs and libraries"
fi
if compiled clash -fstack-clash-protection && command -v objdump >/dev/null &&
    readelf -p .comment "$BUILD/libtandem.so" | grep -q 'GCC:' && [ "$(uname -m)" = x86_64 ]; then
    # GCC's own instruction for it, which nothing else uses.
    expect_true "large stack frames touch every page" \
        sh -c "objdump -d --no-show-raw-insn '$BUILD/libtandem.so' | grep -q 'orq *\$0x0,[x0-9a-f]*(%rsp)'"
fi
finish
