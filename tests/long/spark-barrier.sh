#!/bin/bash
# tests/long/spark-barrier.sh [TANDEM]: the ranks of a training as tasks of a barrier stage of the real PySpark, two
# executors on this machine. A rank is killed, the driver starts the stage again with another number of ranks, and
# the bytes are those of one process. Exit code 77 (skipped) without Java 17 or newer or without PySpark, which
# is looked for and kept in $SPARK_VENV (default: ~/.cache/tandem/spark-venv, as tests/long/spark.sh does).
. "$(dirname "$0")/lib/ranks.sh"

venv=${SPARK_VENV:-$cache/spark-venv}
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
version=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p')
[ "${version:-0}" -ge 17 ] || skip "Spark needs Java 17 or newer, and '$java' says '${version:-nothing}'"
if ! "$venv/bin/python" -c 'import pyspark' 2>/dev/null; then
    mkdir -p "$(dirname "$venv")" && python3 -m venv "$venv" >pip.log 2>&1 &&
        "$venv/bin/pip" install -q 'pyspark>=4,<5' >>pip.log 2>&1 || skip "PySpark cannot be installed in $venv: $(tail -n 1 pip.log)"
fi
export SPARK_LOCAL_IP=127.0.0.1 SPARK_LOCAL_DIRS=$work PYSPARK_PYTHON=$venv/bin/python
unset SPARK_HOME
one_process

# A driver: worlds of the stages that it starts until one of them has a result.
cat >driver.py <<'PYTHON'
import os
import re
import secrets
import socket
import subprocess
import sys

from pyspark import BarrierTaskContext
from pyspark.sql import SparkSession

program, folder, run, *worlds = sys.argv[1:]
options = os.environ["OPTIONS"].split()


def rank(_):
    context = BarrierTaskContext.get()
    mine, world = context.partitionId(), len(context.getTaskInfos())
    meeting = ""
    if mine == 0:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            meeting = "127.0.0.1:%d %s" % (free.getsockname()[1], secrets.token_hex(16))
    address, token = context.allGather(meeting)[0].split()
    variables = dict(os.environ, TANDEM_RANK=str(mine), TANDEM_WORLD=str(world), TANDEM_ADDRESS=address,
                     TANDEM_TOKEN=token, TANDEM_DEADLINE="5")
    # In the worker's process group: none is left when Spark ends the worker.
    ended = subprocess.run([program, "train", "photos", "-o", run, *options, "--resume"], cwd=folder, env=variables,
                           stderr=subprocess.PIPE, text=True)
    if ended.returncode != 0:
        raise RuntimeError("rank %d of %d exits with status %d: %s" % (mine, world, ended.returncode, ended.stderr))
    yield mine


spark = (SparkSession.builder.master("local-cluster[2,2,1024]").config("spark.ui.enabled", "false")
         .config("spark.scheduler.barrier.maxConcurrentTasksCheck.interval", "1s")
         .config("spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures", "10").getOrCreate())
spark.sparkContext.setLogLevel("OFF")
status = 1
for world in worlds:
    try:
        print(spark.sparkContext.parallelize(range(int(world)), int(world)).barrier().mapPartitions(rank).collect())
        status = 0
        break
    except Exception as error:
        for line in str(error).splitlines():
            if re.search(r"rank \d|slots|Error:", line):
                print("stage of %s: %s" % (world, line.strip()), flush=True)
spark.stop()
sys.exit(status)
PYTHON
driver=(env OPTIONS="$options" "$venv/bin/python" driver.py "$tandem" "$work") # run worlds…

begin
"${driver[@]}" two 2 >"$out" 2>spark.log
status=$?
end "2 ranks train" 0 '\[0, 1\]'
expect_bytes two
check "and the record says 2" grep -q '"world": 2' two/run.json

"${driver[@]}" again 2 3 >"$out" 2>spark.log &
job=$!
wait_for_checkpoint again
begin
kill -9 "$(rank_process TANDEM_RANK=1 again)"
wait "$job"
status=$?
end "rank 1 is killed, the driver starts 3" 0 'rank 0 of 2 exits with status 5|rank 1 of 2 exits with status -9'
check "the survivor names it" grep -q 'rank 1 on .* was lost' "$out"
expect_bytes again
check "and the record says 3" grep -q '"world": 3' again/run.json

begin
"${driver[@]}" wide 9 >"$out" 2>spark.log
status=$?
end "more ranks than slots" 1 'slots'
check "no run is made" [ ! -e wide ]

"${driver[@]}" stopped 2 >"$out" 2>spark.log &
job=$!
wait_for_checkpoint stopped
begin
kill -9 "$job"
wait "$job" 2>/dev/null
status=$?
for _ in $(seq 300); do
    [ -z "$(rank_process TANDEM_RANK=0 stopped)$(rank_process TANDEM_RANK=1 stopped)" ] && break
    sleep 0.1
done
end "the driver is killed" 137
check "and no rank is left behind" [ -z "$(rank_process TANDEM_RANK=0 stopped)$(rank_process TANDEM_RANK=1 stopped)" ]
"$tandem" train photos -o stopped --resume --quiet >/dev/null 2>&1
expect_bytes stopped "continued by one process"
finish
