# Photos of phones and scanners: read where the libraries are installed; where one is missing its
# images are counted by kind, with the package. A file that is no library stands in for a missing one.
. "$SOURCE/tests/cli/lib.sh"

corpus=$SOURCE/fuzz/corpus/image
"$TANDEM" synth photos --classes 2 --per-class 6 --size 48 --format ppm --quiet >/dev/null
class=$(ls photos | head -1)
cp "$corpus"/orientation[26].heic "$corpus/rgb.avif" "$corpus/strips.tif" "$corpus/rgb.jxl" "photos/$class/"
echo raw >"photos/$class/a.NEF"
echo raw >"photos/$class/b.cr2"
echo old >"photos/$class/c.jp2"
echo notes >"photos/$class/notes.txt"
mkdir empty
for library in libtiff.so.6 libheif.so.1 libjxl.so.0.7 libjxl.so.0.8 libjxl.so.0.9 libjxl.so.0.10 libjxl.so.0.11; do
    echo none >empty/$library
done
without() {
    env LD_LIBRARY_PATH="$PWD/empty${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$TANDEM" "$@"
}

counted() { # what every command says that opens the folder
    expect_stderr_matches "^tandem: warning: 1 TIFF image of 'photos' cannot be read: .*libtiff6"
    expect_stderr_matches "^tandem: warning: 2 HEIC images of 'photos' cannot be read: .*libheif1"
    expect_stderr_matches "^tandem: warning: 1 AVIF image of 'photos' cannot be read: .*libheif1"
    expect_stderr_matches "^tandem: warning: 1 JPEG XL image of 'photos' cannot be read: .*libjxl0.7"
    expect_stderr_matches "^tandem: warning: left out of 'photos': camera raw files \(2\), JPEG 2000 images \(1\), which tandem does not read"
}

expect_exit 0 without audit photos
counted
expect_stdout_matches '^  unreadable +5 '
expect_exit 0 without audit photos --json
expect_same 17 "$(json_value images)" "images that cannot be read stay in the listing"
expect_same 5 "$(json_value counts.unreadable)" "they are unreadable, not corrupt"
expect_same 4 "$(json_value others)" "kinds that are never read are other files"
unread() { # as "kind package n", a line each
    python3 -c '
import json, sys
for one in json.load(open(sys.argv[1]))["unread"]:
    print(one["kind"], one["package"], one["n"], sep=", ")' "$out"
}
kinds="TIFF, libtiff6, 1
HEIC, libheif1, 2
AVIF, libheif1, 1
JPEG XL, libjxl0.7, 1
camera raw files, None, 2
JPEG 2000 images, None, 1"
expect_same "$kinds" "$(unread)" "audit counts them by kind"

set -- --model lenet5 --epochs 1 --split 0.7,0.3
expect_exit 0 without train photos "$@" -o run
counted
expect_exit 0 without train photos "$@" -o run-json --json
expect_same "$kinds" "$(unread)" "train counts them by kind"
expect_exit 0 without prepare photos --size 32 --codec png -o table
counted
expect_exit 0 without prepare photos --size 32 --codec png -o again --json
expect_same 5 "$(json_value quarantined)" "prepare leaves them out by name"
expect_same "$kinds" "$(unread)" "prepare counts them by kind"
# A library's warning has a colour where the command's messages have one.
expect_exit 0 env -u NO_COLOR TERM=xterm LD_LIBRARY_PATH="$PWD/empty${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
    python3 "$SOURCE/tests/cli/on_terminal.py" no "$TANDEM" audit photos
expect_stdout_matches "^$(printf '\033\\[33mtandem: warning:\033\\[0m') 1 TIFF image"
expect_exit 0 env NO_COLOR=1 TERM=xterm LD_LIBRARY_PATH="$PWD/empty${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
    python3 "$SOURCE/tests/cli/on_terminal.py" no "$TANDEM" audit photos
expect_stdout_matches "^tandem: warning: 1 TIFF image"
expect_exit 0 without doctor --no-measure
expect_stdout_matches '^  tiff +off +(libtiff is not on this|reads TIFF)'
expect_stdout_matches '^  heif +off +(libheif is not on this|reads HEIC)'
expect_stdout_matches '^  jxl +off +(libjxl is not on this|reads JPEG XL)'

if "$TANDEM" doctor --no-measure | grep -cE '^  (tiff|heif|jxl) +on ' | grep -qx 3; then
    expect_exit 0 "$TANDEM" audit photos --json
    expect_same 0 "$(json_value bad)" "with the libraries every image is read"
    expect_true "nothing is said to be unreadable" sh -c "! grep -q 'cannot be read' \"$err\""
    expect_exit 0 "$TANDEM" prepare photos --size 32 --codec png -o whole --json
    expect_same 0 "$(json_value quarantined)" "and prepared"
    expect_exit 0 "$TANDEM" train photos "$@" -o all --json
    expect_same 0 "$(json_value skipped)" "and trained on"
else
    skip "libtiff, libheif and libjxl are not all here"
fi
finish
