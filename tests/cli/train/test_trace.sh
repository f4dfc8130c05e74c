# train --trace and trace summary: one file of trace events for all ranks, which changes no bit of the training,
# is written at the end and at a stop, and adds up.
. "$SOURCE/tests/cli/lib.sh"
export TANDEM_HOME="$temp/home"

"$TANDEM" synth pictures --classes 3 --per-class 40 --size 40 --seed 4 --quiet >/dev/null
options="--model convnet7 --size 32 --batch 30 --steps 8 --epochs 3 --patience 0"

bytes() { # run: of all that a training writes but times
    cat "$1/last.safetensors" "$1/best.safetensors" "$1/outcomes.safetensors" | sha256sum
}

# expect_trace FILE RANKS STEPS: what python makes of the file, with no help of ours.
expect_trace() {
    if ! command -v python3 >/dev/null; then
        skip "no python3 to read the trace with"
        return 0
    fi
    if python3 - "$@" 2>"$temp/json.txt" <<'END'; then
import json, sys
path, ranks, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
trace = json.load(open(path))
events = trace["traceEvents"]
spans = [e for e in events if e["ph"] == "X"]
names = {(e["pid"], e["args"]["name"]) for e in events if e["ph"] == "M" and e["name"] == "process_name"}
assert names == {(r, f"rank {r}") for r in range(ranks)}, names
lanes = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
assert all((e["pid"], e["tid"]) in lanes for e in spans)
assert all(e["ts"] >= 0 and e["dur"] >= 0 for e in spans) and min(e["ts"] for e in spans) == 0
ends = [0] * (steps + 1)
for rank in range(ranks):
    mine = [e for e in spans if e["pid"] == rank]
    assert [e["args"]["step"] for e in mine if e["cat"] == "step"] == list(range(1, steps + 1))
    kinds = {e["cat"] for e in mine}
    wanted = {"step", "forward", "backward", "add", "update", "read", "decode", "wait-images", "validation"}
    wanted |= {"sum", "wire", "message", "wait-sums", "wait-messages"} if ranks > 1 else set()
    wanted |= {"checkpoint"} if rank == 0 else set()
    assert wanted <= kinds, wanted - kinds
    assert kinds <= wanted | {"augment", "wait-rank"}, kinds - wanted
    layers = {e["name"] for e in mine if e["cat"] in ("forward", "backward")}
    assert "forward conv1" in layers and "backward conv1" in layers, layers
    # Events of a thread lie within each other or apart.
    for lane in {e["tid"] for e in mine}:
        open_ends = []
        for e in sorted((e for e in mine if e["tid"] == lane), key=lambda e: (e["ts"], -e["dur"])):
            while open_ends and open_ends[-1] <= e["ts"] + 1e-3:
                open_ends.pop()
            assert not open_ends or e["ts"] + e["dur"] <= open_ends[-1] + 2e-3, e
            open_ends.append(e["ts"] + e["dur"])
    # On one clock a step of no rank ends before the sums of another had begun.
    for e in mine:
        if e["cat"] == "step":
            n = e["args"]["step"]
            assert e["ts"] + e["dur"] > ends[n - 1], (rank, n)
    for e in mine:
        if e["cat"] == "step":
            ends[e["args"]["step"]] = max(ends[e["args"]["step"]], e["ts"])
END
        pass "$1: $2 ranks, $3 steps, layers, loader and sums, on one clock"
    else
        fail "$1 is no such trace: $(tail -n 1 "$temp/json.txt")"
    fi
}

# expect_sums FILE: the parts of the time of every rank are its time.
expect_sums() {
    expect_exit 0 "$TANDEM" trace summary "$1" --json
    expect_json first_step last_step events dropped ranks communication exposed hidden straggler
    command -v python3 >/dev/null || return 0
    expect_true "$1: the parts of a rank's time are its time" python3 -c '
import json, sys
for r in json.load(open(sys.argv[1]))["ranks"]:
    parts = [r[key] for key in ("computing", "images", "sums", "messages", "other")]
    assert min(parts) >= 0 and abs(sum(parts) - r["seconds"]) < 1e-6, r' "$out"
}

# ---- one process and two -------------------------------------------------------------------

# shellcheck disable=SC2086
"$TANDEM" train pictures -o untraced --quiet $options >/dev/null
# shellcheck disable=SC2086
expect_exit 0 "$TANDEM" train pictures -o one $options --trace deep/one.json
expect_stderr_matches '^--trace: steps 1 to 8 are in deep/one.json$'
expect_same "$(bytes untraced)" "$(bytes one)" "a trace changes no bit"
expect_trace deep/one.json 1 8
expect_sums deep/one.json
expect_true "one rank communicates nothing" grep -q '"hidden": null' "$out"

# shellcheck disable=SC2086
expect_exit 0 "$TANDEM" run -n 2 -- train pictures -o two $options --trace two.json
expect_stderr_matches '^--trace: steps 1 to 8 of 2 ranks are in two.json$'
expect_same "$(bytes untraced)" "$(bytes two)" "a trace of two ranks changes no bit"
expect_trace two.json 2 8
expect_sums two.json
expect_exit 0 "$TANDEM" trace summary two.json
expect_stdout_matches '^steps 1 to 8, seconds of each rank$'
expect_stdout_matches '^communication: [0-9.]+ s in all, [0-9.]+ s of it waited for: [0-9.]+ % was hidden'
expect_exit 0 "$TANDEM" trace summary two.json --from 3 --to 5
expect_stdout_matches '^steps 3 to 5, '

# Teams, and groups that go from one batch norm to the next together.
# shellcheck disable=SC2086
expect_exit 0 "$TANDEM" run -n 2 -- train pictures -o batch --quiet $options --bn batch --threads 3 --trace batch.json
expect_trace batch.json 2 8
expect_sums batch.json

# A head on stored features is trained by rank 0 alone, and the trace is its own.
"$TANDEM" train pictures -o base --model convnet7 --size 32 --epochs 1 --quiet >/dev/null
expect_exit 0 "$TANDEM" run -n 2 -- train pictures -o head --weights base --freeze base --epochs 2 --batch 16 --trace head.json
expect_stderr_matches '^--trace: steps 1 to 14 are in head.json$'
expect_sums head.json

# The file is not part of the run's record: to resume it is not to overwrite it.
rm deep/one.json
# shellcheck disable=SC2086
expect_exit 0 "$TANDEM" train pictures -o one --steps 10 --resume --quiet
expect_true "a resumed run has no trace of its own accord" test ! -e deep/one.json

# ---- a stop, and a trace that does not fit -------------------------------------------------

"$TANDEM" run -n 2 -- train pictures -o stopped --model lenet5 --epochs 100000 --patience 0 --batch 8 \
    --trace stopped.json >"$out" 2>"$err" </dev/null &
pid=$!
last_command="run -n 2 -- train … --trace stopped.json, and SIGTERM"
tries=0
while [ ! -e stopped/last.safetensors ] && [ $tries -lt 3000 ]; do
    sleep 0.01
    tries=$((tries + 1))
done
kill -TERM $pid
status=0
wait $pid || status=$?
expect_true "a stop ends with its own status ($status)" test "$status" -ne 0 -a "$status" -lt 128
expect_stderr_matches '^--trace: steps 1 to [0-9]+ of 2 ranks are in stopped.json'
expect_sums stopped.json

expect_exit 0 "$TANDEM" train pictures -o full --model lenet5 --epochs 40 --patience 0 --batch 64 --shard 1 \
    --threads 1 --trace full.json
expect_stderr_matches '^--trace: steps [0-9]{2,} to 80 are in full.json; what was before them did not fit'
expect_exit 0 "$TANDEM" trace summary full.json
expect_stdout_matches '^earlier steps did not fit in the trace$'
expect_sums full.json

# ---- refusals ------------------------------------------------------------------------------

mkdir folder
# shellcheck disable=SC2086
expect_exit 2 "$TANDEM" train pictures -o refused $options --trace folder
expect_stderr_matches 'option --trace'
expect_true "nothing was begun" test ! -e refused

: >empty.json
echo hello >words.json
echo '{"traceEvents":[]}' >none.json
echo '{"spans":[]}' >other.json
head -c 2000 two.json >cut.json
expect_exit 3 "$TANDEM" trace summary missing.json
expect_stderr_matches 'missing.json'
expect_exit 3 "$TANDEM" trace summary folder
for name in empty:'it is empty' words:words.json none:'none of its 0 events is a step' other:'no array "traceEvents"' \
    cut:cut.json; do
    expect_exit 3 "$TANDEM" trace summary "${name%%:*}.json"
    expect_stderr_matches "${name#*:}"
done
expect_exit 3 "$TANDEM" trace summary two.json --from 9
expect_stderr_matches 'it holds 1 to 8'
expect_exit 2 "$TANDEM" trace summary two.json --from 5 --to 4
expect_exit 2 "$TANDEM" trace summary
expect_exit 2 "$TANDEM" trace show two.json
finish
