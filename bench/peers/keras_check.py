#!/usr/bin/env python3
"""Does our reader see in Keras files what h5py sees? Every array of every file by name, type, shape and
SHA-256, and with --time how long opening and copying all of it takes beside Keras's own loading.

    keras_check.py [--time] build/bench/bench_weights_list FILE…

Prints a line for each file; ends with 1 at the first difference.
"""
import hashlib
import io
import os
import subprocess
import sys
import time
import zipfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import h5py
import numpy as np

TYPES = {"float32": "F32", "float16": "F16", "float64": "F64", "int64": "I64", "uint32": "U32"}


def names_of(group, key):
    parts = [group.attrs[key]] if key in group.attrs else []
    while f"{key}{len(parts)}" in group.attrs:
        parts.append(group.attrs[f"{key}{len(parts)}"])
    return [name.decode() if isinstance(name, bytes) else str(name)
            for part in parts for name in part]


def arrays_of(file):
    group = file["model_weights"] if "model_weights" in file else file
    layers = names_of(group, "layer_names")
    if not layers:
        found = []
        file.visititems(lambda name, thing: found.append(name) if isinstance(thing, h5py.Dataset)
                        and not name.startswith("optimizer/") else None)
        return {name: file[name][()] for name in found}
    return {f"{layer}/{name}": group[layer][name][()]
            for layer in layers + ["top_level_model_weights"] if layer in group
            for name in names_of(group[layer], "weight_names")}


def seen_by_h5py(path):
    source = path
    if zipfile.is_zipfile(path):
        source = io.BytesIO(zipfile.ZipFile(path).read("model.weights.h5"))
    with h5py.File(source, "r") as file:
        return {name: (TYPES[str(values.dtype)], ",".join(map(str, np.shape(values))),
                       hashlib.sha256(np.asarray(values, order="C").tobytes()).hexdigest())
                for name, values in arrays_of(file).items()}


def seen_by_us(program, path):
    lines = subprocess.run([program, path], capture_output=True, text=True, check=True).stdout
    rows = [line.split("\t") for line in lines.splitlines()]
    return {row[1]: tuple(row[2:]) for row in rows if row[0] == "tensor"}


def old_depthwise(path):
    """Keras 3 refuses the key "groups" of depthwise layers that Keras 2 wrote: they do without."""
    import keras

    class Depthwise(keras.layers.DepthwiseConv2D):
        def __init__(self, *args, groups=1, **kwargs):
            super().__init__(*args, **kwargs)

    return keras.models.load_model(path, compile=False,
                                   custom_objects={"DepthwiseConv2D": Depthwise})


def times(program, path):
    """The best of some: ours in a process of its own, Keras once it is imported and warm."""
    ours = subprocess.run([program, path, "20"], capture_output=True, text=True, check=True).stdout
    best = {}

    def clock(name, call):
        for _ in range(3):
            start = time.perf_counter()
            try:
                call()
            except ValueError:
                return
            took = time.perf_counter() - start
            best[name] = min(best.get(name, took), took)

    def by_h5py():
        with h5py.File(path, "r") as file:
            arrays_of(file)

    clock("Keras", lambda: old_depthwise(path))
    clock("h5py", by_h5py)
    return f"ours {ours.strip()}, " + ", ".join(f"{k} {v * 1e3:.1f} ms" for k, v in best.items())


def main():
    arguments = [word for word in sys.argv[1:] if word != "--time"]
    program, paths = arguments[0], arguments[1:]
    for path in paths:
        wanted, found = seen_by_h5py(path), seen_by_us(program, path)
        if wanted != found:
            differing = sorted(set(wanted.items()) ^ set(found.items()))
            sys.exit(f"{path}: not equal: {differing[:4]}")
        print(f"{path}: {len(found)} arrays are equal", flush=True)
        if "--time" in sys.argv:
            print(f"{path}: {times(program, path)}", flush=True)


if __name__ == "__main__":
    main()
