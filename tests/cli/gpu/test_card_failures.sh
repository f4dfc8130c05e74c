# train on a card of which some call fails half way: it ends with a sentence or goes on without, it
# never breaks a rule of CUDA's runtime (the stand-in would end it by a signal), and whoever resumes
# it has the bits of one that nothing happened to.
. "$SOURCE/tests/cli/lib.sh"

if [ ! -f "$BUILD/tests/card/libtandem_cuda.so" ] || [ ! -f "$BUILD/libtandem_cuda.so" ]; then
    skip "no shim, or a build without backend cuda"
    finish
    exit
fi

for class in left right; do
    mkdir -p pictures/$class
    i=0
    while [ $i -lt 12 ]; do
        awk -v class=$class -v seed=$i 'BEGIN {
            srand(seed + (class == "left" ? 1 : 1000))
            print "P3 8 8 255"
            for (y = 0; y < 8; y++)
                for (x = 0; x < 8; x++) {
                    v = ((x < 4) == (class == "left") ? 190 : 40) + int(rand() * 40)
                    print v, v, v
                }
        }' >"pictures/$class/$i.ppm"
        i=$((i + 1))
    done
done
export TANDEM_CARD_PACE=late
on_card() {
    env LD_LIBRARY_PATH="$BUILD/tests/card" "$TANDEM" train pictures --device cuda --threads 1 \
        --model convnet7 --size 8 --batch 4 --split 0.75,0.25 --patience 0 --seed 3 \
        --augment crop:1,flip --json "$@"
}
expect_exit 0 on_card -o whole --epochs 2

n_ended=0
n=0
for call in "cudaMalloc 2" "cudaMalloc 9" "cudaHostAlloc 1" "cudaHostAlloc 3" "cudaMemset 4" \
    "cudaStreamCreateWithFlags 2" "cudaStreamCreateWithFlags 5" "cudaEventCreateWithFlags 2" \
    "cudaMemcpyAsync 20" "cudaMemcpyAsync 60" "cudaEventRecord 3" "cudaStreamWaitEvent 5" \
    "cudaStreamSynchronize 30" "cudaStreamSynchronize 60" "a-launch 40" "a-launch 300" \
    "cudaStreamBeginCapture 1" "cudaStreamEndCapture 1" "cudaGraphInstantiate 1" \
    "cudaGraphUpload 1" "cudaGraphLaunch 1" "cudaGraphLaunch 4"; do
    n=$((n + 1))
    status=0
    last_command="train, where call $call fails"
    TANDEM_CARD_FAIL="$call" on_card -o "run$n" --epochs 2 >"$out" 2>"$err" || status=$?
    if [ $status -ge 128 ] || grep -q 'would say' "$err"; then
        fail "$last_command: exit $status"
        show_output
        continue
    fi
    if [ $status -ne 0 ]; then
        n_ended=$((n_ended + 1))
        expect_stderr_matches 'because: .*(out of memory|no memory for|not free)'
        again=--resume
        [ -f "run$n/run.json" ] || again=
        # shellcheck disable=SC2086 # nothing, or a word
        expect_exit 0 on_card -o "run$n" --epochs 2 $again
    fi
    expect_true "$call: the weights of one that nothing happened to" \
        cmp "run$n/last.safetensors" whole/last.safetensors
done
expect_true "many of them end it ($n_ended)" test "$n_ended" -ge 10
finish
