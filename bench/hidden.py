#!/usr/bin/env python3
"""bench/hidden.py [--rate 1gbit] [--model resnet50] [--batch 32] [--runs 3] [--steps 6]: how much of the communication of
two ranks is hidden behind the backward pass. Two network namespaces stand for hosts, joined by a link of that rate;
each rank has one thread and one CPU. Interleaved, medians:

  together   a step of two ranks that share the batch
  alone      a step of each rank with half the batch at the same time, and nobody to talk to: the slower one
  sum        an exact sum of all gradients over the same link, and nothing else (`tandem bench allreduce`)

hidden = 1 - (together - alone) / sum. What fits is the same with `together` from a timetable: sums leave in the order
of the trace, when backward has made them, one after another at the rate of `sum`. Needs root and iproute2.
"""
import argparse, json, os, pathlib, statistics, subprocess, sys, tempfile

PORT = 29533


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


def part_that_fits(trace, sum_seconds):
    """Of the communication, as the median over steps and ranks."""
    events = json.load(open(trace))
    events = events["traceEvents"] if isinstance(events, dict) else events
    spans = [e for e in events if e.get("ph") == "X"]
    parts = []
    for step in (e for e in spans if e["cat"] == "step"):
        begin, end = step["ts"], step["ts"] + step["dur"]
        mine = [e for e in spans if e["pid"] == step["pid"] and begin <= e["ts"] < end]
        sums = [e for e in mine if e["cat"] == "sum"]
        backward = max((e["ts"] + e["dur"] for e in mine if e["cat"] == "backward"), default=None)
        if not sums or backward is None:
            continue
        total = sum(e["args"]["bytes"] for e in sums)
        now = 0.0
        for e in sorted(sums, key=lambda e: e["ts"]):
            ready = e["ts"] - e["args"]["queued_ns"] / 1000
            now = max(now, ready) + e["args"]["bytes"] / total * sum_seconds * 1e6
        parts.append((1 - max(0.0, now - backward) / (sum_seconds * 1e6), len(sums)))
    return statistics.median(p for p, _ in parts), parts[0][1], total


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6)
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
    def train(h, batch, run, *more):
        return [tandem, "train", "photos", "-o", f"{run}{h}", "--model", given.model, "--batch", str(batch), "--steps",
                str(given.steps), "--epochs", "0", "--eval-every", "1000", "--cache", "decoded", "--threads", "1",
                "--json", "--quiet", *more]

    def seconds(batch, text):
        return batch / json.loads(text)["images_per_second"]

    n = given.batch
    hosts.run(lambda h: train(h, n, "traced", "--trace", "trace.json"), True)
    _, n_sums, n_bytes = part_that_fits("trace.json", 1.0)
    together, alone, sums = [], [], []
    for r in range(given.runs):
        together.append(seconds(n, hosts.run(lambda h: train(h, n, f"together{r}"), True)[0]))
        alone.append(max(seconds(n // 2, t) for t in hosts.run(lambda h: train(h, n // 2, f"alone{r}"), False)))
        text = hosts.run(lambda h: [tandem, "bench", "allreduce", "--bytes", str(n_bytes), "--seconds", "5", "--json"],
                         True)[0]
        sums.append(json.loads(text)["sums"][0]["milliseconds"] / 1000)
    t, a, s = (statistics.median(x) for x in (together, alone, sums))
    fits, _, _ = part_that_fits("trace.json", s)
    for name, x in (("together", together), ("alone", alone), ("sum", sums)):
        print(f"{name:9} {statistics.median(x):.3f} s ({min(x):.3f} to {max(x):.3f})")
    hidden = 1 - (t - a) / s
    print(f"{n_bytes / 1e6:.1f} MB in {n_sums} sums over {given.rate}; hidden {hidden:.3f}, fits {fits:.3f}: "
          f"{100 * hidden / fits:.0f} % of what fits")


main()
