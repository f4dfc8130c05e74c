# The pages that people look at, in a browser: the report and that of predict --serve, on a screen and on a phone.
. "$SOURCE/tests/cli/lib.sh"
chromium=
for name in chromium-headless-shell chromium google-chrome; do
    chromium=${chromium:-$(command -v $name)}
done
if [ -z "$chromium" ] || ! command -v python3 >/dev/null || is_sanitized; then
    skip "needs chromium, python3 and a build without sanitizers"
    finish
fi

look() { # WIDTH ADDRESS [OPTION…]
    python3 -B "$SOURCE/tests/cli/browser.py" "$chromium" "$@"
}

# ---- the check itself can fail -------------------------------------------------------------------
page='<!DOCTYPE html><meta name="viewport" content="width=device-width"><body style="margin:0">'
echo "$page<p style='width:300px'>narrow enough" >right.html
echo "$page<p style='width:400px'>too wide" >wide.html
echo "$page<div style='overflow-x:auto'><p style='width:400px'>must be scrolled" >cut.html
expect_exit 0 look 360 "file://$temp/right.html"
expect_exit 1 look 360 "file://$temp/wide.html"
expect_stdout_matches 'the page is 40[01] pixels wide'
expect_exit 1 look 360 "file://$temp/cut.html"
expect_stdout_matches 'div shows 360 of 400 pixels'
expect_exit 0 look 1200 "file://$temp/cut.html"

# ---- the report --------------------------------------------------------------------------------
expect_exit 0 "$TANDEM" synth pictures --classes 5 --per-class 20 --size 32 --seed 1 --quiet
mv pictures/000-* "pictures/a class with a long name, as people write them"
set -- pictures --model lenet5 --batch 16 --split 0.6,0.4 --threads 1 --quiet
mkdir runs
expect_exit 0 "$TANDEM" train "$@" --epochs 3 -o runs/first
expect_exit 0 "$TANDEM" train "$@" --epochs 6 -o runs/second-with-a-long-name
expect_exit 0 "$TANDEM" train "$@" --epochs 2 --seed 8 -o runs/other
expect_exit 0 "$TANDEM" report runs/first runs/second-with-a-long-name runs/other -o all.html
for width in 1200 360; do
    expect_exit 0 look $width "file://$temp/runs/first/report.html"
    expect_exit 0 look $width "file://$temp/all.html"
done

# ---- the page of a server ------------------------------------------------------------------------
if "$TANDEM" doctor --no-measure | grep -q '^  http *on'; then
    "$TANDEM" predict runs/first --serve 0 >served.txt 2>&1 &
    server=$!
    for _ in $(seq 100); do
        grep -q 'answers at http' served.txt && break
        sleep 0.1
    done
    address=$(sed -n 's|.* answers at \(http://[0-9.:]*/\) .*|\1|p' served.txt)
    picture=$(find pictures -name 000000.jpg | sort | head -n 1)
    for width in 1200 360; do
        expect_exit 0 look $width "$address" --give "$picture"
        expect_stdout_matches '^the page answers '
    done
    kill -TERM $server
    wait $server
else
    skip "this build does not answer over HTTP"
fi
finish
