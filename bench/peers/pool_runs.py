"""pool_runs.py OUT RUN…: a run folder with the outcomes of several, which judged different pictures."""
import json
import os
import sys

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

out, runs = sys.argv[1], sys.argv[2:]
parts = []
for run in runs:
    with safe_open(f"{run}/outcomes.safetensors", "np") as file:
        head = file.metadata()
        parts.append({name: file.get_tensor(name) for name in file.keys()})
os.makedirs(out, exist_ok=True)
head.pop("tandem.checksum", None)
save_file({name: np.concatenate([part[name] for part in parts]) for name in parts[0]},
          f"{out}/outcomes.safetensors", head)
with open(f"{out}/run.json", "w", encoding="utf-8") as file:
    json.dump({"format_version": 1, "tandem": "0.1.0", "status": "finished", "started": "2026-01-01T00:00:00Z"}, file)
