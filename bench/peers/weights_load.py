#!/usr/bin/env python3
"""How long a peer takes to load a file of weights, best of TIMES in one process, in milliseconds:

    bench/peers/weights_load.py torch|numpy|safetensors|keras FILE [TIMES]

The values are float arrays in memory at the end, as ours are. Also writes the files of the benches:

    bench/peers/weights_load.py write SOURCE.safetensors TARGET.pth|TARGET.legacy.pth|TARGET.npz
"""
import sys
import time


def loader(kind, path):
    if kind == "torch":
        import torch
        return lambda: torch.load(path, map_location="cpu")
    if kind == "numpy":
        import numpy
        return lambda: dict(numpy.load(path))
    if kind == "safetensors":
        from safetensors.torch import load_file
        return lambda: {name: value.clone() for name, value in load_file(path).items()}
    import keras
    return lambda: keras.models.load_model(path, compile=False)


def write(source, target):
    import torch
    from safetensors.torch import load_file
    state = load_file(source)
    if target.endswith(".npz"):
        import numpy
        numpy.savez(target, **{name: value.numpy() for name, value in state.items()})
    else:
        torch.save(state, target, _use_new_zipfile_serialization=not target.endswith(".legacy.pth"))


def main(kind, path, times=20):
    if kind == "write":
        return write(path, times)
    load, best = loader(kind, path), float("inf")
    for _ in range(int(times)):
        start = time.perf_counter()
        values = load()
        best = min(best, time.perf_counter() - start)
        del values
    print(f"{best * 1e3:.4f} ms (best of {times})")


if __name__ == "__main__":
    main(*sys.argv[1:])
