"""Steps 0 to 4 of the story, on one data set: a frozen base, ever better used.

0  a tenth of the pictures, batch 2, Nadam 0.001, 60 epochs      3  all pictures, read as they are needed
1  the same, stopped early                                         4  more cores (threads in place of cards)
2  batch 16, rate 0.004, dropout 0.5

All steps are judged on the same pictures: the tenth that judges is chosen by content, whatever trains.
The peer is Keras with the usual recipe, its base inside the model and run in every epoch; where
that would take hours (CIFAR-10) the peer's base makes its rows once and its time is of the head alone, which
is said in the table and spares the peer nearly everything.
"""
import os
import shutil

from rungs.work import points, right, table

PATIENCE = 5
SETS = {
    "caltech": {"source": "datasets/caltech101_10", "title": "Caltech-101 subset, 10 classes, 224 px"},
    "flowers": {"source": "datasets/flowers5_128px", "title": "flowers of 128 px, 5 classes, 224 px"},
    "cifar": {"source": "datasets/cifar10-parquet", "title": "CIFAR-10 as Parquet, 96 px", "size": 96, "rows": True},
}
STEPS = [
    ("0 a tenth, 60 epochs", 0.09, {"batch": 2, "lr": 0.001, "epochs": 60, "patience": 0}),
    ("1 stop early", 0.09, {"batch": 2, "lr": 0.001, "epochs": 60, "patience": PATIENCE}),
    ("2 batch 16, dropout", 0.09, {"batch": 16, "lr": 0.004, "dropout": 0.5, "epochs": 60, "patience": PATIENCE}),
    ("3 all, one core", 0.9, {"batch": 16, "lr": 0.004, "dropout": 0.5, "epochs": 60, "patience": PATIENCE,
                              "threads": 1}),
    ("4 all, all cores", 0.9, {"batch": 16, "lr": 0.004, "dropout": 0.5, "epochs": 60, "patience": PATIENCE}),
]
PEER_WORDS = ("batch", "lr", "dropout", "epochs", "patience", "threads")


def base_options(work, which):
    """MobileNetV2 as it was published: for every data set and every part of the bench."""
    options = {"source": work.need(SETS[which]["source"]), "model": "mobilenetv2",
               "weights": work.need("weights/mobilenetv2_1.0_224_imagenet.safetensors"),
               "scale": "tf", "padding": "same", "fit": "crop"}
    if work.per_class:
        options["per-class"] = work.per_class
    return {**options, "size": SETS[which]["size"]} if "size" in SETS[which] else options


def make_rows(work, name, options):
    """Rows of all pictures of these options, by the peer's own base, once."""
    work.need_peers()
    rows = work.folder / f"{name}-rows.npz"
    if not rows.exists():
        folder = work.told(f"{name}-rows", {**options, "features": "none"})
        work.run([*work.priority, work.python, str(work.peers / "train_keras.py"), folder, "--make-features",
                  str(work.folder / "rows.npz")])
        os.rename(work.folder / "rows.npz", rows)
        os.remove(f"{folder}/pixels")
    return ["--features", str(rows)]


def one(work, which, number):
    """A step: ours from nothing, ours again, the peer, and what the pictures say."""
    name, share, how = STEPS[number]
    base = base_options(work, which)
    split = {"split-train": share, "split-val": 0.1}
    ours = {**base, **split, "optimizer": "nadam:epsilon=1e-7", "schedule": "constant", "warmup": 0, **how}
    rows = make_rows(work, which, base) if SETS[which].get("rows") else []
    folder = work.told(f"{which}-{share}", {**base, **split, "features": "none"}, 60)
    words = [word for key in PEER_WORDS if key in how for word in (f"--{key}", how[key])]
    home = work.folder / "home"
    shutil.rmtree(home, ignore_errors=True)
    cold = work.train(f"{which}-{number}-cold", ours, home)
    warm = work.train(f"{which}-{number}-warm", ours, home)
    peer = work.peer(f"{which}-{number}-keras", "train_keras.py", folder, *words, *rows)
    return {"step": name, "cold": cold, "warm": warm, "peer": peer, "peer_rows_once": bool(rows),
            "comparison": work.compare(peer, warm)}


def measure(work, which):
    rows = []
    for number in range(len(STEPS)):
        rows.append(one(work, which, number))
    return {"set": which, "title": SETS[which]["title"], "steps": rows}


def lines(result):
    head = ["step", "train", "epochs", "first s", "again s", "right", "Keras epochs", "s", "right",
            "first ×", "again ×", "ours - Keras, points", "verdict"]
    rows = []
    for row in result["steps"]:
        cold, warm, peer = row["cold"], row["warm"], row["peer"]
        rows.append([row["step"], cold["n_train"], cold["epochs"], f"{cold['seconds']:.1f}", f"{warm['seconds']:.1f}",
                     right(warm), peer["epochs"], f"{peer['seconds']:.1f}", right(peer),
                     f"{peer['seconds'] / cold['seconds']:.1f}", f"{peer['seconds'] / warm['seconds']:.1f}",
                     points(row["comparison"]), row["comparison"]["verdict"]])
    made = table(f"The story on {result['title']}", head, rows)
    if any(row["peer_rows_once"] for row in result["steps"]):
        made.append("  Keras' base made its rows once, outside of these times; ours are whole processes.")
    return made
