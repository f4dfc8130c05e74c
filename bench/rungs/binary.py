"""Two classes, all layers, a hidden layer and one logit, a rate that rises, holds and falls: against Keras.

The pictures are cats and dogs of CIFAR-10, the weights a small MobileNetV2 of another program with statistics of
its own. steps: the loss of the first 50 steps, without dropout, with statistics of the whole batch, from the
same weights on the same order. folds: with dropout, every image evaluated once, by the training that has
not seen it, and several seeds: alone a seed (first values of the head, order, dropout) moves what is right
by some three points, more than the pictures' own chance does.

Adam and a small rate are what people tune all layers with, and what can be compared: with SGD at 0.002 two
orders of addition inside tandem (groups of 4 and of 8) are 20 % apart before step 50, with Adam at
0.0001 they are 0.025 % apart.
"""
import shutil
import statistics

from rungs.work import paired, points, read_losses, right, table

PICTURES, FOLDS, SIZE, BATCH, RATE = 2500, 4, 64, 32, 0.0001
SCHEDULE = "ramp:ramp=2,hold=1,decay=0.8"
STEPS = 50
MOMENTUM = 0.999  # the file's batch norm momentum, which Keras keeps; tandem's moves ten times as fast


def pets(work):
    folder = work.folder / "pets"
    if not (folder / f"fold-{FOLDS - 1}.csv").exists():
        source = work.need("datasets/cifar10-parquet")
        work.need_peers()
        work.run([work.python, str(work.peers / "cats_and_dogs.py"), source, str(folder), str(PICTURES),
                  str(FOLDS)])
    return folder


def options_of(work, fold, epochs):
    return {"source": str(pets(work) / f"fold-{fold}.csv"),
            "weights": work.need("weights/tm_waste_4class_keras_model.h5"), "size": SIZE, "freeze": "none",
            "augment": "none", "bn": "batch", "hidden": 512, "loss": "binary", "batch": BATCH,
            "optimizer": "adam:epsilon=1e-7",
            "lr": RATE, "schedule": SCHEDULE, "epochs": epochs, "patience": 0, "weight-decay": 0}


def words(epochs):
    return ["--width", "0.35", "--binary", "--trainable", "--optimizer", "adam", "--lr", str(RATE),
            "--schedule", SCHEDULE, "--batch", str(BATCH), "--epochs", str(epochs)]


def steps(work):
    options = options_of(work, 0, 5)
    folder = work.training_plan("binary-0", options, 5)
    ours = work.losses("binary", {**options, "steps": STEPS})
    path = work.folder / "losses" / "binary-keras.txt"
    work.need_peers()
    work.run([*work.priority, work.python, str(work.peers / "train_keras.py"), folder, "--losses", str(path),
              "--steps", str(STEPS), "--same-head", "--threads", str(work.threads), *words(5)])
    shutil.rmtree(work.folder / "losses" / "binary", ignore_errors=True)
    theirs = read_losses(path.read_text())
    return {"title": f"cats and dogs, all layers, the first {STEPS} steps against Keras",
            "rows": [{"step": a[0], "rate": a[1], "keras_rate": b[1], "loss": a[2], "keras_loss": b[2]}
                     for a, b in zip(ours, theirs, strict=True)]}


def steps_lines(result):
    chosen = [row for row in result["rows"] if row["step"] in (1, 2, 5) or row["step"] % 10 == 0]
    made = table(result["title"], ["step", "rate", "tandem", "Keras", "difference"], [
        [row["step"], f"{row['rate']:.6f}", f"{row['loss']:.6f}", f"{row['keras_loss']:.6f}",
         f"{100 * (row['loss'] / row['keras_loss'] - 1):+.3f} %"] for row in chosen])
    worst = max(result["rows"], key=lambda row: abs(row["loss"] / row["keras_loss"] - 1))
    made.append(f"  farthest apart: {100 * abs(worst['loss'] / worst['keras_loss'] - 1):.3f} % in step "
                f"{worst['step']}")
    return made


def folds(work, epochs, seeds):
    rows = []
    for seed in seeds:
        for fold in range(FOLDS):
            options = {**options_of(work, fold, epochs), "seed": seed}
            name = f"binary-{seed}-{fold}"
            folder = work.training_plan(name, options, epochs)
            ours = work.train(name, {**options, "dropout": 0.5})
            keras = work.peer(f"{name}-keras", "train_keras.py", folder, *words(epochs), "--dropout", "0.5", "--seed",
                              seed, "--momentum", MOMENTUM)
            rows.append({"seed": seed, "fold": fold, "ours": ours, "keras": keras})
    return {"title": f"cats and dogs, all layers, dropout 0.5, {epochs} epochs, {FOLDS} folds, {len(seeds)} seeds",
            "rows": rows, **compared(work, rows)}


def compared(work, rows):
    """Over pictures, whose runs of several seeds count as one; and over trainings, which differ by more than chance
    among the pictures: a seed moves all of them."""
    points_of = [100.0 * (row["ours"]["correct"] - row["keras"]["correct"]) / row["ours"]["n"] for row in rows]
    return {"comparison": paired(work, rows, "keras", "ours"),
            "trainings": {"n": len(rows), "mean_points": statistics.mean(points_of),
                          "deviation_points": statistics.stdev(points_of) if len(rows) > 1 else None},
            **{key: {"n": sum(row[key]["n"] for row in rows), "correct": sum(row[key]["correct"] for row in rows)}
               for key in ("ours", "keras")}}


def folds_lines(result):
    rows = [[row["seed"], row["fold"], right(row["ours"]), right(row["keras"]),
             f"{row['ours']['processor_seconds']:.1f}", f"{row['keras']['processor_seconds']:.1f}", ""]
            for row in result["rows"]]
    comparison, trainings = result["comparison"], result["trainings"]
    rows.append(["all", "", right(result["ours"]), right(result["keras"]), "", "",
                 f"{points(comparison)}, {'no loss' if comparison['no_loss'] else 'cannot tell, or a loss'}"])
    made = table(result["title"], ["seed", "fold", "tandem", "Keras", "processor s", "Keras'", "ours - Keras, points"],
                 rows)
    if trainings["deviation_points"] is not None:
        made.append(f"  {trainings['n']} pairs of trainings: {trainings['mean_points']:+.2f} points, standard deviation "
                    f"of a pair {trainings['deviation_points']:.2f}")
    return made
