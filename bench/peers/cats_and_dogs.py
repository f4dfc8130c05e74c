"""cats_and_dogs.py PARQUET-FOLDER OUT N FOLDS: the first N cats and N dogs of CIFAR-10 as files,
their bytes untouched, and OUT/fold-K.csv for K from 0: the same images, each a validation image in one of them
and training in the others.
"""
import csv
import pathlib
import sys

import pyarrow.parquet

source, out, n, folds = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
KINDS = {3: "cat", 5: "dog"}
rows = []
for path in sorted(source.glob("*.parquet")):
    pictures = pyarrow.parquet.read_table(path)
    for picture, label in zip(pictures["img"], pictures["label"].to_pylist()):
        kind = KINDS.get(label)
        place = sum(row[1] == kind for row in rows) if kind else n
        if place >= n:
            continue
        name = f"{kind}/{place:05}.jpg"
        (out / kind).mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(picture["bytes"].as_py())
        rows.append((name, kind))
for fold in range(folds):
    with open(out / f"fold-{fold}.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["path", "label", "split"])
        writer.writerows((name, kind, "val" if i % folds == fold else "train") for i, (name, kind) in enumerate(rows))
