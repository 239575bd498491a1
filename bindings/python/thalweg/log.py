"""The log: messages of the runtime and its plugins that are no errors of a call. It is off unless a program sets a sink:

    thalweg.log.set(logging.getLogger("thalweg"))    # into Python's logging, under its rules
    thalweg.log.set("stderr", "info")                # lines as "thalweg: info: ..."

Threads: any. A function or a logger is called on the thread that writes the message; it must not call back into the runtime."""
import atexit
import ctypes
import itertools
import logging
import time
from collections.abc import Callable
from typing import Any, Literal, Optional, Union

from . import _low
from ._handle import c_text
from .errors import check
from .runtime import Runtime, default_runtime

__all__ = ["set", "write"]


def __dir__() -> list[str]:
    return __all__

Sink = Union[logging.Logger, Callable[[int, str], None], Literal["stderr"], None]
Level = Union[int, Literal["debug", "info", "warning", "error"]]

_NUMBERS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_PYTHON = {_low.TW_LOG_DEBUG: logging.DEBUG, _low.TW_LOG_INFO: logging.INFO, _low.TW_LOG_WARNING: logging.WARNING,
           _low.TW_LOG_ERROR: logging.ERROR}

_NOWHERE = _low.tw_log_sink(0)
_sinks: dict[int, tuple[Any, Runtime]] = {}  # by the number that the runtime passes to the callback
_numbers = itertools.count(1)
_lines = 0  # approximate number of lines so far


def set(sink: Sink, level: Optional[Level] = None, runtime: Optional[Runtime] = None) -> None:  # pylint: disable=redefined-builtin
    """Sends lines of at least that level to the sink from now on. sink: a logger, a function of a Python level and the text, "stderr", or
    None for no sink. level: a Python level, or its name; None: the logger's own level, else "info".   runtime: None: the default one.
    Raises ValueError for another level, TypeError for another sink."""
    least = _least(sink, level)
    where = runtime or default_runtime()
    number, function = 0, _NOWHERE
    if sink == "stderr":
        function = _low.tw_log_sink(ctypes.cast(_low.tw_log_to_stderr, ctypes.c_void_p).value)  # type: ignore[arg-type]
    elif sink is not None:
        if not isinstance(sink, logging.Logger) and not callable(sink):
            raise TypeError(f"{sink!r} is no sink; a logger, a function of level and text, \"stderr\" and None are")
        number = next(_numbers)
        _sinks[number] = sink, where
        function = _deliver
    check(_low.tw_log_set_sink(where._handle, function, number, least))
    for old in [n for n, (_, r) in _sinks.items() if r._handle == where._handle and n != number]:
        del _sinks[old]


def write(text: str, level: Level = "info", runtime: Optional[Runtime] = None) -> None:
    """Writes a line into the log."""
    check(_low.tw_log_write((runtime or default_runtime())._handle, _number(level), c_text(text)))


def _least(sink: Any, level: Optional[Level]) -> int:
    if level is None:
        level = sink.getEffectiveLevel() if isinstance(sink, logging.Logger) else "info"
    return _number(level)


def _number(level: Level) -> int:
    """Returns the lowest level of the runtime that is not below a Python level."""
    wanted = _NUMBERS.get(level) if isinstance(level, str) else level
    if wanted is None or isinstance(wanted, bool) or not isinstance(wanted, int):
        raise ValueError(f"{level!r} is no level; there are: {', '.join(_NUMBERS)}, and the numbers of logging")
    return next((number for number, python in _PYTHON.items() if python >= wanted), _low.TW_LOG_ERROR)


@_low.tw_log_sink
def _deliver(user: int, level: int, text: int, size: int) -> None:
    global _lines
    _lines += 1
    sink, _ = _sinks.get(user, (None, None))
    line = ctypes.string_at(text, size).decode(errors="replace")
    if isinstance(sink, logging.Logger):
        sink.log(_PYTHON[level], "%s", line)
    elif sink is not None:
        sink(_PYTHON[level], line)


def _silence() -> None:
    """Removes the sinks at the end of the program, before Python ends its threads, because pending lines still need Python."""
    for _, runtime in list(_sinks.values()):
        _low.tw_status_release(_low.tw_log_set_sink(runtime._handle, _NOWHERE, None, 0))
    seen, quiet = 0, 0
    while _lines and quiet < 4:
        time.sleep(0.01)
        seen, quiet = _lines, quiet + 1 if _lines == seen else 0


atexit.register(_silence)
