# bench/gpu/machine-code: without nvcc, with one that is none (what ptxas says is read, occupancy is counted), and
# with the real one where it is installed.
. "$SOURCE/tests/cli/lib.sh"

command -v python3 >/dev/null || {
    skip "no python3"
    finish
}
look() {
    python3 "$SOURCE/bench/gpu/machine-code" "$@"
}

expect_exit 4 look --nvcc "$PWD/nothing/nvcc"
expect_stderr_matches 'there is no nvcc \(.*nothing/nvcc\): put that of CUDA 12 or newer on the PATH'
expect_exit 2 look --nvcc "$PWD/nothing/nvcc" nothing
expect_stderr_matches 'no file of .*/src/backend/cuda begins with nothing'

mkdir tools
cat >tools/nvcc <<'END'
#!/bin/sh
while [ "$1" != -o ]; do shift; done
cat >"$2" <<PTX
.visible .entry light(.param .u64 light_param_0)
.maxntid 128, 1, 1
{
}
.visible .entry heavy(
    .param .u64 heavy_param_0
)
.maxntid 16, 16, 1
.minnctapersm 2
{
}
PTX
END
cat >tools/ptxas <<'END'
#!/bin/sh
cat <<SAID
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'light' for 'sm_90'
ptxas info    : Function properties for light
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers, 360 bytes cmem[0]
ptxas info    : Compiling entry function 'heavy' for 'sm_90'
ptxas info    : Function properties for heavy
    72 bytes stack frame, 40 bytes spill stores, 44 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers, 100000 bytes smem, 400 bytes cmem[0]
SAID
END
chmod +x tools/nvcc tools/ptxas
# light: 16 blocks of 4 warps fill all 2048 threads. heavy: 5,376 registers a warp, three a partition, so one block
# of 8 warps; shared memory would let in two.
expect_exit 0 look --nvcc "$PWD/tools/nvcc" elementwise
expect_stdout_matches '^elementwise.cu +2 +32 to 168 +44 +100000 +256 to 2048$'
expect_stdout_matches '^    heavy +168 registers, 44 bytes spilled, 100000 shared, blocks of 256, 256 threads$'
expect_same 1 "$(grep -c ' registers, ' "$out")" "one that is as it should be is not named"
expect_exit 0 look --nvcc "$PWD/tools/nvcc" --all elementwise
expect_stdout_matches '^    light +32 registers, 0 bytes spilled, 0 shared, blocks of 128, 2048 threads$'
expect_exit 0 look --nvcc "$PWD/tools/nvcc" --markdown elementwise lrn
expect_stdout_matches '^\| `lrn.cu` \| 2 \| 32 to 168 \| 44 \| 100000 \| 256 to 2048 \|$'
expect_exit 1 look --nvcc "$PWD/tools/nvcc" --most-spilled 40 elementwise
expect_stderr_matches '^past the limits: heavy$'
expect_exit 0 look --nvcc "$PWD/tools/nvcc" --most-spilled 44 --least-threads 256 elementwise
expect_exit 1 look --nvcc "$PWD/tools/nvcc" --least-threads 257 elementwise
printf '#!/bin/sh\necho "it is broken"\nexit 1\n' >tools/ptxas
expect_exit 1 look --nvcc "$PWD/tools/nvcc" elementwise
expect_stderr_matches 'it is broken'

# What NVIDIA's own says: a file whose kernels only move memory spills nothing, and fills half a card.
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
if [ -n "$nvcc" ]; then
    expect_exit 0 look --nvcc "$nvcc" --all --most-spilled 0 --least-threads 1024 tail curves
    expect_stdout_matches '^curves.cu +[0-9]+ '
    expect_stdout_matches '^    [a-z_]+<bf16.*> +[0-9]+ registers, 0 bytes spilled'
fi
finish
