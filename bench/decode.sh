# What the decode benches share, sourced by them: the program, and the lists of pictures.
# The Caltech photos are those of the test data; the 500 x 375 ones are made by peers/make_photos.py,
# those of 12 megapixels by peers/make_large.py.
DATA=${TANDEM_TEST_DATA:-$ROOT/../shared/data}
DECODE=$ROOT/build/bench/bench_decode
export DATA DECODE
unit="images/s"
better=higher

build_program() {
    cmake --build "$ROOT/build" --target bench_decode >build.txt 2>&1 || {
        tail -n 20 build.txt >&2
        return 1
    }
}

# List the files of one set in files.txt: caltech, photos or large.
list_pictures() {
    build_program
    case $1 in
    caltech) find -L "$DATA/datasets/caltech101_10" -name '*.jpg' ;;
    photos)
        "$PEER_PYTHON" "$ROOT/bench/peers/make_photos.py" "$DATA" photos >photos.txt
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
