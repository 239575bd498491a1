"""Statistics of steps: the nodes that ran and the time of each:

    s.run(loss, {x: batch}, stats=(stats := thalweg.StepStats()))
    for op in stats.ops:
        print(op.op, op.count, op.busy_ns)
    pathlib.Path("step.json").write_text(stats.to_json())       # for chrome://tracing and ui.perfetto.dev

Several runs in one trace:

    trace = thalweg.Trace()
    for batch in batches:
        s.run(train, {x: batch}, stats=trace.step())
    trace.write("steps.json")

Threads: one run at a time fills an object, which may be read when the run is over; other uses raise RuntimeError."""
import collections
import ctypes
import os
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, Optional

from . import _low
from ._handle import Handle
from .errors import made
from .tensor import bytes_of


class NodeStats(NamedTuple):
    """An operation that ran, or a copy between memories (is_copy), which is no operation of the graph. Times are nanoseconds from the
    start of the run; end_ns: when its results were ready; busy_ns: how long a thread worked on it.
    kernel: its spec text.   output_bytes: of all outputs.   allocated_bytes: beyond the memory that the plan reserved.
    thread: 0: the caller's.   failed: its failure ended the run.
    id: of this record; after: ids of records that it waited for.   shapes: "float [2, 3] -> float [2]".   to: the destination of a copy.
    function, call: the function of the node, and the number of its call.   frame, loop, iteration: the loop of the node, "" for none.
    queue, device_start_ns, device_end_ns: the queue and time on a device that reports them; "" and 0 otherwise.   queued: it was
    enqueued on a device."""
    name: str
    op: str
    device: str
    kernel: str
    start_ns: int
    end_ns: int
    busy_ns: int
    output_bytes: int
    allocated_bytes: int
    thread: int
    failed: bool
    is_copy: bool
    id: int
    after: tuple[int, ...]
    shapes: str
    to: str
    function: str
    call: int
    frame: str
    loop: int
    iteration: int
    queue: str
    device_start_ns: int
    device_end_ns: int
    queued: bool


class WaitStats(NamedTuple):
    """A time in which a thread or an operation waited.
    why: "work" (the thread had nothing to do), "device", "lock", "resource" (such as an empty queue, without a thread), "thread" (none was
    free).   thread: -1: it held none.   name: of the operation.   what: the device or resource."""
    why: str
    thread: int
    start_ns: int
    end_ns: int
    name: str
    what: str


class OpStats(NamedTuple):
    """The totals of all nodes of one op."""
    op: str
    count: int
    busy_ns: int
    output_bytes: int
    allocated_bytes: int


class TotalStats(NamedTuple):
    """The totals of the run. plan_ns: until the plan was ready.   wait_ns: how long the caller's thread was idle.
    block_bytes: reserved by the plan.   allocated_bytes: beyond that.   nodes: number that ran.   threads: number that ran nodes.
    planned: a plan was made for the run.   counted: nodes ran in parallel; otherwise in the plan's order.   failed: the run failed.
    step: the number of the run in its session.   left_out: records beyond the limit.   began_ns: on the machine's monotonic clock."""
    total_ns: int
    plan_ns: int
    wait_ns: int
    block_bytes: int
    allocated_bytes: int
    nodes: int
    threads: int
    planned: bool
    counted: bool
    failed: bool
    step: int
    left_out: int
    began_ns: int


class StepStats(Handle):
    """The statistics of one run (stats=...), which replaces earlier ones; empty before. A failed run fills it up to the failure.
    limit: how many records of nodes, and of waits, are kept; further ones are only counted (total.left_out)."""
    __slots__ = ("_handle", "_idle", "__weakref__")

    def __init__(self, limit: Optional[int] = None) -> None:
        if limit is not None and limit < 0:
            raise ValueError(f"limit is {limit}; it is a number of records, 0 or more")
        self._handle = made(_low.tw_step_stats_create)
        self._idle = threading.Lock()
        if limit is not None:
            _low.tw_step_stats_set_limit(self._handle, limit)

    def __del__(self, destroy: Any = _low.tw_step_stats_destroy) -> None:
        destroy(getattr(self, "_handle", None))

    @property
    def total(self) -> TotalStats:
        """The totals; zeros before the first run."""
        return self._read(self._total)

    @property
    def nodes(self) -> list[NodeStats]:
        """In the order of their starts."""
        return self._read(lambda: [_node(_low.tw_step_stats_node(self._handle, i).contents)
                                   for i in range(_low.tw_step_stats_node_count(self._handle))])

    @property
    def ops(self) -> list[OpStats]:
        """The ops, the busiest first."""
        return self._read(lambda: [_op(_low.tw_step_stats_op(self._handle, i).contents)
                                   for i in range(_low.tw_step_stats_op_count(self._handle))])

    @property
    def waits(self) -> list[WaitStats]:
        """In the order of their starts."""
        return self._read(lambda: [_wait(_low.tw_step_stats_wait(self._handle, i).contents)
                                   for i in range(_low.tw_step_stats_wait_count(self._handle))])

    def to_json(self) -> str:
        """Returns everything in the Trace Event Format: threads and queues of devices as rows, nodes as bars."""
        return self._read(lambda: bytes_of(made(_low.tw_step_stats_json, self._handle)).decode())

    def __repr__(self) -> str:
        if self._idle.locked():
            return "<StepStats of a run that is under way>"
        total = self.total
        return f"<StepStats of {total.nodes} nodes in {total.total_ns / 1e6:.3f} ms>"

    def _total(self) -> TotalStats:
        t = _low.tw_step_stats_total(self._handle).contents
        return TotalStats(t.total_ns, t.plan_ns, t.wait_ns, t.block_bytes, t.allocated_bytes, t.nodes, t.threads,
                          bool(t.flags & _low.TW_STEP_PLANNED), bool(t.flags & _low.TW_STEP_COUNTED), bool(t.flags & _low.TW_STEP_FAILED),
                          t.step, t.left_out, t.began_ns)

    def _read(self, read: Callable[[], Any]) -> Any:
        take(self)
        try:
            return read()
        finally:
            give_back(self)


class Trace:
    """Several runs as one trace. most: number of latest runs to keep; limit: as in StepStats."""
    __slots__ = ("_steps", "_limit")

    def __init__(self, most: int = 1000, limit: Optional[int] = None) -> None:
        if most < 1:
            raise ValueError(f"most is {most}; a trace keeps a run or more")
        self._steps: "collections.deque[StepStats]" = collections.deque(maxlen=most)
        self._limit = limit

    def step(self) -> StepStats:
        """Returns a StepStats for one more run."""
        self._steps.append(StepStats(self._limit))
        return self._steps[-1]

    def to_json(self) -> str:
        """Returns the trace of the runs, in the Trace Event Format. Raises RuntimeError if one is still running."""
        steps = list(self._steps)
        taken: list[StepStats] = []
        try:
            for one in steps:
                take(one)
                taken.append(one)
            handles = (ctypes.c_void_p * len(steps))(*[one._handle for one in steps])
            return bytes_of(made(_low.tw_step_stats_trace, handles, len(steps))).decode()
        finally:
            for one in taken:
                give_back(one)

    def write(self, path: "os.PathLike[str] | str") -> None:
        """Writes a file for chrome://tracing, ui.perfetto.dev and `thalweg trace`."""
        text = self.to_json()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def handle_of(stats: Optional[StepStats]) -> Optional[int]:
    """Returns the handle of a StepStats. Raises TypeError for other objects."""
    if stats is not None and not isinstance(stats, StepStats):
        raise TypeError(f"stats is a StepStats, not {stats!r}")
    return None if stats is None else stats._handle


def take(stats: Optional[StepStats]) -> None:
    """Takes a StepStats for a run, which returns it at its end."""
    if stats is not None and not stats._idle.acquire(blocking=False):
        raise RuntimeError("these statistics are of a run that is under way; take others, or wait until it is over")


def give_back(stats: Optional[StepStats]) -> None:
    if stats is not None:
        stats._idle.release()


def _text(text: bytes) -> str:
    return text.decode(errors="replace")


def _node(n: "_low.tw_step_node") -> NodeStats:
    return NodeStats(_text(n.name), _text(n.op), _text(n.device), _text(n.kernel), n.start_ns, n.end_ns, n.busy_ns, n.output_bytes,
                     n.allocated_bytes, n.thread, bool(n.flags & _low.TW_STEP_NODE_FAILED), bool(n.flags & _low.TW_STEP_NODE_COPY),
                     n.id, tuple(n.after[i] for i in range(n.n_after)), _text(n.shapes), _text(n.to), _text(n.function), n.call,
                     _text(n.frame), n.loop, n.iteration, _text(n.queue), n.device_start_ns, n.device_end_ns,
                     bool(n.flags & _low.TW_STEP_NODE_QUEUED))


_WHY = ("work", "device", "lock", "resource", "thread")


def _wait(w: "_low.tw_step_wait") -> WaitStats:
    return WaitStats(_WHY[w.why], -1 if w.thread == 2**32 - 1 else w.thread, w.start_ns, w.end_ns, _text(w.name), _text(w.what))


def _op(o: "_low.tw_step_op") -> OpStats:
    return OpStats(_text(o.op), o.count, o.busy_ns, o.output_bytes, o.allocated_bytes)
