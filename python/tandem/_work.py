"""Long work: it runs in a thread of its own, while the caller's thread handles events and Ctrl-C."""
from __future__ import annotations

import atexit
import logging
import os
import queue
import signal
import threading
from dataclasses import dataclass
from typing import Any, Callable, Dict, Optional, TypedDict, TypeVar, Union

from . import _declarations as c
from ._library import UsageError, callback, decode, follow_level, logger, stop_flag
from ._names import spelled

T = TypeVar("T")


class Score(TypedDict):
    """Counts of n evaluated images; low and high are the 95 % Wilson interval of the distinct ones."""
    n: int
    n_distinct: int
    correct: int
    correct_distinct: int
    accuracy: float
    low: float
    high: float
    loss: float


def score(struct: Any) -> Optional[Score]:
    return {name: getattr(struct, name) for name in Score.__annotations__} if struct.n else None  # type: ignore


@dataclass(frozen=True)
class Event:
    """What happens in long work; include/tandem/event.h says which members an event of each kind has.

    kind: "note", "phase_begin", "progress", "phase_end", "epoch" or "checkpoint"
    """
    kind: str
    text: str
    epoch: int
    step: int
    done: int
    total: int
    loss: float
    learning_rate: float
    seconds: float
    is_best: bool
    is_detail: bool
    train: Optional[Score]
    val: Optional[Score]


EventCallback = Callable[[Event], None]


def _event(struct: Any) -> Event:
    values: Dict[str, Any] = {name: getattr(struct, name) for name in Event.__annotations__}
    kind, text = c.tdm_event_kind[struct.kind][len("TDM_EVENT_"):].lower(), decode(struct.text)
    values.update(kind=kind, text=spelled(text) if kind == "note" else text, is_best=bool(struct.is_best),
                  is_detail=bool(struct.is_detail), train=score(struct.train), val=score(struct.val))
    return Event(**values)


def _log(event: Event) -> None:
    if event.kind == "note":
        logger.log(logging.DEBUG if event.is_detail else logging.INFO, "%s", event.text)
    elif event.kind == "epoch" and event.val:
        logger.info("epoch %d: %d of %d validation images right, loss %.4f", event.epoch, event.val["correct"],
                    event.val["n"], event.val["loss"])
    elif event.kind in ("phase_begin", "checkpoint"):
        logger.debug("%s: %s", event.kind, event.text)


@atexit.register
def _leave() -> None:
    """Work that is left when Python ends stops: a thread of it may not call into an interpreter that is gone."""
    try:
        stop_flag.forbid()
        stop_flag.end_all()
    except KeyboardInterrupt:  # Python would go on without waiting
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)


def run(work: Callable[[Any], T], on_event: Optional[EventCallback] = None) -> T:
    """Return work(sink).

    An exception in the caller's thread (KeyboardInterrupt by Ctrl-C, one of on_event) requests a stop, waits until
    the work has ended cleanly, and is raised. A second one is raised at once; the work still ends by itself.
    """
    events: "queue.SimpleQueue[Union[Event, None]]" = queue.SimpleQueue()
    outcome: Dict[str, Any] = {}
    sink = c.tdm_sink(None, callback(c.tdm_sink, "event", lambda _self, event: events.put(_event(event[0]))))

    def in_thread() -> None:
        try:
            outcome["value"] = work(sink)
        except BaseException as error:  # raised again in the caller's thread
            outcome["error"] = error
        finally:
            stop_flag.end(thread)
            events.put(None)

    if on_event is not None and not callable(on_event):
        raise UsageError(f"option on_event is {on_event!r}; a function of an Event is accepted")
    follow_level()
    # A daemon whoever starts it: _leave ends it, with a checkpoint, where nobody waits for it.
    thread = threading.Thread(target=in_thread, name="tandem", daemon=True)
    raised: Optional[BaseException] = None
    is_started = is_over = False
    while not is_over:
        try:
            if not is_started:
                is_started = True
                stop_flag.start(thread)
            is_over = _handle(events, thread, on_event if raised is None else None)
        except BaseException as error:
            if raised is not None:
                raise
            raised = error
            stop_flag.request(thread)
    stop_flag.end(thread)  # Ctrl-C may have come before it began
    stop_flag.wait_if_final()
    if raised is not None:
        raise raised from outcome.get("error")
    if "error" in outcome:
        raise outcome["error"]
    value: T = outcome["value"]
    return value


def _handle(events: "queue.SimpleQueue[Union[Event, None]]", thread: threading.Thread,
            on_event: Optional[EventCallback]) -> bool:
    """Handle events until the work is over. An exception can lose the None at its end, hence the timeout."""
    while True:
        try:
            event = events.get(timeout=1)
        except queue.Empty:
            if thread.is_alive():
                continue
            return True
        if event is None:
            return True
        _log(event)
        if on_event:
            on_event(event)
