"""Reads the folder that bench_training (bench/programs/training.c) wrote, and writes the outcomes of a peer.

Peers see the pixels, the split and the order of pictures that tandem sees, and write a run folder of their
own, so that `tandem runs compare PEER OURS` compares both image by image.
"""
import json
import math
import os
import time

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file


class Plan:
    """A folder of `bench_training pictures`."""

    def __init__(self, folder):
        self.folder = folder
        with open(f"{folder}/head.json", encoding="utf-8") as file:
            self.head = json.load(file)
        self.n_train, self.n_val = self.head["n_train"], self.head["n_val"]
        self.n = self.n_train + self.n_val
        self.classes = self.head["classes"]
        self.shape = tuple(self.head[key] for key in ("height", "width", "channels"))
        self.labels = np.fromfile(f"{folder}/labels.i32", "<i4")
        self.contents = np.fromfile(f"{folder}/contents.u64", "<u8")
        self.order = np.fromfile(f"{folder}/order.i64", "<i8").reshape(-1, self.n_train)

    def pixels(self):
        """All of them, those that train first; in memory, which spares peers the reading and decoding."""
        return np.fromfile(f"{self.folder}/pixels", np.uint8).reshape(self.n, *self.shape)

    def stream(self, batch):
        """The same from a pipe: nothing is kept."""
        size, left = int(np.prod(self.shape)), self.n
        with open(f"{self.folder}/pixels", "rb") as file:
            while left > 0:
                count = min(batch, left)
                data = file.read(count * size)
                if len(data) != count * size:
                    raise SystemExit(f"{self.folder}/pixels ended {left} pictures early")
                yield np.frombuffer(data, np.uint8).reshape(count, *self.shape)
                left -= count

    def batches(self, epoch, batch):
        """Indices of the pictures of each batch; orders that were not written begin again."""
        order = self.order[epoch % len(self.order)]
        return [order[i:i + batch] for i in range(0, self.n_train, batch)]


class First:
    """Weights before the first step, by tandem's names: (height, width, inputs, outputs), (inputs, outputs)."""

    def __init__(self, folder):
        with safe_open(f"{folder}/run/first.safetensors", "np") as file:
            self.values = {name: file.get_tensor(name) for name in file.keys()}
            graph = json.loads(file.metadata()["tandem"])
        self.nodes = {node["name"]: node for node in graph["nodes"]}
        self.scale = graph["nodes"][0]["preprocess"]["scale"]

    def __getitem__(self, name):
        return self.values[name]

    def __contains__(self, name):
        return name in self.values


SCALES = {"tf": (127.5, 1.0, 1.0), "unit": (255.0, 0.0, 1.0), "raw": (1.0, 0.0, 1.0),
          "torch": (255.0, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))}


def scaled(pixels, scale):
    """Bytes to numbers, as float32."""
    divisor, mean, deviation = SCALES[scale]
    x = pixels.astype(np.float32)
    x /= np.float32(divisor)
    x -= np.float32(mean)
    return x if deviation == 1.0 else x / np.float32(deviation)


RAMP = {"start": 0.1, "floor": 0.1, "ramp": 5.0, "hold": 0.0, "decay": 0.8}


def ramp(epoch, start, floor, ramp, hold, decay):
    """The function that notebooks give to LearningRateScheduler."""
    if epoch < ramp:
        return start + (1.0 - start) * epoch / ramp
    if epoch < ramp + hold:
        return 1.0
    return floor + (1.0 - floor) * decay ** (epoch - ramp - hold)


def schedule_of(text, warmup, steps_per_epoch, epochs):
    """Of "constant", "cosine" or "ramp:key=value,…": what part of the rate step number n, from 0, has."""
    name, _, rest = text.partition(":")
    if name not in ("constant", "cosine", "ramp"):
        raise SystemExit(f"no schedule {name}; there are constant, cosine and ramp")
    values = dict(RAMP, **{key: float(value) for key, value in (part.split("=") for part in rest.split(",") if part)})

    def part(step):
        at, total = (step + 0.5) / steps_per_epoch - warmup, epochs - warmup
        if at < 0.0:
            return 1.0 + at / warmup
        if name == "cosine":
            return 0.5 * (1.0 + math.cos(math.pi * min(1.0, at / total)))
        return ramp(math.floor(at), **values) if name == "ramp" else 1.0

    return part


class Best:
    """Whose weights are kept, and when training stops: by tandem's rule (more right, then less loss)."""

    def __init__(self, patience):
        self.patience, self.epoch, self.correct, self.loss, self.waited = patience, 0, -1, 0.0, 0

    def take(self, epoch, correct, loss):
        is_better = correct > self.correct or (correct == self.correct and loss < self.loss)
        self.waited = 0 if is_better else self.waited + 1
        if is_better:
            self.epoch, self.correct, self.loss = epoch, correct, loss
        return is_better

    def is_over(self):
        return self.patience > 0 and self.waited >= self.patience


def losses_of(logits, labels):
    powers = logits.astype(np.float64)
    powers -= powers.max(axis=1, keepdims=True)
    return np.log(np.exp(powers).sum(axis=1)) - powers[np.arange(len(labels)), labels]


def evaluate(logits, labels):
    """(right, mean loss) of softmax logits."""
    return int((logits.argmax(1) == labels).sum()), float(losses_of(logits, labels).mean())


def write_run(folder, plan, epoch, logits):
    """A run folder with the outcomes of the validation images."""
    labels, rows = plan.labels[plan.n_train:], np.arange(plan.n_val)
    losses = losses_of(logits, labels)
    predicted = logits.argmax(1)
    powers = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    chances = powers / powers.sum(axis=1, keepdims=True)
    ranks = (logits > logits[rows, labels][:, None]).sum(1)
    ranks[(ranks == 0) & (predicted != labels)] = 1
    head = {"format_version": 1, "tandem": "0.1.0", "network": plan.head["network"], "epoch": epoch, "step": 0,
            "classes": plan.classes}
    os.makedirs(folder, exist_ok=True)
    save_file({
        "content": plan.contents[plan.n_train:], "label": labels.astype("<i4"),
        "predicted": predicted.astype("<i4"), "rank": ranks.astype("<i4"),
        "probability": chances[rows, labels].astype("<f4"),
        "confidence": chances[rows, predicted].astype("<f4"), "loss": losses.astype("<f4"),
    }, f"{folder}/outcomes.safetensors", {"format": "tandem.outcomes", "tandem": json.dumps(head)})
    with open(f"{folder}/run.json", "w", encoding="utf-8") as file:
        json.dump({"format_version": 1, "tandem": "0.1.0", "status": "finished",
                   "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}, file)


class Features:
    """Rows that a base made once, by content: FILE.npz."""

    def __init__(self, path):
        with np.load(path) as file:
            contents, self.rows = file["contents"], file["rows"]
        self.sorted = np.argsort(contents)
        self.contents = contents[self.sorted]

    def of(self, contents):
        places = np.minimum(np.searchsorted(self.contents, contents), len(self.contents) - 1)
        if not np.array_equal(self.contents[places], contents):
            raise SystemExit("the features are of other pictures")
        return self.rows[self.sorted[places]]
