# predict --serve: the same answers over HTTP, limits, tokens, clients that fail, a clean end.
. "$SOURCE/tests/cli/lib.sh"
command -v python3 >/dev/null || {
    skip "no python3 to ask with"
    finish
}

python3 "$SOURCE/tests/cli/serve/serve_pictures.py"
expect_exit 0 "$TANDEM" train pictures --model lenet5 --epochs 1 --batch 4 --split 0.7,0.3 -o run --quiet

# ---- what the command line says --------------------------------------------------------------
expect_exit 2 "$TANDEM" predict run --serve 0 shown/red1.ppm
expect_stderr_matches 'with --serve, which takes PORT or ADDRESS:PORT, images come by HTTP; found shown/red1.ppm'
expect_exit 2 "$TANDEM" predict run --serve --csv
expect_exit 2 "$TANDEM" predict run --serve --logits
expect_stderr_matches '\?logits=1'
expect_exit 2 "$TANDEM" predict run shown/red1.ppm --body-limit 1M
expect_stderr_matches '--body-limit is for a server: it requires --serve'
expect_exit 0 env TANDEM_BODY_LIMIT=1M "$TANDEM" predict run shown/red1.ppm
expect_exit 2 "$TANDEM" predict run --serve=here
expect_stderr_matches "'here' is no address to listen at; PORT, ADDRESS:PORT"
expect_exit 2 "$TANDEM" predict run --serve 0.0.0.0:0
expect_stderr_matches 'which others reach, requires a token'
echo short >token.txt
expect_exit 2 "$TANDEM" predict run --serve 0 --token-file token.txt
expect_stderr_matches 'has 5 characters; 16 to 256 are accepted'
expect_exit 3 "$TANDEM" predict run --serve 0 --token-file nowhere.txt
TANDEM_TOKEN='' expect_exit 2 timeout 20 "$TANDEM" predict run --serve 0
expect_stderr_matches 'TANDEM_TOKEN is empty, which is no token; unset it'
TANDEM_TOKEN=short expect_exit 2 timeout 20 "$TANDEM" predict run --serve 0
expect_stderr_matches '^tandem: serving with the token in TANDEM_TOKEN$'
expect_exit 2 timeout 20 "$TANDEM" predict run --serve 0 --request-pixel-limit 1000
expect_stderr_matches 'requests up to 1000 pixels with images up to 100000000'
expect_exit 2 "$TANDEM" predict run shown/red1.ppm --request-pixel-limit 1000
expect_stderr_matches '--request-pixel-limit is for a server: it requires --serve'

if ! "$TANDEM" doctor --no-measure | grep -q '^  http *on'; then
    expect_exit 4 "$TANDEM" predict run --serve 0
    expect_stderr_matches 'sudo apt-get install libmicrohttpd-dev|cannot be used'
    skip "this build does not answer over HTTP"
    finish
fi

"$TANDEM" predict run --serve 0 --json >served.json 2>served.txt &
server=$!
for _ in $(seq 100); do
    grep -q 'answers at http' served.txt && break
    sleep 0.1
done
port=$(sed -n 's|.* answers at http://127.0.0.1:\([0-9]*\)/ .*|\1|p' served.txt)
expect_exit 4 "$TANDEM" predict run --serve "$port"
expect_stderr_matches 'Address already in use; port 0 takes any that is free'
expect_exit 3 "$TANDEM" predict nowhere --serve 0
if command -v curl >/dev/null; then
    "$TANDEM" predict run - --json <shown/red1.ppm >wanted.txt
    curl -s -H 'Content-Type: image/x-portable-pixmap' --data-binary @shown/red1.ppm \
        "http://127.0.0.1:$port/predict" >got.txt
    expect_true "curl gets what predict prints" cmp wanted.txt got.txt
fi
kill -TERM "$server"
status=0
wait "$server" || status=$?
expect_same 0 "$status" "SIGTERM ends it with exit 0"
cp served.json "$out"
expect_json url requests pictures

# ---- a token that others may read ------------------------------------------------------------------
echo correct-horse-battery >token.txt
chmod 644 token.txt
"$TANDEM" predict run --serve 0 --token-file token.txt >served.txt 2>warned.txt &
server=$!
for _ in $(seq 100); do
    grep -q 'answers at http' warned.txt && break
    sleep 0.1
done
kill -TERM "$server"
wait "$server"
expect_same 1 "$(grep -c 'others may read the token in token.txt' warned.txt)" "the warning is printed once"

# ---- what clients see ---------------------------------------------------------------------------
python3 -B "$SOURCE/tests/cli/serve/serve_client.py" "$TANDEM" run shown || n_failed=$((n_failed + 1))
finish
