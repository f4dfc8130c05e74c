# Functions that the rows of rows.txt use, sourced by bench/run: defaults of a family of rows (`use = …`), and steps
# of `prepare`, which run in the row's temporary folder.
DATA=${TANDEM_TEST_DATA:-$ROOT/../shared/data}

# ---- defaults of a family ------------------------------------------------------------------

# The peers of bench/peers that a compute row can name:
#   torch   PyTorch as installed
#   tuned   PyTorch with glibc set to keep memory (huge pages, nothing handed back)
#   nhwc    tuned, in PyTorch's channels_last layout
#   compile tuned, torch.compile; features with frozen weights
#   keras   Keras on TensorFlow, the networks of keras.applications
#   ddp     tuned, two processes of one thread each over gloo (training)
# The best of them differs between machines: bench/peers/compute_table.sh runs all.
compute() { # model mode batch image peer required aim [classes]
    local classes=${8:-1000} script=compute_torch.py options=--tuned
    [ "$1" = lenet5 ] && classes=${8:-10}
    case $5 in
    torch) options='' peer_name="PyTorch as installed" ;;
    tuned) peer_name="PyTorch, memory kept" ;;
    nhwc) options="--tuned --nhwc" peer_name="PyTorch, memory kept, channels last" ;;
    compile) options="--tuned --compile" peer_name="torch.compile" ;;
    keras) script=compute_keras.py options='' peer_name="Keras" ;;
    ddp) script=compute_ddp.py peer_name="PyTorch, 2 DDP processes" ;;
    *) fail "rows.txt: $1 $2 has the unknown peer '$5'" ;;
    esac
    unit="images/s" better=higher figure='"images_per_second": ([0-9.]+)' required="at least $6, aim $7"
    title="$1, $2, batch $3, $4 px,${8:+ $8 classes,} two threads, f32, against $peer_name"
    ours="\"\$TANDEM\" bench compute --model $1 --mode $2 --batch $3 --image $4 --classes $classes"
    ours="$ours --precision f32 --threads 2 --seconds 9 --json"
    peer="\"\$PEER_PYTHON\" \"\$ROOT/bench/peers/$script\" $1 $2 $3 $4 $options --classes $classes --seconds 6"
}

# Libraries are opened by every command or by the first layer that needs them, so both are counted: the mean of 20
# commands that do nothing else, and what a training does before its first step.
compute_start() {
    unit=ms better=lower figure='^([0-9.]+) ms'
    ours='set -e; began=$EPOCHREALTIME; for i in {1..20}; do "$TANDEM" --version >/dev/null; done; ended=$EPOCHREALTIME
        "$TANDEM" bench compute --model mobilenetv2 --mode train --batch 32 --threads 2 --seconds 0.5 --json |
        awk -v a=$began -v b=$ended -F "[:,]" '"'"'/"start_milliseconds"/ { print $2 + (b - a) / 20 * 1000, "ms" }'"'"
}

compute_memory() { # model batch image required aim
    compute "$1" train "$2" "$3" torch "$4" "$5"
    title="$1, peak memory of training, batch $2, $3 px, against PyTorch as installed"
    unit=bytes better=lower figure='"peak_bytes": ([0-9]+)'
}

kernels() { # program arguments
    unit=ms better=lower figure='^([0-9.]+) ms' peer_name=oneDNN
    ours="\"\$BUILD/bench/bench_$1\"${2:+ $2} ours 5"
    peer="\"\$BUILD/bench/bench_$1\"${2:+ $2} onednn 5"
    prepare="build $1"
}

decode() {
    unit="images/s" better=higher figure='processor time: ([0-9.]+)'
    }

# Two ranks train so many steps on photos that stay decoded in memory.
ranks() { # model batch steps [options]
    unit="images/s" better=higher figure='"images_per_second": ([0-9.]+)' ours_name="two ranks"
    prepare="\"\$TANDEM\" synth photos --classes 4 --per-class 100 --size 256 --quiet"
    before='rm -rf run'
    ours="\"\$TANDEM\" run -n 2 --json -- $(train_photos "$@")"
}
train_photos() { # model batch steps [options]
    echo "train photos -o run --model $1 --augment none --batch $2 --steps $3 --epochs 0 --eval-every 1000 --cache decoded ${4:-}"
}

# Features of photos and changed copies of them by ranks of one thread: the time of a training that computes them, less
# that of one that finds them. Each rank has one CPU, because a rank of one thread reads and decodes on another one where
# there is one. TANDEM_TEST_DATA as in bench/ladder.
rank_features() {
    local train='train "$TANDEM_TEST_DATA/datasets/caltech101_10" -o run --model mobilenetv2 --epochs 4 --quiet'
    train+=' --weights "$TANDEM_TEST_DATA/weights/mobilenetv2_1.0_224_imagenet.safetensors"'
    train+=' --augment flip,crop:8 --views 4 --threads 1 >/dev/null'
    both_times() { # ranks [prefix]
        echo "set -e; rm -rf home run; export TANDEM_HOME=home; began=\$EPOCHREALTIME
            ${2:-} \"\$TANDEM\" run -n $1 -- $train; middle=\$EPOCHREALTIME
            rm -rf run; ${2:-} \"\$TANDEM\" run -n $1 -- $train
            awk -v a=\$began -v b=\$middle -v c=\$EPOCHREALTIME 'BEGIN { print 3122 / (b - a - (c - b)), \"images/s\" }'"
    }
    unit="images/s" better=higher figure='^([0-9.]+) images'
    ours=$(both_times 2) ours_name="two ranks" peer=$(both_times 1 "taskset -c 0") peer_name="one rank on one CPU"
}

# Two processes of Open MPI on one machine, nothing else computing.
allreduce() { # MiB peer
    unit=ms figure='"milliseconds": ([0-9.]+)'
    local mpirun='mpirun.openmpi -n 2 --bind-to none $([ "$(id -u)" != 0 ] || echo --allow-run-as-root)'
    local bytes=$(($1 << 20))
    ours="$mpirun \"\$TANDEM\" bench allreduce --bytes $bytes --seconds 3 --json" ours_name="exact sum"
    if [ "$2" = mpi ]; then
        peer_name=MPI_Allreduce peer="$mpirun ./allreduce $bytes 3"
        prepare='mpicc.openmpi -O2 -o allreduce "$ROOT/bench/peers/allreduce_mpi.c"'
    else
        peer_name=gloo peer="\"\$PEER_PYTHON\" \"\$ROOT/bench/peers/allreduce_gloo.py\" $bytes 3"
    fi
}

# Rates are per second of CPU time, which other programs on the machine change least (with two free cores the rate
# is twice that).
loader() {
    unit="images for a second of CPU time" better=higher figure='"images_per_processor_second": ([0-9.]+)'
}

# ---- steps of prepare ----------------------------------------------------------------------

build() { # program
    cmake --build "$ROOT/build" --target "bench_$1" >build.txt 2>&1 || {
        tail -n 20 build.txt >&2
        return 1
    }
}

make_photos() { # photos: JPEG files of 500 x 375
    "$PEER_PYTHON" "$ROOT/bench/peers/make_photos.py" "$DATA" photos
}

link_caltech() { # photos: class folders of the test data
    ln -s "$(cd "$DATA/datasets/caltech101_10" && pwd)" photos
}

make_module() { # site/tandem: the Python package, for the library of $BUILD
    mkdir -p site/tandem
    cp "$ROOT"/python/tandem/* site/tandem/
    "$PEER_PYTHON" "$ROOT/python/declarations" "$ROOT/include" >site/tandem/_declarations.py
}

# List one set of images in files.txt: caltech (photos of the test data), photos (500 x 375) or large (12 megapixels).
list_images() { # set
    build decode
    case $1 in
    caltech) find -L "$DATA/datasets/caltech101_10" -name '*.jpg' ;;
    photos)
        make_photos >photos.txt
        find photos -name '*.jpg'
        ;;
    large)
        "$PEER_PYTHON" "$ROOT/bench/peers/make_large.py" "$DATA" large >large.txt
        find large -maxdepth 1 -name '*.jpg'
        ;;
    esac | sort >files.txt
    [ -s files.txt ] || {
        echo "no pictures in $DATA" >&2
        return 1
    }
}

# Write set/: 40 copies of each photo that differ in a byte behind the image, so that each is a content of its own.
make_set() {
    make_photos
    mkdir set set/a set/b
    for copy in $(seq 40); do
        for photo in photos/*.jpg; do
            { cat "$photo" && echo "$copy"; } >"set/$([ $((copy % 2)) = 0 ] && echo a || echo b)/$copy-${photo##*/}"
        done
    done
}

# Write prepared/: the table that `prepare` makes of 880 photos at 299 x 299: Parquet, JPEG, a page for each.
make_prepared() {
    make_set
    "$TANDEM" prepare set -o prepared --size 299
}

need_space() { # bytes
    [ "$(df --output=avail -B1 . | tail -n 1)" -gt "$1" ] || fail "no room for a table of 4.3 GB"
}

write_table() { # file images
    build parquet_read
    "$ROOT/build/bench/bench_parquet_read" write "$1" 224 "$2"
}

# Write the weights of MobileNetV2 in the form that the file's name ends with.
write_weights() { # file
    build weights
    local source=$DATA/weights/mobilenetv2_1.0_224_imagenet.safetensors
    case $1 in
    *.safetensors) cp "$source" "$1" ;;
    *) "$PEER_PYTHON" "$ROOT/bench/peers/weights_load.py" write "$source" "$1" ;;
    esac
}

make_zip() { # stored or deflated
    build archive
    cc -O2 -o zip_libzip "$ROOT/bench/peers/zip_libzip.c" -lzip -lpthread
    "$PEER_PYTHON" "$ROOT/bench/peers/make_zip.py" x.zip "$1" 100000 4000
}
