# Preset cuda: configured with the toolkit where nvcc is, with a rule a kernel, and ended by a sentence where it is
# not. Both are asked wherever they can be: a folder without a toolkit can be named everywhere.
. "$SOURCE/tests/cli/lib.sh"

configure() { # options
    cmake -S "$SOURCE" --preset cuda -B "$temp/made" "$@"
}
expect_reason() { # words options…: that a build with them has for having no backend cuda
    words=$1
    shift
    rm -rf "$temp/made"
    expect_exit 0 cmake -S "$SOURCE" -B "$temp/made" "$@"
    expect_match "$temp/made/generated/tandem_features.h" tandem_features.h "TDM_CUDA_ABSENT .*$words"
}
cd "$SOURCE" || exit 1 # where presets are looked for

expect_exit 1 configure -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON
expect_stderr_matches 'TANDEM_CUDA=ON needs the CUDA toolkit'
rm -rf "$temp/made"

expect_reason 'was left out when .*make cuda. builds' --preset minimal
expect_reason 'was left out when .*make cuda. builds' --preset minimal -DTANDEM_LIBRARIES=ON -DTANDEM_CUDA=OFF
expect_reason 'no CUDA toolkit was found' --preset minimal -DTANDEM_LIBRARIES=ON \
    -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON
rm -rf "$temp/made"

nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
if [ -n "$nvcc" ]; then
    expect_exit 0 configure
    expect_stdout_matches "^-- CUDA: .*, toolkit 1[2-9]\."
    rules=$temp/made/CMakeFiles/tandem_cuda.dir/build.make
    for kernel in src/backend/cuda/kernels/*.cu src/backend/cuda/kernels/*/*.cu; do
        expect_true "a rule for $(basename "$kernel")" grep -q "^cuda/$(basename "$kernel").o:" "$rules"
    done
    expect_true "it is code of the GPUs that docs/design/gpu.md names" \
        grep -q 'arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90' "$rules"
    expect_true "the host's part has the defences that C files have" \
        grep -q -- '-Xcompiler -fstack-protector-strong.*update.cu.o' "$rules"
    expect_true "a release build" grep -q '^CMAKE_BUILD_TYPE:[A-Z]*=Release$' "$temp/made/CMakeCache.txt"
    if command -v ninja >/dev/null; then
        rm -rf "$temp/made"
        expect_exit 0 configure -G Ninja -DTANDEM_CUDA_ARCHS=90
        kernel=cuda/copies.cu.o
        expect_exit 0 ninja -C "$temp/made" "$kernel"
        expect_stdout_matches 'nvcc copies.cu'
        expect_exit 0 ninja -C "$temp/made" "$kernel"
        expect_stdout_matches 'no work to do'
        expect_true "headers are among what it depends on" \
            grep -q 'src/backend/cuda/kernels/[a-z/]*\.cuh' "$temp/made/$kernel.d"
    fi
else
    expect_exit 1 configure
    expect_stderr_matches 'TANDEM_CUDA=ON needs the CUDA toolkit'
fi
finish
