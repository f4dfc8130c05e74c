# tandem doctor, with libraries of our own making in place of the GPU driver, MPI and NCCL.
. "$SOURCE/tests/cli/lib.sh"

expect_exit 0 "$TANDEM" doctor --time 1 --disk-size 4M --json
expect_json version build cpu memory limits gpus gpu_driver gpu_libraries mpi nccl features measured
expect_true "something was measured" test "$(json_value measured.copy_bytes_per_s.one_thread)" != None
expect_true "seconds are reported" test "$(json_value measured.seconds)" != None

expect_exit 0 "$TANDEM" doctor --time 1 --disk-size 4M
expect_stdout_matches '^This machine$'
expect_stdout_matches '^  CPU +[^ ]'
expect_stdout_matches '^  memory copy +[0-9.]+ .?B/s +on one thread, [0-9.]+ .?B/s +on [0-9]+ \(read \+ written\)$'
expect_stdout_matches '^  f32 matmul +[0-9.]+ .?FLOP/s +on one thread'
expect_stdout_matches '^  precision '
expect_stdout_matches '^  disk read +[0-9.]+ .?B/s over 4.00 MiB \('
# A path has no place where it could be broken.
expect_true "no line is wider than 80 columns" awk 'length > 80 && NF > 1 { exit 1 }' "$out"
if [ -e "$BUILD/libtandem_cuda.so" ]; then
    expect_stdout_matches '^  CUDA +[0-9.]+ \(linked in\)$'
    expect_stdout_matches '^  cuDNN +([0-9.]+$|[0-9.]+ \(|not found: )'
    expect_stdout_matches '^  cuBLASLt +([0-9.]+$|[0-9.]+ \(|not found: )'
fi
expect_stderr_matches '^.*measuring for about 1 s$'

expect_exit 0 "$TANDEM" doctor --no-measure --json
expect_same None "$(json_value measured)" "measured is null without measurements"
expect_exit 3 "$TANDEM" doctor --folder missing
expect_stderr_matches '^tandem: the disk cannot be measured in missing, which is no folder$'
expect_true "nothing is left behind" test -z "$(ls -A | grep -v -e stdout.txt -e stderr.txt -e json.txt)"

# ---- libraries -----------------------------------------------------------------------------
if ! command -v cc >/dev/null; then
    skip "no compiler to make libraries with"
    finish
fi
if is_sanitized; then
    skip "a sanitizer's program loads no foreign libraries"
    finish
fi
mkdir fake
cat >mpi.c <<'END'
#include <string.h>
int MPI_Get_library_version(char *text, int *length)
{
    strcpy(text, "Pretend MPI v9.8.7, made for a test\nsecond line");
    *length = (int)strlen(text);
    return 0;
}
END
cat >nccl.c <<'END'
int ncclGetVersion(int *version)
{
    *version = 21805;
    return 0;
}
END
cat >nvml.c <<'END'
#include <string.h>
typedef struct gpu *gpu;
struct memory { unsigned long long total, available, used; };
int nvmlInit_v2(void) { return INIT; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, gpu *c) { *c = (gpu)(i + 1ul); return 0; }
int nvmlSystemGetDriverVersion(char *t, unsigned n) { strncpy(t, "123.45", n); return 0; }
int nvmlSystemGetCudaDriverVersion_v2(int *v) { *v = 12040; return 0; }
int nvmlDeviceGetName(gpu c, char *t, unsigned n) { strncpy(t, c == (gpu)1 ? "Pretend A" : "Pretend B", n); return 0; }
int nvmlDeviceGetMemoryInfo(gpu c, struct memory *m) { m->total = 8ull << 30; m->available = 6ull << 30; return 0; }
int nvmlDeviceGetCudaComputeCapability(gpu c, int *a, int *b) { *a = 9; *b = 0; return 0; }
int nvmlDeviceGetNvLinkState(gpu c, unsigned l, unsigned *on) { *on = l < 2; return l < 4 ? 0 : 2; }
END
cc -shared -fPIC -o fake/libmpi.so.40 mpi.c
cc -shared -fPIC -o fake/libnccl.so.2 nccl.c
cc -shared -fPIC -DINIT=0 -w -o fake/libnvidia-ml.so.1 nvml.c
expect_exit 0 env LD_LIBRARY_PATH="$PWD/fake" "$TANDEM" doctor --no-measure
expect_stdout_matches '^  MPI +Pretend MPI v9.8.7, made for a test \(libmpi.so.40\)$'
expect_same 1 "$(grep -c '^  NCCL ' "$out")" "NCCL is named once, also where the CUDA backend looks for it"
has_cuda=$(grep -c '^  cuDNN ' "$out")
[ "$has_cuda" != 0 ] || expect_stdout_matches '^  NCCL +NCCL 2.18.5 \(libnccl.so.2\)$'
expect_stdout_matches '^  GPU driver +123.45, serves CUDA up to 12.4$'
expect_stdout_matches '^  GPU 1 +Pretend B, 8.00 GiB \(6.00 GiB free\), compute 9.0, 2 NVLinks$'
expect_exit 0 env LD_LIBRARY_PATH="$PWD/fake" "$TANDEM" doctor --no-measure --json
expect_same 'Pretend A' "$(json_value gpus.0.name)" "the first GPU's name"
expect_same 8589934592 "$(json_value gpus.1.memory_bytes)" "the second GPU's memory"
expect_same None "$(json_value gpus.0.uuid)" "what the driver does not say is null"
expect_same True "$(json_value mpi.found)" "MPI is found"

echo 'int unrelated;' >empty.c
cc -shared -fPIC -o fake/libmpi.so.40 empty.c
cc -shared -fPIC -o fake/libnccl.so.2 empty.c
cc -shared -fPIC -DINIT=9 -w -o fake/libnvidia-ml.so.1 nvml.c
expect_exit 0 env LD_LIBRARY_PATH="$PWD/fake" "$TANDEM" doctor --no-measure
expect_stdout_matches '^  MPI +not found: libmpi.so.40 has no MPI_Get_library_version$'
[ "$has_cuda" != 0 ] || expect_stdout_matches '^  NCCL +not found: libnccl.so.2 has no ncclGetVersion$'
expect_stdout_matches '^  GPUs +none: the NVIDIA driver is installed but not running'
finish
