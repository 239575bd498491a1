"""Exceptions for the statuses of the C API: one class per code, with the name of the operation that failed and the line that made it."""
import collections
import contextlib
import ctypes
import itertools
import os
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple, Optional

from . import _low

_NOT_THE_PROGRAM = (os.path.dirname(__file__) + os.sep, contextlib.__file__)


class Line(NamedTuple):
    """A line of a program; number 0 means unknown."""
    file: str
    number: int


class Error(Exception):
    """An error of the runtime.

    code: a number of the C API (TW_INVALID_ARGUMENT, ...).   code_name: its name.   message: what happened.
    operation: the name of the operation that failed, or None.   line: the line on which the program made that operation; None if
    unknown, as for imported graphs."""

    code = _low.TW_UNKNOWN

    def __init__(self, message: str, operation: Optional[str] = None, line: Optional[Line] = None):
        super().__init__(message)
        self.message, self.operation, self.line = message, operation, line

    @property
    def code_name(self) -> str:
        """The name of its code: "NOT_FOUND"."""
        return _low.tw_status_code_name(self.code).decode()

    def __reduce__(self) -> Any:
        return type(self), (self.message, self.operation, self.line)


class CancelledError(Error):
    """The run's CancelToken was cancelled."""
    code = _low.TW_CANCELLED


class UnknownError(Error):
    """An error without a code of its own."""


class InvalidArgumentError(Error, ValueError):
    """The argument is invalid in any state."""
    code = _low.TW_INVALID_ARGUMENT


class DeadlineExceededError(Error):
    """Time ran out."""
    code = _low.TW_DEADLINE_EXCEEDED


class NotFoundError(Error, LookupError):
    """The named thing does not exist."""
    code = _low.TW_NOT_FOUND


class AlreadyExistsError(Error):
    """The name is taken."""
    code = _low.TW_ALREADY_EXISTS


class PermissionDeniedError(Error):
    """A rule of the host forbids it."""
    code = _low.TW_PERMISSION_DENIED


class ResourceExhaustedError(Error):
    """Out of memory, disk or quota."""
    code = _low.TW_RESOURCE_EXHAUSTED


class FailedPreconditionError(Error):
    """The argument is valid, but the state is wrong: initialise, load or close first."""
    code = _low.TW_FAILED_PRECONDITION


class AbortedError(Error):
    """The call lost a race; try again."""
    code = _low.TW_ABORTED


class OutOfRangeError(Error, IndexError):
    """The position is past the end."""
    code = _low.TW_OUT_OF_RANGE


class UnimplementedError(Error, NotImplementedError):
    """The function is not offered here."""
    code = _low.TW_UNIMPLEMENTED


class InternalError(Error):
    """An invariant of the runtime or a plugin is broken."""
    code = _low.TW_INTERNAL


class UnavailableError(Error):
    """The peer is unavailable now; retry later."""
    code = _low.TW_UNAVAILABLE


class DataLossError(Error):
    """Stored bytes are damaged."""
    code = _low.TW_DATA_LOSS


class UnauthenticatedError(Error):
    """The caller is not authenticated."""
    code = _low.TW_UNAUTHENTICATED


_raised: "collections.OrderedDict[int, BaseException]" = collections.OrderedDict()  # by functions of the program, by their cookies
_cookies = itertools.count(1)
_raising = threading.RLock()  # an exception that is dropped may end objects, whose ends may fail in turn
_MOST_RAISED = 64  # of those that no run has raised yet: a step has one error, whatever else failed in it


def keep(e: BaseException) -> int:
    """Keeps an exception until the run that it ends raises it. Returns the cookie by which a status names it."""
    with _raising:
        cookie = next(_cookies)
        _raised[cookie] = e
        while len(_raised) > _MOST_RAISED:
            _raised.popitem(last=False)
    return cookie


def _kept(cookie: int) -> Optional[BaseException]:
    if cookie == 0:
        return None
    with _raising:
        return _raised.pop(cookie, None)


BY_CODE = {kind.code: kind for kind in Error.__subclasses__()}


def check(status: Optional[int]) -> None:
    """Raises the error of a status, or the exception of the program's function that it names, and releases the status. None is no error."""
    if status is None:
        return
    kind = BY_CODE.get(_low.tw_status_code(status), UnknownError)
    message = _low.tw_status_message(status).decode(errors="replace")
    operation = _low.tw_status_operation(status)
    line = line_of(_low.tw_status_place(status))
    raised = _kept(_low.tw_status_cookie(status))
    _low.tw_status_release(status)
    if raised is not None:
        raised.add_note(message if line is None else f"{message} ({line.file}:{line.number})")
        raise raised
    raise kind(message, None if operation is None else operation.decode(errors="replace"), line)


def made(function: Callable[..., Optional[int]], *arguments: Any) -> int:
    """Returns the handle that a function of the C API sets through its last parameter."""
    out = ctypes.c_void_p()
    check(function(*arguments, out))
    return out.value or 0


def here() -> Optional[bytes]:
    """Returns the current line of the program, outside this package, in the form of the C API."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_NOT_THE_PROGRAM):
            return f"{file}:{frame.f_lineno}".encode(errors="replace")
        frame = frame.f_back
    return None


def line_of(place: Optional[bytes]) -> Optional[Line]:
    """Returns the line that a place of the C API names; None if the place is empty."""
    if not place:
        return None
    text = place.decode(errors="replace")
    file, _, number = text.rpartition(":")
    return Line(file, int(number)) if file and number.isdecimal() else Line(text, 0)
