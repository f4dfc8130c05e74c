# predict --serve against clients that ask too much, hang up, stay silent, or send two requests as one.
. "$SOURCE/tests/cli/lib.sh"
command -v python3 >/dev/null || {
    skip "no python3 to ask with"
    finish
}
"$TANDEM" doctor --no-measure | grep -q '^  http *on' || {
    skip "this build does not answer over HTTP"
    finish
}
python3 "$SOURCE/tests/cli/serve/serve_pictures.py"
expect_exit 0 "$TANDEM" train pictures --model lenet5 --epochs 1 --batch 4 --split 0.7,0.3 -o run --quiet
python3 -B "$SOURCE/tests/cli/serve/serve_hostile.py" "$TANDEM" run shown || n_failed=$((n_failed + 1))
finish
