"""Runs: list them, show one, compare two; `tandem runs` and `tandem report` from Python."""
from __future__ import annotations

import ctypes
import os
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import _declarations as c
from ._library import Path, as_object, call, encode, lib, sized, spelled_path

__all__ = ["compare", "list", "report", "show"]

# Keys as in docs/reference/json.md.
Run = Dict[str, Any]
Comparison = Dict[str, Any]


class _Runs:
    """An open list of runs."""

    def __init__(self, function: Callable[..., int], *arguments: Any, reads: Optional[Path] = None) -> None:
        self.pointer = ctypes.c_void_p()
        call(function, *arguments, ctypes.byref(self.pointer), reads=reads)

    def __enter__(self) -> "_Runs":
        return self

    def __exit__(self, *_: Any) -> None:
        lib.tdm_runs_close(self.pointer)

    def as_objects(self, is_whole: bool) -> List[Run]:
        def write(writer: Any) -> None:
            lib.tdm_json_array_begin(writer, b"runs")
            for i in range(lib.tdm_runs_count(self.pointer)):
                lib.tdm_run_to_json(lib.tdm_runs_at(self.pointer, i), is_whole, writer)
            lib.tdm_json_array_end(writer)
        runs: List[Run] = as_object(write)["runs"]
        return runs


def _read(paths: Tuple[Path, ...]) -> _Runs:
    for path in paths:
        spelled_path("run", path)
    missing = [path for path in paths if not os.path.exists(path)]
    return _Runs(lib.tdm_runs_read, (ctypes.c_char_p * len(paths))(*map(encode, paths)), len(paths),
                 reads=missing[0] if missing else None)


def list(folder: Path = "runs") -> List[Run]:
    """Every run in folder and the folders below it, by path."""
    with _Runs(lib.tdm_runs_find, encode(folder), reads=folder) as runs:
        return runs.as_objects(False)


def show(run: Path) -> Run:
    """One run, with the metrics of its validation images, class by class, under "validation"."""
    with _read((run,)) as runs:
        return runs.as_objects(True)[0]


def compare(a: Path, b: Path) -> Comparison:
    """Is run b better than run a, image by image? The members of `tandem runs compare --json`."""
    comparison = sized(c.tdm_comparison)
    with _read((a, b)) as runs:
        call(lib.tdm_runs_compare, runs.pointer, 0, 1, comparison)
        return {"runs": runs.as_objects(False),
                **as_object(lambda writer: lib.tdm_comparison_to_json(comparison, writer))}


def report(out: Path, *runs: Path) -> None:
    """Write one HTML page with the curves and tables of these runs, each against the first."""
    with _read(runs) as read:
        call(lib.tdm_runs_report, read.pointer, encode(out))
