"""decode_check.py PROGRAM SIDE FILE...: how far tandem's inputs (PROGRAM is build/bench/bench_decode)
are from the same steps in Pillow: whole pictures resampled, and thumbnail() as it comes (reducing_gap
2.0 and draft, which decode a reduced JPEG where it is twice as large or more) against drafts of ours.
Also tells how far drafts are from whole pictures. Exit code 1 when one of the first two pairs differs
by more than 1 of 255."""
import pathlib
import subprocess
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from decode_pillow import prepare, prepare_draft  # noqa: E402: found by the line above


def ours(program, way, side, paths):
    written = subprocess.run([program, way, str(side), "1", "0", *paths], check=True,
                             stdout=subprocess.PIPE).stdout
    return np.frombuffer(written, np.uint8).reshape(len(paths), side, side, 3).astype(int)


def pillows(steps, side, paths):
    for path in paths:
        with open(path, "rb") as file:
            yield np.asarray(steps(file.read(), side)).astype(int)


def compare(name, paths, mine, theirs):
    largest, n_equal, total = 0, 0, 0.0
    for a, b in zip(mine, theirs):
        difference = np.abs(a - b)
        largest = max(largest, difference.max())
        n_equal += not difference.any()
        total += difference.mean()
    print(f"{name}: {n_equal} of {len(paths)} equal, largest difference {largest}, "
          f"mean {total / len(paths):.4f}")
    return largest


def main():
    program, side, paths = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    whole = ours(program, "write", side, paths)
    draft = ours(program, "write-draft", side, paths)
    worst = compare("whole pictures, Pillow", paths, whole,
                    pillows(lambda data, side: prepare(data, side, None), side, paths))
    worst = max(worst, compare("drafts, Pillow's thumbnail()", paths, draft,
                               pillows(prepare_draft, side, paths)))
    compare("drafts, whole pictures", paths, draft, whole)
    sys.exit(worst > 1)


if __name__ == "__main__":
    main()
