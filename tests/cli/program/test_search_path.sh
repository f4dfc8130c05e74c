# Programs of tandem load libraries from their own folders and where the system keeps its own, never
# from the folder they are started in: that may be a data set that somebody sent.
. "$SOURCE/tests/cli/lib.sh"
unset LD_LIBRARY_PATH

if ! command -v readelf >/dev/null || ! command -v cc >/dev/null; then
    skip "no readelf and cc to look into libraries and to make some"
    finish
fi

# search_paths FOLDER: "file element" for each folder that a program or library in it is looked for
# in, by RUNPATH or RPATH.
search_paths() {
    find "$1" -name CMakeFiles -prune -o -type f -size +1k \( -perm -u+x -o -name '*.so*' \) -print |
        while read -r file; do
            echo "File: $file"
            readelf -d "$file" 2>/dev/null
        done | awk -v folder="$1/" '
            /^File: / { file = substr($0, 7 + length(folder)) }
            /\((RUNPATH|RPATH)\)/ {
                sub(/^[^[]*\[/, "")
                sub(/\]$/, "")
                n = split($0, element, ":")
                for (i = 1; i <= n; i++)
                    print file, element[i]
            }'
}
relative() { # of what search_paths says: what the loader reads as below the current folder
    grep -vE ' (/|\$ORIGIN(/|$))' "$1"
}

# ---- libraries that note that they were run, with every name that is ever looked for -----------

mkdir planted
cat >planted.c <<'END'
#include <stdio.h>
__attribute__((constructor)) static void note(void)
{
    FILE *file = fopen(MARK, "a");
    if (file)
        fclose(file);
}
END
cc -shared -fPIC -DMARK="\"$temp/was-run\"" planted.c -o planted/libcontrol.so
for file in "$TANDEM" "$BUILD"/*.so; do
    [ ! -e "$file" ] || readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p; s/.*(SONAME).*\[\(.*\)\]/\1/p'
done >names.txt
grep -rhoE '"lib[A-Za-z0-9_-]+\.so[.0-9]*"' "$SOURCE/src" | tr -d '"' >>names.txt
# Without those of the C library: the loader would only say that theirs are too old.
sort -u names.txt | grep -vE '^(ld-|lib[cm]\.)' | while read -r name; do
    cp planted/libcontrol.so "planted/$name"
done
python=planted/venv/lib/python3.11/site-packages/nvidia
for folder in cudnn cu13 cublas nvjpeg; do
    mkdir -p "$python/$folder/lib"
    cp planted/libcudnn* planted/libcublas* planted/libnvjpeg* "$python/$folder/lib"
done
expect_true "there are names to plant ($(ls planted | wc -l))" test "$(ls planted | wc -l)" -gt 15

# Both checks find what they are for.
mkdir control
echo 'int main(void) { return 0; }' >control.c
cc control.c -Lplanted -Wl,--no-as-needed -lcontrol -Wl,-rpath,/nowhere: -o control/program
search_paths control >control.txt
expect_same "program " "$(relative control.txt)" "an empty element is found"
expect_exit 0 sh -c 'cd planted && ../control/program'
expect_true "and runs what lies in the current folder" test -e was-run
rm was-run

# ---- the build folder, and what is installed of it ---------------------------------------------

in_planted() { # status command…: run among them
    expected=$1
    shift
    expect_exit "$expected" sh -c 'cd planted && exec "$@"' sh "$@"
    expect_true "nothing of that folder is run" test ! -e was-run
    rm -f was-run
}
prepare_status=4
[ ! -e "$BUILD/libtandem_arrow.so" ] || prepare_status=3
commands() { # program
    in_planted 0 "$1" --version
    in_planted 0 env VIRTUAL_ENV=venv "$1" doctor --no-measure
    in_planted "$prepare_status" "$1" prepare nowhere -o out --codec raw
    in_planted 4 env no_proxy=127.0.0.1 "$1" weights fetch resnet18 --mirror http://127.0.0.1:9/
}

search_paths "$BUILD" >built.txt
expect_true "files of the build have search paths ($(wc -l <built.txt))" test -s built.txt
expect_same "" "$(relative built.txt)" "none of the build's is below the current folder"
commands "$TANDEM"
for program in "$BUILD"/examples/* "$BUILD/tests/base_test_plugin"; do
    [ -x "$program" ] || continue
    (cd planted && "$program" </dev/null >../said.txt 2>&1) # what it says of no arguments is its own affair
    expect_true "$(basename "$program") runs nothing of that folder" test ! -e was-run
    rm -f was-run
done

expect_exit 0 cmake --install "$BUILD" --prefix "$temp/installed"
search_paths "$temp/installed" >installed.txt
expect_true "what is installed has search paths" test -s installed.txt
expect_same "" "$(grep -v ' \$ORIGIN\(/\|$\)' installed.txt)" "all of them relative to the file itself"
commands "$temp/installed/bin/tandem"
finish
