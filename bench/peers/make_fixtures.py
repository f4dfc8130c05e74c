#!/usr/bin/env python3
"""Writes tests/fixtures/nn/*.txt: what PyTorch says, in double, of networks and optimiser steps that
the tests compute again. Needs torch and numpy (bench/peers/setup), never at test time:

    .venv-peers/bin/python bench/peers/make_fixtures.py

Weights, pictures and signs come from the counter generator of src/base/rng.h, written out here a
second time, so the files hold answers only.
"""
import os

import numpy as np
import torch
import torch.nn.functional as F

SEED = 2024
INIT, TEST = 1, 7  # purposes of src/base/rng.h
OUT = os.path.join(os.path.dirname(__file__), "..", "..", "tests", "fixtures", "nn")


def philox(counter, key):
    """Ten rounds over arrays of counters, as four uint64 arrays that hold 32 bits each."""
    mask = np.uint64(0xFFFFFFFF)
    shift = np.uint64(32)
    c = [np.asarray(word, dtype=np.uint64) for word in counter]
    k = [int(word) for word in key]
    for _ in range(10):
        left = np.uint64(0xD2511F53) * c[0]
        right = np.uint64(0xCD9E8D57) * c[2]
        c = [(right >> shift) ^ c[1] ^ np.uint64(k[0]), right & mask,
             (left >> shift) ^ c[3] ^ np.uint64(k[1]), left & mask]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def stream(purpose, epoch, sample, n, seed=SEED):
    """The first n words of tdmi_rng_at(seed, purpose, epoch, sample)."""
    z = seed ^ (purpose << 56)
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    z ^= z >> 31
    blocks = np.arange((n + 3) // 4, dtype=np.uint64)
    ones = np.ones_like(blocks)
    words = philox([blocks, ones * np.uint64(epoch), ones * np.uint64(sample & 0xFFFFFFFF),
                    ones * np.uint64(sample >> 32)], [z & 0xFFFFFFFF, z >> 32])
    return np.stack(words, axis=1).reshape(-1)[:n]


def uniform(words, low, high):
    """tdmi_rng_uniform: every operation rounded to f32."""
    unit = (words >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)
    low, high = np.float32(low), np.float32(high)
    return low + (high - low) * unit


class Parameters:
    """Tensors in the order of the graph, filled as tdmi_graph_init_values fills them. What that
    leaves at 0 or 1 is moved by a quarter at most, as the test does: zeros would hide mistakes."""

    def __init__(self):
        self.names, self.tensors = [], []

    def add(self, name, shape, fan_in=0, base=0.0):
        index, n = len(self.names), int(np.prod(shape))
        if fan_in:
            bound = np.sqrt(np.float32(6.0) / np.float32(fan_in))
            values = uniform(stream(INIT, 0, index, n), -bound, bound)
        else:
            values = np.float32(base) + uniform(stream(TEST, 3, index, n), -0.25, 0.25)
        tensor = torch.tensor(values.astype(np.float64).reshape(shape), requires_grad=True)
        self.names.append(name)
        self.tensors.append(tensor)
        return tensor


class Network:
    """Layers on NCHW tensors, parameters in tandem's layout (kernel, kernel, in, out)."""

    def __init__(self):
        self.parameters = Parameters()
        self.state_sums = []

    def conv(self, name, x, channels, kernel, pad, bias):
        p, fan_in = self.parameters, kernel * kernel * x.shape[1]
        w = p.add(name + ".weight", (kernel, kernel, x.shape[1], channels), fan_in)
        b = p.add(name + ".bias", (channels,)) if bias else None
        return F.conv2d(x, w.permute(3, 2, 0, 1), b, padding=pad)

    def norm(self, name, x):
        p, channels = self.parameters, x.shape[1]
        scale, shift = p.add(name + ".weight", (channels,), base=1.0), p.add(name + ".bias", (channels,))
        mean, var = torch.zeros(channels, dtype=x.dtype), torch.zeros(channels, dtype=x.dtype)
        y = F.batch_norm(x, mean, var, scale, shift, training=True, momentum=1.0, eps=1e-5)
        self.state_sums += [(name + ".running_mean", mean * x.shape[0]),
                            (name + ".running_var", var * x.shape[0])]
        return y

    def dense(self, name, x, channels):
        x = x.permute(0, 2, 3, 1).flatten(1) if x.dim() == 4 else x
        p = self.parameters
        w = p.add(name + ".weight", (x.shape[1], channels), x.shape[1])
        return x @ w + p.add(name + ".bias", (channels,))


def convnet7(net, x, classes):
    for number, channels, pools in ((1, 32, True), (2, 32, False), (3, 64, True), (4, 64, False),
                                    (5, 128, True), (6, 128, False)):
        x = net.conv(f"conv{number}", x, channels, 3, 1, False)
        x = F.relu(net.norm(f"bn{number}", x))
        x = F.max_pool2d(x, 2) if pools else x
    return net.dense("dense", x.mean((2, 3)), classes)


def lenet5(net, x, classes):
    x = F.max_pool2d(F.relu(net.conv("conv1", x, 6, 5, 2, True)), 2)
    x = F.max_pool2d(F.relu(net.conv("conv2", x, 16, 5, 0, True)), 2)
    x = F.relu(net.dense("dense1", x, 120))
    x = F.relu(net.dense("dense2", x, 84))
    return net.dense("dense3", x, classes)


def line(word, numbers):
    return word + " " + " ".join(repr(float(number)) for number in numbers) + "\n"


def tensor_lines(word, name, values, index, epoch):
    """Norm, product with a vector of signs, and 16 values spread over the tensor."""
    values = values.detach().numpy().reshape(-1)
    signs = np.where(stream(TEST, epoch, index, len(values)) & np.uint64(1), 1.0, -1.0)
    picks = [i * len(values) // 16 for i in range(16)]
    return f"{word} {name}\n" + line("numbers", [np.linalg.norm(values), values @ signs,
                                                 *values[picks]])


def write_network(name, build, size, channels, scale, images, classes):
    pixels = np.stack([stream(TEST, 1, i, size * size * channels) >> np.uint64(24)
                       for i in range(images)])
    x = scale(pixels.astype(np.float64)).reshape(images, size, size, channels)
    labels = torch.arange(images) % classes
    net = Network()
    logits = build(net, torch.tensor(x).permute(0, 3, 1, 2), classes)
    loss = F.cross_entropy(logits, labels, reduction="sum")
    loss.backward()
    p = net.parameters
    with open(os.path.join(OUT, name + ".txt"), "w") as file:
        file.write("# made by bench/peers/make_fixtures.py\n")
        file.write(line("seed", [SEED]) + line("size", [size]) + line("images", [images]))
        file.write(line("classes", [classes]))
        file.write(line("logits", logits.detach().numpy().reshape(-1)))
        file.write(line("loss", [loss.item()]))
        file.write(line("gradients", [len(p.names)]))
        for index, (tensor_name, tensor) in enumerate(zip(p.names, p.tensors)):
            file.write(tensor_lines("gradient", tensor_name, tensor.grad, index, 2))
        file.write(line("states", [len(net.state_sums)]))
        for index, (tensor_name, values) in enumerate(net.state_sums):
            file.write(tensor_lines("state", tensor_name, values, index, 4))


def write_sgd():
    cases = [(0.9, 0.0, True, 0.1), (0.9, 5e-4, True, 0.05), (0.5, 0.01, False, 0.2),
             (0.0, 0.01, False, 0.3)]
    steps = 5
    with open(os.path.join(OUT, "sgd.txt"), "w") as file:
        file.write("# made by bench/peers/make_fixtures.py: torch.optim.SGD in double\n")
        file.write(line("cases", [len(cases)]))
        for c, (momentum, decay, nesterov, rate) in enumerate(cases):
            start = uniform(stream(TEST, 5, c, 8), -1.0, 1.0)
            w = torch.tensor(start.astype(np.float64), requires_grad=True)
            optimizer = torch.optim.SGD([w], lr=rate, momentum=momentum, weight_decay=decay,
                                        nesterov=nesterov)
            file.write(line("momentum", [momentum]) + line("decay", [decay]))
            file.write(line("nesterov", [nesterov]) + line("rate", [rate]))
            file.write(line("steps", [steps]) + line("start", start))
            for s in range(steps):
                gradient = uniform(stream(TEST, 6 + s, c, 8), -1.0, 1.0)
                w.grad = torch.tensor(gradient.astype(np.float64))
                optimizer.step()
                file.write(line("gradient", gradient) + line("after", w.detach().numpy()))


def main():
    torch.manual_seed(0)
    os.makedirs(OUT, exist_ok=True)
    write_network("convnet7", convnet7, 16, 3, lambda b: b / 127.5 - 1.0, 6, 5)
    write_network("lenet5", lenet5, 28, 1, lambda b: b / 255.0, 7, 10)
    write_sgd()


if __name__ == "__main__":
    main()
