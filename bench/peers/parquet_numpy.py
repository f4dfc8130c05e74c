#!/usr/bin/env python3
"""Raw pictures of a Parquet file through pyarrow into one numpy array each: parquet_numpy.py FILE SIDE"""
import sys
import time

import numpy as np
import pyarrow.parquet as pq

SECONDS = 2
side = int(sys.argv[2])
picture = np.empty((side, side, 3), np.uint8)
began, n = time.perf_counter(), 0
while time.perf_counter() - began < SECONDS:
    for batch in pq.ParquetFile(sys.argv[1]).iter_batches(64, columns=["image"], use_threads=False):
        for value in batch.column(0):
            picture[:] = np.frombuffer(value.as_buffer(), np.uint8).reshape(picture.shape)
            n += 1
print(f"{n * picture.nbytes / (time.perf_counter() - began) / 1e6:.1f} MB/s")
