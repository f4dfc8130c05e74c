#!/usr/bin/env python3
"""Do other readers see what our writer wrote? pyarrow, pandas and DuckDB read raw pictures that
bench/programs/parquet_read wrote, and must agree with each other and with what was to be written:

    bench/peers/checks/parquet_check.py build/bench/bench_parquet_read

Prints a line for each reader and codec; exits with status 1 at the first difference.
"""
import hashlib
import pathlib
import subprocess
import sys
import tempfile

import duckdb
import pandas
import pyarrow.parquet as pq

SIDE, N = 33, 50
COLUMNS = ["image", "label", "class", "path", "split", "width", "height", "hash"]


def expected():
    """The generator of bench/programs/parquet_read.c, in Python."""
    state, n_bytes = 1, SIDE * SIDE * 3
    pixels = bytearray(n_bytes)
    for i in range(N):
        for at in range(0, n_bytes - 7, 8):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            pixels[at:at + 8] = state.to_bytes(8, "little")
        yield (hashlib.sha256(pixels).hexdigest(), i % 10, str(i % 10), f"{i}.ppm", "train", SIDE,
               SIDE, f"{state:016x}")


def rows_of(columns):
    rows = list(zip(*(columns[name] for name in COLUMNS)))
    return [(hashlib.sha256(bytes(row[0])).hexdigest(), *row[1:]) for row in rows]


def check(name, rows, wanted):
    if rows != wanted:
        sys.exit(f"{name}: row {next(i for i, r in enumerate(wanted) if r != rows[i])} differs")
    print(f"{name}: {len(rows)} rows as they were written")


def main(program):
    wanted = list(expected())
    with tempfile.TemporaryDirectory() as folder:
        for codec in ([], ["snappy"], ["zstd"]):
            path = str(pathlib.Path(folder) / "a.parquet")
            subprocess.run([program, "write", path, str(SIDE), str(N), *codec], check=True)
            label = codec[0] if codec else "none"
            table = pq.ParquetFile(path, page_checksum_verification=True).read()
            check(f"pyarrow, {label}", rows_of(table.to_pydict()), wanted)
            schema = pq.read_schema(path)
            if any(field.nullable for field in schema):
                sys.exit("some column may be null")
            frame = pandas.read_parquet(path)
            check(f"pandas, {label}", rows_of({c: frame[c].tolist() for c in COLUMNS}), wanted)
            found = duckdb.sql(f"SELECT {', '.join(COLUMNS)} FROM '{path}'").fetchall()
            check(f"DuckDB, {label}", rows_of(dict(zip(COLUMNS, zip(*found)))), wanted)


main(sys.argv[1])
