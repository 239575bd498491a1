"""Stopping steps: tokens, Ctrl-C, and handlers of signals.

A step keeps its thread in C, where Python's handlers do not run. To let Ctrl-C end a long step of the main thread, the package makes
Python write the numbers of signals into a pipe (signal.set_wakeup_fd). A thread that reads the pipe cancels the step, and
KeyboardInterrupt is raised as usual. A program with its own wakeup descriptor keeps it; KeyboardInterrupt then follows after the step.

If the program has its own handlers, a helper thread makes the calls of the main thread, and the main thread waits in Python, where
handlers run. The call continues meanwhile. If a handler raises, the step is cancelled, and the exception follows when the step ends."""
import _signal
import _thread
import os
import queue
import select
import signal
import threading
import time
from collections.abc import Callable
from typing import Any, Optional

from . import _low
from ._handle import Handle
from .errors import check, made


class CancelToken(Handle):
    """Cancels the runs that use it, and makes later ones fail at once. Threads: any."""
    __slots__ = ("_handle", "__weakref__")

    def __init__(self) -> None:
        self._handle = made(_low.tw_cancel_token_create)

    def __del__(self, destroy: Any = _low.tw_cancel_token_destroy) -> None:
        destroy(getattr(self, "_handle", None))

    def cancel(self) -> None:
        """Cancels the runs, which cannot be undone. Kernels that are running end first."""
        _low.tw_cancel_token_cancel(self._handle)

    @property
    def cancelled(self) -> bool:
        """True if cancel was called."""
        return bool(_low.tw_cancel_token_cancelled(self._handle))


# Signals whose handlers are checked before each call. Handlers of others are checked when the wakeup descriptor is set.
_USUAL = tuple(int(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM))
# The wakeup descriptor is set again after this time (seconds), because a prompt or an event loop may have replaced it. A handler may
# be delayed by this time.
_AGAIN = 0.05


class _Watch:
    """The pipe, the thread that reads it, and the step that the main thread is in."""

    def __init__(self) -> None:
        self.main = threading.main_thread().ident
        self.handlers: tuple[Any, ...] = (signal.default_int_handler,)
        self._step: Optional[CancelToken] = None
        self._own = CancelToken()
        self._mutex = threading.Lock()
        self._ends: Optional[tuple[int, int]] = None
        self._waiting = select.poll()
        self._armed = 0.0
        self._others = False  # true if signals outside _USUAL have handlers

    def handles(self) -> bool:
        """Returns true if the program has its own handler."""
        if self._others:
            return True
        for number in _USUAL:
            handler = _signal.getsignal(number)
            if callable(handler) and handler not in self.handlers:
                return True
        return False

    def enter(self, token: Optional[CancelToken]) -> tuple[CancelToken, Optional[CancelToken]]:
        """Returns the token for a step that begins now, and that of the step around it. Earlier signals do not cancel the step."""
        if time.monotonic() > self._armed + _AGAIN:
            self._arm()
        with self._mutex:
            if self._waiting.poll(0):
                self._read()
            if token is None:
                if self._own.cancelled:
                    self._own = CancelToken()
                token = self._own
            around, self._step = self._step, token
            return token, around

    def leave(self, around: Optional[CancelToken]) -> None:
        self._step = around

    def _arm(self) -> None:
        if self._ends is None:
            self._ends = os.pipe()
            for end in self._ends:
                os.set_blocking(end, False)
            self._waiting.register(self._ends[0], select.POLLIN)
            threading.Thread(target=self._wait, args=(self._ends[0],), name="thalweg-interrupt", daemon=True).start()
        try:
            _set_wakeup(self._ends[1], (-1, self._ends[1]))
        except ValueError:  # this interpreter has no signals
            pass
        self._others = any(callable(_signal.getsignal(s)) for s in signal.valid_signals() if s not in _USUAL)
        self._armed = time.monotonic()

    def _read(self) -> bytes:
        try:
            return os.read(self._ends[0], 64) if self._ends else b""
        except BlockingIOError:  # the other thread has read it
            return b""

    def _wait(self, end: int) -> None:
        waiting = select.poll()
        waiting.register(end, select.POLLIN)
        while True:
            waiting.poll()
            with self._mutex:
                if signal.SIGINT in self._read() and self._step is not None and signal.getsignal(signal.SIGINT) in self.handlers:
                    self._step.cancel()

    def forget(self) -> None:
        """Drops thread and pipe in the child of a fork, which has no such thread and must not write into its parent's pipe."""
        if self._ends is not None:
            _set_wakeup(-1, (-1, self._ends[1]))
            for end in self._ends:
                os.close(end)


def _set_wakeup(descriptor: int, mine: tuple[int, ...]) -> None:
    """Sets the wakeup descriptor, unless the program has its own."""
    before = signal.set_wakeup_fd(descriptor, warn_on_full_buffer=False)
    if before not in mine:
        signal.set_wakeup_fd(before)


_watch = _Watch()


def _forked() -> None:
    global _watch
    _idle.clear()  # the child has none of these threads
    _watch.forget()
    _watch = _Watch()


os.register_at_fork(after_in_child=_forked)


def interruptible(step: Callable[[Any], Optional[int]], token: Optional[CancelToken]) -> Optional[int]:
    """Calls `step` with the handle of a token, which Ctrl-C cancels if this is the main thread, else with that of `token`. Returns its
    status."""
    if token is not None and not isinstance(token, CancelToken):
        raise TypeError(f"cancel is a CancelToken, not {token!r}")
    watch = _watch
    if threading.get_ident() != watch.main:
        return step(token and token._handle)
    mine, around = watch.enter(token)
    try:
        if watch.handles():
            return _beside(lambda: step(mine._handle), mine.cancel)
        return step(mine._handle)
    finally:
        watch.leave(around)


def waited(call: Callable[..., Optional[int]], *arguments: Any) -> None:
    """Calls a function of the library that may take long and cannot be cancelled. On the main thread, handlers of the program run
    meanwhile. Raises the error of its status."""
    if threading.get_ident() == _watch.main and _watch.handles():
        check(_beside(lambda: call(*arguments), lambda: None))
    else:
        check(call(*arguments))


class _Call:
    """One call that a helper thread makes."""
    __slots__ = ("function", "begun", "over", "result", "failure", "ended")

    def __init__(self, function: Callable[[], Optional[int]]):
        self.function, self.begun, self.over = function, False, False
        self.result: Optional[int] = None
        self.failure: Optional[BaseException] = None
        self.ended = _thread.allocate_lock()
        self.ended.acquire()

    def make(self) -> None:
        if self.begun:  # a handler raised before the handover was certain, so the call was handed over twice
            return
        self.begun = True
        try:
            self.result = self.function()
        except BaseException as e:  # pylint: disable=broad-exception-caught  # the main thread raises it
            self.failure = e
        self.over = True
        self.ended.release()


class _Beside:
    """A helper thread that makes calls for the main thread, one after the other. A handler that runs a step uses another helper."""

    def __init__(self) -> None:
        self._calls: "queue.SimpleQueue[_Call]" = queue.SimpleQueue()
        self.begin = self._calls.put
        threading.Thread(target=self._work, name="thalweg-beside", daemon=True).start()

    def _work(self) -> None:
        while True:
            self._calls.get().make()


_idle: list[_Beside] = []


def _beside(function: Callable[[], Optional[int]], cancel: Callable[[], None]) -> Optional[int]:
    """Calls the function on a helper thread and returns its result. A handler that raises cancels the call."""
    call = _Call(function)
    thread = _idle.pop() if _idle else _Beside()
    raised: Optional[BaseException] = None
    while True:
        try:
            if raised is not None:
                cancel()
            if not call.begun:
                thread.begin(call)
            while not call.over:  # a signal just before the wait does not end the wait
                call.ended.acquire(True, _AGAIN)
            break
        except BaseException as e:  # pylint: disable=broad-exception-caught  # a handler raised: raise it again when the call has ended
            raised = e
    _idle.append(thread)
    if raised is not None:
        _low.tw_status_release(call.result)
        raise raised
    if call.failure is not None:
        raise call.failure
    return call.result


def held_back(start: Callable[[Any], Optional[int]], token: CancelToken) -> Optional[int]:
    """As interruptible, for a call that may call back into Python on this thread, where KeyboardInterrupt would be lost. It is raised when
    the call is over."""
    if threading.get_ident() != _watch.main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return start(token._handle)
    came = []

    def note(*_: Any) -> None:
        came.append(True)

    _watch.handlers += (note,)
    signal.signal(signal.SIGINT, note)
    try:
        return interruptible(start, token)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _watch.handlers = (signal.default_int_handler,)
        if came:
            raise KeyboardInterrupt
