#!/bin/bash
# tests/long/object-store.sh: is a data set in an object store the same data set, and does the
# program end well when the store does not? Runs audit, train, evaluate and bench on s3:// against
# moto's server on loopback, behind a proxy that can slow down, refuse and fall silent. Compares
# with the same data on disk: equal report, equal bytes of weights.
#
# Exit code 77 (skipped) where this build has no Arrow, or moto, boto3 and pyarrow cannot be had.
# STORE_VENV=DIR: a Python environment to use, or to make there and keep.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
tandem=${TANDEM:-$root/build/tandem}
work=$(mktemp -d "${TMPDIR:-/tmp}/object-store.XXXXXX")
venv=${STORE_VENV:-$work/venv}
proxy=
n_failed=0
trap 'kill $proxy 2>/dev/null; wait 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

skip() {
    echo "skip - $*"
    exit 77
}

pass() { echo "ok - $*"; }

fail() {
    echo "not ok - $*"
    n_failed=$((n_failed + 1))
}

check() { # sentence command…
    local sentence=$1
    shift
    if "$@"; then pass "$sentence"; else fail "$sentence"; fi
}

[ -x "$tandem" ] || skip "there is no $tandem: build first"
if ! "$venv/bin/python" -c 'import moto.server, boto3, pyarrow, flask' 2>/dev/null; then
    python3 -m venv "$venv" >/dev/null 2>&1 &&
        "$venv/bin/pip" install -q 'moto[server]' boto3 pyarrow >"$work/pip.log" 2>&1 ||
        skip "moto[server], boto3 and pyarrow cannot be installed"
fi
python=$venv/bin/python
cd "$work" || exit 1

export TANDEM_HOME=$work/home AWS_ACCESS_KEY_ID=key AWS_SECRET_ACCESS_KEY=secret
export AWS_EC2_METADATA_DISABLED=true AWS_DEFAULT_REGION=us-east-1
unset AWS_PROFILE AWS_SESSION_TOKEN http_proxy https_proxy HTTP_PROXY HTTPS_PROXY

start_store() { # port, 0 for any
    echo pass >mode
    rm -f port
    "$python" "$root/tests/long/store_proxy.py" "$1" "$work" >port 2>store.log &
    proxy=$!
    for _ in $(seq 300); do
        [ -s port ] && break
        sleep 0.1
    done
    [ -s port ] || { tail store.log; exit 1; }
    port=$(cat port)
    export AWS_ENDPOINT_URL=http://127.0.0.1:$port
}

fill_store() {
    "$python" - <<'PYTHON'
import os, boto3, pyarrow as pa, pyarrow.parquet as pq
client = boto3.client("s3")
client.create_bucket(Bucket="store")
for top in ("pets", "table", "delta", "pets.tar", "pets.zip", "shards", "digits", "cifar"):
    names = [top] if os.path.isfile(top) else [
        os.path.join(folder, name) for folder, _, files in os.walk(top) for name in files]
    for name in names:
        client.upload_file(name, "store", name)
client.upload_file("pets.csv", "store", "pets.csv")
PYTHON
}

# ---- the data, on disk and in the store ---------------------------------------------------------

"$tandem" synth pets --classes 3 --per-class 20 --size 64 --quiet >/dev/null || exit 1
mv "pets/$(ls pets | head -n 1)" "pets/a cat+dog %41é"
rm -f pets/*.json
tar -C pets -cf pets.tar .
(cd pets && for class in */; do for f in "$class"*; do echo "pets/$f,${class%/}"; done; done) >pets.csv
"$python" - <<'PYTHON' || exit 1
import json, os, pyarrow as pa, pyarrow.parquet as pq
rows = [(open(f"pets/{c}/{f}", "rb").read(), c)
        for c in sorted(os.listdir("pets")) for f in sorted(os.listdir(f"pets/{c}"))]
table = pa.table({"image": [r[0] for r in rows], "label": [r[1] for r in rows]})
for folder in ("table", "delta/half=a b", "delta/half=c"):
    os.makedirs(folder)
os.makedirs("delta/_delta_log")
adds = []
for i, half in enumerate(("a b", "c")):
    part = table.slice(i * 30, 30)
    pq.write_table(part, f"table/part-{i}.parquet", row_group_size=10)
    path = f"half={half}/part-{i}.parquet"
    pq.write_table(part, "delta/" + path, row_group_size=10)
    adds.append({"add": {"path": path.replace(" ", "%20"), "partitionValues": {"half": half},
                         "size": os.path.getsize("delta/" + path), "modificationTime": 0,
                         "dataChange": True}})
fields = [{"name": n, "type": t, "nullable": True, "metadata": {}}
          for n, t in (("image", "binary"), ("label", "string"), ("half", "string"))]
log = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
       {"metaData": {"id": "0", "format": {"provider": "parquet", "options": {}},
                     "schemaString": json.dumps({"type": "struct", "fields": fields}),
                     "partitionColumns": ["half"], "configuration": {}}}] + adds
with open("delta/_delta_log/00000000000000000000.json", "w") as out:
    out.write("".join(json.dumps(line) + "\n" for line in log))
PYTHON
# WebDataset shards, IDX (one of the files compressed), CIFAR and a zip of the same classes.
"$python" - <<'PYTHON' || exit 1
import gzip, io, os, struct, tarfile, zipfile
classes = sorted(os.listdir("pets"))
files = [(f"pets/{c}/{f}", i) for n in range(20) for i, c in enumerate(classes)
         for f in sorted(os.listdir(f"pets/{c}"))[n:n + 1]]
for folder in ("shards", "digits", "cifar"):
    os.makedirs(folder)
for shard in range(3):
    with tarfile.open(f"shards/pets-{shard:06d}.tar", "w") as tar:
        for number, (path, label) in enumerate(files[shard * 20:shard * 20 + 20]):
            for ending, data in (("jpg", open(path, "rb").read()), ("cls", str(label).encode())):
                entry = tarfile.TarInfo(f"{shard * 20 + number:06d}.{ending}")
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))
with zipfile.ZipFile("pets.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    for path, _ in files:
        archive.write(path)
def pixels(number, label, n):
    return bytes((number * 7 + label * 80 + b // 3) % 256 for b in range(n))
for name, first, n in (("train", 0, 60), ("t10k", 60, 30)):
    values = b"".join(pixels(i, i % 3, 28 * 28) for i in range(first, first + n))
    images = struct.pack(">4B3I", 0, 0, 8, 3, n, 28, 28) + values
    opened = gzip.open(f"digits/{name}-images-idx3-ubyte.gz", "wb") if name == "train" else \
        open(f"digits/{name}-images-idx3-ubyte", "wb")
    with opened as out:
        out.write(images)
    with open(f"digits/{name}-labels-idx1-ubyte", "wb") as out:
        out.write(struct.pack(">4BI", 0, 0, 8, 1, n) + bytes(i % 3 for i in range(first, first + n)))
for name, first in (("data_batch_1.bin", 0), ("data_batch_2.bin.gz", 40), ("test_batch.bin", 80)):
    records = b"".join(bytes([i % 10]) + pixels(i, i % 10, 3072) for i in range(first, first + 40))
    with (gzip.open if name.endswith("gz") else open)(f"cifar/{name}", "wb") as out:
        out.write(records)
with open("cifar/batches.meta.txt", "w") as out:
    out.write("".join(f"thing {i}\n" for i in range(10)))
PYTHON
start_store 0
"$tandem" audit s3://store/none >out.txt 2>&1
grep -q 'no object storage' out.txt && skip "this build has no Arrow: $(tail -n 1 out.txt)"
fill_store || exit 1

# ---- the same data set --------------------------------------------------------------------------

train() { # run source options…
    local run=$1
    rm -rf "$run"
    timeout 300 "$tandem" train "$2" --out "$run" --epochs 2 --size 32 --batch 16 --quiet "${@:3}"
}

same_audit() { # source in the store, source on disk
    "$tandem" audit "$1" --json | sed "s|$1|SRC|g; s|\"seconds\":[^,}]*||g" >far.json &&
        "$tandem" audit "$2" --json | sed "s|$2|SRC|g; s|\"seconds\":[^,}]*||g" >near.json &&
        [ -s far.json ] && cmp far.json near.json
}

same_training() { # source in the store, run on disk, options…
    train far "$1" "${@:3}" >far.txt 2>&1 && cmp far/best.safetensors "$2/best.safetensors" ||
        { cat far.txt; false; }
}

same_evaluation() { # source in the store, source on disk, run
    "$tandem" evaluate "$3" "$1" --json | sed "s|$1|SRC|g; s|\"[a-z_]*\(seconds\|per_s\)\":[^,}]*||g" >far.json &&
        "$tandem" evaluate "$3" "$2" --json | sed "s|$2|SRC|g; s|\"[a-z_]*\(seconds\|per_s\)\":[^,}]*||g" >near.json &&
        [ -s far.json ] && cmp far.json near.json
}

same_bench() { # source in the store, source on disk: both reach a rate
    for source in "$@"; do
        "$tandem" bench loader "$source" --size 32 --seconds 0.5 --json >bench.json &&
            grep -q '"images_per_second": [0-9]*[1-9]' bench.json || return 1
    done
}

options="?endpoint_override=127.0.0.1:$port&scheme=http&region=us-east-1"
for set in pets pets.tar pets.zip pets.csv table delta shards digits cifar; do
    train "near-$set" "$set" >out.txt 2>&1 || { cat out.txt; fail "$set trains on disk"; }
    check "$set: audit says the same" same_audit "s3://store/$set" "./$set"
    check "$set: training gives the same weights" same_training "s3://store/$set" "near-$set"
    check "$set: evaluation says the same" same_evaluation "s3://store/$set" "./$set" "near-$set"
    check "$set: bench loader measures" same_bench "s3://store/$set" "./$set"
    check "$set: with endpoint and region in the query" \
        env -u AWS_ENDPOINT_URL -u AWS_DEFAULT_REGION bash -c "$(declare -f train same_training)
            tandem='$tandem'; same_training 's3://store/$set$options' near-$set"
done

# ---- a bad connection ---------------------------------------------------------------------------

echo slow >mode
check "a slow store gives the same weights" same_training s3://store/pets near-pets
echo some-busy >mode
check "a store that says SlowDown to every third request gives the same weights" \
    same_training s3://store/pets near-pets
check "and the same for Parquet" same_training s3://store/table near-table

ends() { # seconds code pattern command…: exits with the code in time and says the pattern
    local seconds=$1 code=$2 pattern=$3 status began=$SECONDS
    shift 3
    timeout -k 1 "$seconds" "$@" >out.txt 2>&1 </dev/null
    status=$?
    echo "# exit $status after $((SECONDS - began)) s: $(head -n 1 out.txt)"
    [ "$status" = "$code" ] && grep -q "$pattern" out.txt || { sed 's/^/#   /' out.txt; false; }
}

echo busy >mode
check "a store that only says SlowDown is given up" \
    ends 60 4 's3://store/pets.*S' "$tandem" train s3://store/pets --out busy --epochs 1 --quiet

# A run that is long enough to be hit in the middle of an epoch, with nothing kept.
in_the_middle() { # command while it trains; sets $trainer
    echo pass >mode
    : >requests
    rm -rf hit
    "$tandem" train "$1" --out hit --epochs 10000 --size 32 --batch 8 --cache none --quiet \
        >hit.txt 2>&1 </dev/null &
    trainer=$!
    for _ in $(seq 600); do
        [ -e hit/best.safetensors ] && break
        sleep 0.1
    done
    [ -e hit/best.safetensors ] || fail "training on $1 came to no checkpoint"
}

ends_within() { # seconds code pattern
    local began=$SECONDS status
    (sleep "$1" && kill -9 $trainer) 2>/dev/null &
    local guard=$!
    wait $trainer
    status=$?
    kill $guard 2>/dev/null
    echo "# exit $status after $((SECONDS - began)) s: $(tail -n 3 hit.txt | head -n 1)"
    [ "$status" = "$2" ] && grep -q "$3" hit.txt || { sed 's/^/#   /' hit.txt; false; }
}

for set in pets table pets.tar; do
    in_the_middle "s3://store/$set"
    echo stall >mode
    sleep 1
    kill -TERM $trainer # as Ctrl-C, which a shell's background jobs ignore
    check "$set: a stop ends a run that waits for a silent store" ends_within 15 1 topped
done

in_the_middle s3://store/pets
echo stall >mode
sleep 8
echo pass >mode
sleep 3
kill -0 $trainer && pass "a silence of 8 s is waited out" || fail "a silence of 8 s ends the run"
echo stall >mode
check "a store that stays silent is given up, by the name of the object" \
    ends_within 120 4 "s3://store/pets/"

# Not the table: one so small lies in memory as a whole and needs its store no more.
for set in pets pets.tar; do
    in_the_middle "s3://store/$set"
    kill -9 $proxy
    check "$set: a store that went away is given up" ends_within 60 4 "s3://store/$set"
    start_store "$port"
    fill_store || exit 1
done
goes_on() { # the run in hit reaches another checkpoint
    touch mark
    "$tandem" train s3://store/pets.tar --out hit --quiet --resume >hit.txt 2>&1 </dev/null &
    trainer=$!
    for _ in $(seq 600); do
        [ hit/last.safetensors -nt mark ] && break
        sleep 0.1
    done
    [ hit/last.safetensors -nt mark ] && kill -TERM $trainer && ends_within 15 1 topped
}
check "and the run goes on when it is back" goes_on

# ---- the cache on disk --------------------------------------------------------------------------

pictures_asked() { grep -c 'GET /store/pets/.*\.jpg' requests; }

sizes_asked() { grep -c 'HEAD /store/pets/.*\.jpg' requests; }
: >requests
"$tandem" audit s3://store/pets --json >/dev/null
check "a picture of a listed folder costs one request" \
    [ "$(pictures_asked) $(sizes_asked)" = "60 0" ]

rm -rf home
: >requests
train far s3://store/pets --cache disk --epochs 1 >/dev/null 2>&1
one=$(pictures_asked)
rm -rf home
: >requests
train far s3://store/pets --cache disk --epochs 5 >/dev/null 2>&1
five=$(pictures_asked)
echo "# pictures asked of the store: $one in a run of one epoch, $five in a run of five"
check "later epochs ask the store for nothing" [ "$one" = "$five" ]
: >requests
check "the same weights from the cache" same_training s3://store/pets near-pets --cache disk
check "which needs each picture once, for the split" [ "$(pictures_asked)" = 60 ]
kept=$(find home/pictures -type f | head -n 1)
printf 'x' | dd of="$kept" bs=1 seek=40 conv=notrunc 2>/dev/null
: >requests
check "a damaged file of the cache changes nothing" \
    same_training s3://store/pets near-pets --cache disk
check "and is read from the store again" [ "$(pictures_asked)" = 61 ]

# ---- copies of checkpoints ----------------------------------------------------------------------

echo pass >mode
copied() { # options…: trains, or goes on, in the run "copied"
    timeout 120 "$tandem" train pets --out copied --epochs 40 --size 32 --batch 8 --patience 0 --checkpoint-every 5 \
        --checkpoint-to s3://store/copies/run --resume "$@" >copied.txt 2>&1 </dev/null
}
listed() { # keys of the copies, and how many uploads are unfinished
    "$python" - <<'PYTHON'
import boto3
client = boto3.client("s3")
for entry in client.list_objects_v2(Bucket="store", Prefix="copies/run/").get("Contents", []):
    print(entry["Key"], entry["Size"])
PYTHON
}
same_copied() { # the run has the bytes of one that was left alone
    for file in best last outcomes; do
        cmp "alone/$file.safetensors" "copied/$file.safetensors" || { cat copied.txt; return 1; }
    done
}
timeout 120 "$tandem" train pets --out alone --epochs 40 --size 32 --batch 8 --patience 0 --quiet >/dev/null 2>&1
check "a training keeps its checkpoints in the store" copied
rm -rf copied
check "and comes back from there" copied
check "with the same bytes" same_copied
check "two states are kept at most" [ "$(listed | grep -c 'copies/run/[0-9a-f]*-')" -le 14 ]

n_killed=0
"$python" -c 'import boto3; b = boto3.resource("s3").Bucket("store"); b.objects.filter(Prefix="copies/").delete()'
rm -rf copied
for _ in $(seq 12); do
    copied &
    trainer=$!
    sleep "0.$((RANDOM % 10))$((RANDOM % 10))"
    pkill -9 -P $(pgrep -P $trainer) 2>/dev/null
    wait $trainer && status=0 || status=$?
    [ $status = 0 ] || n_killed=$((n_killed + 1))
    rm -rf copied
done
check "after $n_killed kills, each with the disk gone" [ $n_killed -gt 3 ]
check "it comes back" copied
check "and has the same bytes" same_copied

# The network goes in the middle.
"$python" -c 'import boto3; b = boto3.resource("s3").Bucket("store"); b.objects.filter(Prefix="copies/").delete()'
rm -rf copied
copied &
trainer=$!
for _ in $(seq 600); do
    [ -e copied/last.safetensors ] && break
    sleep 0.05
done
echo busy >mode
wait $trainer && status=0 || status=$?
check "the training ends all the same, with exit status 4 ($status)" [ $status = 4 ]
check "and a warning" grep -q 'is not copied to s3://store/copies/run' copied.txt
check "and says what to do" grep -q 'is complete, but its last state is not in' copied.txt
check "it has the same bytes" same_copied
check "its record says finished" grep -Eq '"status": ?"finished"' copied/run.json
echo pass >mode
check "the last state is copied later" copied
rm -rf copied
check "and comes back" copied
check "with the same bytes as ever" same_copied
echo slow >mode
rm -rf copied
"$python" -c 'import boto3; b = boto3.resource("s3").Bucket("store"); b.objects.filter(Prefix="copies/").delete()' &
wait $!
check "a slow store gets the last state, too" copied
check "and changes no byte" same_copied
echo pass >mode

# ---- what is refused ----------------------------------------------------------------------------

check "a missing folder" ends 20 3 's3://store/none' "$tandem" audit s3://store/none
check "a missing bucket" ends 20 3 's3://nobody' "$tandem" audit s3://nobody/pets
check "another scheme" ends 20 3 's3://, gs://, hdfs://' "$tandem" audit ftp://host/pets
check "an option that no store has" ends 20 3 'nonsense' "$tandem" audit 's3://store/pets?nonsense=1'
check "nobody at the endpoint" ends 60 4 's3://store/pets' \
    env AWS_ENDPOINT_URL=http://127.0.0.1:9 "$tandem" audit s3://store/pets
check "gs:// without credentials" ends 90 4 'gs://tandem-no-such/pets' \
    env -u GOOGLE_APPLICATION_CREDENTIALS "$tandem" audit gs://tandem-no-such/pets
check "hdfs:// without libhdfs" ends 20 4 'hdfs' \
    env -u HADOOP_HOME -u JAVA_HOME "$tandem" audit hdfs://127.0.0.1:9/pets

echo "$n_failed failed"
[ "$n_failed" = 0 ]
