# Pretrained weights that only rank 0 has: how images are prepared travels with them, the others wait for a slow
# mirror, and rank 0 chooses the network for all.
. "$SOURCE/tests/cli/lib.sh"
export TANDEM_HOME="$temp/home"
if ! command -v python3 >/dev/null; then
    skip "needs python3 for the files and the server"
    finish
fi

"$TANDEM" synth photos --classes 3 --per-class 14 --size 70 --seed 1 --quiet >"$out" 2>"$err" </dev/null
"$TANDEM" synth others --classes 2 --per-class 12 --size 32 --seed 2 --quiet >"$out" 2>"$err" </dev/null
bytes() { # run: of all that a training writes but times
    cat "$1/last.safetensors" "$1/best.safetensors" "$1/outcomes.safetensors" | sha256sum
}

# ---- a config.json of timm -----------------------------------------------------------------------
# A file of PyTorch's names and no word about images, as timm publishes them.
expect_exit 0 "$TANDEM" train others -o maker --model convnet7 --size 32 --epochs 1
expect_exit 0 "$TANDEM" export maker -o maker.safetensors
mkdir here there
python3 - maker.safetensors here/model.safetensors <<'END'
import json, struct, sys
whole = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", whole[:8])[0]
head = json.loads(whole[8:8 + n])
head.pop("__metadata__")
text = json.dumps(head).encode()
open(sys.argv[2], "wb").write(struct.pack("<Q", len(text)) + text + whole[8 + n:])
END
config() { # crop_pct mean
    printf '{"pretrained_cfg": {"input_size": [3, 32, 32], "interpolation": "bicubic", "crop_pct": %s,
        "mean": [%s, %s, %s], "std": [%s, %s, %s]}}' "$1" "$2" "$2" "$2" "$3" "$3" "$3"
}
config 0.9 0.5 0.5 >here/config.json
config 0.5 0.0 1.0 >there/config.json # rank 1 may hold another one, and no weights
options="--weights model.safetensors --model convnet7 --epochs 2 --batch 8 --threads 1 --quiet"
rank() { # rank options…: of two that are started by hand, each in a folder of its own
    TANDEM_RANK=$1 TANDEM_WORLD=2 TANDEM_ADDRESS=127.0.0.1:$port TANDEM_DEADLINE=30
    export TANDEM_RANK TANDEM_WORLD TANDEM_ADDRESS TANDEM_DEADLINE
    shift
    # shellcheck disable=SC2086
    exec "$TANDEM" train "$temp/photos" -o run $options "$@"
}
port=$((20000 + $$ % 10000))
for freeze in base none; do
    rm -rf here/run home
    # shellcheck disable=SC2086
    (cd here && "$TANDEM" train "$temp/photos" -o run $options --freeze $freeze) >"$out" 2>"$err" </dev/null ||
        fail "one process: $(tail -n 1 "$err")"
    expected=$(bytes here/run)
    rm -rf here/run home
    port=$((port + 1))
    (cd there && TANDEM_HOME=$temp/there/home && rank 1 --freeze $freeze) >there/out 2>&1 </dev/null &
    (cd here && rank 0 --freeze $freeze) >"$out" 2>"$err" </dev/null
    expect_same 0 $? "--freeze $freeze: rank 0 ends well"
    wait $!
    expect_same 0 $? "--freeze $freeze: and so does rank 1"
    expect_same "$expected" "$(bytes here/run)" "--freeze $freeze: all prepare images as rank 0's config.json says"
done

# ---- a slow mirror -------------------------------------------------------------------------------
published=mobilenet_v2_weights_tf_dim_ordering_tf_kernels_1.0_224_no_top.h5
expect_exit 0 "$TANDEM" train others -o wide --model mobilenetv2 --size 32 --epochs 0 --steps 1 --batch 8
expect_exit 0 "$TANDEM" export wide -o "served/$published"
no_proxy=127.0.0.1
export no_proxy
python3 "$SOURCE/tests/cli/weights_server.py" served port requests 12 &
server=$!
trap 'kill $server 2>/dev/null' EXIT
tries=0
while [ ! -e port ] && [ $tries -lt 300 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
rm -rf home
expect_exit 0 "$TANDEM" run -n 2 --deadline 5 -- train photos -o slow --epochs 1 --batch 8 --fetch \
    --mirror "http://127.0.0.1:$(cat port)/"
expect_stderr_matches 'mobilenetv2 starts with all but the head of mobilenet_v2'
expect_same 1 "$(wc -l <requests | tr -d ' ')" "rank 0 alone fetches"

# ---- the choice of a network ---------------------------------------------------------------------
# Small colour images: rank 0 probes, and all train what it chose; also where the source brings its split.
mkdir -p given/train given/val
for class in others/*; do
    cp -r "$class" "given/train/$(basename "$class")"
    mkdir "given/val/$(basename "$class")"
    for picture in "given/train/$(basename "$class")"/*1.*; do
        mv "$picture" "given/val/$(basename "$class")"
    done
done
for source in others given; do
    expect_exit 0 "$TANDEM" train $source -o "alone-$source" --epochs 1 --batch 8
    expect_stderr_matches '^a probe trained both on a part of the images: of [0-9]+ others convnet7 from scratch has [0-9]+ right'
    expect_exit 0 "$TANDEM" run -n 2 --deadline 30 -- train $source -o "two-$source" --epochs 1 --batch 8
    expect_stderr_matches '^a probe trained both on a part of the images: of [0-9]+ others convnet7 from scratch has [0-9]+ right'
    expect_same "$(bytes "alone-$source")" "$(bytes "two-$source")" "$source: two ranks train what one process chooses"
done
finish
