#!/usr/bin/env python3
"""Stands for a Python with PyTorch where bench/gpu/run is tested without one: answers each of its scripts in
the form of the real one, with rates that no measurement gave. TORCH_WORDS, where set, is printed instead."""
import json
import os
import sys
from pathlib import Path

script, arguments = Path(sys.argv[1]), sys.argv[2:]
if not script.is_file():
    sys.exit(f"{script} is not there")
if "TORCH_WORDS" in os.environ:
    print(os.environ["TORCH_WORDS"])
elif script.name == "torch_copy.py":
    print(json.dumps({"bytes_per_second": 1e9, "low": 1e9, "high": 1e9, "bytes": 1 << 20}))
elif script.name == "torch_side.py":
    setting = arguments[arguments.index("--setting") + 1]
    rate = {"eager": 1e-3, "compile": 2e-3, "graphs": 1.5e-3}[setting]
    print(json.dumps({"peer": "stand-in", "setting": setting, "images_per_second": rate, "low": rate,
                      "high": rate, "groups": 3, "gpu": None, "peak_bytes": None}))
elif script.name != "torch_job.py":
    sys.exit(f"{script.name} is none of bench/gpu's scripts")
