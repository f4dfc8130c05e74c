"""The six steps of the published story with more ranks in place of GPUs and machines, and what comes before them.

The story trains a head on a frozen Xception of 299 px on 27,552 pictures with T4 GPUs, its base run in every
epoch; here it is MobileNetV2 of 224 px on 845, one thread a rank, all on this machine. An epoch is the mean of
all but the first, validation included. The last rows compute the base once, which the story never did.
"""
import json

from rungs.steps import base_options
from rungs.work import right, table

EPOCHS, ALL = 3, 0.9
RECIPE = {"optimizer": "nadam:epsilon=1e-7", "schedule": "constant", "warmup": 0, "dropout": 0.5, "patience": 0}
# What it is, published images/s and seconds of an epoch, ranks, options.
STEPS = [
    ("a tenth, batch 2", "121", "20", 1, {"split-train": 0.09, "batch": 2, "lr": 0.001}),
    ("a tenth, batch 16", "135", "18", 1, {"split-train": 0.09, "batch": 16, "lr": 0.004}),
    ("all, batch 16", "132", "208", 1, {"split-train": ALL, "batch": 16, "lr": 0.004}),
    ("all, batch 64", "", "", 1, {"split-train": ALL, "batch": 64, "lr": 0.008}),
    ("2 ranks, batch 64", "", "", 2, {"split-train": ALL, "batch": 64, "lr": 0.008}),
    ("4 ranks, batch 64", "405 to 530", "52 to 68", 4, {"split-train": ALL, "batch": 64, "lr": 0.008}),
    ("features once, 1 rank", "", "", 1, {"split-train": ALL, "batch": 64, "lr": 0.008, "features": "f32"}),
    ("features once, 2 ranks", "", "", 2, {"split-train": ALL, "batch": 64, "lr": 0.008, "features": "f32"}),
]


def epoch_seconds(run):
    with open(f"{run}/metrics.jsonl", encoding="utf-8") as file:
        ends = [event["seconds"] for event in map(json.loads, file) if event["event"] == "epoch"]
    return (ends[-1] - ends[0]) / (len(ends) - 1)


def measure(work):
    rows = []
    for name, images, seconds, ranks, how in STEPS:
        options = {**base_options(work, "caltech"), "split-val": 0.1, "features": "none", "epochs": EPOCHS, **RECIPE,
                   **how, "threads": 1}
        row = work.train(f"ranks-{len(rows)}", options, ranks=ranks)
        epoch = epoch_seconds(row["run"])
        rows.append({**row, "step": name, "ranks": ranks, "epoch_seconds": round(epoch, 3),
                     "images_per_second": round(row["n_train"] / epoch, 1), "published_images_per_second": images,
                     "published_epoch_seconds": seconds})
    return {"title": "The published story, and ranks", "epochs": EPOCHS, "rows": rows}


def lines(result):
    head = ["step", "published images/s", "epoch s", "images/s", "epoch s", "whole s", f"right, {EPOCHS} epochs"]
    return table(result["title"], head, [
        [row["step"], row["published_images_per_second"], row["published_epoch_seconds"], row["images_per_second"],
         f"{row['epoch_seconds']:.2f}", f"{row['seconds']:.1f}", right(row)] for row in result["rows"]])
