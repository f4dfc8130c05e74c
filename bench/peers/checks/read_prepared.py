#!/usr/bin/env python3
"""What prepare wrote, read by pyarrow, pandas, duckdb, delta-rs and (where Java and pyspark are there)
Spark: each must see the same rows, and the rows must be as _dataset.json describes them.

    bench/peers/checks/read_prepared.py FOLDER…

Prints a line for each reader and folder; exit code 1 when one differs. Pictures that are encoded are
decoded by Pillow as well.
"""

import collections
import hashlib
import io
import json
import pathlib
import sys

COLUMNS = ["image", "label", "class", "path", "split", "width", "height", "hash"]


def rows_of_arrow(table):
    columns = [table.column(name).to_pylist() for name in COLUMNS]
    return list(zip(*columns))


def read_pyarrow(folder):
    import pyarrow.dataset

    return rows_of_arrow(pyarrow.dataset.dataset(folder, format="parquet").to_table())


def read_pyarrow_files(folder):
    import pyarrow.parquet

    return rows_of_arrow(pyarrow.parquet.read_table(folder, page_checksum_verification=True))


def read_pandas(folder):
    import pandas

    frame = pandas.read_parquet(folder)
    return list(frame[COLUMNS].itertuples(index=False, name=None))


def read_duckdb(folder):
    import duckdb

    names = ", ".join(f'"{name}"' for name in COLUMNS)
    return duckdb.sql(f"SELECT {names} FROM read_parquet('{folder}/*.parquet')").fetchall()


def read_delta(folder):
    import deltalake

    return rows_of_arrow(deltalake.DeltaTable(folder).to_pyarrow_table())


def read_spark(folder):
    import pyspark.sql

    spark = (pyspark.sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
             .config("spark.ui.showConsoleProgress", "false").getOrCreate())
    rows = [tuple(row[name] for name in COLUMNS) for row in spark.read.parquet(folder).collect()]
    return [(bytes(row[0]),) + row[1:] for row in rows]


READERS = {
    "pyarrow dataset": read_pyarrow,
    "pyarrow table, checksums compared": read_pyarrow_files,
    "pandas": read_pandas,
    "duckdb": read_duckdb,
    "delta-rs": read_delta,
    "spark": read_spark,
}


def digest(rows):
    """Of all rows in any order."""
    lines = sorted(repr((hashlib.sha256(row[0]).hexdigest(),) + tuple(row[1:])) for row in rows)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def problems(folder, rows):
    """What contradicts _dataset.json."""
    said = json.loads((pathlib.Path(folder) / "_dataset.json").read_text())
    options, classes = said["options"], said["classes"]
    found = collections.Counter(row[4] for row in rows)
    for split in ["train", "val", "test"]:
        if found[split] != said["counts"][split]:
            yield f"{found[split]} rows of {split}, {said['counts'][split]} are said"
    for image, label, name, path, _, width, height, content in rows:
        if label >= 0 and classes[label] != name:
            yield f"{path}: label {label} is {classes[label]}, not {name}"
        if len(content) != 16:
            yield f"{path}: hash {content}"
        if options["codec"] == "raw" and len(image) != 3 * width * height:
            yield f"{path}: {len(image)} bytes of {width} x {height} pixels"
        if options["codec"] != "keep" and (width, height) != (options["size"],) * 2:
            yield f"{path}: {width} x {height}"
        if options["codec"] in ("jpeg", "png"):
            from PIL import Image

            picture = Image.open(io.BytesIO(image))
            picture.load()
            if picture.format.lower() != options["codec"] or picture.size != (width, height):
                yield f"{path}: a {picture.format} of {picture.size}"


def main():
    is_equal = True
    for folder in sys.argv[1:]:
        first = None
        for name, read in READERS.items():
            try:
                rows = read(folder)
            except ImportError as reason:
                print(f"skip {folder}: {name}: {reason}")
                continue
            seen = digest(rows)
            first = first or seen
            wrong = list(problems(folder, rows))[:5] if seen == first else ["other rows"]
            is_equal = is_equal and not wrong
            print(f"{'not ok' if wrong else 'ok'} {folder}: {name}: {len(rows)} rows {'; '.join(wrong)}")
    sys.exit(0 if is_equal else 1)


if __name__ == "__main__":
    main()
