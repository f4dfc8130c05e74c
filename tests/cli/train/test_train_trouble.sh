# train while its run folder, images, disk or feature store disappears. It ends with a message and its exit status, and
# resuming the run gives byte-identical files.
. "$SOURCE/tests/cli/lib.sh"

export TANDEM_HOME=$temp/home
"$TANDEM" synth whole --classes 2 --per-class 30 --size 32 --quiet >/dev/null
restore() {
    rm -rf pictures
    cp -r whole pictures
}
# Long enough that a shell that is late still finds it in its middle.
options="--model lenet5 --epochs 18 --patience 0 --batch 8 --split 0.8,0.2 --checkpoint-every 3 --cache none --threads 1"

# between CODE RUN SRC ACTION [OPTION…]: begins RUN, holds it still once it has two checkpoints, does
# ACTION and lets it go on; then it must end with CODE.
between() {
    expected=$1 run=$2 source=$3 action=$4
    shift 4
    last_command="train $source -o $run, and meanwhile: $(echo $action | cut -c1-60)"
    "$TANDEM" train "$source" -o "$run" $options "$@" >"$out" 2>"$err" </dev/null &
    pid=$!
    tries=0
    while [ ! -e "$run/previous.safetensors" ] && [ $tries -lt 3000 ]; do
        sleep 0.01
        tries=$((tries + 1))
    done
    kill -STOP $pid
    eval "$action"
    kill -CONT $pid
    status=0
    wait $pid || status=$?
    if [ "$status" = "$expected" ]; then
        pass "exit $expected: $last_command"
    else
        fail "exit $status instead of $expected: $last_command"
        show_output
    fi
}

same_as() { # run source option…
    run=$1 source=$2
    shift 2
    "$TANDEM" train "$source" -o whole-run $options "$@" --quiet >/dev/null
    for file in best last outcomes; do
        expect_true "$run has the $file of a run that was left alone" \
            cmp "whole-run/$file.safetensors" "$run/$file.safetensors"
    done
    rm -rf whole-run
}

# ---- the run folder ------------------------------------------------------------------------
restore
between 4 gone pictures 'mv gone moved'
expect_stderr_matches 'gone was removed, renamed or replaced while the run worked in it|cannot write gone/'
expect_true "it is not made again" test ! -e gone
expect_exit 0 "$TANDEM" train pictures -o moved $options --resume --quiet
same_as moved pictures

# ---- its pictures --------------------------------------------------------------------------
first=$(find pictures -name '*.jpg' | sort | head -n 1)
usual=$options
options="$usual --verbose" # the whole chain
between 3 one pictures 'rm "$first"'
options=$usual
expect_stderr_matches '^tandem: training on pictures ended early; one keeps its newest checkpoint, and --resume continues from it$'
expect_stderr_matches "cannot load '.*${first##*/}'"
expect_stderr_matches 'it could be read before, and cannot any more$'
expect_exit 3 "$TANDEM" train pictures -o one $options --resume
expect_stderr_matches 'are not those of the run \(now .*; use the same images, or start a new run$'
restore
expect_exit 0 "$TANDEM" train pictures -o one $options --resume
same_as one pictures
class=$(dirname "$first") other=$(find pictures -mindepth 1 -maxdepth 1 -type d | sort | tail -n 1)
mv "$class" pictures/zebra # the numbers of classes follow their names
expect_exit 3 "$TANDEM" train pictures -o one $options --resume
expect_stderr_matches "class 0 of pictures is '.*', and of the run '${class##*/}'; use the same classes"
mv pictures/zebra "$class"
mv "$first" "$other/moved.jpg"
expect_exit 3 "$TANDEM" train pictures -o one $options --resume
expect_stderr_matches 'images in pictures have another class than when the run was started; put them back, or start a new run$'
restore

between 3 all pictures 'rm -rf pictures'
expect_stderr_matches 'all keeps its newest checkpoint'
expect_exit 3 "$TANDEM" train pictures -o all $options --resume
expect_stderr_matches "no such file or folder: 'pictures'; expected a data set$"
restore
expect_exit 0 "$TANDEM" train pictures -o all $options --resume
same_as all pictures

between 3 other pictures 'for file in pictures/*/*1.jpg; do cp "$first" "$file"; done'
expect_stderr_matches 'it holds other bytes than when it was read before$'
restore
expect_exit 0 "$TANDEM" train pictures -o other $options --resume
same_as other pictures

# ---- a table -------------------------------------------------------------------------------
if "$TANDEM" prepare pictures -o table --quiet >/dev/null 2>"$err"; then
    cp -r table table.kept
    between 3 cut table 'for file in table/*.parquet; do : >"$file"; done'
    expect_stderr_matches 'cut keeps its newest checkpoint'
    expect_stderr_matches "'table/part-.*' ends at byte"
    rm -rf table && cp -r table.kept table
    expect_exit 0 "$TANDEM" train table -o cut $options --resume
    same_as cut table
    # Files that are open stay what they were, whatever takes their name.
    between 0 unlinked table 'rm -rf table; cp -r pictures table'
    rm -rf table && cp -r table.kept table
    same_as unlinked table
else
    skip "a table: this build has no Arrow"
fi

# ---- the store of features -----------------------------------------------------------------
"$TANDEM" train pictures -o base --model mobilenetv2-0.1 --size 32 --epochs 1 --quiet >/dev/null
options="--weights base --freeze base --hidden 8 --batch 8 --epochs 24 --patience 0 --checkpoint-every 3 --threads 1"
between 0 storeless pictures 'rm -rf home'
same_as storeless pictures
change_rows() { # all but their head
    for file in home/features/*/*.rows; do
        (head -c 128 "$file" && tail -c +129 "$file" | tr '\0-\377' '\1-\377\0') >changed
        cat changed >"$file"
    done
}
between 0 flipped pictures change_rows
expect_stderr_matches 'warning: missing features are computed again: .*is damaged: it does not have the checksum that was written'
expect_same 1 "$(grep -c 'features are computed again' "$err")" "it is said once"
expect_stdout_matches '^ +60 that were damaged or gone were computed once more$'
same_as flipped pictures
change_rows
expect_exit 0 "$TANDEM" train pictures -o found-flipped $options --json
expect_stderr_matches 'warning: stored features are removed, and are computed again: .* is damaged'
expect_true "nobody is asked to remove what is removed" sh -c '! grep -q "remove that file" "$1"' - "$err"
expect_same 0 "$(json_value features.reused)" "a file that is damaged as a whole is not used"
same_as found-flipped pictures
for key in home/features/*/key.json; do
    : >"$key"
done
expect_exit 0 "$TANDEM" train pictures -o found-keyless $options --json
expect_stderr_matches 'warning: .*key.json was damaged, and is written again'
same_as found-keyless pictures

# ---- a disk without room -------------------------------------------------------------------
options="--model convnet7 --size 32 --epochs 2 --batch 8 --split 0.8,0.2 --checkpoint-every 3 --threads 1"
mkdir small
if mount -t tmpfs -o size=5m tmpfs small 2>/dev/null; then
    expect_exit 4 "$TANDEM" train pictures -o small/run $options
    expect_stderr_matches 'small/run keeps its newest checkpoint'
    expect_stderr_matches 'No space left on device$'
    expect_true "nothing half written is left" test -z "$(find small -name '*.tmp')"
    expect_exit 4 "$TANDEM" train pictures -o small/run $options --resume
    expect_stderr_matches 'No space left on device$'
    mount -o remount,size=100m small
    expect_exit 0 "$TANDEM" train pictures -o small/run $options --resume
    same_as small/run pictures
    umount small
    mount -t tmpfs -o size=8k tmpfs small
    expect_exit 4 "$TANDEM" train pictures -o small/run $options
    expect_stderr_matches 'No space left on device$'
    umount small
else
    skip "a full disk: no file system can be mounted here"
fi

# ---- its memory ----------------------------------------------------------------------------
restore
large="--model mobilenetv2 --size 64 --batch 48 --shard 4 --steps 1"
expect_exit 0 "$TANDEM" train pictures -o counted $large --threads 2 --verbose
short=$(sed -n 's/^memory: \([0-9]*\) MiB$/\1/p' "$err")
expect_stderr_matches 'it takes [0-9]+ MiB of memory \(activations [0-9]+, gradients [0-9]+, weights'
takes=$(sed -n 's/.*it takes \([0-9]*\) MiB of memory.*/\1/p' "$err")
parts=$(sed -n 's/.*it takes .*(\(.*\), the process itself .*/\1/p' "$err")
expect_true "it says what of it is for what" test -n "$parts"
expect_true "the short line rounds the same" sh -c "[ $((${short:-0} - takes)) -ge 0 ] && [ $((${short:-0} - takes)) -le 1 ]"
expect_true "its record has it too" grep -Eq '"planned_bytes": ?[0-9]{8}' counted/run.json

# Memory of layers that are unfrozen later is reported before the head is trained.
later="--weights counted --model mobilenetv2 --batch 48 --shard 4 --threads 2"
expect_exit 0 "$TANDEM" train pictures -o unfrozen $later --freeze none --steps 1 --verbose
unfrozen=$(sed -n 's/.*it takes .*(activations \([0-9]*\),.*/\1/p' "$err")
expect_exit 0 "$TANDEM" train pictures -o later $later --unfreeze 1 --epochs 2
expect_true "parts of the memory are details" sh -c "! grep -q activations '$err'"
rm -rf later
expect_exit 0 "$TANDEM" train pictures -o later $later --unfreeze 1 --epochs 2 --verbose
expect_true "layers that are unfrozen later count from the first step on" \
    test "$(sed -n 's/.*it takes .*(activations \([0-9]*\),.*/\1/p' "$err")" = "$unfrozen"

# What a process holds before it opens anything follows the state of the page cache: 17 and 18 MiB in
# 14 runs of one hour, and 3 MiB apart once in another. Everything else is byte-identical, and
# a thread less saves more than the 8 MiB.
if make_group && may_take $(((takes - 8) * 1048576)); then
    expect_exit 4 in_group "$TANDEM" train pictures -o little $large --threads 2
    expect_stderr_matches 'training takes [0-9]+ MiB of memory.* this container allows [0-9]+ MiB; --threads 1 takes [0-9]+ MiB and gives the same bits$'
    expect_same "$(sed -n 's/.*training takes .*(\(.*\), the process itself .*/\1/p' "$err")" "$parts" \
        "it counts what was told before"
    expect_true "no run is left of it" test ! -e little
    expect_exit 4 in_group "$TANDEM" train pictures -o new $later --unfreeze 1 --epochs 2
    expect_stderr_matches 'training takes [0-9]+ MiB of memory.*; --threads 1 takes [0-9]+ MiB and gives the same bits$'
    expect_true "refused before the head is trained" test ! -e new

    one=$(find pictures -name '*.*' -type f | head -n 1)
    if is_sanitized; then
        skip "what runs in these containers: the sanitizer takes more itself"
    else
        expect_exit 0 in_group "$TANDEM" train pictures -o little $large --threads 1
        expect_true "with one thread it has the same bits" \
            cmp little/best.safetensors counted/best.safetensors
        may_take $((takes * 2 / 3 * 1048576))
        expect_exit 4 in_group "$TANDEM" train pictures -o little $large --steps 2 --threads 2 \
            --resume
        expect_stderr_matches 'even one thread takes more; more memory is required$'

        # Who has too little for one picture is told, and not killed in the middle of it.
        may_take $((24 * 1048576))
        expect_exit 4 in_group "$TANDEM" predict counted "$one" --threads 2
        expect_stderr_matches 'one picture in counted takes [0-9]+ MiB of memory at least .*, and this container allows 24 MiB$'
        may_take $((72 * 1048576))
        expect_exit 0 in_group "$TANDEM" predict counted "$one" --threads 2
    fi
    rmdir "$group"
else
    rmdir "$group" 2>/dev/null
    skip "a container with little memory: no group can be made here"
fi

finish
