# What the loader benches share, sourced by them: the pictures and how a rate is
# read: per second of processor time, which other programs on the machine change least (with two free
# processors the rate is twice that). photos are
# 500 x 375 JPEGs, prepared the same at 299 x 299 as `prepare` stores them.
unit="images for a second of processor time"
better=higher
figure='"images_per_processor_second": ([0-9.]+)'
ours_name="tandem"
make_pictures() { # photos or prepared
    "$PEER_PYTHON" "$ROOT/bench/peers/make_photos.py" "${TANDEM_TEST_DATA:-$ROOT/../shared/data}" photos
    [ "$1" = photos ] || "$PEER_PYTHON" "$ROOT/bench/peers/make_prepared.py" photos prepared 299
}
