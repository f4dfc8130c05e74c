"""libtandem: found and declared; its errors as exceptions, its messages as records of logging."""
from __future__ import annotations

import atexit
import ctypes
import functools
import inspect
import json
import logging
import math
import os
import threading
from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence, Set, Tuple, TypeVar, Union

from . import _declarations as c
from ._names import meant, spelled

Path = Union[str, "os.PathLike[str]"]

logger = logging.getLogger("tandem")
logger.addHandler(logging.NullHandler())  # a library prints nothing unless its program says so


# ---- the library -------------------------------------------------------------------------------


def _open() -> ctypes.CDLL:
    """The one in this package; without one (a checkout) the one that the system's loader finds."""
    name = f"libtandem.so.{c.TDM_VERSION_MAJOR}"
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", name)
    try:
        library = ctypes.CDLL(beside if os.path.exists(beside) else name)  # releases the GIL in calls
    except OSError as error:
        raise ImportError(f"tandem cannot open its library, {beside}, or {name} where the system looks "
                          f"(LD_LIBRARY_PATH): {error}; make wheel in a checkout builds both, and pip install "
                          "build/wheel/tandem-*.whl installs them") from None
    for function, (result, parameters) in c.FUNCTIONS.items():
        try:
            declared = getattr(library, function)
        except AttributeError:
            raise ImportError(f"{library._name} has no {function}: it is older than this module") from None
        declared.restype, declared.argtypes = result, parameters
    return library


lib = _open()


# ---- errors ------------------------------------------------------------------------------------


class Frame(NamedTuple):
    """A sentence of an error, and the place in the library's source that wrote it."""
    text: str
    file: str
    line: int


class Error(Exception):
    """A failure of the library. Its text is what the command prints: the outermost sentence, its causes below.

    code    "USAGE", "INPUT", "SYSTEM", "ABSENT", "MEMORY", "PEER", "STOPPED", "FAILED" or "BUG"
    frames  the chain, the innermost cause first
    advice  what to do before another try
    """
    __module__ = "tandem"

    def __init__(self, text: str, code: str = "USAGE", frames: Tuple[Frame, ...] = (), advice: str = "") -> None:
        super().__init__(text)
        self.code, self.frames, self.advice = code, frames, advice


class UsageError(Error, ValueError, TypeError):
    """An option, an argument or a call that is not accepted."""
    __module__ = "tandem"


class NotFoundError(Error, FileNotFoundError):
    """A file or folder that is not there."""
    __module__ = "tandem"


def _is_missing(path: Path) -> bool:
    return "://" not in os.fspath(path) and not os.path.exists(path)


def _error(error: Any, reads: Optional[Path]) -> Error:
    text = ctypes.create_string_buffer(c.TDM_ERROR_FRAMES * (c.TDM_ERROR_TEXT_BYTES + 64))
    lib.tdm_error_format(error, text, len(text))
    frames = tuple(Frame(spelled(decode(lib.tdm_error_sentence(error, i))), decode(error.frames[i].file),
                         error.frames[i].line) for i in range(error.n_frames))
    kind = Error
    if error.code == c.TDM_E_USAGE:
        kind = UsageError
    elif error.code == c.TDM_E_INPUT and reads is not None and _is_missing(reads):
        kind = NotFoundError
    return kind(spelled(decode(text.value)).rstrip("\n"), decode(lib.tdm_status_name(error.code)), frames,
                decode(lib.tdm_status_advice(error.code)))


def call(function: Callable[..., int], *arguments: Any, reads: Optional[Path] = None) -> None:
    """Call a function whose last parameter is a tdm_error; reads is a file or folder that must be there for it."""
    error = c.tdm_error()
    if function(*arguments, ctypes.byref(error)) != c.TDM_OK:
        raise _error(error, reads)


F = TypeVar("F", bound=Callable[..., Any])


def keywords(*more: str) -> Callable[[F], F]:
    """A decorator: a keyword that the function lacks, and that is not one of more, is answered with the one meant."""
    def decorate(function: F) -> F:
        known = {*inspect.signature(function).parameters, *more} - {"self", "options"}
        title = "tandem." + function.__qualname__.replace(".__init__", "")

        @functools.wraps(function)
        def checked(*arguments: Any, **options: Any) -> Any:
            for name in options:
                if name not in known:
                    raise UsageError(f"{title} has no option {name}; {meant(name, known, title)}")
            return function(*arguments, **options)

        return checked  # type: ignore[return-value]

    return decorate


# ---- values ------------------------------------------------------------------------------------


def decode(text: Optional[bytes]) -> str:
    return (text or b"").decode("utf-8", "surrogateescape")


def encode(path: Path) -> bytes:
    return os.fsencode(path)


def plain(name: str, value: Any, accepted: str = "a number, a text, True, False or None") -> Any:
    """The value of an option as None, bool, int, float or str; those of NumPy and paths are accepted, too."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    elif getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"option {name} is {value}; a finite number is accepted")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise UsageError(f"option {name} is of type {type(value).__name__}; {accepted} is accepted")


# Members that have another name here, and what the others accept.
_NAMES = {"is_shuffled": "shuffle", "network": "model"}
_ACCEPTED = {ctypes.c_char_p: "a text or a path", ctypes.c_double: "a number", ctypes.c_bool: "True or False"}


def fill(struct: Any, **values: Any) -> Any:
    """Set members of a struct and return it."""
    for member, value in values.items():
        name = _NAMES.get(member, member)
        kind = dict(struct._fields_)[member]
        accepted = _ACCEPTED.get(kind, "a whole number that fits")
        value = plain(name, value, accepted)
        try:
            is_taken = kind is not ctypes.c_char_p or value is None or isinstance(value, str)  # a number: an address
            is_taken = is_taken and (kind is ctypes.c_bool) == isinstance(value, bool)
            if is_taken:
                setattr(struct, member, encode(value) if isinstance(value, str) else value)
                is_taken = not isinstance(value, (int, float)) or getattr(struct, member) == value  # it fits
        except TypeError:
            is_taken = False
        if not is_taken:
            raise UsageError(f"option {name} is {value!r}; {accepted} is accepted")
    return struct


def sized(kind: Any, **values: Any) -> Any:
    """A struct that begins with its size (include/tandem/api.h)."""
    return fill(kind(struct_bytes=ctypes.sizeof(kind)), **values)


def callback(kind: Any, member: str, function: Callable[..., Any]) -> Any:
    """The function as the C type of a struct's member."""
    return dict(kind._fields_)[member](function)


def part(name: str) -> int:
    names = [constant[len("TDM_PART_"):].lower() for constant in c.tdm_part]
    if name not in names:
        raise UsageError(f"option part is {name!r}; {', '.join(names[:-1])} or {names[-1]} is accepted")
    return names.index(name)


def as_object(write: Callable[[Any], None]) -> Dict[str, Any]:
    """The members that write(writer) adds to a JSON object."""
    writer = lib.tdm_json_writer_new(0)
    try:
        lib.tdm_json_object_begin(writer, None)
        write(writer)
        lib.tdm_json_object_end(writer)
        text = ctypes.c_char_p()
        call(lib.tdm_json_finish, writer, ctypes.byref(text), None)
        value: Dict[str, Any] = json.loads(text.value or b"")
        return value
    finally:
        lib.tdm_json_writer_free(writer)


# ---- messages ----------------------------------------------------------------------------------

_LEVELS = {c.TDM_LOG_ERROR: logging.ERROR, c.TDM_LOG_WARNING: logging.WARNING, c.TDM_LOG_INFO: logging.INFO,
           c.TDM_LOG_DEBUG: logging.DEBUG}


def _message(_self: Any, level: int, text: bytes) -> None:
    logger.log(_LEVELS[level], "%s", spelled(decode(text)))


_listener = c.tdm_log_listener(None, callback(c.tdm_log_listener, "message", _message))


def follow_level() -> None:
    """Let the library compose the messages that the program's logging shows, and no others."""
    shown = [level for level, own in _LEVELS.items() if logger.isEnabledFor(own)]
    lib.tdm_log_set_level(max(shown, default=c.TDM_LOG_SILENT))


_process = os.getpid()


@atexit.register
def _leave() -> None:
    """No message may reach an interpreter that ends: wait for those on their way, and let no other go.

    What is registered later is called earlier: all work and all loaders have ended (_work.py, _loader.py).
    """
    lib.tdm_log_set_level(c.TDM_LOG_SILENT)
    if os.getpid() == _process:  # in a forked process the threads are gone, and their messages never arrive
        lib.tdm_log_set_listener(None)


follow_level()
lib.tdm_log_set_listener(ctypes.byref(_listener))


# ---- the stop flag -----------------------------------------------------------------------------


class StopFlag:
    """The library's flag is one for all work of the process: it is cleared when the last work has ended."""

    def __init__(self) -> None:
        self._is_final = False
        self._forget()
        os.register_at_fork(after_in_child=self._forget)  # which has none of the threads

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._running: Set[threading.Thread] = set()
        lib.tdm_stop_clear()

    def start(self, thread: threading.Thread) -> None:
        """Start a thread, which calls end."""
        with self._lock:
            if self._is_final:
                raise Error("no work begins while Python ends", "STOPPED")
            self._running.add(thread)
            try:
                thread.start()
            except RuntimeError:  # the system has no thread to give
                self._running.discard(thread)
                raise

    def end(self, thread: threading.Thread) -> None:
        """The work is over; twice is once."""
        with self._lock:
            self._running.discard(thread)
            if not self._running and not self._is_final:
                lib.tdm_stop_clear()

    def request(self, thread: threading.Thread) -> None:
        """Stop the work of a thread, unless it has ended: nobody would clear the flag."""
        with self._lock:
            if thread in self._running:
                lib.tdm_stop_request()

    def forbid(self) -> None:
        """Python ends: no other work begins."""
        with self._lock:
            self._is_final = True

    def end_all(self) -> None:
        """Stop all work, and wait for its end."""
        with self._lock:
            running = list(self._running)
        for thread in running:
            self.request(thread)
        for thread in running:
            thread.join()

    def wait_if_final(self) -> None:
        """A daemon thread of a process that ends: nobody hears its error."""
        if self._is_final and threading.current_thread() is not threading.main_thread():
            threading.Event().wait()


stop_flag = StopFlag()


def spelled_path(name: str, path: Any) -> str:
    if not isinstance(path, (str, os.PathLike)):
        found = "None" if path is None else f"of type {type(path).__name__}"
        raise UsageError(f"option {name} is {found}; a path is accepted")
    return os.fspath(path)


def spelled_split(split: Any) -> "tuple[float, ...]":
    """Two or three fractions: to train, to validate and perhaps to test on."""
    if isinstance(split, (str, bytes)) or not isinstance(split, Sequence) or not 2 <= len(split) <= 3:
        raise UsageError(f"option split is {split!r}; two or three fractions are accepted, such as (0.9, 0.1): to "
                         "train, to validate and perhaps to test on")
    return tuple(plain("split", part) for part in split)
