"""compute_torch.py MODEL features|train BATCH IMAGE [--tuned] [--compile] [--nhwc]: images per second of
PyTorch on the CPU, batches in memory. features: evaluation mode, no gradients, up to the pooled features
(--compile: torch.compile with frozen weights). train: forward, cross-entropy, backward and one step of
SGD with momentum for all layers. Prints one line of JSON with the median, least and largest rate of a
step and the largest resident memory in MiB.
"""
from measure import arguments, peak_mib, rates, report

OPTIONS = arguments(__doc__, ("--compile", {"action": "store_true"}),
                    ("--nhwc", {"action": "store_true", "help": "torch.channels_last"}))

import torch  # noqa: E402: after the program was started again
import torch._inductor.config  # noqa: E402

import networks  # noqa: E402


def features_step(model, x):
    model.eval()
    forward = model.features

    def step():
        with torch.no_grad():
            return forward(x)

    if OPTIONS.compile:
        torch._inductor.config.freezing = True
        with torch.no_grad():
            forward = torch.compile(model.features)
            forward(x)
    return step


def train_step(model, x):
    model.train()
    labels = torch.randint(OPTIONS.classes, (len(x),))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    forward = torch.compile(model) if OPTIONS.compile else model

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(forward(x), labels).backward()
        optimizer.step()

    return step


def main():
    torch.manual_seed(1)
    torch.set_num_threads(OPTIONS.threads)
    model = networks.build(OPTIONS.model, OPTIONS.classes)
    x = torch.randn(OPTIONS.batch, networks.input_channels(OPTIONS.model), OPTIONS.image, OPTIONS.image)
    if OPTIONS.nhwc:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    step = (features_step if OPTIONS.mode == "features" else train_step)(model, x)
    found = rates(step, OPTIONS.batch, OPTIONS.seconds)
    name = "PyTorch " + torch.__version__ + (" compiled" if OPTIONS.compile else "")
    report(name, OPTIONS, found, peak_mib(), nhwc=OPTIONS.nhwc)


main()
