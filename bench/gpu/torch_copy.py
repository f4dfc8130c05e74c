"""torch_copy.py [--device cuda] [--bytes N] [--seconds S]: bytes per second that a copy within the GPU's
memory moves, read and written both counted; what kernels that only move memory are a share of. One line
of JSON."""
import argparse
import json
import statistics
import time

import torch


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--bytes", type=int, default=1 << 30)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    is_gpu = options.device.startswith("cuda")
    source = torch.randint(0, 255, (options.bytes,), dtype=torch.uint8, device=options.device)
    target = torch.empty_like(source)

    def wait():
        if is_gpu:
            torch.cuda.synchronize()

    for _ in range(3):
        target.copy_(source)
    wait()
    found, began = [], time.perf_counter()
    while len(found) < 5 or time.perf_counter() - began < options.seconds:
        then = time.perf_counter()
        for _ in range(10):
            target.copy_(source)
        wait()
        found.append(10 * 2 * options.bytes / (time.perf_counter() - then))
    print(json.dumps({"bytes_per_second": statistics.median(found), "low": min(found), "high": max(found),
                      "bytes": options.bytes}), flush=True)


main()
