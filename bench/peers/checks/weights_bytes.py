#!/usr/bin/env python3
"""Do the program of a form and our reader see the same tensors? Name, type, shape and every byte:

    bench/peers/checks/weights_bytes.py build/bench/bench_weights FILE…

PyTorch reads .pth, .pt and .th (of a checkpoint its "state_dict"), NumPy .npz, safetensors .safetensors. Prints
a line for each file; exits with status 1 at the first difference.
"""
import hashlib
import subprocess
import sys

import numpy as np

TORCH = {"float32": "F32", "float64": "F64", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32",
         "int16": "I16", "int8": "I8", "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64", "bool": "BOOL",
         "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2"}


def of_torch(state):
    import torch
    for name, value in state.items():
        value = value.detach().cpu().contiguous()
        flat = value.reshape(-1).view(torch.uint8).numpy().tobytes() if value.numel() else b""
        yield name, TORCH[str(value.dtype).split(".")[1]], list(value.shape), flat


def expected(path):
    if path.endswith(".npz"):
        for name, value in np.load(path).items():
            if value.dtype.kind in "fiub":
                value = np.ascontiguousarray(value.astype(value.dtype.newbyteorder("<"))).reshape(value.shape)
                yield name, TORCH[value.dtype.name], list(value.shape), value.tobytes()
        return
    import torch
    if path.endswith(".safetensors"):
        from safetensors.torch import load_file
        state = load_file(path)
    else:
        state = torch.load(path, map_location="cpu", weights_only=False)
    yield from of_torch(state.get("state_dict", state))


def found(program, path):
    text = subprocess.run([program, "list", path], check=True, capture_output=True, text=True).stdout
    for line in text.splitlines():
        if not line.startswith("fact "):
            dtype, shape, digest, name = line.split(" ", 3)
            yield name, dtype, [int(n) for n in shape[1:-1].split(",") if n], digest


def main(program, *paths):
    for path in paths:
        wanted = {name: (dtype, shape, hashlib.sha256(data).hexdigest()) for name, dtype, shape, data in expected(path)}
        ours = {name: (dtype, shape, digest) for name, dtype, shape, digest in found(program, path)}
        if list(ours) != list(wanted) and sorted(ours) != sorted(wanted):
            sys.exit(f"{path}: other names: {sorted(set(ours) ^ set(wanted))[:10]}")
        for name, value in wanted.items():
            if ours[name] != value:
                sys.exit(f"{path}: {name}: {ours[name]}, not {value}")
        print(f"{path}: {len(ours)} tensors, byte for byte")


if __name__ == "__main__":
    main(*sys.argv[1:])
