"""Steps that were started without waiting, as futures of Python's own kind.

The runtime calls back on its own thread, and the callback needs Python's lock. At the end of the program, before Python ends its
threads, the package therefore waits for running steps, and starts no more. It cancels them after Ctrl-C, and if a function of Python that
a step calls does not return (see host_functions). The child of a fork drops all
futures, because the steps of its parent never end there."""
import atexit
import concurrent.futures
import itertools
import os
import threading
import time
from collections.abc import Callable
from typing import Any, Optional

from . import _low
from .cancel import CancelToken
from .errors import check
from .stats import StepStats, give_back, take
from .tensor import Tensor


class Future(concurrent.futures.Future[Any]):
    """A started step; see Session.run_async. concurrent.futures and asyncio.wrap_future can wait for it. Functions given to
    add_done_callback run on a thread of the runtime; in a session of one thread, on the thread that starts the step."""

    def __init__(self, finish: Callable[[list[Tensor]], Any], n: int, stats: Optional[StepStats]):
        super().__init__()
        self._n, self._stats, self._token = n, stats, CancelToken()
        self._finish: Optional[Callable[[list[Tensor]], Any]] = finish
        self.set_running_or_notify_cancel()

    def cancel(self) -> bool:
        """Requests the step to stop. Unless it ends first, result raises thalweg.CancelledError, not that of concurrent.futures. Kernels
        that are running end first. Returns true if the step was still running."""
        self._token.cancel()
        return not self.done()

    def _start(self, step: int, feeds: Any, options: Any) -> Optional[int]:
        key = next(_keys)
        with _starting:
            if _ended:
                raise RuntimeError("the program is ending; no step can be started")
            take(self._stats)
            _under_way[key] = self
        status: Optional[int] = _low.tw_callable_run_async(step, feeds, options, _done, key)
        if status:
            del _under_way[key]
            give_back(self._stats)
        return status

    def _end(self, status: Optional[int], handles: Any) -> None:
        finish, self._finish = self._finish, None  # _finish keeps the step alive
        give_back(self._stats)
        try:
            tensors = [Tensor._adopt(handles[i] or 0) for i in range(self._n)]
            check(status)
            result = finish(tensors)  # type: ignore[misc]
        except BaseException as e:  # pylint: disable=broad-exception-caught  # the future raises it
            self.set_exception(e)
        else:
            self.set_result(result)


_under_way: dict[int, Future] = {}
_keys = itertools.count(1)
_starting = threading.Lock()
_ended = False


@_low.tw_run_done
def _done(key: int, status: Optional[int], handles: Any) -> None:
    try:
        _under_way[key]._end(status, handles)
    finally:
        del _under_way[key]


def _wait_for_all(hopeless: Callable[[], bool] = lambda: False) -> bool:
    """Waits until no step runs; none can be started any more. hopeless: answers whether to cancel the steps that run. Answers whether
    Ctrl-C came meanwhile."""
    global _ended
    with _starting:
        _ended = True
    interrupted = False
    while _under_way:
        try:
            if hopeless():
                _cancel_all()
            time.sleep(0.002)
        except KeyboardInterrupt:
            interrupted = True
            _cancel_all()
    if next(_keys) > 1:
        time.sleep(0.01)  # lets the last callback leave Python
    return interrupted


def _cancel_all() -> None:
    for future in list(_under_way.values()):
        future.cancel()


atexit.register(_wait_for_all)
os.register_at_fork(after_in_child=_under_way.clear)
