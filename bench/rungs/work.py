"""What the parts of bench/ladder share: where things are, commands that are timed, our runs, peers, verdicts.

Everything a part makes lies in one working folder and is made once: a part that is run again resumes with
the pictures, features and runs that are there. Figures of earlier runs lie beside them.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS = ROOT / "bench" / "peers"


class Missing(Exception):
    """An external program or file that a part needs is missing; the message names it."""


def words_of(options):
    """The options of `tandem train` that a record of them means."""
    words = []
    for name, value in options.items():
        if name in ("source", "run"):
            continue
        if name == "split-train":
            words += ["--split", f"{value},{options['split-val']}"]
        elif name != "split-val":
            words += [f"--{name}", str(value)]
    return [options["source"], "-o", options["run"], *words]


class Work:
    def __init__(self, folder, data, python, tandem, priority, threads, per_class=0):
        self.folder, self.data, self.python = pathlib.Path(folder), pathlib.Path(data), str(python)
        self.tandem, self.build = str(tandem), pathlib.Path(tandem).parent
        self.priority, self.peers, self.threads = priority, PEERS, threads
        self.per_class = per_class
        self.folder.mkdir(parents=True, exist_ok=True)

    # ---- what is needed ---------------------------------------------------------------------

    def need(self, name):
        """A file or folder below --data."""
        path = self.data / name
        if not path.exists():
            raise Missing(f"{path} is not there; --data (or TANDEM_TEST_DATA) must name a folder that has {name} "
                          "(bench/README.md describes each)")
        return str(path)

    def need_peers(self):
        if not os.path.exists(self.python):
            raise Missing(f"{self.python} is not there; bench/peers/setup makes it, --python names another")

    def program(self, name):
        """A program of bench/, built when it is asked for."""
        subprocess.run(["cmake", "--build", str(self.build), "--target", name], check=True,
                       stdout=subprocess.DEVNULL)
        return str(self.build / "bench" / name)

    def plain(self, text):
        """With names in place of the folders of this machine."""
        for folder, name in ((self.folder, "$WORK"), (self.data, "$DATA"), (self.tandem, "$TANDEM"),
                             (self.python, "$PEER_PYTHON"), (ROOT, "$ROOT")):
            text = text.replace(str(folder), name)
        return text

    # ---- commands ---------------------------------------------------------------------------

    def say(self, text):
        print(f"  {text}", file=sys.stderr, flush=True)

    def run(self, command, environment=None):
        """(standard output, seconds by the clock, seconds of processor time)."""
        before, began = os.times(), time.perf_counter()
        log = self.folder / "stderr.txt"
        with open(log, "wb") as errors:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, check=False,
                                  env={**os.environ, **(environment or {})}, text=True)
        seconds, after = time.perf_counter() - began, os.times()
        if done.returncode:
            raise SystemExit(f"failed: {' '.join(map(str, command))}\n{log.read_text()[-2000:]}")
        processor = sum(after[2:4]) - sum(before[2:4])
        return done.stdout, round(seconds, 2), round(processor, 2)

    def train(self, name, options, home=None, ranks=1, more=()):
        """Our run, whole process. home: TANDEM_HOME; None: a new, empty one, so nothing is known before."""
        run = self.folder / "runs" / name
        shutil.rmtree(run, ignore_errors=True)
        run.parent.mkdir(exist_ok=True)
        own = self.folder / "cold"
        if home is None:
            shutil.rmtree(own, ignore_errors=True)
        command = [*([self.tandem, "run", "-n", str(ranks), "--"] if ranks > 1 else [self.tandem]), "train",
                   *words_of({"threads": self.threads, **options, "run": str(run)}), *more, "--json", "--quiet"]
        text, seconds, processor = self.run(command, {"TANDEM_HOME": str(home or own)})
        result = json.loads(text)
        self.say(f"{name}: {seconds} s, {result['val']['correct']} of {result['val']['n']}")
        return {"run": str(run), "command": " ".join(command), "seconds": seconds, "processor_seconds": processor,
                "epochs": result["epochs"], "best_epoch": result["best_epoch"], "steps": result["steps"],
                "n_train": result["train"]["n"], "n": result["val"]["n"], "correct": result["val"]["correct"],
                "loss": result["val"]["loss"], "features": result["features"]}

    def training_plan(self, name, options, epochs=1):
        """The folder in which bench_training tells of these options; made again when they differ."""
        folder = self.folder / "plans" / name
        wanted = json.dumps({**options, "run": str(folder / "run"), "epochs written": epochs}, indent=1)
        record = folder / "plan.json"
        if record.exists() and record.read_text() == wanted:
            return str(folder)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "options.json").write_text(json.dumps({**options, "run": str(folder / "run")}))
        self.run([self.program("bench_training"), "pictures", str(folder / "options.json"), str(folder),
                  str(epochs)])
        record.write_text(wanted)
        return str(folder)

    def losses(self, name, options):
        """Our loss of each step: [(step, rate, loss)]."""
        folder = self.folder / "losses"
        folder.mkdir(exist_ok=True)
        shutil.rmtree(folder / name, ignore_errors=True)
        path = folder / f"{name}.json"
        path.write_text(json.dumps({"threads": self.threads, **options, "run": str(folder / name)}))
        text, seconds, _ = self.run([self.program("bench_training"), "losses", str(path)])
        self.say(f"{name}: losses, {seconds} s")
        return read_losses(text)

    def peer(self, name, script, folder, *words):
        """A peer that leaves a run folder; its line of JSON, and the time of the whole process."""
        self.need_peers()
        run = self.folder / "runs" / name
        shutil.rmtree(run, ignore_errors=True)
        run.parent.mkdir(exist_ok=True)
        command = [*self.priority, self.python, str(PEERS / script), folder, "-o", str(run), "--threads",
                   str(self.threads), *map(str, words)]
        text, seconds, processor = self.run(command)
        result = json.loads(text.strip().splitlines()[-1])
        self.say(f"{name}: {seconds} s, {result['correct']} of {result['n']}")
        return {**result, "run": str(run), "command": " ".join(command), "seconds": seconds,
                "processor_seconds": processor}

    def compare(self, peer, ours):
        """The verdict of `runs compare` on ours against the peer, on the same images."""
        text = self.run([self.tandem, "runs", "compare", peer["run"], ours["run"], "--json"])[0]
        whole = json.loads(text)
        return {key: whole[key] for key in ("comparable", "verdict", "n", "both", "only_a", "only_b", "neither",
                                            "p", "difference", "low", "high", "no_loss")}


def paired(work, trainings, a, b):
    """Over pictures, whose trainings of several seeds count as one: how much more often b is right than a."""
    runs = [[training[key]["run"] for training in trainings] for key in (a, b)]
    return json.loads(work.run([work.python, str(work.peers / "paired.py"), *runs[0], "--", *runs[1]])[0])


def read_losses(text):
    rows = [line.split() for line in text.splitlines()]
    return [(int(step), float(rate), float(loss)) for step, rate, loss in rows]


# ---- tables ---------------------------------------------------------------------------------

def table(title, head, rows):
    """Lines of a table whose columns are as wide as they must be."""
    cells = [head, *[[str(cell) for cell in row] for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = [title]
    for row in cells:
        lines.append("  " + "  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                                      for i, (cell, width) in enumerate(zip(row, widths))).rstrip())
    return lines


def right(result):
    return f"{result['correct']}/{result['n']}"


def points(comparison):
    """The paired difference in points with its interval, and what it means."""
    return "{:+.2f} ({:+.2f} to {:+.2f})".format(*(100.0 * comparison[key] for key in ("difference", "low", "high")))
