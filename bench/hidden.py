#!/usr/bin/env python3
"""bench/hidden.py [--rate 1gbit] [--model resnet50] [--batch 32] [--runs 20] [--steps 5] [--predict]: how much of the
communication of two ranks is hidden behind the backward pass. Two network namespaces stand for hosts, joined by a link
of that rate; each rank has one thread and one CPU. Interleaved:

  together   a step of two ranks that share the batch
  alone      a step of two ranks with half the batch each, which run at the same time and have nobody to talk to: the
             slower one of each pair of steps, because ranks that share a batch wait for each other in every step
  sum        an exact sum of all gradients over the same link, and nothing else (`tandem bench allreduce`)

Times of steps are the medians of a run's trace, without the first step. hidden = 1 - (together - alone) / sum, of the
medians of all runs, with the 95 % interval by bootstrap over the runs. What fits is the same with `together` from a
timetable: sums leave in the order of the trace, when backward has made them, one after another at the rate of `sum`.
Needs root and iproute2.

--predict: also the efficiency of more ranks with half the batch each, on links of 10 and 100 Gbit/s, by the same
timetable: every rank sends and receives 2 (N - 1) / N times the bytes of a sum at the rate of its link, and each sum
takes as long again as one of 4 bytes does here. Efficiency is alone / (alone + what the last sum ends after backward).
"""
import argparse, json, os, pathlib, random, statistics, subprocess, sys, tempfile

PORT, RESAMPLES = 29533, 10_000


class Hosts:
    """Two namespaces, 10.78.0.1 and 10.78.0.2."""

    def __init__(self, rate):
        self.names = [f"hid{os.getpid()}{h}" for h in "ab"]
        a, b = self.names
        run = lambda line: subprocess.run(line.split(), check=True)
        for name in self.names:
            run(f"ip netns add {name}")
        run(f"ip link add eth0 netns {a} type veth peer name eth0 netns {b}")
        for h, name in enumerate(self.names):
            run(f"ip -n {name} addr add 10.78.0.{h + 1}/24 dev eth0")
            run(f"ip -n {name} link set eth0 up")
            run(f"ip -n {name} link set lo up")
            run(f"tc -n {name} qdisc add dev eth0 root tbf rate {rate} burst 256kb latency 50ms")

    def close(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name])

    def run(self, arguments_of, together):
        """Both at once, each on its CPU; what they print."""
        ranks = []
        for h, name in enumerate(self.names):
            variables = dict(os.environ)
            if together:
                variables |= {"TANDEM_RANK": str(h), "TANDEM_WORLD": "2", "TANDEM_TOKEN": "hidden",
                              "TANDEM_ADDRESS": f"10.78.0.1:{PORT}"}
            command = ["ip", "netns", "exec", name, "taskset", "-c", str(h), *arguments_of(h)]
            ranks.append(subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True))
        texts = [rank.communicate()[0] for rank in ranks]
        if any(rank.returncode != 0 for rank in ranks):
            sys.exit(f"exit statuses {[rank.returncode for rank in ranks]}")
        return texts


def spans_of(trace):
    events = json.load(open(trace))
    events = events["traceEvents"] if isinstance(events, dict) else events
    return [e for e in events if e.get("ph") == "X"]


def steps_of(trace, rank=0):
    """Seconds of each step of a rank, without the first."""
    return [e["dur"] / 1e6 for e in spans_of(trace) if e["cat"] == "step" and e["pid"] == rank][1:]


def timetables(trace):
    """Of each step and rank: the end of backward, and when each sum could begin and how many bytes it has."""
    spans = spans_of(trace)
    tables = []
    for step in (e for e in spans if e["cat"] == "step"):
        begin, end = step["ts"], step["ts"] + step["dur"]
        mine = [e for e in spans if e["pid"] == step["pid"] and begin <= e["ts"] < end]
        sums = [((e["ts"] - e["args"]["queued_ns"] / 1000) / 1e6, e["args"]["bytes"]) for e in mine
                if e["cat"] == "sum"]
        backward = max((e["ts"] + e["dur"] for e in mine if e["cat"] == "backward"), default=None)
        if sums and backward is not None:
            tables.append((backward / 1e6, sorted(sums)))
    return tables


def seconds_after_backward(tables, seconds_of):
    """Median over steps and ranks."""
    late = []
    for backward, sums in tables:
        now = 0.0
        for ready, n_bytes in sums:
            now = max(now, ready) + seconds_of(n_bytes)
        late.append(max(0.0, now - backward))
    return statistics.median(late)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--predict", action="store_true")
    given = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parent.parent
    tandem = os.environ.get("TANDEM", str(root / "build" / "tandem"))
    hosts = Hosts(given.rate)
    try:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            subprocess.run([tandem, "synth", "photos", "--classes", "4", "--per-class", "64", "--size", "256",
                            "--quiet"], check=True, stdout=subprocess.DEVNULL)
            measure(given, tandem, hosts)
    finally:
        hosts.close()


def measure(given, tandem, hosts):
    def train(h, batch, run):
        return [tandem, "train", "photos", "-o", f"{run}{h}", "--model", given.model, "--augment", "none", "--batch",
                str(batch), "--steps", str(given.steps), "--epochs", "0", "--eval-every", "1000", "--cache", "decoded",
                "--threads", "1", "--quiet", "--trace", f"{run}{h}.json"]

    def sum_seconds(n_bytes):
        text = hosts.run(lambda h: [tandem, "bench", "allreduce", "--bytes", str(n_bytes), "--seconds", "2", "--json"],
                         True)[0]
        return json.loads(text)["sums"][0]["milliseconds"] / 1000

    def step_together(run):
        hosts.run(lambda h: train(h, given.batch, run), True)
        return statistics.median(steps_of(f"{run}0.json"))

    def step_alone(run):
        hosts.run(lambda h: train(h, given.batch // 2, run), False)
        return statistics.median(map(max, steps_of(f"{run}0.json"), steps_of(f"{run}1.json")))

    n = given.batch
    step_together("first")
    tables = timetables("first0.json")
    n_sums, n_bytes = len(tables[0][1]), sum(b for _, b in tables[0][1])
    rows = []
    for r in range(given.runs):
        one = step_together(f"together{r}") if r % 2 == 0 else None
        other = step_alone(f"alone{r}")
        rows.append((one or step_together(f"together{r}"), other, sum_seconds(n_bytes)))
        print("run %2d  together %.3f s, alone %.3f s, sum %.3f s" % (r + 1, *rows[-1]), flush=True)

    def hidden_of(rows):
        t, a, s = map(statistics.median, zip(*rows))
        return 1 - (t - a) / s

    t, a, s = map(statistics.median, zip(*rows))
    fits = 1 - seconds_after_backward(tables, lambda b: b / n_bytes * s) / s
    for name, x in zip(("together", "alone", "sum"), zip(*rows)):
        print(f"{name:9} {statistics.median(x):.3f} s ({min(x):.3f} to {max(x):.3f})")
    drawn = sorted(hidden_of(random.choices(rows, k=len(rows))) for _ in range(RESAMPLES))
    low, hidden, high = (100 * x / fits for x in (drawn[RESAMPLES // 40], hidden_of(rows), drawn[-RESAMPLES // 40]))
    print(f"{n_bytes / 1e6:.1f} MB in {n_sums} sums over {given.rate}; hidden {hidden * fits / 100:.3f}, fits {fits:.3f}: "
          f"{hidden:.0f} % of what fits ({low:.0f} to {high:.0f})")
    if given.predict:
        least = sum_seconds(4)
        print(f"a sum of 4 bytes takes {1000 * least:.3f} ms; {n // 2} images a rank, {a:.3f} s a step without sums")
        for ranks in (4, 8, 64):
            for gbit in (10, 100):
                rate = gbit * 1e9 / 8 * ranks / (2 * (ranks - 1))
                late = seconds_after_backward(tables, lambda b: least + b / rate)
                print(f"{ranks:2} ranks, {gbit:3} Gbit/s: {1000 * late:.1f} ms after backward, "
                      f"efficiency {100 * a / (a + late):.1f} %")


main()
