"""libtandem: found and declared; its errors as exceptions, its messages as records of logging."""
from __future__ import annotations

import atexit
import ctypes
import json
import logging
import os
import threading
from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence, Tuple, Union

from . import _declarations as c

Path = Union[str, "os.PathLike[str]"]

logger = logging.getLogger("tandem")
logger.addHandler(logging.NullHandler())  # a library prints nothing unless its program says so


# ---- the library -------------------------------------------------------------------------------


def _open() -> ctypes.CDLL:
    """The one in this package; without one (a checkout) the one that the system's loader finds."""
    name = f"libtandem.so.{c.TDM_VERSION_MAJOR}"
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", name)
    library = ctypes.CDLL(beside if os.path.exists(beside) else name)  # releases the GIL in calls
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


def _error(error: Any) -> Error:
    text = ctypes.create_string_buffer(c.TDM_ERROR_FRAMES * (c.TDM_ERROR_TEXT_BYTES + 64))
    lib.tdm_error_format(error, text, len(text))
    frames = tuple(Frame(decode(lib.tdm_error_sentence(error, i)), decode(error.frames[i].file), error.frames[i].line)
                   for i in range(error.n_frames))
    return Error(decode(text.value).rstrip("\n"), decode(lib.tdm_status_name(error.code)), frames,
                 decode(lib.tdm_status_advice(error.code)))


def call(function: Callable[..., int], *arguments: Any) -> None:
    """Call a function whose last parameter is a tdm_error."""
    error = c.tdm_error()
    if function(*arguments, ctypes.byref(error)) != c.TDM_OK:
        raise _error(error)


# ---- values ------------------------------------------------------------------------------------


def decode(text: Optional[bytes]) -> str:
    return (text or b"").decode("utf-8", "surrogateescape")


def encode(path: Path) -> bytes:
    return os.fsencode(path)


def fill(struct: Any, **values: Any) -> Any:
    """Set members of a struct and return it."""
    for name, value in values.items():
        try:
            setattr(struct, name, encode(value) if isinstance(value, (str, os.PathLike)) else value)
            is_taken = not isinstance(value, (int, float)) or getattr(struct, name) == value  # else it does not fit
        except TypeError:
            is_taken = False
        if not is_taken:
            raise Error(f"option {name} is {value!r}, which its type does not accept")
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
        raise Error(f"there is no part '{name}'; accepted are {', '.join(names)}")
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
    logger.log(_LEVELS[level], "%s", decode(text))


_listener = c.tdm_log_listener(None, callback(c.tdm_log_listener, "message", _message))


def follow_level() -> None:
    """Let the library compose the messages that the program's logging shows, and no others."""
    shown = [level for level, own in _LEVELS.items() if logger.isEnabledFor(own)]
    lib.tdm_log_set_level(max(shown, default=c.TDM_LOG_SILENT))


@atexit.register
def _leave() -> None:
    """No thread of the library may call into an interpreter that ends."""
    lib.tdm_log_set_level(c.TDM_LOG_SILENT)
    lib.tdm_log_set_listener(None)


follow_level()
lib.tdm_log_set_listener(ctypes.byref(_listener))


# ---- the stop flag -----------------------------------------------------------------------------


class StopFlag:
    """The library's flag is one for all work of the process: it is cleared when the last work has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0

    def begin(self) -> None:
        with self._lock:
            self._running += 1

    def end(self) -> None:
        with self._lock:
            self._running -= 1
            if self._running == 0:
                lib.tdm_stop_clear()

    @staticmethod
    def request() -> None:
        lib.tdm_stop_request()


stop_flag = StopFlag()


def spelled_split(split: Any) -> "tuple[float, ...]":
    """Two or three fractions: to train, to validate and perhaps to test on."""
    if isinstance(split, (str, bytes)) or not isinstance(split, Sequence) or not 2 <= len(split) <= 3:
        raise Error(f"split is {split!r}; two or three fractions are accepted, such as (0.9, 0.1): to train, to "
                    "validate and perhaps to test on")
    return tuple(split)
