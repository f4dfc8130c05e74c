"""tandem.train: from labelled images to a run folder."""
from __future__ import annotations

import ctypes
import json
import os
from typing import TYPE_CHECKING, Any, Dict, List, Optional, TypedDict

from . import _declarations as c
from ._library import (Error, Path, UsageError, as_object, call, decode, encode, keywords, lib, logger, plain, sized,
                       spelled_path, spelled_split)
from ._work import EventCallback, Score, run

if TYPE_CHECKING:
    from typing_extensions import Unpack


class TrainResult(TypedDict):
    """What `tandem train --json` prints, without its options: docs/reference/json.md."""
    run: str
    epochs: int
    best_epoch: int
    ended_by: str
    patience: int
    after_best: Dict[str, Any]
    steps: int
    seconds: float
    images_per_second: float
    train: Score
    val: Score
    test: Optional[Score]
    tests_before: List[Dict[str, Any]]
    skipped: int
    unread: List[Dict[str, Any]]
    cached: bool
    features: Dict[str, int]
    views: int
    batch: int
    batch_reason: Optional[str]
    layers_left: int
    world: int
    next: Dict[str, str]


class _Options:
    """A struct tdm_train_options; its texts live as long as this object."""

    def __init__(self) -> None:
        self.struct = c.tdm_train_options()
        self._documents: List[ctypes.c_void_p] = []
        self.reset()

    def reset(self) -> None:
        lib.tdm_train_options_init(self.struct, ctypes.sizeof(self.struct))

    def _take(self, function: Any, text: bytes) -> None:
        document = ctypes.c_void_p()
        call(function, text, self.struct, ctypes.byref(document))
        self._documents.append(document)

    def set(self, values: Dict[str, Any], paths: Dict[str, bytes]) -> None:
        self._take(lib.tdm_train_options_set, json.dumps(values).encode())
        for member, path in paths.items():  # not by JSON: they may not be UTF-8
            setattr(self.struct, member, path)

    def set_recorded(self, out: Path) -> None:
        self._take(lib.tdm_train_options_recorded, encode(out))

    def __del__(self) -> None:
        for document in self._documents:
            lib.tdm_json_document_free(document)


def _spelled(options: Dict[str, Any]) -> Dict[str, Any]:
    """Options as run.json names them."""
    options = dict(options)
    values: Dict[str, Any] = {}
    if options.get("split") is not None:
        values.update(zip(("split-train", "split-val", "split-test"), spelled_split(options["split"])))
    options.pop("split", None)
    for name, value in options.items():
        value = plain(name, value)
        if isinstance(value, str) and value != value.encode(errors="replace").decode():
            raise UsageError(f"option {name} is {value!r}, which is not UTF-8; a text in UTF-8 is accepted")
        values[name.replace("_", "-")] = value
    if values.get("batch") == 0 and values["batch"] is not False:  # run.json's number for "auto"
        raise UsageError('option batch is 0; 1 to 65536 or "auto" is accepted')
    return values


def _fetch(source: Path, options: Any, mirror: Optional[str], sink: Any) -> None:
    """Fetch the published weights that these options begin with, if they are not on this machine."""
    wanted = ctypes.POINTER(c.tdm_weights_known)()
    call(lib.tdm_train_weights_wanted, options, ctypes.byref(wanted), reads=source)
    if not wanted:
        return
    fetched = sized(c.tdm_weights_fetched)
    try:
        call(lib.tdm_weights_fetch, wanted[0].name, mirror.encode() if mirror else None, sink, ctypes.byref(fetched))
        logger.info("fetched %s, %.1f MB", decode(fetched.path), fetched.bytes / 1e6)
    except Error as error:
        named = decode(options.weights)
        if named not in (None, "", "auto") or error.code not in ("SYSTEM", "ABSENT"):
            raise
        logger.warning("pretrained weights cannot be downloaded, so training goes on without them: %s", error)


@keywords(*c.TRAIN_HELP)
def train(source: Path, out: Optional[Path] = None, *, resume: bool = False, fetch: Optional[bool] = None,
          mirror: Optional[str] = None, trace: Optional[Path] = None, on_event: Optional[EventCallback] = None,
          **options: "Unpack[c.TrainOptions]") -> TrainResult:
    """Train a classifier on labelled images and return the figures of the run; `tandem train` from Python.

        result = tandem.train("photos", "runs/first", epochs=5, lr=0.01)
        print(result["val"]["accuracy"])

    source    folder with a folder for each class, archive, list, table, …
    out       run folder to make (default: runs/<model>-<time>)
    resume    resume the run in out with its recorded options; start it if there is none
    fetch     download pretrained weights that are not on this machine (default: if TANDEM_FETCH is 1)
    mirror    URL of a folder that has published weights
    trace     file of trace events to write
    on_event  called with an Event, in this thread, while another one trains

    Ctrl-C, or an exception of on_event, stops the training after a checkpoint, and is then raised.

    None leaves an option to the network, the optimizer or the schedule. The result has, among others, "val" and "test"
    with "accuracy" and its interval, "run", "best_epoch" and "next". Options, with their types and defaults:

    """
    for name, value, kind, accepted in (("resume", resume, bool, "True or False"),
                                        ("fetch", fetch, bool, "True, False or None"),
                                        ("mirror", mirror, str, "a text or None")):
        if not isinstance(plain(name, value, accepted), (kind, type(None))):
            raise UsageError(f"option {name} is {value!r}; {accepted} is accepted")
    resumed = out if resume else None
    if resume and resumed is None:
        raise UsageError("resume=True requires out, the folder of the run to resume")
    paths = {member: encode(spelled_path(name, value)) for name, member, value in
             (("source", "source", source), ("out", "run", out), ("trace", "trace", trace)) if value is not None}
    given = {**_spelled(dict(options)), "resume": resume}

    def work(sink: Any) -> TrainResult:
        chosen = _Options()
        chosen.set(given, paths)
        if resumed is not None:
            copies = chosen.struct.checkpoint_to
            chosen.reset()
            chosen.struct.checkpoint_to = copies
            chosen.set_recorded(resumed)
            chosen.set(given, paths)
        if os.environ.get("TANDEM_FETCH", "").lower() in ("1", "true", "yes", "on") if fetch is None else fetch:
            _fetch(source, chosen.struct, mirror, sink)
        result = sized(c.tdm_train_result)
        call(lib.tdm_train, chosen.struct, sink, ctypes.byref(result), reads=source)
        values = as_object(lambda writer: lib.tdm_train_result_to_json(result, writer))
        values["run"] = decode(result.run)  # JSON has no bytes that are not UTF-8
        return values  # type: ignore[return-value]

    return run(work, on_event)


train.__doc__ = (train.__doc__ or "").rstrip(" ") + "\n".join(
    f"    {name}: {text}" for name, text in c.TRAIN_HELP.items())
