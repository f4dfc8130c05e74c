#!/usr/bin/env python3
"""How the HDF5 C library takes damaged files: h5dump (Debian: hdf5-tools) over mutated copies of one
small Keras file, each in a process of its own with a time limit. Prints how many ended by a signal
or did not end; bench/results/weights.md has the figures.

    hdf5_library.py FILE.h5 [COPIES [SECONDS]]
"""
import collections
import random
import signal
import subprocess
import sys
import tempfile

SIZES = (0x00, 0x01, 0x7F, 0x80, 0xFF)


def mutate(data, draw):
    """One to eight bytes changed, a run overwritten, or the end cut off."""
    copy = bytearray(data)
    kind = draw.random()
    if kind < 0.1:
        return copy[: draw.randrange(len(copy))]
    for _ in range(draw.randint(1, 8)):
        at = draw.randrange(len(copy))
        if kind < 0.5:
            copy[at] ^= 1 << draw.randrange(8)
        elif kind < 0.9:
            copy[at] = draw.choice(SIZES)
        else:
            run = draw.randint(2, 8)
            copy[at : at + run] = bytes(draw.randrange(256) for _ in range(run))
    return copy


def main():
    data = open(sys.argv[1], "rb").read()
    copies = int(sys.argv[2]) if len(sys.argv) > 2 else 3000
    limit_s = float(sys.argv[3]) if len(sys.argv) > 3 else 10
    draw = random.Random(1)
    ends = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(copies):
            path = folder + "/copy.h5"
            with open(path, "wb") as file:
                file.write(mutate(data, draw))
            try:
                done = subprocess.run(["h5dump", path], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, timeout=limit_s, check=False)
            except subprocess.TimeoutExpired:
                ends["no end in %g s" % limit_s] += 1
                continue
            if done.returncode < 0:
                ends[signal.Signals(-done.returncode).name] += 1
            else:
                ends["exit %d" % done.returncode] += 1
    version = subprocess.run(["h5dump", "-V"], capture_output=True, text=True, check=True).stdout
    print(version.strip(), "over", copies, "copies of", len(data), "bytes")
    for end, count in sorted(ends.items()):
        print(f"{count:6d}  {end}")


if __name__ == "__main__":
    main()
