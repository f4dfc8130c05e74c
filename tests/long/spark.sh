#!/bin/bash
# tests/long/spark.sh: do other readers see what prepare wrote, and do we see what Spark writes?
# Every codec is read back by pyarrow, pandas, DuckDB, delta-rs and PySpark with equal rows; then
# PySpark writes tables (columns that may be null and columns that may not, its codecs, its own
# sources of pictures) and audit has to find every picture in them.
#
# Exit code 77 (skipped) without Java 17 or newer, without Arrow in this build, or where the Python
# packages cannot be had. SPARK_VENV=DIR: a Python environment to use, or to make there and keep
# (PySpark is half a gigabyte; default: ~/.cache/tandem/spark-venv). TANDEM: which program.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
tandem=${TANDEM:-$root/build/tandem}
venv=${SPARK_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/tandem/spark-venv}
work=$(mktemp -d "${TMPDIR:-/tmp}/spark.XXXXXX")
n_failed=0
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

skip() {
    echo "skip - $*"
    exit 77
}

check() { # sentence command…: what it says is shown where it fails
    if "${@:2}" >"$work/out.txt" 2>&1; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        sed 's/^/#   /' "$work/out.txt" | tail -n 20
        n_failed=$((n_failed + 1))
    fi
}

[ -x "$tandem" ] || skip "there is no $tandem: build first"
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
version=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p')
[ "${version:-0}" -ge 17 ] || skip "Spark needs Java 17 or newer, and '$java' says '${version:-nothing}'"
cd "$work" || exit 1
"$tandem" prepare nowhere -o none --codec raw >out.txt 2>&1
grep -q 'no Apache Arrow' out.txt && skip "this build has no Arrow"
modules='pyspark, pyarrow, pandas, duckdb, deltalake, PIL'
if ! "$venv/bin/python" -c "import $modules" 2>/dev/null; then
    mkdir -p "$(dirname "$venv")" && python3 -m venv "$venv" >/dev/null 2>&1 &&
        "$venv/bin/pip" install -q 'pyspark>=4,<5' pyarrow pandas duckdb deltalake pillow >pip.log 2>&1 ||
        skip "$modules cannot be installed in $venv"
fi
python=$venv/bin/python

# Spark's own words are many, and on loopback it needs no name of this machine.
export SPARK_LOCAL_IP=127.0.0.1 SPARK_LOCAL_DIRS=$work PYSPARK_PYTHON=$python
unset SPARK_HOME

# ---- what prepare wrote -------------------------------------------------------------------------

"$tandem" synth pictures --classes 3 --per-class 40 --size 48 --quiet >/dev/null || exit 1
mv "pictures/$(ls pictures | head -n 1)" "pictures/a cat+dog %41é"
rm -f pictures/*.json
for codec in jpeg png raw keep; do
    "$tandem" prepare pictures -o "$codec" --codec "$codec" --size 40 --quiet >/dev/null || exit 1
done

# One Spark for all of them: starting it takes longer than reading.
"$python" "$root/bench/peers/checks/read_prepared.py" jpeg png raw keep >readers.txt 2>readers.log
all_agree() { # codec: six readers, none of them left out
    grep " $1: " readers.txt || tail -n 20 readers.log
    [ "$(grep -c "^ok $1: " readers.txt)" = 6 ]
}
for codec in jpeg png raw keep; do
    check "$codec: pyarrow, pandas, DuckDB, delta-rs and PySpark read equal rows" all_agree "$codec"
done

# ---- what Spark writes --------------------------------------------------------------------------

write_tables() {
    "$python" - <<'PYTHON'
import pathlib
from pyspark.sql import SparkSession, functions
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
rows = [(p.read_bytes(), p.parent.name) for p in sorted(pathlib.Path("pictures").glob("*/*.jpg"))]
for may_be_null in (True, False):
    schema = StructType([StructField("image", BinaryType(), may_be_null),
                         StructField("label", StringType(), may_be_null)])
    frame = spark.createDataFrame(rows, schema).repartition(3).sortWithinPartitions("label")
    for codec in ("snappy", "gzip", "zstd", "none"):
        for version in ("v1", "v2"):
            name = f"{'null' if may_be_null else 'full'}-{codec}-{version}"
            (frame.write.option("compression", codec)
             .option("parquet.writer.version", version).parquet(name))
files = (spark.read.format("binaryFile").option("pathGlobFilter", "*.jpg")
         .option("recursiveFileLookup", "true").load("pictures"))
label = functions.element_at(functions.split(functions.url_decode("path"), "/"), -2)
files.withColumn("label", label).write.parquet("binaryfile")
files.withColumn("label", label).write.partitionBy("label").parquet("partitioned")
pictures = spark.read.format("image").option("recursiveFileLookup", "true").load("pictures")
(pictures.withColumn("label", functions.element_at(functions.split("image.origin", "/"), -2))
 .write.parquet("image"))
PYTHON
}
check "PySpark writes its tables" write_tables

finds_all() { # folder: 120 pictures of 3 classes, none of them bad
    "$tandem" audit "$1" --json >audit.json || return 1
    "$python" - <<'PYTHON'
import json, sys
said = json.load(open("audit.json"))
print({key: said[key] for key in ("images", "bad", "classes")}, said["verdicts"][:1])
sys.exit(not (said["images"] == 120 and said["bad"] == 0 and said["classes"] == 3))
PYTHON
}
for table in {null,full}-{snappy,gzip,zstd,none}-{v1,v2} binaryfile partitioned image; do
    check "Spark's table '$table' has every picture" finds_all "$table"
done
check "and one of them trains" "$tandem" train full-snappy-v1 --out run --epochs 1 --size 32 --quiet

echo "$n_failed failed"
[ "$n_failed" = 0 ]
