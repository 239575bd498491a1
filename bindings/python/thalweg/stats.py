"""What a step did and how long each part took:

    s.run(loss, {x: batch}, stats=(stats := thalweg.StepStats()))
    for op in stats.ops:
        print(op.op, op.count, op.busy_ns)
    pathlib.Path("step.json").write_text(stats.to_json())       # for chrome://tracing and ui.perfetto.dev

Threads: one run at a time fills an object, and it is read when that is over; anything else is a RuntimeError."""
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, Optional

from . import _low
from ._handle import Handle
from .errors import made
from .tensor import bytes_of


class NodeStats(NamedTuple):
    """Something that ran: an operation, or a copy between memories (is_copy), which is none of the graph's. Times are nanoseconds from the
    start of the run; end_ns: when its results were there; busy_ns: how long a thread worked on it.
    kernel: its spec text.   output_bytes: of all outputs.   allocated_bytes: beyond the memory that the plan laid out.
    thread: 0: the caller's.   failed: it ended the run."""
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


class OpStats(NamedTuple):
    """All uses of an op together."""
    op: str
    count: int
    busy_ns: int
    output_bytes: int
    allocated_bytes: int


class TotalStats(NamedTuple):
    """The run as a whole. plan_ns: until the plan was there.   wait_ns: how long the caller's thread had nothing to do.
    block_bytes: what the plan laid out.   allocated_bytes: beyond that.   nodes: how many ran.   threads: that ran nodes.
    planned: a plan was made for it.   counted: nodes ran side by side; otherwise in the plan's order.   failed: the run did."""
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


class StepStats(Handle):
    """Empty until it is given to a run (stats=...), which forgets what it held before. A run that fails fills it as far as it came."""
    __slots__ = ("_handle", "_idle", "__weakref__")

    def __init__(self) -> None:
        self._handle = made(_low.tw_step_stats_create)
        self._idle = threading.Lock()

    def __del__(self, destroy: Any = _low.tw_step_stats_destroy) -> None:
        destroy(getattr(self, "_handle", None))

    @property
    def total(self) -> TotalStats:
        """Zeros before the first run."""
        return self._read(self._total)

    @property
    def nodes(self) -> list[NodeStats]:
        """In the order of their starts."""
        return self._read(lambda: [_node(_low.tw_step_stats_node(self._handle, i).contents)
                                   for i in range(_low.tw_step_stats_node_count(self._handle))])

    @property
    def ops(self) -> list[OpStats]:
        """The busiest first."""
        return self._read(lambda: [_op(_low.tw_step_stats_op(self._handle, i).contents)
                                   for i in range(_low.tw_step_stats_op_count(self._handle))])

    def to_json(self) -> str:
        """All of it in the Trace Event Format: threads as rows, nodes as bars."""
        return self._read(lambda: bytes_of(made(_low.tw_step_stats_json, self._handle)).decode())

    def __repr__(self) -> str:
        if self._idle.locked():
            return "<StepStats of a run that is under way>"
        total = self.total
        return f"<StepStats of {total.nodes} nodes in {total.total_ns / 1e6:.3f} ms>"

    def _total(self) -> TotalStats:
        t = _low.tw_step_stats_total(self._handle).contents
        return TotalStats(t.total_ns, t.plan_ns, t.wait_ns, t.block_bytes, t.allocated_bytes, t.nodes, t.threads,
                          bool(t.flags & _low.TW_STEP_PLANNED), bool(t.flags & _low.TW_STEP_COUNTED), bool(t.flags & _low.TW_STEP_FAILED))

    def _read(self, read: Callable[[], Any]) -> Any:
        take(self)
        try:
            return read()
        finally:
            give_back(self)


def handle_of(stats: Optional[StepStats]) -> Optional[int]:
    """Raises TypeError for what is no StepStats."""
    if stats is not None and not isinstance(stats, StepStats):
        raise TypeError(f"stats is a StepStats, not {stats!r}")
    return None if stats is None else stats._handle


def take(stats: Optional[StepStats]) -> None:
    """For a run, which gives it back when it is over."""
    if stats is not None and not stats._idle.acquire(blocking=False):
        raise RuntimeError("these statistics are of a run that is under way; take others, or wait until it is over")


def give_back(stats: Optional[StepStats]) -> None:
    if stats is not None:
        stats._idle.release()


def _text(text: bytes) -> str:
    return text.decode(errors="replace")


def _node(n: "_low.tw_step_node") -> NodeStats:
    return NodeStats(_text(n.name), _text(n.op), _text(n.device), _text(n.kernel), n.start_ns, n.end_ns, n.busy_ns, n.output_bytes,
                     n.allocated_bytes, n.thread, bool(n.flags & _low.TW_STEP_NODE_FAILED), bool(n.flags & _low.TW_STEP_NODE_COPY))


def _op(o: "_low.tw_step_op") -> OpStats:
    return OpStats(_text(o.op), o.count, o.busy_ns, o.output_bytes, o.allocated_bytes)
