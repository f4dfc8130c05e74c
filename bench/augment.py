#!/usr/bin/env python3
"""bench/augment.py [--data DIR] [--seeds 1,2,3] [--augment none/auto] [PART…]: what `--augment` is worth.

Every part trains on the same images once for each seed and each value of --augment, and evaluates the run on images
that no training of the part has seen. A seed decides the first weights, the order and which of the training
images validates. Prints and writes (-o FILE) how many held-out images are right. DIR (or TANDEM_TEST_DATA) has
datasets/ and weights/, as bench/README.md lists them. Results depend neither on threads nor on other work.
"""
import argparse, json, os, pathlib, shutil, statistics, struct, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
WEIGHTS = "weights/mobilenetv2_1.0_224_imagenet.safetensors"
OF_WEIGHTS = ["--model", "mobilenetv2", "--scale", "tf", "--padding", "same", "--fit", "crop"]


def flowers(data, work):
    """Two thirds of each class to train on, by name."""
    for folder in sorted((data / "datasets/flowers5_128px").iterdir()):
        for i, path in enumerate(sorted(folder.iterdir())):
            link = work / ("flowers-held-out" if i % 3 == 2 else "flowers-train") / folder.name / path.name
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.exists():
                link.symlink_to(path.resolve())
    return work / "flowers-train", work / "flowers-held-out"


def mnist(data, work):
    """1,000 test images of MNIST: every other one trains."""
    made = []
    for half, name in enumerate(("train", "held-out")):
        folder = work / f"mnist-{name}"
        folder.mkdir(parents=True, exist_ok=True)
        for kind, head, each in (("images-idx3", 16, 784), ("labels-idx1", 8, 1)):
            whole = (data / f"datasets/mnist-1000-idx/t10k-first1000-{kind}-ubyte").read_bytes()
            records = [whole[head + i * each:head + (i + 1) * each] for i in range(half, 1000, 2)]
            made_of = whole[:4] + struct.pack(">I", len(records)) + whole[8:head] + b"".join(records)
            (folder / f"train-{kind}-ubyte").write_bytes(made_of)
        made.append(folder)
    return made


def fashion(data, _):
    folder = data / "datasets/fashion-mnist-idx"
    return folder / "train-images-idx3-ubyte.gz", folder / "t10k-images-idx3-ubyte.gz"


def cifar(data, _):
    folder = data / "datasets/cifar10-parquet"
    return folder / "train-00000-of-00002.parquet", folder / "train-00001-of-00002.parquet"


# Title, source, options, and whether pretrained weights are begun with.
PARTS = {
    "mnist": ("LeNet-5, 350 digits of MNIST", mnist, ["--model", "lenet5", "--split", "0.7,0.3", "--epochs", "40"], False),
    "fashion": ("LeNet-5, 5,400 images of Fashion-MNIST", fashion,
                ["--model", "lenet5", "--per-class", "600", "--epochs", "20"], False),
    "cifar10": ("convnet7 at 32 px, 2,000 photos of CIFAR-10", cifar,
                ["--model", "convnet7", "--size", "32", "--per-class", "200", "--split", "0.98,0.02", "--epochs", "20"],
                False),
    "flowers": ("convnet7 at 48 px, 900 photos of flowers", flowers,
                ["--model", "convnet7", "--size", "48", "--epochs", "20"], False),
    "unfrozen": ("all layers of a pretrained MobileNetV2 at 96 px, 900 photos of flowers", flowers,
                 ["--freeze", "none", "--bn", "frozen", "--size", "96", "--epochs", "6"], True),
    "unfrozen-long": ("the same, 20 epochs", flowers,
                      ["--freeze", "none", "--bn", "frozen", "--size", "96", "--epochs", "20"], True),
}


def call(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return json.loads(done.stdout)


def once(given, name, source, held_out, options, spec, seed):
    run = given.work / "runs" / f"{name}-{spec.replace(',', '+').replace(':', '_')}-{seed}"
    shutil.rmtree(run, ignore_errors=True)
    trained = call([given.tandem, "train", source, "-o", run, *options, "--augment", spec, "--seed", str(seed),
                    "--patience", "0", "--json", "--quiet"])
    answer = call([given.tandem, "evaluate", run, held_out, "--json", "--quiet"])
    record = json.loads((run / "run.json").read_text())
    shutil.rmtree(run)
    print(f"  {name}, {spec}, seed {seed}: {answer['correct']} of {answer['n']}, {trained['seconds']:.0f} s",
          file=sys.stderr, flush=True)
    return {"augment": spec, "changes": record["data"]["augment"], "seed": seed, "n_train": trained["train"]["n"],
            "epochs": trained["epochs"], "best_epoch": trained["best_epoch"], "correct": answer["correct"],
            "n": answer["n"], "seconds": trained["seconds"], "images_per_second": trained["images_per_second"]}


def lines(title, rows, specs):
    yield title
    by_spec = {spec: [row for row in rows if row["augment"] == spec] for spec in specs}
    for spec, of_spec in by_spec.items():
        gains = [100 * (row["correct"] / row["n"] - base["correct"] / base["n"])
                 for row, base in zip(of_spec, by_spec[specs[0]])]
        mean = 100 * statistics.mean(row["correct"] / row["n"] for row in of_spec)
        yield (f"  {of_spec[0]['changes']:40} {' '.join(str(row['correct']) for row in of_spec)} of {of_spec[0]['n']}: "
               f"{mean:.1f} %, {statistics.mean(gains):+.1f} points ({min(gains):+.1f} to {max(gains):+.1f}), "
               f"{statistics.mean(row['seconds'] for row in of_spec):.0f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="parts:\n" + "\n".join(f"  {n:10}{p[0]}" for n, p in PARTS.items()))
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--data", type=pathlib.Path, default=os.environ.get("TANDEM_TEST_DATA"))
    parser.add_argument("--work", type=pathlib.Path,
                        default=pathlib.Path(tempfile.gettempdir()) / "tandem-augment")
    parser.add_argument("--tandem", default=os.environ.get("TANDEM", str(ROOT / "build" / "tandem")))
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in text.split(",")], default=[1, 2, 3])
    parser.add_argument("--augment", default="none/auto", help="SPECs with a / between them (default: %(default)s)")
    parser.add_argument("-o", "--out", type=pathlib.Path)
    given = parser.parse_args()
    unknown = [name for name in given.parts if name not in PARTS]
    if unknown or not given.data:
        parser.error(f"there is no part {unknown[0]}" if unknown else "--data DIR (or TANDEM_TEST_DATA) is required")
    results = {}
    specs = given.augment.split("/")
    for name in given.parts or PARTS:
        title, make, options, has_weights = PARTS[name]
        source, held_out = make(given.data, given.work)
        if has_weights:
            options = [*OF_WEIGHTS, "--weights", given.data / WEIGHTS, *options]
        rows = [once(given, name, source, held_out, options, spec, seed) for seed in given.seeds for spec in specs]
        results[name] = {"title": title, "options": [str(word).replace(str(given.data), "$DATA") for word in options],
                         "trainings": rows}
        print("\n".join(lines(title, rows, specs)), flush=True)
        if given.out:
            given.out.write_text(json.dumps(results, indent=1) + "\n")


main()
