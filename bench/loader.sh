# What the loader benches share, sourced by them: the pictures and how a rate is
# read: per second of processor time, which other programs on the machine change least (with two free
# processors the rate is twice that). photos are 500 x 375 JPEGs; prepared is the table that
# `prepare` makes of 880 of them at 299 x 299: Parquet, JPEG, a page for each.
unit="images for a second of processor time"
better=higher
figure='"images_per_processor_second": ([0-9.]+)'
ours_name="tandem"
make_photos() {
    "$PEER_PYTHON" "$ROOT/bench/peers/make_photos.py" "${TANDEM_TEST_DATA:-$ROOT/../shared/data}" photos
}
# Copies that differ in a byte behind the picture, so that each is a content of its own.
make_set() {
    make_photos
    mkdir set set/a set/b
    for copy in $(seq 40); do
        for photo in photos/*.jpg; do
            { cat "$photo" && echo "$copy"; } >"set/$([ $((copy % 2)) = 0 ] && echo a || echo b)/$copy-${photo##*/}"
        done
    done
}
make_prepared() {
    make_set
    "$TANDEM" prepare set -o prepared --size 299
}
