#!/usr/bin/env python3
"""Is the data set of `tandem synth` learnable, and not by a shortcut?

For each number of classes and each seed it makes a data set, keeps every fifth picture of a class
for validation, and measures there

  net         a small convolution network from scratch (5x5 with stride 2: 32; 3x3: 32 pool 64 64
              pool 128 128; batch norm after each, global average pooling, dense) at 64 x 64 pixels,
  histogram   a logistic classifier on the 8x8x8 colour histogram,
  channels    the same on three histograms of 32 bins, one for each channel,
  shortcuts   the same on width, height, file size, and mean and spread of each channel.

Each logistic classifier gets the best of several regularisation strengths, chosen on the validation
pictures: in its favour. Exit status 1 when net is below 95 % or histogram or channels reach 60 %.

    bench/peers/setup && .venv-peers/bin/python bench/peers/checks/synth_check.py --tandem build/tandem
"""

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # spinning threads are slow on a shared machine

import numpy as np
import torch
from PIL import Image
from torch import nn


def wilson(correct, n):
    """95 % interval of a proportion."""
    z, p = 1.959964, correct / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return middle - half, middle + half


def read(folder, side):
    """Pictures at side x side, the features of the shortcuts, labels, and the validation mask."""
    pixels, features, labels, held_out = [], {"histogram": [], "channels": [], "shortcuts": []}, [], []
    for label, name in enumerate(sorted(os.listdir(folder))):
        for number, file in enumerate(sorted(os.listdir(os.path.join(folder, name)))):
            path = os.path.join(folder, name, file)
            image = Image.open(path).convert("RGB")
            whole = np.asarray(image)
            flat = whole.reshape(-1, 3)
            eighths = (flat >> 5).astype(np.int64)
            cube = np.bincount(eighths[:, 0] * 64 + eighths[:, 1] * 8 + eighths[:, 2], minlength=512)
            features["histogram"].append(np.sqrt(cube / len(flat)))
            channels = [np.bincount(flat[:, c] >> 3, minlength=32) for c in range(3)]
            features["channels"].append(np.sqrt(np.concatenate(channels) / len(flat)))
            features["shortcuts"].append(
                np.concatenate([[image.width, image.height, os.path.getsize(path),
                                 os.path.getsize(path) / len(flat)], flat.mean(0), flat.std(0)]))
            pixels.append(np.asarray(image.resize((side, side), Image.BILINEAR)))
            labels.append(label)
            held_out.append(number % 5 == 4)
    data = torch.from_numpy(np.stack(pixels)).permute(0, 3, 1, 2).float().div(127.5).sub(1)
    features = {k: torch.tensor(np.stack(v), dtype=torch.float32) for k, v in features.items()}
    return data, features, torch.tensor(labels), torch.tensor(held_out)


def logistic(features, labels, held_out, classes):
    """Best validation count over regularisation strengths of a linear classifier."""
    features = (features - features[~held_out].mean(0)) / (features[~held_out].std(0) + 1e-3)
    best = 0
    for decay in (1e-4, 1e-3, 1e-2, 1e-1):
        model = nn.Linear(features.shape[1], classes)
        nn.init.zeros_(model.weight)
        nn.init.zeros_(model.bias)
        solver = torch.optim.LBFGS(model.parameters(), max_iter=100, line_search_fn="strong_wolfe")

        def closure():
            solver.zero_grad()
            loss = nn.functional.cross_entropy(model(features[~held_out]), labels[~held_out])
            loss = loss + decay * model.weight.square().sum()
            loss.backward()
            return loss

        solver.step(closure)
        with torch.no_grad():
            guess = model(features[held_out]).argmax(1)
        best = max(best, int((guess == labels[held_out]).sum()))
    return best


def network(classes):
    layers, inputs = [], 3
    # With the stride a step costs half as much, so there can be twice as many; textures survive it.
    for width in (32, 32, "pool", 64, 64, "pool", 128, 128):
        if width == "pool":
            layers.append(nn.MaxPool2d(2))
            continue
        kernel, stride = (5, 2) if inputs == 3 else (3, 1)
        layers += [nn.Conv2d(inputs, width, kernel, stride, padding=kernel // 2, bias=False),
                   nn.BatchNorm2d(width), nn.ReLU()]
        inputs = width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes)]
    return nn.Sequential(*layers)


def train(data, labels, held_out, classes, options):
    """Validation count, seconds, CPU seconds; AdamW with one cycle of the rate, half of the pictures mirrored."""
    torch.manual_seed(0)
    model = network(classes).to(memory_format=torch.channels_last)
    inputs, targets = data[~held_out], labels[~held_out]
    n, batch = len(inputs), 32
    solver = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(solver, 3e-3, total_steps=options.steps, pct_start=0.25)
    begin, cpu_begin = time.monotonic(), time.process_time()
    order = torch.empty(0, dtype=torch.int64)
    for _ in range(options.steps):
        if len(order) < batch:
            order = torch.randperm(n)
        at, order = order[:batch], order[batch:]
        x = inputs[at]
        x = torch.where(torch.rand(batch, 1, 1, 1) < 0.5, x.flip(3), x)
        solver.zero_grad()
        guess = model(x.contiguous(memory_format=torch.channels_last))
        nn.functional.cross_entropy(guess, targets[at]).backward()
        solver.step()
        schedule.step()
    seconds, cpu_seconds = time.monotonic() - begin, time.process_time() - cpu_begin
    model.eval()
    with torch.no_grad():
        guess = torch.cat([model(part).argmax(1) for part in data[held_out].split(100)])
    return int((guess == labels[held_out]).sum()), seconds, cpu_seconds


def check(folder, classes, seed, options):
    data, features, labels, held_out = read(folder, 64)
    n = int(held_out.sum())
    row = {"classes": classes, "per_class": options.per_class, "seed": seed, "n": n}
    for name, values in features.items():
        row[name] = logistic(values, labels, held_out, classes) / n
    correct, row["seconds"], row["cpu_seconds"] = train(data, labels, held_out, classes, options)
    row["net"] = correct / n
    row["net_low"], row["net_high"] = wilson(correct, n)
    row["passed"] = row["net"] >= options.floor and max(row["histogram"], row["channels"]) < 0.60
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tandem", default="build/tandem", help="the program to check")
    parser.add_argument("--classes", type=int, nargs="+", default=[5, 10])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--per-class", type=int, default=200)
    parser.add_argument("--size", type=int, default=160)
    parser.add_argument("--steps", type=int, default=800, help="of 32 pictures each")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--floor", type=float, default=0.95, help="what the network must reach")
    parser.add_argument("-o", "--output", help="write the rows as JSON, with the machine's facts")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    rows = []
    for classes in options.classes:
        for seed in options.seeds:
            with tempfile.TemporaryDirectory() as scratch:
                folder = os.path.join(scratch, "data")
                subprocess.run([options.tandem, "synth", folder, "--classes", str(classes),
                                "--per-class", str(options.per_class), "--size", str(options.size),
                                "--seed", str(seed)], check=True, stdout=subprocess.DEVNULL)
                row = check(folder, classes, seed, options)
            rows.append(row)
            print("classes {classes:3d}  seed {seed}  net {net:.1%} ({net_low:.1%} to {net_high:.1%}, n {n})"
                  " in {seconds:.0f} s ({cpu_seconds:.0f} s of CPU)  histogram {histogram:.1%}  channels {channels:.1%}"
                  "  shortcuts {shortcuts:.1%}  {verdict}".format(
                      verdict="ok" if row["passed"] else "FAILED", **row), flush=True)
    if options.output:
        machine = {"machine": platform.machine(), "cpus": os.cpu_count(), "threads": options.threads,
                   "torch": torch.__version__, "python": platform.python_version()}
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump({"machine": machine, "steps": options.steps, "rows": rows},
                      file, indent=1)
            file.write("\n")
    return 0 if all(row["passed"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
