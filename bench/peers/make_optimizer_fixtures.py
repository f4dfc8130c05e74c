#!/usr/bin/env python3
"""Writes tests/fixtures/optim/*.txt: what PyTorch, Keras and the papers' formulas, in double, make of
a network's weights in a few steps, and what their schedules say. Needs torch and keras
(bench/peers/setup), never at test time:

    .venv-peers/bin/python bench/peers/make_optimizer_fixtures.py

Weights and gradients come from the counter generator (make_fixtures.py), so the files hold answers
only. Where PyTorch and Keras both have an optimiser, the script stops unless they agree with
each other up to where they add epsilon.
"""
import math
import os

import numpy as np
import torch

from make_fixtures import TEST, line, stream, uniform

os.environ.setdefault("KERAS_BACKEND", "torch")
OUT = os.path.join(os.path.dirname(__file__), "..", "..", "tests", "fixtures", "optim")
STEPS = 5
# lenet5 on 28 x 28 x 1, 10 classes, in the order of the graph: name, shape, is it decayed?
TENSORS = [("conv1.weight", 150), ("conv1.bias", 6), ("conv2.weight", 2400), ("conv2.bias", 16),
           ("dense1.weight", 48000), ("dense1.bias", 120), ("dense2.weight", 10080),
           ("dense2.bias", 84), ("dense3.weight", 840), ("dense3.bias", 10)]


def is_decayed(name):
    return name.endswith("weight")


def start():
    return [uniform(stream(TEST, 20, i, n), -0.5, 0.5).astype(np.float64)
            for i, (_, n) in enumerate(TENSORS)]


def gradients(step):
    """Of very different lengths, as in a network."""
    return [uniform(stream(TEST, 21 + step, i, n), -1.0, 1.0).astype(np.float64) *
            [1.0, 0.25, 2.0**-6][i % 3] for i, (_, n) in enumerate(TENSORS)]


def groups(params, decay):
    return [{"params": [p for p, (name, _) in zip(params, TENSORS) if is_decayed(name) == wanted],
             "weight_decay": decay if wanted else 0.0} for wanted in (True, False)]


def by_torch(make, decay, clip=0.0):
    params = [torch.tensor(w, requires_grad=True) for w in start()]
    optimizer = make(groups(params, decay))
    for step in range(STEPS):
        for p, g in zip(params, gradients(step)):
            p.grad = torch.tensor(g)
        if clip:
            torch.nn.utils.clip_grad_norm_(params, clip)
        optimizer.step()
    return [p.detach().numpy() for p in params]


def by_keras(make):
    import keras
    keras.backend.set_floatx("float64")
    params = [keras.Variable(w, dtype="float64") for w in start()]
    optimizer = make(keras.optimizers)
    optimizer.build(params)
    for step in range(STEPS):
        optimizer.apply([keras.ops.convert_to_tensor(g, dtype="float64") for g in gradients(step)],
                        params)
    return [keras.ops.convert_to_numpy(p) for p in params]


def by_lars(rate, momentum, decay, trust, nesterov, epsilon=1e-8):
    """SGD on gradients made as long as a part of their weights."""
    params = start()
    velocity = [np.zeros_like(w) for w in params]
    for step in range(STEPS):
        for i, g in enumerate(gradients(step)):
            w = params[i]
            if is_decayed(TENSORS[i][0]):
                length = np.linalg.norm(w)
                part = trust * length / (np.linalg.norm(g) + decay * length + epsilon)
                g = part * (g + decay * w)
            velocity[i] = momentum * velocity[i] + g
            params[i] = w - rate * (g + momentum * velocity[i] if nesterov else velocity[i])
    return params


def by_lamb(rate, decay, beta1=0.9, beta2=0.999, epsilon=1e-6, all_adapt=False):
    params = start()
    m, v = ([np.zeros_like(w) for w in params] for _ in range(2))
    for step in range(STEPS):
        for i, g in enumerate(gradients(step)):
            w = params[i]
            m[i] = beta1 * m[i] + (1 - beta1) * g
            v[i] = beta2 * v[i] + (1 - beta2) * g * g
            u = m[i] / (1 - beta1**(step + 1)) / (np.sqrt(v[i] / (1 - beta2**(step + 1))) + epsilon)
            part = 1.0
            if is_decayed(TENSORS[i][0]) or all_adapt:
                u = u + decay * w
                part = np.linalg.norm(w) / np.linalg.norm(u)
            params[i] = w - rate * part * u
    return params


def agree(what, a, b, tolerance):
    worst = max(np.abs(x - y).max() for x, y in zip(a, b))
    print(f"{what}: {worst:.1e}")
    if not worst <= tolerance:
        raise SystemExit(f"{what}: the two differ by {worst}")


def check_peers():
    """Definitions that differ at most in where epsilon is added."""
    o = torch.optim
    agree("adam, torch and keras", by_torch(lambda g: o.Adam(g, lr=0.01, eps=1e-12), 0.0),
          by_keras(lambda k: k.Adam(0.01, epsilon=1e-12)), 1e-6)
    agree("nadam, torch and keras",
          by_torch(lambda g: o.NAdam(g, lr=0.01, eps=1e-12, momentum_decay=1.0), 0.0),
          by_keras(lambda k: k.Nadam(0.01, epsilon=1e-12)), 1e-6)
    agree("rmsprop, torch and keras",
          by_torch(lambda g: o.RMSprop(g, lr=0.01, alpha=0.9, eps=1e-12), 0.0),
          by_keras(lambda k: k.RMSprop(0.01, rho=0.9, epsilon=1e-24)), 1e-6)  # in the root
    agree("sgd, torch and keras",
          by_torch(lambda g: o.SGD(g, lr=0.01, momentum=0.9, nesterov=True), 0.0),
          by_keras(lambda k: k.SGD(0.01, momentum=0.9, nesterov=True)), 1e-6)
    agree("lamb, its paper and keras", by_lamb(0.01, 0.0, epsilon=1e-6, all_adapt=True),
          by_keras(lambda k: k.Lamb(0.01, epsilon=1e-6)), 1e-6)


def write_optimizers():
    o = torch.optim
    cases = [
        # option, rate, momentum, decay, clip, answer
        ("sgd", 0.1, 0.9, 5e-4, 0.0,
         by_torch(lambda g: o.SGD(g, lr=0.1, momentum=0.9, nesterov=True), 5e-4)),
        ("sgd:nesterov=0", 0.1, 0.8, 0.01, 0.0,
         by_torch(lambda g: o.SGD(g, lr=0.1, momentum=0.8), 0.01)),
        ("sgd", 0.1, 0.9, 5e-4, 3.0,
         by_torch(lambda g: o.SGD(g, lr=0.1, momentum=0.9, nesterov=True), 5e-4, clip=3.0)),
        ("rmsprop", 0.01, 0.0, 0.01, 0.0, by_torch(lambda g: o.RMSprop(g, lr=0.01), 0.01)),
        ("rmsprop:rho=0.9,epsilon=0.01", 0.01, 0.9, 0.0, 0.0,
         by_torch(lambda g: o.RMSprop(g, lr=0.01, alpha=0.9, eps=0.01, momentum=0.9), 0.0)),
        ("adam", 0.01, 0.0, 0.0, 0.0, by_torch(lambda g: o.Adam(g, lr=0.01), 0.0)),
        ("adam:beta1=0.8,beta2=0.99,epsilon=0.1", 0.02, 0.0, 0.05, 0.0,
         by_torch(lambda g: o.Adam(g, lr=0.02, betas=(0.8, 0.99), eps=0.1), 0.05)),
        ("adam", 0.01, 0.0, 0.05, 2.0, by_torch(lambda g: o.Adam(g, lr=0.01), 0.05, clip=2.0)),
        ("adamw", 0.01, 0.0, 0.3, 0.0, by_torch(lambda g: o.AdamW(g, lr=0.01), 0.3)),
        ("nadam", 0.01, 0.0, 0.05, 0.0,
         by_torch(lambda g: o.NAdam(g, lr=0.01, momentum_decay=1.0), 0.05)),
        ("nadam:momentum-decay=0.004", 0.01, 0.0, 0.0, 0.0,
         by_torch(lambda g: o.NAdam(g, lr=0.01), 0.0)),
        ("lars", 5.0, 0.9, 1e-4, 0.0, by_lars(5.0, 0.9, 1e-4, 0.001, False)),
        ("lars:trust=0.02,nesterov=1", 0.5, 0.8, 0.1, 0.0, by_lars(0.5, 0.8, 0.1, 0.02, True)),
        ("lamb", 0.02, 0.0, 0.01, 0.0, by_lamb(0.02, 0.01)),
        ("lamb:beta1=0.8,beta2=0.99,epsilon=0.001", 0.05, 0.0, 0.5, 0.0,
         by_lamb(0.05, 0.5, 0.8, 0.99, 0.001)),
    ]
    with open(os.path.join(OUT, "optimizers.txt"), "w") as file:
        file.write("# made by bench/peers/make_optimizer_fixtures.py\n")
        file.write(line("cases", [len(cases)]) + line("steps", [STEPS]))
        file.write(line("tensors", [len(TENSORS)]))
        for option, rate, momentum, decay, clip, params in cases:
            file.write(f"option {option}\n" + line("rates", [rate, momentum, decay, clip]))
            for i, ((name, n), values) in enumerate(zip(TENSORS, params)):
                signs = np.where(stream(TEST, 19, i, n) & np.uint64(1), 1.0, -1.0)
                moved = values - start()[i]
                file.write(f"tensor {name}\n" + line("moved", [
                    np.linalg.norm(moved), moved @ signs, moved[0], moved[n // 2], moved[n - 1]]))


def rates_of(make, steps, metrics=None):
    """The factors that a PyTorch schedule gives, one a step."""
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1.0)
    schedule = make(optimizer)
    rates = []
    for step in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if metrics is None:
            schedule.step()
        else:
            schedule.step(metrics[step])
    return rates


def notebook_ramp(start_rate, floor, ramp, hold, decay):
    """The schedule of Keras notebooks, of whole epochs; its top rate is 1."""
    def rate(epoch):
        if epoch < ramp:
            return start_rate + (1.0 - start_rate) / ramp * epoch
        if epoch < ramp + hold:
            return 1.0
        return floor + (1.0 - floor) * decay**(epoch - ramp - hold)
    return rate


def write_schedules():
    import keras
    s = torch.optim.lr_scheduler
    steps = 41
    top = steps - 1
    ramp = notebook_ramp(0.1, 0.05, 5, 4, 0.8)
    keras_exponential = keras.optimizers.schedules.ExponentialDecay(1.0, 8, 0.5)
    # option, positions an epoch, epochs in all, factors at positions 0, 1, …
    cases = [
        ("constant", 1, top, rates_of(lambda o: s.ConstantLR(o, 1.0), steps)),
        ("step:every=7,factor=0.3", 1, top, rates_of(lambda o: s.StepLR(o, 7, 0.3), steps)),
        ("exponential:decay=0.9", 1, top, rates_of(lambda o: s.ExponentialLR(o, 0.9), steps)),
        ("exponential:decay=0.5", 8, 5, [float(keras_exponential(i)) for i in range(steps)]),
        ("cosine", 1, top, rates_of(lambda o: s.CosineAnnealingLR(o, top), steps)),
        ("cosine:floor=0.1", 1, top,
         rates_of(lambda o: s.CosineAnnealingLR(o, top, eta_min=0.1), steps)),
        # PyTorch's first phase ends a step before its part of the steps.
        ("one-cycle", 1, top,
         rates_of(lambda o: s.OneCycleLR(o, 1.0, steps, pct_start=(0.3 * top + 1) / steps), steps)),
        ("one-cycle:rise=0.45,start=0.1,floor=0.01", 1, top,
         rates_of(lambda o: s.OneCycleLR(o, 1.0, steps, pct_start=(0.45 * top + 1) / steps,
                                         div_factor=10, final_div_factor=10), steps)),
        ("ramp:start=0.1,floor=0.05,ramp=5,hold=4,decay=0.8", 1, top,
         [ramp(epoch) for epoch in range(steps)]),
        ("ramp:start=0.1,floor=0.05,ramp=5,hold=4,decay=0.8", 4, 10,
         [ramp(step // 4) for step in range(steps)]),
    ]
    losses = [2.0 * 0.9**min(i, 6) + (0.02 * math.sin(2.5 * i) if i > 5 else 0.0)
              for i in range(steps)]
    plateaus = [
        ("plateau", {}),
        ("plateau:factor=0.5,patience=2", {"factor": 0.5, "patience": 2}),
        ("plateau:factor=.5,patience=1,threshold=.05,cooldown=3,floor=.2",
         {"factor": 0.5, "patience": 1, "threshold": 0.05, "cooldown": 3, "min_lr": 0.2}),
    ]
    with open(os.path.join(OUT, "schedules.txt"), "w") as file:
        file.write("# made by bench/peers/make_optimizer_fixtures.py\n")
        file.write(line("cases", [len(cases)]) + line("positions", [steps]))
        for option, per_epoch, total, factors in cases:
            file.write(f"option {option}\n" + line("epochs", [per_epoch, total]))
            file.write(line("factors", factors))
        file.write(line("plateaus", [len(plateaus)]) + line("losses", losses))
        for option, how in plateaus:
            how = {"factor": 0.1, "patience": 5, **how}
            file.write(f"option {option}\n" + line("factors", rates_of(
                lambda o: s.ReduceLROnPlateau(o, **how), steps, losses)))


def main():
    os.makedirs(OUT, exist_ok=True)
    check_peers()
    write_optimizers()
    write_schedules()


if __name__ == "__main__":
    main()
