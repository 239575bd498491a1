"""Training over a cluster that continues when processes die: checkpoints of the whole cluster, and recovery from them.

    with tw.Session(graph, target=...) as session:
        training = tw.SyncTraining(session, sync, "/shared/run", chief=worker == 0, every_steps=50)
        for step, loss in training.run(1000, loss, lambda step: {x: images[rows(step)], y: labels[rows(step)]}):
            ...

Every replica runs the same program; `thalweg launch --restart 3` restarts those that die. In synchronous training the batch should be
determined by the step alone: losses and variables are then those of a run without failures, bit for bit."""
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Optional

import numpy as np
from numpy.typing import NDArray

from . import ops
from .errors import (AbortedError, AlreadyExistsError, CancelledError, DeadlineExceededError, Error, FailedPreconditionError,
                     NotFoundError, UnavailableError)
from .graph import placeholder
from .output import Operation, Output
from .replicas import SyncReplicas
from .saver import Checkpointer, Path, Saver, latest_checkpoint
from .scopes import control_dependencies, device
from .session import Session
from .variable import Variable

# Errors that the death of a process causes in others: it is gone, was replaced, is silent, or its variables are gone.
PASSING = (UnavailableError, AbortedError, DeadlineExceededError, FailedPreconditionError, CancelledError)

Feeds = Callable[[int], dict[Any, Any]]

_APART = 1_000_000  # smallest difference of the first stamps of two chiefs, in nanoseconds; an update adds 1


class _Patience:
    """Limits the time of failures, counted from the first one without a later success. After it, the last failure is raised."""

    def __init__(self, wait: float):
        self.wait, self.since = wait, 0.0

    def succeeded(self) -> None:
        self.since = 0.0

    def failed(self, error: Error) -> None:
        now = time.monotonic()
        self.since = self.since or now
        if now - self.since > self.wait:
            raise error
        time.sleep(min(0.02 + (now - self.since) / 10, 0.5))


class _Training:
    """Base of both kinds. session: of a cluster, or of this process.   folder: of the checkpoints; all tasks see it at the same path, and
    allow it (server option allow_files).   chief: True for the one client that initialises and saves.   every_steps: between
    checkpoints.   wait: seconds for which processes may be away.   timeout: seconds after which a step counts as lost.
    background: training goes on as soon as the tasks have read their values, while they write them."""

    def __init__(self, session: Session, folder: Path, variables: list[Variable], *, chief: bool, every_steps: int, keep_last: int,
                 wait: float, timeout: float, background: bool):
        self.session, self.folder, self.chief, self.wait, self.timeout = session, os.path.abspath(os.fspath(folder)), chief, wait, timeout
        self.saver = Saver(variables, by_task=True)
        self.every_steps, self.keep_last, self.variables, self.background = every_steps, keep_last, variables, background
        self._initializer = session.graph.initializer()
        with session.graph:
            self._there = [v.initialized() for v in variables]
        self._checkpointer: Optional[Checkpointer] = None
        self.restores = 0

    def _folder(self) -> Checkpointer:
        if self._checkpointer is None:
            self._checkpointer = Checkpointer(self.session, self.folder, self.saver, every_steps=self.every_steps, keep_last=self.keep_last,
                                              background=self.background)
        return self._checkpointer

    def _save_last(self, step: int) -> None:
        """Saves, due or not, and waits until the checkpoint is written."""
        self._drain()
        self._folder().save(step)
        self._folder().wait()

    def _drain(self) -> None:
        """Waits for a save in the background. If that failed, the log has the reason, and the previous checkpoint is whole."""
        checkpoints = self._folder()  # an error of the folder is raised
        try:
            checkpoints.wait()
        except Error:
            pass

    def _begin(self) -> int:
        """Restores all variables from the latest checkpoint, or initialises them; returns the step."""
        self._drain()
        try:
            step = self._folder().restore(default=None)
            self.restores += 1
            return step
        except NotFoundError:
            self.session.run(self._initializer, timeout=self.timeout)
            return 0


class SyncTraining(_Training):
    """Synchronous training: the chief's thread makes the updates and checkpoints, and every replica sends its gradients. If a parameter
    server dies, or an update fails, all go back to the last checkpoint. A replica that dies runs its step again."""

    def __init__(self, session: Session, sync: SyncReplicas, folder: Path, *, chief: bool, every_steps: int = 100, keep_last: int = 5,
                 wait: float = 60, timeout: float = 60, background: bool = False):
        super().__init__(session, folder, sync.variables(), chief=chief, every_steps=every_steps, keep_last=keep_last, wait=wait,
                         timeout=timeout, background=background)
        self.sync = sync
        mine = np.zeros(sync.replicas, np.int64)
        mine[sync.replica] = 1
        with session.graph as graph, device(sync.device, graph):
            self._goal = Variable(np.int64(0), name=f"{sync.name}/goal", trainable=False)  # the chief's number of steps
            self._goals = placeholder("int64", [], name=f"{sync.name}/goals")
            self._over = Variable(np.int64(0), name=f"{sync.name}/over", trainable=False)  # true when the last checkpoint is written
            self._done = Variable(np.zeros(sync.replicas, np.int64), name=f"{sync.name}/done", trainable=False)  # by replica
            self._finish = self._done.assign_add(mine)
            self._end = self._over.assign(np.int64(1))
            self._nobody = [self._over.assign(np.int64(0)), self._done.assign(np.zeros(sync.replicas, np.int64)),
                            self._goal.assign(self._goals)]
            self._state = self._ticket()
            with control_dependencies([sync.update], graph):
                self._made = self._ticket()
        self._stamp = 0
        self._failure: Optional[Exception] = None
        self._left = False

    def run(self, steps: int, fetches: Any, feeds: Feeds) -> Iterator[tuple[int, Any]]:
        """Trains until `steps` steps are made. Gives the number of each step and the fetched values, once its update is made. After the
        cluster goes back to a checkpoint, steps come again. A step whose run failed after it sent gradients is left out if its update
        may have begun, because its fetched values are lost. With backups, values fetched by a late replica may be computed from
        variables that changed meanwhile. feeds: of a step. Raises a failure that lasts longer than `wait`."""
        conductor = threading.Thread(target=self._conduct, args=(steps,), daemon=True) if self.chief else None
        if conductor:
            conductor.start()
        try:
            yield from self._replicate(steps, fetches, feeds)
        except BaseException:
            self._left = True
            raise
        finally:
            if conductor:
                conductor.join()
        if self._failure:
            raise self._failure

    # ---- A replica ----

    def _replicate(self, steps: int, fetches: Any, feeds: Feeds) -> Iterator[tuple[int, Any]]:
        patience, ending = _Patience(self.wait), _Patience(self.timeout)  # the last save may take long
        ticket = None
        while not self._failure:
            try:
                if ticket is None:
                    ticket = self._current(steps)
                if ticket[1] >= steps:
                    if self.session.run(self._over, timeout=self.timeout):
                        self.session.run(self._finish, timeout=self.timeout)
                        return
                    if self.chief:
                        time.sleep(0.01)  # the chief runs here; its error is in _failure
                    else:
                        ending.failed(DeadlineExceededError(f"training '{self.sync.name}': all {steps} steps are made, but the chief, which "
                                                            "then saves and says so, has not; look for its error"))
                    ticket = None  # all may still go back
                    continue
                step = int(ticket[1])
                value, after, whole = self.session.run([fetches, self.sync.next, self.sync.consistent],
                                                       {self.sync.ticket: ticket, **feeds(step)}, timeout=self.timeout)
            except PASSING as e:
                patience.failed(e)
                ticket = None  # repeat the step, unless all have gone back
                continue
            patience.succeeded()
            ending.succeeded()
            if after[1] > ticket[1] and (whole or self.sync.required < self.sync.replicas):
                yield step, value
            ticket = after

    def _current(self, steps: int) -> NDArray[np.int64]:
        """Returns the current ticket. Raises if the chief has another number of steps, because one would wait for the other. Until this
        training's chief begins, the values may be those of an earlier training's chief."""
        ticket = self.session.run(self.sync.current, timeout=self.timeout)
        goal = int(self.session.run(self._goal, timeout=self.timeout))
        if goal != steps:
            raise FailedPreconditionError(f"training '{self.sync.name}': replica {self.sync.replica} is to make {steps} steps, and the chief "
                                          f"{goal}; give all the same number")
        return np.asarray(ticket, np.int64)

    # ---- The chief ----

    def _ticket(self) -> Output:
        """Returns the ticket of the current state. Replicas get it by `current`."""
        state = ops.var_handle_op(dtype="int64", shape=[-1], shared_name=f"{self.sync.name}/state")
        return ops.read_variable_op(state, dtype="int64")[:2]

    def _conduct(self, steps: int) -> None:
        patience = _Patience(self.wait)
        step, ended = None, 0.0
        while not self._left:
            try:
                if step is None:
                    step = self._reset(steps)
                while step < steps and not self._left:
                    made = self.session.run(self._made, timeout=self.timeout)
                    step += 1
                    self._check(made, step)
                    self._save(step, step == steps)
                    patience.succeeded()
                self.session.run(self._end, timeout=self.timeout)
                ended = ended or time.monotonic()
                if np.all(self.session.run(self._done, timeout=self.timeout) > 0) or time.monotonic() - ended > self.wait:
                    return
                time.sleep(0.01)
            except PASSING as e:
                step = None
                try:
                    patience.failed(e)
                except Error as last:
                    self._failure = last
                    return
            except Exception as e:  # of any kind: the replica here waits for the chief's end
                self._failure = e
                return

    def _reset(self, steps: int) -> int:
        try:
            before = int(self.session.run(self._state, timeout=self.timeout)[0])
        except FailedPreconditionError:  # no state yet, or its server died
            before = 0
        if self._stamp:
            self._check_alone(before)
        step = self._begin()
        self.session.run(self._nobody, {self._goals: np.int64(steps)}, timeout=self.timeout)
        self._stamp = max(time.time_ns(), self._stamp + 1, before + 2 * _APART)  # clocks may go back, or differ
        self.session.run(self.sync.reset, {self.sync.ticket: np.array([self._stamp, step], np.int64)}, timeout=min(self.timeout, 10))
        return step

    def _check(self, made: NDArray[np.int64], step: int) -> None:
        """Checks, before a save, that the latest update was the only one since the previous one."""
        self._stamp += 1
        if made[0] == self._stamp and made[1] == step:
            return
        self._check_alone(int(made[0]))
        raise AbortedError(f"training '{self.sync.name}': the servers are at step {made[1]}, stamp {made[0]}, and the chief at {step}, "
                           f"{self._stamp}: an update of a chief before this one was still on its way")  # all go back

    def _check_alone(self, stamp: int) -> None:
        if stamp > self._stamp + _APART:
            raise AlreadyExistsError(f"training '{self.sync.name}': another chief has begun since this one has; let there be one")

    def _save(self, step: int, last: bool) -> None:
        """Saves between two updates, so that a checkpoint has whole steps. A full disk ends the training only at the last save."""
        try:
            if last:
                self._save_last(step)
            else:
                self._folder().step(step)
        except PASSING:
            raise
        except Error:
            if last:
                raise  # else the log has the reason, and the previous checkpoint is whole


class AsyncTraining(_Training):
    """Asynchronous training: each replica applies its gradients when it has them. The chief initialises the variables and saves. Variables
    that are lost with a parameter server are restored from the last checkpoint; others keep their values.

    step: the operation that makes a training step and adds 1 to the graph's global step.   global_step: that variable."""

    def __init__(self, session: Session, step: Operation, global_step: Variable, folder: Path, *, chief: bool, every_steps: int = 100,
                 keep_last: int = 5, wait: float = 60, timeout: float = 60, background: bool = False):
        super().__init__(session, folder, session.graph.variables(), chief=chief, every_steps=every_steps, keep_last=keep_last, wait=wait,
                         timeout=timeout, background=background)
        self.step, self.global_step = step, global_step
        with control_dependencies([step], session.graph):
            self._after = global_step.read()  # a plain fetch would read it before the step

    def run(self, steps: int, fetches: Any, feeds: Feeds) -> Iterator[tuple[int, Any]]:
        """Trains until all replicas together have made `steps` steps. Gives the global step after each own step, and the fetched values.
        feeds: of own steps 0, 1, .... Raises a failure that lasts longer than `wait`."""
        patience, number, begun = _Patience(self.wait), 0, False
        while True:
            try:
                if self.chief and not begun:
                    self._heal()
                    begun = True
                value, now, _ = self.session.run([fetches, self._after, self.step], feeds(number), timeout=self.timeout)
            except PASSING as e:
                patience.failed(e)
                begun = False
                continue
            patience.succeeded()
            number, now = number + 1, int(now)
            yield now, value
            if now >= steps:
                if self.chief:
                    self._save_last(now)
                return
            if self.chief:
                self._try_to_save(now)

    def _try_to_save(self, step: int) -> None:
        try:
            self._folder().step(step)
        except Error:
            pass  # the log has the reason, and the next step finds out which process died

    def _heal(self) -> None:
        """Restores variables without contents from the last checkpoint, task by task; without a checkpoint, initialises all."""
        there = self.session.run(self._there, timeout=self.timeout)
        if all(there):
            return
        lost = {v.name for v, is_there in zip(self.variables, there) if not is_there}
        latest = self._latest()
        if latest is None:
            self.session.run(self._initializer, timeout=self.timeout)
            return
        for task, names in self.saver.tasks(self.session).items():
            if lost.intersection(names):
                self.saver.restore(self.session, latest, task=task)
        self.restores += 1

    def _latest(self) -> Optional[str]:
        self._drain()
        return latest_checkpoint(self.folder)
