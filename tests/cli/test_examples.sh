#!/bin/sh
# Every program of examples/ does what its first comment promises, on a small synthetic data set; and
# programs that were compiled with the header of another version work with this library.
. "$SOURCE/tests/cli/lib.sh"

expect_exit 0 "$TANDEM" synth pictures --classes 2 --per-class 10 --size 64 --seed 7
picture=$(find pictures -type f | sort | head -n 1)
examples=$BUILD/examples

for source in "$SOURCE"/examples/*.c; do
    name=$(basename "$source" .c)
    expect_exit 2 "$examples/$name"
    expect_stderr_matches '^usage: '
    case $name in
    train)
        expect_exit 0 "$examples/train" pictures run "$picture"
        expect_stdout_matches '^epoch [0-9]+: [0-9.]+ % of 2 validation pictures right'
        expect_stdout_matches "^$picture: .* \\([0-9.]+ %\\)"
        ;;
    evaluate)
        expect_exit 0 "$TANDEM" train pictures -o evaluated --epochs 1
        expect_exit 0 "$examples/evaluate" evaluated pictures
        expect_stdout_matches '^.* [0-9]+ of 10 right \(95 % interval '
        expect_stdout_matches '^18 of these pictures were trained on'
        ;;
    loader)
        expect_exit 0 "$examples/loader" pictures
        expect_stdout_matches '^.* +10 images, mean colour +[0-9]+ +[0-9]+ +[0-9]+$'
        expect_exit 3 "$examples/loader" nowhere
        ;;
    network)
        expect_exit 0 "$examples/network" pictures 8
        expect_stdout_matches '^epoch 8: loss [0-9.]+, [0-9.]+ % right$'
        expect_exit 3 "$examples/network" nowhere 1
        ;;
    *) fail "examples/$name.c is run by nobody: add it here" ;;
    esac
    expect_true "examples/$name.c has at most 70 lines" test "$(wc -l <"$source")" -le 70
done

# A program of an older version, whose structs lack the last members, and one of a newer version.
compile() { # name include: examples/train.c with those headers
    "${CC:-cc}" -O1 -fstack-protector-all -I "$2" "$SOURCE/examples/train.c" -o "$1" \
        -L "$BUILD" -l:libtandem.so.0 -Wl,-rpath,"$BUILD"
}
last='checkpoint_minutes;\|bool resume;\|char \*cache_dir;\|char \*checkpoint_to;\|char \*trace;\|int world;\|struct tdm_next next;'
last="$last\|(\*prepare)\|void \*prepare_self;\|bool is_alone;\|unread_list unread;"
if command -v "${CC:-cc}" >/dev/null && ! is_sanitized; then
    mkdir older newer
    cp -R "$SOURCE/include/tandem" older
    cp -R "$SOURCE/include/tandem" newer
    sed -i "/^    .*\($last\)/d" older/tandem/train.h
    expect_same 11 "$(diff "$SOURCE/include/tandem/train.h" older/tandem/train.h | grep -c "$last")" \
        "the older header lacks eleven members"
    expect_true "a program compiles with it" compile old older
    expect_exit 0 ./old pictures old-run "$picture"
    expect_stdout_matches '^epoch [0-9]+: [0-9.]+ % of 2 validation pictures right'

    sed -i 's/^    bool is_alone;.*/&\n    int64_t future;/' newer/tandem/train.h
    expect_true "a program compiles with a newer header" compile new newer
    expect_exit 0 ./new pictures new-run "$picture"
    sed 's/options.run = argv\[2\];/&\n    options.future = 1;/' "$SOURCE/examples/train.c" >future.c
    expect_true "another one sets the new member" "${CC:-cc}" -I newer future.c -o future \
        -L "$BUILD" -l:libtandem.so.0 -Wl,-rpath,"$BUILD"
    expect_exit 2 ./future pictures future-run "$picture"
    expect_stderr_matches 'struct tdm_train_options: a member at byte [0-9]+ is set'
else
    skip "no compiler for programs of other versions, or a sanitizer"
fi

# From Python, where there is one.
if command -v python3 >/dev/null && ! is_sanitized; then
    library=$BUILD/libtandem.so.0
    expect_exit 1 python3 "$SOURCE/examples/train.py"
    expect_stderr_matches '^usage: '
    expect_exit 0 python3 "$SOURCE/examples/train.py" pictures snake "$picture" "$library"
    expect_stdout_matches '^validation: [0-9] of 2 right'
    expect_stdout_matches '^epoch 3: validation loss [0-9.]+'
    expect_stdout_matches "^$picture: .* \\([0-9.]+ %\\)"
    expect_exit 1 python3 "$SOURCE/examples/train.py" pictures snake "$picture" "$library"
    expect_stderr_matches 'RuntimeError: .*'
fi
finish
