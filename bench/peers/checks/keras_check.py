#!/usr/bin/env python3
"""Does our reader see in Keras files what h5py sees? Every array of every file by name, type, shape and
SHA-256, and with --time how long opening and copying all of it takes beside Keras's own loading.

    keras_check.py [--time] build/bench/bench_weights_list FILE…

And in what our writer writes? Each .h5 file is written again; h5py must see the same arrays, Keras, where
it takes the file, predict the same bits; the last one has 3,000 layers with names of 180 KB in all.

    keras_check.py --copy build/bench/bench_keras_copy FILE.h5…

Prints a line for each file; exits with status 1 at the first difference.
"""
import hashlib
import io
import os
import subprocess
import sys
import tempfile
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


def predictions(path):
    """None when Keras refuses the file, which it does with nested models of Keras 2."""
    try:
        model = old_depthwise(path)
    except ValueError:
        return None
    draw = np.random.default_rng(1)
    return model.predict(draw.normal(size=(4, *model.input_shape[1:])), verbose=0)


def write_large(path):
    """Lists of names in parts, and more members than one node of a tree holds."""
    names = [f"layer_{i}_with_a_name_that_is_as_long_as_sixty_letters_are_{i}" for i in range(3000)]
    with h5py.File(path, "w") as file:
        file.attrs["keras_version"] = b"2.4.0"
        for part in range(6):
            own = names[part * 500:(part + 1) * 500]
            file.attrs[f"layer_names{part}"] = np.array([name.encode() for name in own])
        for at, name in enumerate(names):
            group = file.create_group(name)
            group.attrs["weight_names"] = np.array([b"bias:0", b"kernel:0"])
            group["kernel:0"], group["bias:0"] = np.float32([[at, 1]]), np.float32(at)


def check_copies(program, paths):
    with tempfile.TemporaryDirectory() as folder:
        large = folder + "/large.h5"
        write_large(large)
        for path in [*paths, large]:
            copy = folder + "/copy.h5"
            subprocess.run([program, path, copy], check=True)
            if seen_by_h5py(path) != seen_by_h5py(copy):
                sys.exit(f"{path}: the copy has other arrays")
            wanted = None if path == large else predictions(path)
            if wanted is not None and not np.array_equal(wanted, predictions(copy)):
                sys.exit(f"{path}: the copy predicts something else")
            print(f"{path}: the copy is equal, predictions "
                  f"{'too' if wanted is not None else 'not asked for'}", flush=True)


def main():
    arguments = [word for word in sys.argv[1:] if word not in ("--time", "--copy")]
    program, paths = arguments[0], arguments[1:]
    if "--copy" in sys.argv:
        check_copies(program, paths)
        return
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
