#!/bin/sh
# Every program of examples/ does what its first comment promises, on a small painted data set.
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
        expect_exit 0 "$TANDEM" train pictures -o judged --epochs 1
        expect_exit 0 "$examples/evaluate" judged pictures
        expect_stdout_matches '^.* [0-9]+ of 10 right \(95 % interval '
        expect_stdout_matches '^18 of these pictures were trained on'
        ;;
    *) fail "examples/$name.c is run by nobody: add it here" ;;
    esac
    expect_true "examples/$name.c has at most 60 lines" test "$(wc -l <"$source")" -le 60
done

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
