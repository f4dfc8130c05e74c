#!/bin/bash
# tests/long/torchrun.sh [TANDEM]: the ranks of a training started by the real torchrun.
# A rank is killed with and without --max-restarts, and the run is continued by another number of ranks; the bytes are
# those of one process. Exit code 77 (skipped) where PyTorch cannot be had. TORCHRUN: the program to use; else that of
# .venv-peers (bench/peers/setup), else of $TORCH_VENV (default: ~/.cache/tandem/torch-venv), made and kept.
. "$(dirname "$0")/lib/ranks.sh"

venv=${TORCH_VENV:-$cache/torch-venv}
torchrun=${TORCHRUN:-$source/.venv-peers/bin/torchrun}
[ -x "$torchrun" ] || torchrun=$venv/bin/torchrun
if [ ! -x "$torchrun" ]; then
    mkdir -p "$(dirname "$venv")" && python3 -m venv "$venv" >pip.log 2>&1 &&
        "$venv/bin/pip" install -q torch >>pip.log 2>&1
fi
"$torchrun" --help >help.txt 2>&1 || skip "torchrun cannot be had in $venv: $(tail -n 1 pip.log help.txt 2>/dev/null | tail -n 1)"
one_process

export TANDEM_DEADLINE=5 TMPDIR=$work/tmp # torchrun leaves folders there
mkdir -p "$TMPDIR"
# ranks N RUN OPTIONS-OF-TORCHRUN -- OPTIONS-OF-TRAIN: the command, in line
ranks() {
    line=("$torchrun" --no-python --nproc-per-node "$1" --rdzv-backend c10d --rdzv-endpoint localhost:0)
    local run=$2
    shift 2
    while [ "$1" != -- ]; do
        line+=("$1")
        shift
    done
    shift
    # shellcheck disable=SC2206 # words
    line+=("$tandem" train photos -o "$run" $options "$@")
}
kill_rank() { # run
    wait_for_checkpoint "$1"
    begin
    kill -9 "$(rank_process RANK=1 "$1")"
    wait "$job"
    status=$?
}

begin
ranks 2 two --
"${line[@]}" >"$out" 2>&1
status=$?
end "2 ranks train" 0
expect_bytes two
check "and the record says 2" grep -q '"world": 2' two/run.json

ranks 2 lost --
"${line[@]}" >"$out" 2>&1 &
job=$!
kill_rank lost
end "rank 1 is killed" '[1-9]*' 'rank 1'
begin
"$tandem" run -n 3 -- train photos -o lost --resume --quiet >"$out" 2>&1
status=$?
end "continued by 3 ranks of tandem run" 0
expect_bytes lost

ranks 2 again --max-restarts 1 -- --resume
"${line[@]}" >"$out" 2>&1 &
job=$!
kill_rank again
end "rank 1 is killed, --max-restarts 1" 0 'rank 1'
expect_bytes again

begin
ranks 2 again --
"${line[@]}" >"$out" 2>&1
status=$?
end "a mistake of the user: the run is there" '[1-9]*' 'holds a run already'
check "is said once" [ "$(grep -c 'holds a run already' "$out")" = 1 ]

ranks 2 stopped --
"${line[@]}" >"$out" 2>&1 &
job=$!
wait_for_checkpoint stopped
begin
kill -TERM "$job"
wait "$job"
status=$?
end "torchrun gets SIGTERM" '[1-9]*'
begin
ranks 3 stopped -- --resume
"${line[@]}" >"$out" 2>&1
status=$?
end "continued by 3 ranks" 0
expect_bytes stopped
check "no rank is left behind" [ -z "$(pgrep -f "$tandem train photos" | while read -r p; do
    [ "$(readlink "/proc/$p/cwd")" = "$work" ] && echo "$p"
done)" ]
finish
