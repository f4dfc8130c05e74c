"""torch_side.py MODEL train|features BATCH IMAGE: images per second of PyTorch on a GPU, channels last,
autocast. features: evaluation mode, no gradients, up to the pooled features. train:
forward, cross-entropy, backward and a step of SGD with momentum (fused, one launch) for all layers.

--setting eager     as written
--setting compile   torch.compile(mode="max-autotune-no-cudagraphs")
--setting graphs    torch.compile(mode="max-autotune"): CUDA graphs too

The batch stays in the GPU's memory, as that of `tandem bench compute` does.
Prints one line of JSON. --device cpu is for this file's own test.
"""
import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "peers"))
import networks  # noqa: E402: found by the line above

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
MODES = {"compile": "max-autotune-no-cudagraphs", "graphs": "max-autotune"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("mode", choices=["train", "features"])
    parser.add_argument("batch", type=int)
    parser.add_argument("image", type=int)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precision", choices=list(TYPES), default="bf16")
    parser.add_argument("--setting", choices=["eager", "compile", "graphs"], default="eager")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--classes", type=int, default=1000)
    return parser.parse_args()


def cast(options):
    """What autocast does on this device; f32 means TF32 in products, as PyTorch's own advice for speed."""
    if options.precision == "f32":
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.allow_tf32 = True
    kind = options.device.split(":")[0]
    return torch.autocast(kind, TYPES[options.precision], enabled=options.precision != "f32")


def train_step(options, model, images):
    model.train()
    labels = torch.randint(options.classes, (len(images),), device=images.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=images.is_cuda)
    forward = torch.compile(model, mode=MODES[options.setting]) if options.setting in MODES else model

    def step():
        optimizer.zero_grad(set_to_none=True)
        with cast(options):
            loss = torch.nn.functional.cross_entropy(forward(images), labels)
        loss.backward()
        optimizer.step()

    return step


def features_step(options, model, images):
    model.eval()
    forward = model.features
    if options.setting in MODES:
        forward = torch.compile(forward, mode=MODES[options.setting])

    def step():
        with torch.no_grad(), cast(options):
            forward(images)

    return step


def resident_images(options):
    shape = (options.batch, networks.input_channels(options.model), options.image, options.image)
    return torch.randn(shape, device=options.device).to(memory_format=torch.channels_last)


def wait(options):
    if options.device.startswith("cuda"):
        torch.cuda.synchronize()


def rates(options, step):
    """Images per second of groups of steps; a group is long enough that waiting for its end costs nothing."""
    for _ in range(3 if options.device.startswith("cuda") else 1):  # compiles, chooses algorithms, records
        step()
    wait(options)
    began, n = time.perf_counter(), 0
    while n < 1 or time.perf_counter() - began < min(1.0, options.seconds):
        step()
        wait(options)
        n += 1
    group = max(1, int(0.25 * n))
    found, began = [], time.perf_counter()
    while len(found) < 3 or time.perf_counter() - began < options.seconds:
        then = time.perf_counter()
        for _ in range(group):
            step()
        wait(options)
        found.append(options.batch * group / (time.perf_counter() - then))
    return found


def main():
    options = arguments()
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True
    model = networks.build(options.model, options.classes, image=options.image)
    model = model.to(options.device, memory_format=torch.channels_last)
    step = (train_step if options.mode == "train" else features_step)(options, model, resident_images(options))
    found = rates(options, step)
    is_gpu = options.device.startswith("cuda")
    print(json.dumps({
        "peer": "PyTorch " + torch.__version__, "setting": options.setting,
        "precision": options.precision, "images_per_second": statistics.median(found), "low": min(found),
        "high": max(found), "groups": len(found),
        "gpu": torch.cuda.get_device_name() if is_gpu else None, "inputs": "resident",
        "peak_bytes": torch.cuda.max_memory_allocated() if is_gpu else None}), flush=True)


if __name__ == "__main__":
    main()
