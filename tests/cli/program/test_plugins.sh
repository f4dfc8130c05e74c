# Parts of tandem that are opened when they are first asked for: no command loads them for nothing,
# and one that cannot be opened is a sentence.
. "$SOURCE/tests/cli/lib.sh"

library=$BUILD/libtandem.so
if ! command -v readelf >/dev/null; then
    skip "no readelf to look into libraries with"
    finish
fi
heavy='libdnnl|libgomp|libarrow|libparquet|libtandem_|libstdc|libmicrohttpd|libgnutls|libmpi|libmpich'
needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
expect_true "libtandem says what it needs" test -n "$needed"
expect_same "" "$(echo "$needed" | grep -E "$heavy")" "nothing of it is loaded at the start of a command"
if [ -e "$BUILD/libtandem_onednn.so" ]; then
    expect_same tdmi_plugin "$(nm -D --defined-only "$BUILD/libtandem_onednn.so" | awk '{ print $3 }')" \
        "the part with oneDNN exports one symbol"
else
    skip "this build has no oneDNN"
fi
if [ -e "$BUILD/libtandem_http.so" ]; then
    expect_same tdmi_plugin "$(nm -D --defined-only "$BUILD/libtandem_http.so" | awk '{ print $3 }')" \
        "the plugin for HTTP exports one symbol"
else
    skip "this build has no libmicrohttpd"
fi
if [ -e "$BUILD/libtandem_cuda.so" ]; then
    expect_same tdmi_plugin "$(nm -D --defined-only "$BUILD/libtandem_cuda.so" | awk '{ print $3 }')" \
        "the part for NVIDIA GPUs exports one symbol"
    expect_same "" "$(readelf -d "$BUILD/libtandem_cuda.so" |
        grep -E 'NEEDED.*(libcuda|libcudnn|libcublas|libstdc)')" \
        "and can be opened where no driver is"
else
    skip "this build has no backend for GPUs"
fi
for mpi in openmpi mpich; do
    if [ -e "$BUILD/libtandem_mpi_$mpi.so" ]; then
        expect_same tdmi_plugin "$(nm -D --defined-only "$BUILD/libtandem_mpi_$mpi.so" | awk '{ print $3 }')" \
            "the plugin for $mpi exports one symbol"
    else
        skip "this build has no $mpi"
    fi
done
if [ ! -e "$BUILD/libtandem_arrow.so" ]; then
    skip "this build has no Arrow"
    finish
fi
expect_same tdmi_plugin "$(nm -D --defined-only "$BUILD/libtandem_arrow.so" | awk '{ print $3 }')" \
    "the part with Arrow gives out one symbol"
expect_exit 3 "$TANDEM" prepare nowhere -o out --codec raw
expect_stderr_matches "nowhere"

if ! command -v cc >/dev/null; then
    skip "no compiler to make libraries with"
    finish
fi
if echo "$needed" | grep -q 'libasan\|libtsan' || readelf -d "$library" | grep -q '(RPATH)'; then
    skip "a sanitizer's program finds its libraries before those of LD_LIBRARY_PATH"
    finish
fi

mkdir fake # with others of its name
prepare="$TANDEM prepare nowhere -o out --codec raw"
cat >other.c <<'END'
#include <stddef.h>
const void *tdmi_plugin(const void *host, const char **made_by, size_t *table_bytes);
const void *tdmi_plugin(const void *host, const char **made_by, size_t *table_bytes)
{
    *made_by = VERSION;
    *table_bytes = 8;
    return host;
}
END
echo 'int unrelated;' >empty.c

expect_exit 0 "$TANDEM" doctor --no-measure
expect_stdout_matches '^  arrow +on +[0-9]'

echo "this is no library" >fake/libtandem_arrow.so
expect_exit 4 env LD_LIBRARY_PATH="$PWD/fake" $prepare
expect_stderr_matches 'cannot write Parquet$'
expect_stderr_matches "libtandem_arrow.so, the part of tandem that reads Parquet and object stores, cannot be used: the loader reports '.*libtandem_arrow.so: .*'; 'make install' puts the one of tandem 0"
expect_exit 0 env LD_LIBRARY_PATH="$PWD/fake" "$TANDEM" doctor --no-measure
expect_stdout_matches '^  arrow +off +libtandem_arrow.so, the part of tandem that'
expect_true "no line of it says that it is on" test -z "$(grep -E '^  arrow +on' "$out")"
expect_exit 0 env LD_LIBRARY_PATH="$PWD/fake" "$TANDEM" doctor --no-measure --json
sed -n '/"name": "arrow"/,/}/p' "$out" >arrow.txt
cp arrow.txt "$out"
expect_stdout_matches '^ *"on": false,$'
expect_stdout_matches '^ *"version": null,$'
expect_stdout_matches '^ *"remedy": "make install",$'
expect_stdout_matches '^ *"problem": "libtandem_arrow.so, .* cannot be used: the loader reports .*file too short'

cc -shared -fPIC -o fake/libtandem_arrow.so empty.c
expect_exit 4 env LD_LIBRARY_PATH="$PWD/fake" $prepare
expect_stderr_matches 'cannot be used: the one that the loader finds is not of tandem;'

cc -shared -fPIC -DVERSION='"0.0.7"' -o fake/libtandem_arrow.so other.c
expect_exit 4 env LD_LIBRARY_PATH="$PWD/fake" $prepare
expect_stderr_matches 'cannot be used: the one that the loader finds is of tandem 0.0.7;'

version=$("$TANDEM" --version | sed 's/^tandem //; q')
cc -shared -fPIC -DVERSION="\"$version\"" -o fake/libtandem_arrow.so other.c
expect_exit 4 env LD_LIBRARY_PATH="$PWD/fake" $prepare
expect_stderr_matches "is of another build of tandem $version, with a table of 8 bytes in place of [0-9]+; 'make install'"

# Without it another kernel would run the layer and give other bits.
if [ -e "$BUILD/libtandem_onednn.so" ]; then
    "$TANDEM" synth pictures --classes 2 --per-class 4 --size 32 --quiet
    echo "this is no library" >fake/libtandem_onednn.so
    mkdir runs
    for command in --version help "audit pictures" runs "doctor --no-measure"; do
        expect_exit 0 env LD_LIBRARY_PATH="$PWD/fake" "$TANDEM" $command
    done
    expect_stdout_matches '^  onednn +off +libtandem_onednn.so, the part of tandem that'
    expect_exit 4 env LD_LIBRARY_PATH="$PWD/fake" "$TANDEM" bench compute --model lenet5 --batch 2
    expect_stderr_matches "libtandem_onednn.so, the part of tandem that computes by oneDNN, cannot be used"
    expect_exit 4 env LD_LIBRARY_PATH="$PWD/fake" "$TANDEM" train pictures -o run --model lenet5 --epochs 1
    expect_stderr_matches "libtandem_onednn.so, the part of tandem that computes by oneDNN, cannot be used"
    rm fake/libtandem_onednn.so
fi

if [ -e "$BUILD/libtandem_http.so" ]; then
    cp fake/libtandem_arrow.so fake/libtandem_http.so
    expect_exit 4 env LD_LIBRARY_PATH="$PWD/fake" "$TANDEM" predict nowhere --serve 0
    expect_stderr_matches "libtandem_http.so, the part of tandem that answers over HTTP, cannot be used: .* of another build"
    echo "this is no library" >fake/libtandem_http.so
    expect_exit 0 env LD_LIBRARY_PATH="$PWD/fake" "$TANDEM" doctor --no-measure
    expect_stdout_matches '^  http +off +libtandem_http.so, the part of tandem that answers over HTTP'
fi

if [ -e "$BUILD/libtandem_cuda.so" ]; then
    cp fake/libtandem_arrow.so fake/libtandem_cuda.so
    expect_exit 4 env LD_LIBRARY_PATH="$PWD/fake" "$TANDEM" selftest --device cuda
    expect_stderr_matches "libtandem_cuda.so, the part of tandem that computes on NVIDIA GPUs, cannot be used: .* of another build"
    expect_exit 0 env LD_LIBRARY_PATH="$PWD/fake" "$TANDEM" doctor --no-measure
    expect_stdout_matches '^  cuda +off +libtandem_cuda.so, the part of tandem that computes on NVIDIA'
fi

printf 'PAR1' >a.parquet
expect_exit 4 env LD_LIBRARY_PATH="$PWD/fake" "$TANDEM" audit a.parquet
expect_stderr_matches "cannot open 'a.parquet' as Parquet files"
expect_true "commands that want no Parquet do not notice" env LD_LIBRARY_PATH="$PWD/fake" "$TANDEM" --version
finish
