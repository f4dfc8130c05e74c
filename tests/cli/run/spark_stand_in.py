"""spark_stand_in.py DRIVER: run a PySpark driver of one barrier stage without Spark.

Tasks are threads of this process. LOST=N: the first N stages lose an executor.
"""
import os
import runpy
import sys
import threading
import types

lost = int(os.environ.get("LOST", "0"))
here = threading.local()


class BarrierTaskContext:
    def __init__(self, number, stage):
        self.number, self.stage = number, stage

    @staticmethod
    def get():
        return here.context

    def partitionId(self):
        return self.number

    def getTaskInfos(self):
        return [types.SimpleNamespace(address=f"127.0.0.1:{4000 + i}") for i in range(self.stage.n)]

    def allGather(self, message):
        self.stage.messages[self.number] = message
        self.stage.barrier.wait()
        return list(self.stage.messages)


class Stage:
    """What parallelize, barrier and mapPartitions return, in one."""

    def __init__(self, values, n):
        self.n, self.messages, self.barrier = n, [None] * n, threading.Barrier(n)
        self.results = [[] for _ in range(n)]
        assert len(values) == n

    def barrier_stage(self):
        return types.SimpleNamespace(mapPartitions=self.map_partitions)

    def map_partitions(self, function):
        self.function = function
        return self

    def run(self, number):
        here.context = BarrierTaskContext(number, self)
        self.results[number] = list(self.function(iter([number])))

    def collect(self):
        global lost
        lost -= 1
        if lost >= 0:
            raise RuntimeError("an executor was lost")
        threads = [threading.Thread(target=self.run, args=(i,)) for i in range(self.n)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [one for result in self.results for one in result]


class SparkSession:
    sparkContext = types.SimpleNamespace(
        parallelize=lambda values, n: types.SimpleNamespace(barrier=Stage(values, n).barrier_stage))
    builder = types.SimpleNamespace(
        appName=lambda name: types.SimpleNamespace(getOrCreate=lambda: SparkSession()))

    def stop(self):
        pass


sys.modules["pyspark"] = types.ModuleType("pyspark")
sys.modules["pyspark"].BarrierTaskContext = BarrierTaskContext
sys.modules["pyspark.sql"] = types.ModuleType("pyspark.sql")
sys.modules["pyspark.sql"].SparkSession = SparkSession
runpy.run_path(sys.argv[1], run_name="__main__")
