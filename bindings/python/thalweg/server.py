"""Servers: a task of a cluster in this process; see c_api/include/thalweg/server.h.

    with thalweg.Server({"ps": ["grpc:127.0.0.1:7000"], "worker": ["grpc:127.0.0.1:7001"]}, "worker", 0) as server:
        session = thalweg.Session(graph, target=server.address)"""
import ctypes
import json
import time
from collections.abc import Mapping
from typing import Any, Optional, Union

from . import _low
from ._handle import Handle, c_text
from .errors import DeadlineExceededError, check, made
from .runtime import Option, Runtime, list_options, option_texts
from .tensor import bytes_of


_SLICE = 0.1  # seconds that a wait stays in the library, before handlers of signals can run


class Server(Handle):
    """Listens from construction until stop. cluster: jobs with the addresses of their tasks, or JSON, such as the value of
    TF_CONFIG.   job, task: this task; None: as in the JSON.   options: Server.options() lists them.
    Raises InvalidArgumentError for a wrong cluster, NotFoundError for an unknown task or scheme, UnavailableError if the
    address is taken."""
    __slots__ = ("_handle", "runtime")

    def __init__(self, cluster: Union[str, Mapping[str, Any]], job: Optional[str] = None, task: int = 0, *, runtime: Optional[Runtime] = None,
                 **options: Any):
        self._handle = 0
        self.runtime = Runtime.default() if runtime is None else runtime
        text = cluster if isinstance(cluster, str) else json.dumps(cluster)
        self._handle = made(_low.tw_server_create, self.runtime._handle, c_text(text), None if job is None else c_text(job), task,
                            *option_texts(options))
        check(_low.tw_server_start(self._handle))

    def __del__(self, destroy: Any = _low.tw_server_destroy) -> None:
        destroy(getattr(self, "_handle", None))

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    @property
    def address(self) -> str:
        """Its address, for the session option `target`."""
        return bytes_of(made(_low.tw_server_address, self._handle)).decode()

    def stop(self) -> None:
        """Ends running steps with UnavailableError. Stopping twice is fine."""
        check(_low.tw_server_stop(self._handle))

    def join(self, timeout: Optional[float] = None) -> None:
        """Waits until it is stopped; handlers of signals run meanwhile. timeout: seconds; raises DeadlineExceededError."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _SLICE if end is None else max(0.0, end - time.monotonic())
            try:
                check(_low.tw_server_join(self._handle, max(1, int(min(left, _SLICE) * 1e9))))
                return
            except DeadlineExceededError:
                if end is not None and time.monotonic() >= end:
                    raise

    @staticmethod
    def options() -> dict[str, Option]:
        """Every option by name."""
        return list_options(_low.tw_server_option)


def cluster_status(target: str, *, runtime: Optional[Runtime] = None, timeout: float = 5, **options: Any) -> list[dict[str, Any]]:
    """Returns the status of the tasks of a cluster: a dictionary for each, whose "error" is empty if it replied. tw_cluster_status
    (server.h) lists the keys.   target: the address of any task.   timeout: seconds.   options: of a session (credentials, insecure).
    Raises UnavailableError, DeadlineExceededError for a target that does not reply."""
    runtime = Runtime.default() if runtime is None else runtime
    text = made(_low.tw_cluster_status, runtime._handle, *option_texts({"target": target, **options}), max(1, int(timeout * 1e9)))
    tasks: list[dict[str, Any]] = json.loads(bytes_of(text))["tasks"]
    return tasks


def cluster_reset(target: str, container: str = "", *, runtime: Optional[Runtime] = None, timeout: float = 5, **options: Any) -> int:
    """Empties a container of state on every task of a cluster, as Session.reset does, and returns the number of objects it held.
    container: "": `localhost`, that of sessions that name none.   target, timeout, options: as in cluster_status.
    Raises the error of a task that does not reply, naming it. All other tasks have then emptied theirs, and the call may be repeated."""
    runtime = Runtime.default() if runtime is None else runtime
    count = ctypes.c_uint64()
    check(_low.tw_cluster_reset(runtime._handle, *option_texts({"target": target, **options}), c_text(container),
                                max(1, int(timeout * 1e9)), count))
    return count.value
