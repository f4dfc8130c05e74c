# train --cache-dir: images are read from their source once, and kept on a local disk as long as that has room.
. "$SOURCE/tests/cli/lib.sh"
export TANDEM_HOME="$temp/home"

"$TANDEM" synth source --classes 2 --per-class 30 --size 64 --quiet >/dev/null
options="--model lenet5 --epochs 14 --patience 0 --batch 8 --split 0.8,0.2 --checkpoint-every 3 --threads 1"
# shellcheck disable=SC2086
"$TANDEM" train source -o whole $options --quiet >/dev/null

same_as_whole() { # run
    expect_true "$1 has the bytes of a run without --cache-dir" \
        cmp whole/last.safetensors "$1/last.safetensors"
}

# The source goes away after the first epoch.
cp -r source pictures
# shellcheck disable=SC2086
"$TANDEM" train pictures -o run $options --cache-dir local/disk >"$out" 2>"$err" </dev/null &
pid=$!
tries=0
while ! grep -qs '"event":"epoch"' run/metrics.jsonl && [ $tries -lt 3000 ]; do
    sleep 0.01
    tries=$((tries + 1))
done
kill -STOP $pid
rm -rf pictures
kill -CONT $pid
status=0
wait $pid || status=$?
expect_same 0 "$status" "later epochs need no source"
expect_stderr_matches '^files of images are kept in local/disk$'
same_as_whole run
expect_same 60 "$(find local/disk -type f | wc -l)" "every image is kept once"
expect_true "nothing is kept in TANDEM_HOME" test ! -e home/pictures

# What is wrong in the folder is read from the source again.
for file in $(find local/disk -type f | head -n 20); do
    printf x | dd of="$file" bs=1 seek=40 conv=notrunc 2>/dev/null
done
# shellcheck disable=SC2086
expect_exit 0 "$TANDEM" train source -o damaged $options --cache-dir local/disk --quiet
same_as_whole damaged

# Ranks of one host share the folder.
rm -rf local
# shellcheck disable=SC2086
expect_exit 0 "$TANDEM" run -n 2 -- train source -o ranks $options --cache-dir local/disk --quiet
same_as_whole ranks
expect_same 60 "$(find local/disk -type f | wc -l)" "two ranks keep every image once"

# shellcheck disable=SC2086
expect_exit 2 "$TANDEM" train source -o other $options --cache none --cache-dir local/disk
expect_stderr_matches 'option --cache-dir keeps files on disk, and --cache none does not'
: >file
# shellcheck disable=SC2086
expect_exit 4 "$TANDEM" train source -o other $options --cache-dir file/below
expect_stderr_matches "cannot keep images in 'file/below'"

mkdir small
if mount -t tmpfs -o size=200k tmpfs small 2>/dev/null; then
    # shellcheck disable=SC2086
    expect_exit 0 "$TANDEM" train source -o full $options --cache-dir small/disk
    expect_stderr_matches "warning: no more images are kept in 'small/disk', which has [0-9]+ MiB of them: the rest of its disk"
    same_as_whole full
    expect_true "some are kept" test -n "$(find small/disk -type f)"
    umount small
else
    skip "a full disk: no file system can be mounted here"
fi
finish
