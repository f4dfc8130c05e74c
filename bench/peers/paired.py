"""paired.py A-RUN… -- B-RUN…: how much more often B is right, as JSON.

Each side has several runs, of other seeds or of images that other runs did not evaluate. A picture counts once: with
the part of its runs that were right, B's minus A's. The interval is that of the mean over pictures.
"""
import json
import sys

import numpy as np
from safetensors import safe_open


def rates(runs):
    """By content: (fraction of the runs that evaluated it correctly, number of such runs)."""
    contents, hits = [], []
    for run in runs:
        with safe_open(f"{run}/outcomes.safetensors", "np") as file:
            contents.append(file.get_tensor("content"))
            hits.append(file.get_tensor("predicted") == file.get_tensor("label"))
    unique, places = np.unique(np.concatenate(contents), return_inverse=True)
    n = np.bincount(places)
    return unique, np.bincount(places, np.concatenate(hits)) / n, n


cut = sys.argv.index("--")
(a_contents, a, a_n), (b_contents, b, b_n) = rates(sys.argv[1:cut]), rates(sys.argv[cut + 1:])
if not np.array_equal(a_contents, b_contents) or not np.array_equal(a_n, b_n):
    raise SystemExit("the two sides evaluated other images, or not equally often")
difference = b - a
half = 1.96 * difference.std(ddof=1) / np.sqrt(len(difference))
print(json.dumps({"n": len(difference), "runs_a_picture": int(a_n.max()), "difference": float(difference.mean()),
                  "low": float(difference.mean() - half), "high": float(difference.mean() + half),
                  "no_loss": bool(difference.mean() - half > -0.01)}))
