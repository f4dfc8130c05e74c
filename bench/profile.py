"""profile.py MODEL [OPTION…]: where a training step's time goes, with fusion and without.

Runs `bench compute --profile` three times each, interleaved, with TANDEM (default: build/tandem) and the
given options, and prints a table of milliseconds a batch, forward and backward: nodes summed by
their op, convolutions by the last part of their name. Of each node the least of the runs counts.
"""
import json
import os
import re
import subprocess
import sys

ROUNDS = 3
WAYS = [("fused", []), ("each node alone", ["--unfused"])]


def profile(model, options):
    command = [os.environ.get("TANDEM", "build/tandem"), "bench", "compute", "--model", model]
    command += ["--profile", "--json", *options]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def group_of(node):
    if node["op"] != "conv":
        return node["op"]
    last = re.split(r"[_.]", node["name"])[-1]
    return "conv " + ("others" if re.search(r"\d|^conv$", last, re.I) else last)


def keep_least(best, nodes):
    for node in nodes:
        times = node["forward_milliseconds"], node["backward_milliseconds"]
        known = best.setdefault(node["name"], (group_of(node), times))
        best[node["name"]] = known[0], tuple(map(min, known[1], times))


def main():
    model, options = sys.argv[1], sys.argv[2:]
    best, rates = [{} for _ in WAYS], [[] for _ in WAYS]
    for _ in range(ROUNDS):
        for i, (_, flags) in enumerate(WAYS):
            result = profile(model, options + flags)
            keep_least(best[i], result["profile"])
            rates[i].append(result["images_per_second"])
    sums = []
    for nodes in best:
        total = {}
        for group, (forward, backward) in nodes.values():
            old = total.get(group, (0.0, 0.0))
            total[group] = old[0] + forward, old[1] + backward
        total["all nodes"] = tuple(map(sum, zip(*[times for _, times in nodes.values()])))
        sums.append(total)
    print("| nodes |" + "".join(f" {name}: forward · backward, ms |" for name, _ in WAYS))
    print("|---|" + "---|" * len(WAYS))
    for group in sorted(set().union(*sums), key=lambda g: -sum(sums[-1].get(g, (0, 0)))):
        cells = [f" {t[group][0]:.1f} · {t[group][1]:.1f} |" if group in t else " – |" for t in sums]
        print(f"| {group} |" + "".join(cells))
    for (name, _), rate in zip(WAYS, rates):
        print(f"\n{name}: {sorted(rate)[ROUNDS // 2]:.1f} images/s ({min(rate):.1f} to {max(rate):.1f})")


main()
