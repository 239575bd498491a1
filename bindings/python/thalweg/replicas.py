"""Training by several processes: where variables go, and updates that wait for every replica. How it works: c_api/include/thalweg/sync.h.

    spread = tw.Spread("ps", 2, by_size=True)
    with spread.device(64 * 10 * 4):
        w = tw.Variable(start, name="w")
    ...
    sync = tw.SyncReplicas(tw.train.SGD(0.3), replicas=2, replica=worker, device="/job:ps/task:0")
    sync.minimize(loss)

One client, the chief, runs `sync.update` once for each step; each replica runs `sync.next`, with a ticket, again and again. tw.SyncTraining
does both, and goes on after failures."""
import ctypes
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Optional

from . import _low, scopes
from ._handle import Handle, c_text
from .errors import made
from .gradients import Gradient, _python as from_raw, of_loss
from .output import Operation, Output
from .train import Clip, Optimizer, _handles, _raw
from .variable import Variable


class Spread(Handle):
    """On which task of a job each variable goes: in turn, or by_size to the one that has fewest bytes so far. Clients that ask the same
    have the same answers. Raises InvalidArgumentError."""

    def __init__(self, job: str, tasks: int, by_size: bool = False):
        self._handle = 0
        self._handle = made(_low.tw_spread_create, c_text(job), tasks, _low.TW_SPREAD_BY_SIZE if by_size else _low.TW_SPREAD_IN_TURN)

    def __del__(self, destroy: Any = _low.tw_spread_destroy) -> None:
        destroy(getattr(self, "_handle", None))

    def next(self, bytes: int) -> str:
        """The device of the next variable, which has so many bytes."""
        return str(_low.tw_spread_next(self._handle, bytes).decode())

    def device(self, bytes: int = 0) -> AbstractContextManager[None]:
        """The same as a `with`, inside of which the variable is made."""
        return scopes.device(self.next(bytes))

    def bytes(self, task: int) -> int:
        """What a task was given so far."""
        return int(_low.tw_spread_bytes(self._handle, task))


class SyncReplicas:
    """An optimizer whose update is that of the mean over replicas, of which this graph is one.

    replicas, replica: how many, and which.   required: how many make an update; None: all. With fewer than all, who comes too late is
    dropped.   device: the task that keeps what they share, "/job:ps/task:0".   name: of that; graphs of one name train together.

    After minimize or apply: `ticket` (to feed), `current`, `next`, `consistent` and `dropped` (to fetch), `update` and `reset` (to run); sync.h says
    when."""

    def __init__(self, optimizer: Optimizer, replicas: int, replica: int, *, required: Optional[int] = None, device: str = "",
                 name: str = "sync"):
        self.optimizer, self.replicas, self.replica = optimizer, replicas, replica
        self.required = replicas if required is None else required
        self.device, self.name = device, name

    def minimize(self, loss: Output, variables: Optional[Sequence[Variable]] = None, *, clip: Optional[Clip] = None,
                 count_steps: Optional[bool] = None) -> "SyncReplicas":
        """As Optimizer.minimize. clip and the schedule of the learning rate work on the means. Averages of nn.BatchNorm do not move of
        themselves: run nn.updates(loss) with `next`. Answers itself."""
        if variables is None:
            variables = [v for v in loss.graph.variables() if v.trainable and v.dtype.is_floating]
        return self.apply(of_loss(loss, list(variables)), variables, clip=clip, count_steps=count_steps)

    def apply(self, gradients: Sequence[Gradient], variables: Sequence[Variable], *, clip: Optional[Clip] = None,
              count_steps: Optional[bool] = None) -> "SyncReplicas":
        """The same for gradients that were computed before. Raises InvalidArgumentError for replicas and their number out of range, and
        variables of unknown shape."""
        pairs = [(g, v) for g, v in zip(gradients, variables, strict=True) if g is not None]
        if not pairs:
            raise ValueError("there are no gradients to apply")
        self.graph, chosen = pairs[0][1].graph, [v for _, v in pairs]
        raw = (_low.tw_gradient * len(pairs))(*(_raw(g) for g, _ in pairs))
        options = _low.tw_sync_options(size=ctypes.sizeof(_low.tw_sync_options), name=c_text(self.name), device=c_text(self.device),
                                       replicas=self.replicas, required=self.required, replica=self.replica)
        with self.graph.building() as scope:
            begun = _low.tw_sync_begin(scope, options, _handles(chosen), raw, len(pairs))
        try:
            with scopes.device(self.device, self.graph):
                updated = self.optimizer.apply([from_raw(self.graph, g) for g in raw], chosen, clip=clip, count_steps=count_steps)
            ops = _low.tw_sync_ops(size=ctypes.sizeof(_low.tw_sync_ops))
            with self.graph.building() as scope:
                taken, begun = begun, None
                _low.tw_sync_end(scope, taken, updated._handle, ops)
        finally:
            _low.tw_sync_destroy(begun)
        self.ticket, self.current = Output(self.graph, ops.ticket), Output(self.graph, ops.current)
        self.next, self.dropped = Output(self.graph, ops.next), Output(self.graph, ops.dropped)
        self.consistent = Output(self.graph, ops.consistent)
        self.update, self.reset = Operation(self.graph, ops.update), Operation(self.graph, ops.reset)
        return self

    def variables(self) -> list[Variable]:
        """All variables of the graph but the state that replicas share: what a checkpoint of the training holds."""
        return [v for v in self.graph.variables() if not v.name.startswith(f"{self.name}/")]
