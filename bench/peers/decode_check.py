"""decode_check.py PROGRAM SIDE FILE...: how far tandem's inputs (PROGRAM is build/bench/bench_decode)
are from the same steps in Pillow, with the whole picture resampled, and with thumbnail() as it comes
(reducing_gap 2.0 and draft, which decode a reduced JPEG where it is twice as large or more). Prints
the largest differences; exit code 1 when whole pictures differ by more than 1 of 255."""
import subprocess
import sys

import numpy as np
from decode_pillow import prepare


def main():
    program, side, paths = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    ours = np.frombuffer(subprocess.run([program, "write", str(side), "1", "0", *paths], check=True,
                                        stdout=subprocess.PIPE).stdout, np.uint8)
    ours = ours.reshape(len(paths), side, side, 3).astype(int)
    for name, gap in (("whole pictures", None), ("thumbnail() as it comes", 2.0)):
        largest, n_equal, total = 0, 0, 0.0
        for path, mine in zip(paths, ours):
            with open(path, "rb") as file:
                theirs = np.asarray(prepare(file.read(), side, gap)).astype(int)
            difference = np.abs(mine - theirs)
            largest = max(largest, difference.max())
            n_equal += not difference.any()
            total += difference.mean()
        print(f"{name}: {n_equal} of {len(paths)} equal, largest difference {largest}, "
              f"mean {total / len(paths):.4f}")
        if gap is None:
            worst = largest
    sys.exit(worst > 1)


if __name__ == "__main__":
    main()
