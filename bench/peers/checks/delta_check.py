#!/usr/bin/env python3
"""Delta tables of many versions written by delta-rs, read by tandem and by delta-rs: equal rows.

    bench/peers/checks/delta_check.py [--tables N] [--steps N] [--seed N] [TANDEM]

Each table goes through random steps (append, delete, update, overwrite, compact, restore,
checkpoint, vacuum, new columns), with or without partitions; then every version is read by both. A
picture is as many pixels wide as its number says, so that `tandem audit` shows whether the right
bytes came. What delta-rs cannot read any more, tandem must refuse too. Needs deltalake and pyarrow.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

CLASSES = ["cat", "dog", "a=b", "50% off/é #1", "x y"]
SPLITS = ["train", "val", "test"]


class Table:
    def __init__(self, folder, choice):
        self.folder, self.choice, self.next = str(folder), choice, 1
        self.partitions = choice.choice([[], ["label"], ["split"], ["label", "split"]])
        self.has_extra = False
        self.append("append")

    def rows(self, n):
        numbers = list(range(self.next, self.next + n))
        self.next += n
        columns = {
            "image": pa.array([b"P5\n%d 1\n255\n" % i + bytes(i) for i in numbers], pa.binary()),
            "path": pa.array([f"p{i}.pgm" for i in numbers]),
            "label": pa.array([self.choice.choice(CLASSES) for _ in numbers]),
            "split": pa.array([self.choice.choice(SPLITS) for _ in numbers]),
        }
        if self.has_extra:
            columns["extra"] = pa.array(numbers, pa.int32())
        return pa.table(columns)

    def append(self, mode):
        write_deltalake(self.folder, self.rows(self.choice.randint(3, 30)), mode=mode,
                        partition_by=self.partitions or None,
                        schema_mode="merge" if self.has_extra and mode == "append" else None)

    def step(self):
        table = DeltaTable(self.folder)
        what = self.choice.choice(["append"] * 4 + ["delete"] * 2 + [
            "update", "overwrite", "compact", "restore", "checkpoint", "checkpoint", "extra"]
            + ["vacuum"] * (self.choice.random() < 0.1))
        if what == "append":
            self.append("append")
        elif what == "overwrite":
            self.append("overwrite")
        elif what == "delete":
            table.delete(f"path like '%{self.choice.randint(0, 9)}.pgm'")
        elif what == "update":
            table.update(predicate="label = 'cat'", new_values={"label": "dog"})
        elif what == "compact":
            table.optimize.compact()
        elif what == "restore" and table.version() > 0:
            table.restore(max(0, table.version() - self.choice.randint(1, 3)),
                          ignore_missing_files=True)
        elif what == "checkpoint":
            table.create_checkpoint()
        elif what == "vacuum":
            table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
        elif what == "extra" and not self.has_extra:
            self.has_extra = True
            self.append("append")
        return what


def peers_rows(folder, version):
    """None where delta-rs cannot read it."""
    try:
        rows = DeltaTable(folder, version=version).to_pyarrow_table().to_pylist()
    except Exception:  # every failure is the same answer
        return None
    is_alone = len({r["split"] for r in rows}) == 1  # a part that stands alone says nothing
    return sorted((r["path"], r["label"], None if is_alone else r["split"],
                   int(r["image"].split()[1])) for r in rows)


def our_rows(tandem, folder, version):
    done = subprocess.run([tandem, "audit", f"{folder}@v{version}", "--json"], check=False,
                          capture_output=True, text=True)
    if done.returncode == 3:
        return None, done.stderr.strip().splitlines()[-1].strip()
    if done.returncode != 0:
        sys.exit(f"{folder}@v{version}: exit {done.returncode}\n{done.stderr}")
    verdicts = json.loads(done.stdout)["verdicts"]  # every picture is tiny, so all are there
    return sorted((v["path"], v["class"], v["split"], v["width"]) for v in verdicts), ""


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--tables", type=int, default=20)
    options.add_argument("--steps", type=int, default=15)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("tandem", nargs="?", default="build/tandem")
    given = options.parse_args()
    n_versions = n_rows = n_refused = 0
    for seed in range(given.seed, given.seed + given.tables):
        choice = random.Random(seed)
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch) / "table"
            table = Table(folder, choice)
            steps = [table.step() for _ in range(given.steps)]
            for version in range(DeltaTable(str(folder)).version() + 1):
                theirs = peers_rows(str(folder), version)
                ours, why = our_rows(given.tandem, str(folder), version)
                if theirs == [] and ours is None and "no pictures" in why:
                    theirs = None
                if ours != theirs:
                    sys.exit(f"seed {seed}, version {version} after {steps}: "
                             f"{theirs and len(theirs)} rows by delta-rs, {ours and len(ours)} here"
                             f" ({why})\nthere: {sorted(set(theirs or []) - set(ours or []))[:3]}"
                             f"\nhere: {sorted(set(ours or []) - set(theirs or []))[:3]}")
                n_versions += 1
                n_refused += ours is None
                n_rows += len(ours or [])
    print(f"{given.tables} tables, {n_versions} versions, {n_rows} rows: equal; "
          f"{n_refused} versions refused by both")


if __name__ == "__main__":
    main()
