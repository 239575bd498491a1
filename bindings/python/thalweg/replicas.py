"""Training by several processes: placement of variables, and updates that wait for every replica; see c_api/include/thalweg/sync.h.

    spread = tw.Spread("ps", 2, by_size=True)
    with spread.device(64 * 10 * 4):
        w = tw.Variable(start, name="w")
    ...
    sync = tw.SyncReplicas(tw.train.SGD(0.3), replicas=2, replica=worker, device="/job:ps/task:0")
    sync.minimize(loss)

One client, the chief, runs `sync.update` once for each step; each replica runs `sync.next` repeatedly, with a ticket. tw.SyncTraining
does both, and recovers from failures.

A trainer needs none of it to train over servers: tw.train.Trainer(net, loss, optimizer, servers=tw.ParameterServers())."""
import ctypes
import json
import os
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Optional

from . import _low, scopes
from ._handle import Handle, c_text
from .errors import DeadlineExceededError, made
from .gradients import Gradient, _python as from_raw, of_loss
from .graph import Graph
from .output import Operation, Output
from .session import Session
from .train import Clip, Optimizer, _handles, _raw
from .variable import Variable


class Spread(Handle):
    """Assigns variables to the tasks of a job: in turn, or with by_size to the task with the fewest bytes so far. Clients that make the
    same calls get the same results. Raises InvalidArgumentError."""

    def __init__(self, job: str, tasks: int, by_size: bool = False):
        self._handle = 0
        self._handle = made(_low.tw_spread_create, c_text(job), tasks, _low.TW_SPREAD_BY_SIZE if by_size else _low.TW_SPREAD_IN_TURN)

    def __del__(self, destroy: Any = _low.tw_spread_destroy) -> None:
        destroy(getattr(self, "_handle", None))

    def next(self, bytes: int) -> str:
        """Returns the device of the next variable. bytes: its size."""
        return str(_low.tw_spread_next(self._handle, bytes).decode())

    def device(self, bytes: int = 0) -> AbstractContextManager[None]:
        """As next, as a `with` in which the variable is made."""
        return scopes.device(self.next(bytes))

    def bytes(self, task: int) -> int:
        """Returns the bytes assigned to a task so far."""
        return int(_low.tw_spread_bytes(self._handle, task))


class ParameterServers:
    """The cluster of `thalweg launch -n WORKERS --ps SERVERS -- PROGRAM`, as one of its workers sees it. A trainer with it has its weights
    on the servers, and each worker updates them by its own batches without waiting for the others, so that weights may change while a
    gradient is computed (asynchronous training).

        servers = tw.ParameterServers()
        trainer = tw.train.Trainer(net, loss, optimizer, servers=servers)
        trainer.fit(servers.share(x, y), epochs=10)

    Attributes: worker, workers, servers (their number) and target. Worker 0 initialises the variables; the others wait for it, for `wait`
    seconds.   job: of the servers.   Raises ValueError for a process that is no worker of such a cluster.

    The weights are in the memory of the servers. If a server is lost, the next step raises UnavailableError, and the weights of that server
    are lost with it. tw.Saver(by_task=True) saves and restores them, by the session of one worker: saver.save(trainer.session, path), in a
    folder that `thalweg launch --allow` names. tw.AsyncTraining saves by itself and goes on after a failure."""

    def __init__(self, job: str = "ps", wait: float = 60):
        config, target = json.loads(os.environ.get("TF_CONFIG") or "{}"), os.environ.get("THALWEG_TARGET", "")
        tasks, task = config.get("cluster", {}), config.get("task", {})
        if not tasks.get(job) or task.get("type") == job or not target:
            raise ValueError(f"this process is no worker of a cluster with a job '{job}'; start the program by "
                             f"`thalweg launch -n 2 --ps 2 -- python3 program.py`, which sets TF_CONFIG and THALWEG_TARGET")
        self.job, self.wait, self.target = job, wait, target
        self.servers, self.worker, self.workers = len(tasks[job]), int(task["index"]), len(tasks[task["type"]])
        self._spread = Spread(job, self.servers)

    def share(self, *arrays: Any) -> tuple[Any, ...]:
        """This worker's rows of arrays: every workers-th one."""
        return tuple(a[self.worker::self.workers] for a in arrays)

    def variables(self, graph: Graph) -> AbstractContextManager[None]:
        """A `with` in which layers have their variables on the servers, in turn. All other operations stay with the worker."""
        return scopes.variables_on(lambda: self._spread.next(0), graph)

    def step(self, graph: Graph) -> AbstractContextManager[None]:
        """A `with` for minimize: what an optimizer has once for all variables is on the first server."""
        return scopes.device(f"/job:{self.job}/task:0", graph)

    def start(self, session: Session, initializer: Operation) -> None:
        """Initialises the variables of this process, and in worker 0 those on the servers unless all of them have values: a worker that
        starts again finds the weights that are there, but if one server is new, training begins anew on all. Raises
        DeadlineExceededError if worker 0 does not initialise them."""
        graph, here = session.graph, f"/job:{self.job}/"
        shared = [v for v in graph.variables() if v.handle.operation.device.startswith(here)]
        with graph:
            there = [v.initialized() for v in shared]
        if self.worker == 0 and not all(session.run(there)):
            session.run(initializer)
            return
        own = [graph.operation(v.name + "/Assign") for v in graph.variables() if not v.handle.operation.device.startswith(here)]
        session.run(own)
        end = time.monotonic() + self.wait
        while not all(session.run(there)):
            if time.monotonic() > end:
                raise DeadlineExceededError(f"worker {self.worker}: worker 0 has not initialised the variables on the servers for {self.wait} "
                                            "seconds; look for its error")
            time.sleep(0.05)


class SyncReplicas:
    """An optimizer that updates by the mean gradient of all replicas. This graph is one of them.

    replicas, replica: their number, and the index of this one.   required: the number that an update waits for; None: all. If fewer
    than all, late gradients are dropped.   device: the task of the shared state, "/job:ps/task:0".   name: of the shared state; graphs
    of one name train together.

    After minimize or apply: `ticket` (to feed), `current`, `next`, `consistent` and `dropped` (to fetch), `update` and `reset` (to run);
    see sync.h."""

    def __init__(self, optimizer: Optimizer, replicas: int, replica: int, *, required: Optional[int] = None, device: str = "",
                 name: str = "sync"):
        self.optimizer, self.replicas, self.replica = optimizer, replicas, replica
        self.required = replicas if required is None else required
        self.device, self.name = device, name

    def minimize(self, loss: Output, variables: Optional[Sequence[Variable]] = None, *, clip: Optional[Clip] = None,
                 count_steps: Optional[bool] = None) -> "SyncReplicas":
        """As Optimizer.minimize. clip and the learning rate's schedule apply to the means. Averages of nn.BatchNorm do not move
        automatically: run nn.updates(loss) with `next`. Returns itself."""
        if variables is None:
            variables = [v for v in loss.graph.variables() if v.trainable and v.dtype.is_floating]
        return self.apply(of_loss(loss, list(variables)), variables, clip=clip, count_steps=count_steps)

    def apply(self, gradients: Sequence[Gradient], variables: Sequence[Variable], *, clip: Optional[Clip] = None,
              count_steps: Optional[bool] = None) -> "SyncReplicas":
        """As minimize, for given gradients. Raises InvalidArgumentError if replicas or replica is out of range, and for
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
        """The variables of a training checkpoint: all of the graph, except the state that replicas share."""
        return [v for v in self.graph.variables() if not v.name.startswith(f"{self.name}/")]
