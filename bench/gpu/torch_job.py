"""torch_job.py DATA COUNT IMAGE: the usual recipe of a frozen base in PyTorch. Xception with random weights
stands frozen in evaluation mode under autocast, each epoch runs all images through it and trains a dense
layer of 512, dropout and the classes with Adam. DATA: an IDX file of COUNT pictures; a DataLoader with workers
brings batches to the GPU. Prints seconds of all epochs, without starting Python, as one line of JSON."""
import argparse
import json
import os
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "peers"))
import networks  # noqa: E402: found by the line above

HEADER_BYTES = 20


class Pictures(torch.utils.data.Dataset):
    """An IDX file of (pictures, height, width, 3), seen through the page cache."""

    def __init__(self, path, count, image):
        size = count * image * image * 3
        self.bytes = torch.from_file(str(path), size=HEADER_BYTES + size, dtype=torch.uint8)
        self.bytes = self.bytes[HEADER_BYTES:].view(count, image, image, 3).permute(0, 3, 1, 2)
        self.labels = torch.arange(count) % 10

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.bytes[i], self.labels[i]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("count", type=int)
    parser.add_argument("image", type=int)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--workers", type=int, default=min(16, os.cpu_count() or 1))
    options = parser.parse_args()
    began = time.perf_counter()
    torch.manual_seed(1)
    kind = options.device.split(":")[0]
    base = networks.build("xception", 0).to(options.device, memory_format=torch.channels_last).eval()
    forward = torch.compile(base, mode="max-autotune") if options.compile else base
    head = torch.nn.Sequential(torch.nn.Linear(2048, 512), torch.nn.ReLU(), torch.nn.Dropout(0.5),
                               torch.nn.Linear(512, 10)).to(options.device)
    optimizer = torch.optim.Adam(head.parameters(), lr=1e-3)
    loader = torch.utils.data.DataLoader(
        Pictures(options.data, options.count, options.image), options.batch, shuffle=True, drop_last=True,
        num_workers=options.workers, pin_memory=kind == "cuda", persistent_workers=options.workers > 0)
    for _ in range(options.epochs):
        for x, labels in loader:
            x = x.to(options.device, non_blocking=True).to(memory_format=torch.channels_last)
            with torch.autocast(kind, torch.bfloat16):
                with torch.no_grad():
                    features = forward(x / 127.5 - 1)
                loss = torch.nn.functional.cross_entropy(head(features), labels.to(options.device))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
    if kind == "cuda":
        torch.cuda.synchronize()
    print(json.dumps({"peer": "PyTorch " + torch.__version__, "compiled": options.compile,
                      "seconds": time.perf_counter() - began, "epochs": options.epochs,
                      "images": options.count}), flush=True)


if __name__ == "__main__":
    main()
