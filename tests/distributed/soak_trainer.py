"""The honest client of soak_test.py: it trains without end, and every loss and weight has the same bits as training in one process."""
import threading
import time

import numpy as np

import thalweg as tw

STEPS, SAVED_AT = 16, 8
GRACE = 15.0  # seconds after a kill or stop of a task in which others may still report it as lost
LOST = (tw.UnavailableError, tw.AbortedError, tw.FailedPreconditionError)
PATIENCE = 60.0  # seconds that every step must stay below


class Trouble:
    """Decides whether a task that is, or recently was, away explains a failure. Thread-safe."""

    def __init__(self):
        self._mutex, self._now, self._last = threading.Lock(), 0, -GRACE

    def __enter__(self):
        with self._mutex:
            self._now += 1

    def __exit__(self, *_):
        with self._mutex:
            self._now -= 1
            self._last = time.monotonic()

    def excuses(self, began):
        with self._mutex:
            return self._now > 0 or began < self._last + GRACE


class Model:
    def __init__(self, placed):
        def device(name):
            return tw.device(name if placed else "")
        self.graph = tw.Graph()
        with self.graph:
            self.x, self.y = tw.placeholder(np.float32, [None, 4], name="x"), tw.placeholder(np.float32, [None, 1], name="y")
            with device("/job:ps/task:0"):
                w = tw.Variable(np.linspace(-1, 1, 4, dtype=np.float32).reshape(4, 1), name="train/w")
            with device("/job:ps/task:1"):
                b = tw.Variable(np.zeros([1], np.float32), name="train/b")
            with device("/job:worker/task:1"):
                guess = tw.ops.tanh(tw.ops.add_v2(tw.ops.mat_mul(self.x, w), b))
                self.loss = tw.ops.mean(tw.ops.squared_difference(guess, self.y), [0, 1])
            self.step, self.start, self.weights = tw.train.SGD(0.5).minimize(self.loss), tw.initializer(), [w, b]

    def train(self, session, k):
        batch = np.random.default_rng(k).standard_normal((8, 4)).astype(np.float32)
        return session.run([self.loss, self.step], {self.x: batch, self.y: batch[:, :1] > 0}, timeout=PATIENCE)[0]


def expected():
    """Returns the loss of each step, and the weights before each step and after the last."""
    model = Model(placed=False)
    session, losses = tw.Session(model.graph), []
    session.run(model.start)
    weights = [session.run(model.weights)]
    for k in range(STEPS):
        losses.append(model.train(session, k))
        weights.append(session.run(model.weights))
    return losses, weights


class Trainer:
    """Trains in rounds of STEPS steps. After a failure that `trouble` explains, it continues from the checkpoint of the round or restarts
    the round. Any other failure, and any bit that differs, is stored in `error` and ends the training."""

    def __init__(self, cluster, trouble):
        self.trouble, self.steps, self.rounds, self.recoveries, self.error = trouble, 0, 0, 0, None
        self.last = time.monotonic()
        self._over, self._model, (self._losses, self._weights) = threading.Event(), Model(placed=True), expected()
        self._session, self._folder = cluster.session(self._model.graph), cluster.folder / "in" / "train"
        self._saver = tw.Saver(by_task=True)
        self._thread = threading.Thread(target=self._run, daemon=True)  # daemon: a failed test does not wait for it
        self._thread.start()

    def _run(self):
        try:
            with tw.Checkpointer(self._session, self._folder, self._saver, keep_last=2) as checkpoints:
                while not self._over.is_set():
                    self._round(checkpoints)
        except BaseException as e:  # the test reads it
            self.error = e

    def _round(self, checkpoints):
        saved, began = False, time.monotonic()
        while True:
            try:
                if saved:
                    assert checkpoints.restore() == SAVED_AT
                else:
                    self._session.run(self._model.start, timeout=PATIENCE)
                for k in range(SAVED_AT if saved else 0, STEPS):
                    if k == SAVED_AT and not saved:
                        self._same(k)
                        checkpoints.save(SAVED_AT)
                        saved = True
                    if k == SAVED_AT:
                        self._same(k)
                    loss = self._model.train(self._session, k)
                    assert loss == self._losses[k], f"step {k}: the loss is {loss!r} and was to be {self._losses[k]!r}"
                    self.steps, self.last = self.steps + 1, time.monotonic()
                self._same(STEPS)
                self.rounds += 1
                return
            except LOST:
                if not self.trouble.excuses(began):
                    raise
                if self._over.is_set():
                    return
                self.recoveries += 1
                began = time.monotonic()
                self._over.wait(0.05)  # pauses between requests to a task that is away

    def _same(self, k):
        for found, wanted in zip(self._session.run(self._model.weights, timeout=PATIENCE), self._weights[k], strict=True):
            assert np.array_equal(found, wanted), f"before step {k} the weights are {found} and were to be {wanted}"

    def check(self):
        if self.error:
            raise self.error
        assert time.monotonic() - self.last < PATIENCE + GRACE, f"training has come no further for {time.monotonic() - self.last:.0f} s"

    def end(self):
        self._over.set()
        self._thread.join(2 * PATIENCE)
        assert not self._thread.is_alive(), "training does not end"
        if self.error:
            raise self.error
        self._session.close()
