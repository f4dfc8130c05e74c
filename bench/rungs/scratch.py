"""From scratch: LeNet-5 on Fashion-MNIST, evaluated once on the 10,000 test images; and loss curves of ResNet-20
and convnet7 on CIFAR-10 beside PyTorch's, from the same first weights on the same order of pictures.

A curve is two columns of losses and their means over 50 steps. Two programs that round differently part
after some dozens of steps, as one program with two orders of addition does; what must agree is the mean.
"""
import json
import pathlib
import shutil

from rungs.work import read_losses, table

WINDOW = 50


def fashion(work):
    source = work.need("datasets/fashion-mnist-idx")
    images = [str(path) for path in sorted(pathlib.Path(source).glob("*images*"))]
    train = next(path for path in images if "train" in path)
    test = next(path for path in images if "t10k" in path)
    options = {"source": train, "model": "lenet5", "augment": "none", "epochs": 12, "patience": 0}
    row = work.train("fashion", options)
    text, seconds, _ = work.run([work.tandem, "evaluate", row["run"], test, "--json"])
    test = json.loads(text)
    return {"title": "LeNet-5 on Fashion-MNIST", "train": row, "evaluate_seconds": seconds,
            "test": {key: test[key] for key in ("n", "correct", "accuracy", "low", "high")}}


def fashion_lines(result):
    test, train = result["test"], result["train"]
    return table(result["title"], ["train", "epochs", "train s", "test right", "accuracy", "95 % interval"], [[
        train["n_train"], train["epochs"], train["seconds"], f"{test['correct']}/{test['n']}",
        f"{test['accuracy']:.4f}", f"{test['low']:.4f} to {test['high']:.4f}"]])


def means(losses):
    return [sum(losses[i:i + WINDOW]) / len(losses[i:i + WINDOW]) for i in range(0, len(losses), WINDOW)]


def curve(work, model, steps):
    options = {"source": work.need("datasets/cifar10-parquet"), "model": model, "augment": "none", "bn": "batch",
               "batch": 128, "lr": 0.1, "schedule": "cosine", "warmup": 1, "epochs": 10, "patience": 0,
               "weight-decay": 0.0005}
    folder = work.training_plan(f"curve-{model}", options, 3)
    ours = work.losses(f"curve-{model}", {**options, "steps": steps})
    path = work.folder / "losses" / f"{model}-torch.txt"
    work.need_peers()
    work.run([*work.priority, work.python, str(work.peers / "train_torch.py"), folder, "--losses", str(path),
              "--threads", str(work.threads),
              "--steps", str(steps), "--epochs", "10", "--batch", "128", "--optimizer", "sgd", "--lr", "0.1",
              "--schedule", "cosine", "--warmup", "1", "--weight-decay", "0.0005", "--tuned", "--nhwc"])
    theirs = read_losses(path.read_text())
    shutil.rmtree(work.folder / "losses" / f"curve-{model}", ignore_errors=True)
    return {"model": model, "rates_agree": all(abs(a[1] - b[1]) <= 1e-6 * b[1] for a, b in zip(ours, theirs, strict=True)),
            "ours": [loss for _, _, loss in ours], "torch": [loss for _, _, loss in theirs]}


def curve_lines(result):
    ours, torch = means(result["ours"]), means(result["torch"])
    rows = [[f"{i * WINDOW + 1} to {min((i + 1) * WINDOW, len(result['ours']))}", f"{a:.4f}", f"{b:.4f}",
             f"{100 * (a / b - 1):+.2f} %"] for i, (a, b) in enumerate(zip(ours, torch))]
    steps = [abs(a / b - 1) for a, b in zip(result["ours"], result["torch"])]
    made = table(f"{result['model']} on CIFAR-10, batch 128, mean loss of {WINDOW} steps",
                 ["steps", "tandem", "PyTorch", "difference"], rows)
    made.append(f"  the first 10 steps are within {100 * max(steps[:10]):.2g} %, the first 50 within "
                f"{100 * max(steps[:50]):.2g} %; rates {'agree' if result['rates_agree'] else 'DIFFER'}")
    return made


def draw(results, path):
    """The curves as an SVG, ours thick and pale, PyTorch's thin and dark upon it."""
    width, height, left = 720, 260, 50
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height * len(results)}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height * len(results)}" fill="#fff"/>']
    for place, result in enumerate(results):
        top, n = place * height + 30, len(result["ours"])
        highest = max(result["ours"] + result["torch"])
        out.append(f'<text x="{left}" y="{top - 10}">{result["model"]}: loss of each of {n} steps, 0 to '
                   f'{highest:.2f}; thick: tandem, thin: PyTorch</text>')
        for name, look in (("ours", 'stroke="#7fb3e6" stroke-width="3"'),
                           ("torch", 'stroke="#222" stroke-width="0.8"')):
            line = " ".join(f"{left + (width - left - 10) * i / max(1, n - 1):.1f},"
                            f"{top + (height - 50) * (1 - loss / highest):.1f}"
                            for i, loss in enumerate(result[name]))
            out.append(f'<polyline fill="none" {look} points="{line}"/>')
    pathlib.Path(path).write_text("\n".join([*out, "</svg>", ""]))
