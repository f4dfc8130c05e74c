"""PyTorch on the pictures, the split, the order and the first weights of a training of tandem.

    train_torch.py FOLDER -o RUN [--freeze] [--epochs N] …     validates, writes outcomes, prints JSON
    train_torch.py FOLDER --losses FILE [--steps N] …          a line for each step, as bench_training prints

FOLDER is the folder that bench_training wrote (training_plan.py). --freeze: the base runs without gradients, in evaluation
mode, in every epoch: the usual recipe. --tuned, --nhwc and --compile are what makes PyTorch fast here.
"""
import argparse
import json
import time

BEGAN = time.perf_counter()
PARSER = argparse.ArgumentParser(description=__doc__)
PARSER.add_argument("folder")
PARSER.add_argument("-o", "--out")
PARSER.add_argument("--losses")
PARSER.add_argument("--steps", type=int, default=0)
PARSER.add_argument("--epochs", type=int, default=20)
PARSER.add_argument("--batch", type=int, default=32)
PARSER.add_argument("--optimizer", default="nadam", choices=["nadam", "sgd"])
PARSER.add_argument("--lr", type=float, default=0.001)
PARSER.add_argument("--schedule", default="constant", help="constant, cosine, ramp:key=value,…")
PARSER.add_argument("--warmup", type=float, default=0.0)
PARSER.add_argument("--weight-decay", type=float, default=0.0)
PARSER.add_argument("--patience", type=int, default=0)
PARSER.add_argument("--freeze", action="store_true")
PARSER.add_argument("--tuned", action="store_true")
PARSER.add_argument("--nhwc", action="store_true")
PARSER.add_argument("--compile", action="store_true")
PARSER.add_argument("--threads", type=int, default=2)
OPTIONS = PARSER.parse_args()
if OPTIONS.tuned:
    import measure

    measure.tune()

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch._inductor.config  # noqa: E402

import networks  # noqa: E402
import training_plan  # noqa: E402


def from_ours(module, values):
    values = torch.tensor(values)
    if values.dim() == 4:
        return values.permute(3, 2, 0, 1)
    if values.dim() == 2:
        values = values.t()
        if hasattr(module, "flattens"):
            c, h, w = module.flattens
            values = values.reshape(-1, h, w, c).permute(0, 3, 1, 2).flatten(1)
    return values


def fill(model, first):
    with torch.no_grad():
        for path, module in model.named_modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.eps = first.nodes[path]["epsilon"]
            for name, tensor in [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]:
                if f"{path}.{name}" in first:
                    tensor.copy_(from_ours(module, first[f"{path}.{name}"]))
                elif name != "num_batches_tracked":
                    raise SystemExit(f"the first weights have no {path}.{name}")


def new_model(plan, first):
    padding = "same" if any(node.get("pad_top") != node.get("pad_bottom") for node in first.nodes.values()) \
        else "symmetric"
    model = networks.build(plan.head["network"], len(plan.classes), padding)
    fill(model, first)
    return model.to(memory_format=torch.channels_last) if OPTIONS.nhwc else model


def head_of(model):
    return [module for module in model.modules() if isinstance(module, torch.nn.Linear)][-1]


def new_optimizer(model):
    """Decay is on weights alone, as tandem's is."""
    parameters = list((head_of(model) if OPTIONS.freeze else model).parameters())
    groups = [{"params": [p for p in parameters if p.dim() > 1], "weight_decay": OPTIONS.weight_decay},
              {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0}]
    if OPTIONS.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=OPTIONS.lr, momentum=0.9, nesterov=True)
    return torch.optim.NAdam(groups, lr=OPTIONS.lr, eps=1e-7, momentum_decay=1)


class Training:
    def __init__(self, plan, first):
        self.plan, self.pixels = plan, plan.pixels()
        self.labels = torch.tensor(plan.labels, dtype=torch.int64)
        self.model, self.scale = new_model(plan, first), first.scale
        self.optimizer, self.head = new_optimizer(self.model), head_of(self.model)
        self.features = self.model.features
        if OPTIONS.compile:
            torch._inductor.config.freezing = OPTIONS.freeze
            self.features = torch.compile(self.model.features, dynamic=False)
        self.part_of_rate = training_plan.schedule_of(OPTIONS.schedule, OPTIONS.warmup,
                                              -(-plan.n_train // OPTIONS.batch), OPTIONS.epochs)
        self.step = 0

    def input(self, indices):
        x = torch.from_numpy(training_plan.scaled(self.pixels[indices], self.scale)).permute(0, 3, 1, 2)
        return x if OPTIONS.nhwc else x.contiguous()

    def forward(self, indices):
        """A frozen base sees full batches: the compiler would start again for every other size."""
        if not OPTIONS.freeze:
            return self.head(self.features(self.input(indices)))
        count = len(indices)
        with torch.no_grad():
            rows = self.features(self.input(np.resize(indices, OPTIONS.batch) if OPTIONS.compile else indices))
        return self.head(rows[:count].clone())

    def train_batch(self, indices):
        rate = OPTIONS.lr * self.part_of_rate(self.step)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(self.forward(indices), self.labels[indices])
        loss.backward()
        self.optimizer.step()
        self.step += 1
        return rate, loss

    def evaluate(self):
        self.model.eval()
        wanted = np.arange(self.plan.n_train, self.plan.n)
        with torch.no_grad():
            logits = [self.forward(wanted[i:i + OPTIONS.batch]) for i in range(0, len(wanted), OPTIONS.batch)]
        return torch.cat(logits).numpy()

    def mode(self):
        self.model.train(not OPTIONS.freeze)


def tell_losses(training):
    training.mode()
    with open(OPTIONS.losses, "w", encoding="utf-8") as file:
        for epoch in range(OPTIONS.epochs):
            for indices in training.plan.batches(epoch, OPTIONS.batch):
                rate, loss = training.train_batch(indices)
                print(training.step, rate, f"{loss.item():.9g}", file=file)
                if training.step == OPTIONS.steps:
                    return


def train(training):
    plan, best, kept, ends = training.plan, training_plan.Best(OPTIONS.patience), None, []
    ready = time.perf_counter() - BEGAN
    for epoch in range(OPTIONS.epochs):
        training.mode()
        for indices in plan.batches(epoch, OPTIONS.batch):
            training.train_batch(indices)
        logits = training.evaluate()
        ends.append(time.perf_counter() - BEGAN)
        if best.take(epoch + 1, *training_plan.evaluate(logits, plan.labels[plan.n_train:])):
            kept = logits
        if best.is_over():
            break
    training_plan.write_run(OPTIONS.out, plan, best.epoch, kept)
    print(json.dumps({
        "peer": f"PyTorch {torch.__version__}" + " compiled" * OPTIONS.compile + ", tuned" * OPTIONS.tuned,
        "epochs": len(ends), "best_epoch": best.epoch, "n": plan.n_val, "correct": best.correct,
        "loss": best.loss, "ready_seconds": round(ready, 2), "epoch_ends": [round(end, 2) for end in ends],
        "seconds": round(time.perf_counter() - BEGAN, 2), "processor_seconds": round(time.process_time(), 2)}))


def main():
    torch.manual_seed(1)
    torch.set_num_threads(OPTIONS.threads)
    training = Training(training_plan.Plan(OPTIONS.folder), training_plan.First(OPTIONS.folder))
    if OPTIONS.losses:
        tell_losses(training)
    else:
        train(training)


main()
