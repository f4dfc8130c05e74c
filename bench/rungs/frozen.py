"""A head on a frozen base for 20 epochs, and all layers trained: whole processes against Keras and PyTorch.

frozen: ours from an empty TANDEM_HOME (every picture is read, decoded and run through the base), ours again
(rows are found), Keras and PyTorch with the base inside the model in each of the 20 epochs. Peers get decoded
pixels in memory, so reading and decoding is ours alone.
tune: one epoch of all layers of the same weights, and a validation. The time of the epoch stands beside that of the
process: until the base is there, programs differ in what they start, and ours measures what the batch norms
of these weights, which were folded, read.
"""
import json
import shutil

from rungs.steps import SETS, base_options, make_rows
from rungs.work import points, right, table

EPOCHS = 20
FAST = ["--tuned", "--nhwc"]


def frozen(work, which, peers, split=None):
    base = {**base_options(work, which), **(split or {})}
    ours = {**base, "optimizer": "nadam:epsilon=1e-7", "schedule": "constant", "warmup": 0, "lr": 0.001,
            "epochs": EPOCHS, "patience": 0}
    folder = work.training_plan(f"{which}-frozen", {**base, "features": "none"}, EPOCHS)
    words = ["--epochs", EPOCHS, "--lr", 0.001]
    is_once = SETS[which].get("rows", False)
    if is_once:
        words += make_rows(work, f"{which}-frozen", base)
    home = work.folder / "home"
    shutil.rmtree(home, ignore_errors=True)
    rows = {"tandem, first": work.train(f"{which}-frozen-cold", ours, home),
            "tandem, again": work.train(f"{which}-frozen-warm", {**ours, "seed": 42}, home)}
    ways = {"keras": ("Keras", "train_keras.py", []),
            "torch": ("PyTorch, tuned", "train_torch.py", ["--freeze", *FAST]),
            "compile": ("torch.compile, tuned", "train_torch.py", ["--freeze", "--compile", *FAST])}
    for key in peers:
        title, script, more = ways[key]
        rows[title] = work.peer(f"{which}-frozen-{key}", script, folder, *words, *more)
        rows[title]["comparison"] = work.compare(rows[title], rows["tandem, again"])
    title = f"a head on a frozen base, {EPOCHS} epochs: {SETS[which]['title']}"
    return {"set": which, "title": title, "peer_rows_once": is_once, "rows": rows}


def frozen_lines(result):
    ours = result["rows"]["tandem, first"]["seconds"], result["rows"]["tandem, again"]["seconds"]
    rows, once = [], result["peer_rows_once"]
    for name, row in result["rows"].items():
        is_peer = "comparison" in row
        rows.append([name, f"{row['seconds']:.2f}", f"{row['processor_seconds']:.2f}", right(row),
                     *([f"{row['seconds'] / took:.1f}" for took in ours] if is_peer else ["", ""]),
                     points(row["comparison"]) + ", " + row["comparison"]["verdict"] if is_peer else ""])
    made = table(result["title"], ["whole process", "s", "processor s", "right", "ours first ×", "ours again ×",
                                   "ours - peer, points"], rows)
    return [*made, "  The peer's base made its rows once, outside of its time."] if once else made


def epoch_seconds(run):
    """Of our epoch, with its validation, the best weights and the checkpoint."""
    with open(f"{run}/metrics.jsonl", encoding="utf-8") as file:
        events = [json.loads(line) for line in file]
    began = max(event["seconds"] for event in events if event["event"] == "note" and event["step"] == 0)
    return round(next(event["seconds"] for event in events if event["event"] == "epoch") - began, 2)


def tune(work, which, peers):
    base = {**base_options(work, which), "freeze": "none", "augment": "none"}
    folder = work.training_plan(f"{which}-tune", base)
    ways = {"keras": ("Keras", "train_keras.py", ["--trainable"]),
            "torch": ("PyTorch as installed", "train_torch.py", []),
            "tuned": ("PyTorch, tuned", "train_torch.py", FAST)}
    rows = {"tandem": work.train(f"{which}-tune", {**base, "epochs": 1, "lr": 0.001, "schedule": "constant",
                                                 "warmup": 0, "weight-decay": 0})}
    rows["tandem"]["epoch"] = epoch_seconds(rows["tandem"]["run"])
    for key in peers:
        title, script, more = ways[key]
        row = work.peer(f"{which}-tune-{key}", script, folder, "--epochs", 1, "--optimizer", "sgd", "--lr", 0.001,
                        *more)
        row["epoch"] = round(row["epoch_ends"][0] - row["ready_seconds"], 2)
        rows[title] = row
    return {"set": which, "title": f"all layers, one epoch and its validation: {SETS[which]['title']}", "rows": rows}


def tune_lines(result):
    ours = result["rows"]["tandem"]
    rows = []
    for name, row in result["rows"].items():
        times = [f"{row[key] / ours[key]:.2f}" for key in ("epoch", "seconds", "processor_seconds")]
        rows.append([name, f"{row['epoch']:.2f}", f"{row['seconds']:.2f}", f"{row['processor_seconds']:.2f}",
                     *([""] * 3 if row is ours else times)])
    return table(result["title"], ["", "epoch s", "process s", "processor s", "epoch ×", "process ×",
                                   "processor ×"], rows)
