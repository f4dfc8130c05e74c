"""Steps 0 to 4 of the story, on one data set: a frozen base, ever better used.

0  a tenth of the pictures, batch 2, Nadam 0.001, 60 epochs      3  all pictures, read as they are needed
1  the same, stopped early                                         4  more cores (threads in place of GPUs)
2  batch 16, rate 0.004, dropout 0.5                               5  as tandem trains by itself, beside the peer's 4

All steps are evaluated on the same images: the validation tenth is chosen by content, whatever trains.
The peer is Keras with the usual recipe, its base inside the model and run in every epoch; where
that would take hours (CIFAR-10) the peer's base makes its rows once and its time is of the head alone, which
is said in the table and spares the peer nearly everything. There every step but the first is trained with several
seeds: with a rate as large as the story's a seed alone moves what is right by two points. Times are of the first.
"""
import os
import shutil
import statistics

from rungs.work import paired, points, table

PATIENCE = 5
SETS = {
    "caltech": {"source": "datasets/caltech101_10", "title": "Caltech-101 subset, 10 classes, 224 px"},
    "flowers": {"source": "datasets/flowers5_128px", "title": "flowers of 128 px, 5 classes, 224 px"},
    "cifar": {"source": "datasets/cifar10-parquet", "title": "CIFAR-10 as Parquet, 96 px", "size": 96, "rows": True},
    "cifar-part": {"source": "datasets/cifar10-bin", "title": "2,000 images of CIFAR-10, 224 px"},
}
STEPS = [
    ("0 a tenth, 60 epochs", 0.09, {"batch": 2, "lr": 0.001, "epochs": 60, "patience": 0}),
    ("1 stop early", 0.09, {"batch": 2, "lr": 0.001, "epochs": 60, "patience": PATIENCE}),
    ("2 batch 16, dropout", 0.09, {"batch": 16, "lr": 0.004, "dropout": 0.5, "epochs": 60, "patience": PATIENCE}),
    ("3 all, one core", 0.9, {"batch": 16, "lr": 0.004, "dropout": 0.5, "epochs": 60, "patience": PATIENCE,
                              "threads": 1}),
    ("4 all, all cores", 0.9, {"batch": 16, "lr": 0.004, "dropout": 0.5, "epochs": 60, "patience": PATIENCE}),
    ("5 tandem's own recipe", 0.9, {}),
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
        folder = work.training_plan(f"{name}-rows", {**options, "features": "none"})
        work.run([*work.priority, work.python, str(work.peers / "train_keras.py"), folder, "--make-features",
                  str(work.folder / "rows.npz")])
        os.rename(work.folder / "rows.npz", rows)
        os.remove(f"{folder}/pixels")
    return ["--features", str(rows)]


def train_once(work, which, number, seed, rows, is_first):
    """Ours, from nothing too where it is the first seed, and the peer on the same pictures in the same order."""
    name, share, how = STEPS[number]
    split = {**base_options(work, which), "split-train": share, "split-val": 0.1, "seed": seed}
    recipe = {"optimizer": "nadam:epsilon=1e-7", "schedule": "constant", "warmup": 0, **how} if how else {}
    home = work.folder / "home"
    made = {"seed": seed}
    if is_first:
        shutil.rmtree(home, ignore_errors=True)
    for what in ("cold", "warm") if is_first else ("warm",):
        made[what] = work.train(f"{which}-{number}-{seed}-{what}", {**split, **recipe}, home)
    if not how:
        return made
    folder = work.training_plan(f"{which}-{share}-{seed}", {**split, "features": "none"}, how["epochs"])
    words = [word for key in PEER_WORDS if key in how for word in (f"--{key}", how[key])]
    peer = work.peer(f"{which}-{number}-{seed}-keras", "train_keras.py", folder, *words, "--seed", seed, *rows)
    if rows and os.path.exists(f"{folder}/pixels"):
        os.remove(f"{folder}/pixels")
    return {**made, "peer": peer}


def measure(work, which, seeds):
    rows = make_rows(work, which, base_options(work, which)) if SETS[which].get("rows") else []
    steps = []
    for number, (name, _, how) in enumerate(STEPS):
        chosen = seeds if rows and number > 0 else seeds[:1]
        trainings = [train_once(work, which, number, seed, rows, seed == chosen[0]) for seed in chosen]
        for training, before in zip(trainings, steps[-1]["trainings"] if steps else []):
            training.setdefault("peer", before["peer"])
        steps.append({"step": name, "same_recipe": bool(how), "trainings": trainings, "peer_rows_once": bool(rows),
                      "comparison": paired(work, trainings, "peer", "warm")})
    return {"set": which, "title": SETS[which]["title"], "steps": steps}


def verdict(comparison):
    if comparison["no_loss"]:
        return "no loss"
    return "cannot tell" if comparison["high"] >= 0.0 else "worse"


def rights(trainings, key):
    return " ".join(str(training[key]["correct"]) for training in trainings)


def lines(result):
    head = ["step", "train", "epochs", "first s", "again s", "right", "Keras epochs", "s", "right", "of",
            "first ×", "again ×", "ours - Keras, points", "verdict"]
    rows = []
    for row in result["steps"]:
        first = row["trainings"][0]
        cold, warm, peer = first["cold"], first["warm"], first["peer"]
        rows.append([row["step"], cold["n_train"], cold["epochs"], f"{cold['seconds']:.1f}", f"{warm['seconds']:.1f}",
                     rights(row["trainings"], "warm"), peer["epochs"], f"{peer['seconds']:.1f}",
                     rights(row["trainings"], "peer"), cold["n"], f"{peer['seconds'] / cold['seconds']:.1f}",
                     f"{peer['seconds'] / warm['seconds']:.1f}", points(row["comparison"]),
                     verdict(row["comparison"])])
    made = table(f"The story on {result['title']}", head, rows)
    made += spread_lines(result)
    if any(row["peer_rows_once"] for row in result["steps"]):
        made.append("  Keras' base made its rows once, outside of these times; ours are whole processes.")
    return made


def spread_lines(result):
    """What a seed moves, where there are several: the interval of the table is of chance among the pictures alone."""
    made = []
    for row in result["steps"]:
        apart = [100.0 * (training["warm"]["correct"] - training["peer"]["correct"]) / training["warm"]["n"]
                 for training in row["trainings"]]
        if len(apart) > 1:
            made.append(f"  {row['step']}: {len(apart)} seeds, ours - Keras {statistics.mean(apart):+.2f} points, "
                        f"standard deviation of a pair {statistics.stdev(apart):.2f}")
    return made
