# Pretrained weights by default: fetched where that is allowed, asked for on a terminal, never elsewhere.
. "$SOURCE/tests/cli/lib.sh"
if ! command -v python3 >/dev/null; then
    skip "needs python3 for the server"
    finish
fi
no_proxy=127.0.0.1
export no_proxy

# The published file, as far as this test is concerned: a network for small images that nobody trained.
published=mobilenet_v2_weights_tf_dim_ordering_tf_kernels_1.0_224_no_top.h5
export TANDEM_HOME="$temp/maker"
"$TANDEM" synth photos --classes 3 --per-class 12 --size 80 --seed 1 --quiet >"$out" 2>"$err" </dev/null
"$TANDEM" synth others --classes 2 --per-class 12 --size 32 --seed 2 --quiet >"$out" 2>"$err" </dev/null
expect_exit 0 "$TANDEM" train others -o maker/run --model mobilenetv2 --size 32 --epochs 0 --steps 1 --batch 8
expect_exit 0 "$TANDEM" export maker/run -o "served/$published"

python3 "$SOURCE/tests/cli/weights_server.py" served port requests &
server=$!
trap 'kill $server 2>/dev/null' EXIT
tries=0
while [ ! -e port ] && [ $tries -lt 300 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
mirror=http://127.0.0.1:$(cat port)/mirror
n_requests() {
    [ ! -e requests ] || wc -l <requests | tr -d ' '
}
new_home() { # NAME
    export TANDEM_HOME="$temp/$1"
    rm -f requests
}
options="--epochs 1 --batch 8 --mirror $mirror"

# ---- not allowed -------------------------------------------------------------------------------
new_home silent
expect_exit 0 "$TANDEM" train photos -o runs/silent $options --size 16
expect_same "" "$(n_requests)" "nothing is requested without permission"
expect_stdout_matches '^next: use pretrained weights; .*the same command with --fetch and another -o starts'
expect_same 1 "$(grep -c 'pretrained' "$err")" "one line says what is missed"
expect_stderr_matches 'after tandem weights fetch mobilenetv2-notop \(9 MB\), or with --fetch, a new run starts with them'
cp -r runs/silent runs/longer
expect_exit 0 "$TANDEM" train photos -o runs/longer --epochs 2 --resume
expect_stdout_matches '^next: use pretrained weights; .*the same command with --fetch and another -o starts'
expect_exit 0 "$TANDEM" train photos -o runs/auto $options --size 16 --weights auto
expect_true "--weights auto is the default" cmp -s runs/silent/best.safetensors runs/auto/best.safetensors
expect_exit 0 env TANDEM_FETCH=0 "$TANDEM" train photos -o runs/zero $options --size 16
expect_exit 0 env TANDEM_FETCH=1 "$TANDEM" train photos -o runs/named $options --model lenet5
expect_same "" "$(n_requests)" "nothing is requested for a network that is named"
expect_same 0 "$(grep -c 'from scratch' "$err")" "of which no weights are published"
# A network of which some are is trained from scratch too, and a line says what would change that.
from_scratch="mobilenetv2 is trained from scratch, without transfer learning; a new run with --weights mobilenetv2-notop"
with_them="starts with pretrained weights"
expect_exit 0 "$TANDEM" train photos -o runs/scratch $options --model mobilenetv2 --size 32
expect_stderr_matches "^$from_scratch --fetch \(9 MB\) $with_them\$"
expect_exit 0 "$TANDEM" train photos -o runs/better $options --model mobilenetv2 --size 32 \
    --weights mobilenetv2-notop --fetch
expect_stderr_matches 'mobilenetv2 starts with all but the head of mobilenet_v2'
expect_same 0 "$(grep -c 'from scratch' "$err")" "with weights the line is not there"
expect_exit 0 "$TANDEM" train photos -o runs/near $options --model mobilenetv2 --size 32
expect_stderr_matches "^$from_scratch $with_them\$"

# ---- allowed -----------------------------------------------------------------------------------
new_home allowed
expect_exit 0 env TANDEM_FETCH=1 "$TANDEM" train photos -o runs/allowed $options
expect_stderr_matches "fetched .*/allowed/weights/$published, .* SHA-256 [0-9a-f]{64}"
expect_stderr_matches 'mobilenetv2 starts with all but the head of mobilenet_v2'
expect_stderr_matches '^images of about [0-9]+ pixels suit pretrained weights: mobilenetv2-notop(; the images are small and get [0-9]+ pixels)?; the training takes about'
expect_same "/mirror/$published" "$(cat requests)" "the mirror is asked once"
expect_exit 0 "$TANDEM" train photos -o runs/here $options
expect_exit 0 "$TANDEM" train photos -o runs/unfrozen $options --epochs 2 --unfreeze 1 --bn frozen
expect_stderr_matches '^images of about [0-9]+ pixels suit pretrained weights: mobilenetv2-notop(; the images are small and get [0-9]+ pixels)? \(--model and'
expect_same 1 "$(n_requests)" "weights that are here are not requested again"
echo another >"$TANDEM_HOME/weights/xception_weights_tf_dim_ordering_tf_kernels_notop.h5"
expect_exit 0 "$TANDEM" train photos -o runs/beside $options
expect_stderr_matches 'suit pretrained weights: mobilenetv2-notop' # whatever else was fetched
expect_true "both runs begin with them" cmp -s runs/allowed/best.safetensors runs/here/best.safetensors

new_home configured
mkdir -p "$TANDEM_HOME"
echo 'fetch = true' >"$TANDEM_HOME/config.toml"
expect_exit 0 "$TANDEM" train photos -o runs/configured $options --json
expect_json run options
expect_same True "$(json_value options.fetch)" "the user's config file is read"
expect_same 1 "$(n_requests)" "the configuration allows it"
new_home configured-not
mkdir -p "$TANDEM_HOME"
printf '[train]\nfetch = maybe\n' >"$TANDEM_HOME/config.toml"
expect_exit 2 "$TANDEM" train photos -o runs/wrong $options
expect_stderr_matches "configured-not/config.toml, line 2: fetch"

new_home named
expect_exit 0 env TANDEM_FETCH=1 "$TANDEM" train photos -o runs/by-name $options --weights mobilenetv2-notop
expect_same 1 "$(n_requests)" "weights that are named are fetched too"
new_home probed
expect_exit 0 env TANDEM_FETCH=1 "$TANDEM" train others -o runs/probed $options
expect_stderr_matches '^a probe trained both on a part of the images: of [0-9]+ others convnet7 from scratch has [0-9]+ right, and mobilenetv2-notop [0-9]+; the images are small and get [0-9]+ pixels; the training takes about '
expect_stderr_matches '^a probe decides whether convnet7 from scratch or mobilenetv2-notop suits these images: it trains both on 24 of them, which takes about [0-9]+ s$'
announced='s/.*; the training takes about \([0-9]*\) s, of which the probe took \([0-9]*\) s (.*/\1 - \2/p'
expect_true "the time that is announced has the probe in it" test "$(($(sed -n "$announced" "$err" | grep . || echo -1)))" -ge 0
expect_true "and so has the time of the result" python3 -c '
import json, sys
told = next(line["text"] for line in map(json.loads, open("runs/probed/metrics.jsonl")) if "probe took" in line.get("text", ""))
took = int(told.split("the probe took ")[1].split()[0])
sys.exit(json.load(open("runs/probed/run.json"))["result"]["seconds"] < took - 0.5)'

# Nobody waits for a download that is of no use, or is asked about it.
mkdir one
cp -r photos/"$(ls photos | head -n 1)" one/
new_home useless
expect_exit 3 "$TANDEM" train one -o runs/useless $options --fetch
expect_stderr_matches 'one has one class of images; at least two are required'
expect_exit 3 "$TANDEM" train one -o runs/useless $options --fetch --weights mobilenetv2-notop
expect_stderr_matches 'one has one class of images; at least two are required'
mkdir hollow hollow/none
cp -r photos/* hollow/
expect_exit 3 "$TANDEM" train hollow -o runs/useless $options --fetch
expect_stderr_matches "class 'none' has no image: add some or remove the class$"
expect_exit 3 "$TANDEM" train nowhere -o runs/useless $options --fetch --weights mobilenetv2-notop
expect_stderr_matches "no such file or folder: 'nowhere'; expected a data set$"
expect_exit 2 "$TANDEM" train photos -o runs/silent $options --fetch
expect_stderr_matches 'runs/silent holds a run already'
expect_same "" "$(n_requests)" "nothing is requested for a folder that is refused"

# The time of a download is none of the run.
python3 "$SOURCE/tests/cli/weights_server.py" served slow-port slow-requests 3 &
slow=$!
trap 'kill $server $slow 2>/dev/null' EXIT
tries=0
while [ ! -e slow-port ] && [ $tries -lt 300 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
new_home slow
began=$(python3 -c 'import time; print(time.time())')
expect_exit 0 "$TANDEM" train photos -o runs/slow --epochs 1 --batch 8 --fetch --mirror "http://127.0.0.1:$(cat slow-port)/" --json
expect_true "its seconds are without the three of the download" \
    python3 -c 'import sys, time; sys.exit(time.time() - float(sys.argv[1]) - float(sys.argv[2]) < 3.0)' \
    "$began" "$(json_value seconds)"

# A proxy, and a publisher that only the proxy knows.
new_home proxied
expect_exit 0 env http_proxy="http://127.0.0.1:$(cat port)" no_proxy= "$TANDEM" train photos -o runs/proxied \
    --epochs 1 --batch 8 --fetch --mirror http://weights.invalid/there
expect_same "http://weights.invalid/there/$published" "$(cat requests)" "the proxy is asked"

# ---- not to be had -----------------------------------------------------------------------------
new_home offline
expect_exit 0 "$TANDEM" train photos -o runs/offline --epochs 1 --batch 8 --size 16 --fetch \
    --mirror http://127.0.0.1:9/
expect_stderr_matches 'pretrained weights cannot be downloaded, so training goes on without them: .*http://127.0.0.1:9/mobilenet_v2'
expect_true "the run is that of no weights" cmp -s runs/offline/best.safetensors runs/silent/best.safetensors

# Another file than the one that was fetched before.
new_home changed
mkdir -p "$TANDEM_HOME/weights"
echo '{"format_version": 1, "sha256": "00"}' >"$TANDEM_HOME/weights/$published.json"
expect_exit 3 "$TANDEM" train photos -o runs/changed $options --fetch
expect_stderr_matches 'is not the file that was fetched'
expect_true "no run is left of it" test ! -e runs/changed

# ---- a terminal --------------------------------------------------------------------------------
on_terminal() { # ANSWER ARGUMENT…
    answer=$1
    shift
    python3 "$SOURCE/tests/cli/on_terminal.py" "$answer" "$TANDEM" train photos $options "$@"
}
new_home asked
expect_exit 0 on_terminal yes -o runs/asked
expect_stdout_matches 'Download mobilenetv2-notop now \(9.4 MB, Keras, ImageNet, Apache-2.0\)'
expect_stdout_matches 'starts with all but the head of mobilenet_v2'
expect_same "fetch = true" "$(cat "$TANDEM_HOME/config.toml")" "the answer is remembered"
rm -r "$TANDEM_HOME/weights"
expect_exit 0 on_terminal no -o runs/again
expect_same 0 "$(grep -c 'Y/n' "$out")" "the question is asked once"
expect_same 2 "$(n_requests)" "and its answer holds"

new_home unreached
expect_exit 0 python3 "$SOURCE/tests/cli/on_terminal.py" yes "$TANDEM" train photos -o runs/unreached --epochs 1 --batch 8 \
    --size 16 --mirror http://127.0.0.1:9/
expect_stdout_matches 'Download mobilenetv2-notop'
expect_stdout_matches 'pretrained weights cannot be downloaded, so training goes on without them: '
expect_true "a yes is not remembered where the download failed" test ! -e "$TANDEM_HOME/config.toml"
new_home named-unreached
expect_exit 4 "$TANDEM" train photos -o runs/named-unreached $options --weights mobilenetv2-notop --fetch --mirror http://127.0.0.1:9/
expect_stderr_matches 'http://127.0.0.1:9/mobilenet_v2'
expect_same 0 "$(grep -c 'goes on without' "$err")" "nothing goes on without weights that were asked for"
new_home unasked
expect_exit 3 python3 "$SOURCE/tests/cli/on_terminal.py" yes "$TANDEM" train one $options --weights mobilenetv2-notop
expect_same 0 "$(grep -c 'Y/n' "$out")" "nobody is asked before the folder was looked at"

new_home refused
mkdir -p "$TANDEM_HOME"
printf '[train]\nepochs = 2 # mine\n' >"$TANDEM_HOME/config.toml"
expect_exit 0 on_terminal no -o runs/refused --size 16
expect_same "fetch = false [train] epochs = 2 # mine" "$(echo $(cat "$TANDEM_HOME/config.toml"))" \
    "a line is added before what is in the file"
expect_same "" "$(n_requests)" "a refusal is obeyed"
# The file is not read beside --config, so the question is asked; then it must not set a word twice.
printf 'fetch = true\n[train]\nepochs = 2\n' >"$TANDEM_HOME/config.toml"
printf 'threads = 1\n' >other.toml
expect_exit 0 on_terminal no -o runs/other --size 16 --config other.toml
expect_same "fetch = false [train] epochs = 2" "$(echo $(cat "$TANDEM_HOME/config.toml"))" \
    "an answer replaces the one before"
# A config file that is kept elsewhere, as those of dotfiles are.
new_home linked
mkdir -p "$TANDEM_HOME" dotfiles
printf 'threads = 1\n' >dotfiles/tandem.toml
chmod 600 dotfiles/tandem.toml
ln -s "$temp/dotfiles/tandem.toml" "$TANDEM_HOME/config.toml"
expect_exit 0 on_terminal no -o runs/linked --size 16
expect_true "a link stays a link" test -L "$TANDEM_HOME/config.toml"
expect_same "fetch = false threads = 1" "$(echo $(cat dotfiles/tandem.toml))" "and its file has the answer"
expect_same 600 "$(stat -c %a dotfiles/tandem.toml)" "and its mode"
new_home unwritable
mkdir -p "$TANDEM_HOME/config.toml"
expect_exit 0 on_terminal no -o runs/unwritable --size 16 --config other.toml
expect_stdout_matches 'the answer is not remembered: cannot .*/unwritable/config.toml'
rmdir "$TANDEM_HOME/config.toml"
ln -s "$temp/dotfiles/missing.toml" "$TANDEM_HOME/config.toml"
expect_exit 0 on_terminal no -o runs/dangling --size 16 --config other.toml
expect_stdout_matches 'the answer is not remembered: cannot write .*/unwritable/config.toml: it is a link to a file that'
expect_true "and the link stays" test -L "$TANDEM_HOME/config.toml"
new_home machine
expect_exit 0 on_terminal no -o runs/json --size 16 --json
expect_same 0 "$(grep -c 'Y/n' "$out")" "--json is never asked"
new_home stopped
expect_exit 1 on_terminal interrupt -o runs/stopped
expect_true "Ctrl-C ends the question, and no run is made" test ! -e runs/stopped
expect_true "and nothing is remembered" test ! -e "$TANDEM_HOME/config.toml"
finish
