"""The training loop: fit, evaluate, predict.

    net = thalweg.nn.Sequential(thalweg.nn.Dense(64, "relu"), thalweg.nn.Dense(10))
    trainer = thalweg.train.Trainer(net, "sparse_softmax_cross_entropy", thalweg.train.Adam(0.01), metrics=["accuracy"])
    history = trainer.fit((images, labels), epochs=20, validation=0.2)
    print(trainer.evaluate((test_images, test_labels))["accuracy"], trainer.predict(test_images).shape)

The loop itself is c_api/include/thalweg/trainer.h, which other languages share."""
import ctypes
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Optional, Union

import numpy as np

from . import _low, metrics, nn, ops, scopes
from ._handle import Handle, c_text
from .averages import MovingAverages
from .cancel import CancelToken, held_back
from .dtypes import DType, as_dtype
from .errors import check, made
from .gradients import Gradient, of_loss
from .graph import Graph, group
from .history import History, callbacks_of
from .iterators import Iterator, iterator_of
from .module import Module
from .output import Operation, Output
from .session import Session
from .tensor import Tensor
from .variable import Variable

if TYPE_CHECKING:
    from .replicas import ParameterServers

__all__ = ["Trainer"]

Loss = Union[str, Callable[..., Output]]
Data = Any
Path = Union[str, "os.PathLike[str]"]

LOSSES: dict[str, Callable[[Any, Any], Any]] = {
    "sparse_softmax_cross_entropy": lambda z, y: ops.sparse_softmax_cross_entropy_with_logits(z, y).loss,
    "softmax_cross_entropy": lambda z, y: ops.softmax_cross_entropy_with_logits(z, y).loss,
    "sigmoid_cross_entropy": lambda z, y: nn.softplus(z) - z * y,
    "mean_squared_error": lambda z, y: ops.squared_difference(z, y),
    "mean_absolute_error": lambda z, y: ops.abs(z - y),
}
_LARGER = {"accuracy": True, "top_k": True, "precision": True, "recall": True, "auc": True, "loss": False, "perplexity": False}


class Trainer(Handle):
    """Trains a module, or a graph that the program has built (Trainer.of_graph). It has a graph and a session of its own, which are there
    from the first data on, because sizes and types follow from the data: `graph`, `session`, `inputs`, `targets`, `outputs`, `loss`.

    module: a thalweg.nn.Module, or a function of values.   loss: the name of one of LOSSES, or a function of the outputs and the targets;
    where it gives several values, their mean counts.   optimizer: a thalweg.train.Optimizer or LossScale, or a function that returns one
    and is called in the graph, for schedules.   metrics: names and functions of thalweg.metrics, or {name: function of outputs and targets}.
    n_inputs: how many arrays of a batch the module takes; the others are targets; None: all but the last.
    clip: as in Optimizer.minimize.   sub_batches: batches of one step, whose gradients are averaged.   averages: the decay of moving
    averages, with which evaluations and predictions then work; None: none.   servers: a thalweg.ParameterServers: this process is one
    of several workers, and the weights are on servers; None: they are in this process.   options: of the session, as in
    Session(g, threads=1)."""

    def __init__(self, module: Callable[..., Any], loss: Optional[Loss] = None, optimizer: Any = None, metrics: Any = (), *,  # pylint: disable=redefined-outer-name
                 n_inputs: Optional[int] = None, clip: Any = None, sub_batches: int = 1, averages: Optional[float] = None,
                 servers: "Optional[ParameterServers]" = None, **options: Any):
        self._handle = 0
        if not callable(module) or isinstance(module, type):
            raise TypeError(f"{module!r} is neither a module nor a function of values")
        if isinstance(loss, str) and loss not in LOSSES:
            raise ValueError(f"there is no loss '{loss}'; there are: {', '.join(LOSSES)}, and functions of outputs and targets")
        if optimizer is not None and loss is None:
            raise ValueError("there is an optimizer and no loss")
        if sub_batches < 1:
            raise ValueError(f"sub_batches is {sub_batches}; it must be 1 or more")
        if servers is not None and "target" in options:
            raise ValueError(f"target is {options['target']!r}, but servers say where the session is: {servers.target}; leave target out")
        if servers is not None and averages is not None:
            raise ValueError("averages are of one process: a trainer with servers has none; leave averages or servers out")
        self.module: Optional[Callable[..., Any]] = module
        self._servers = servers
        self.optimizer, self._loss, self._metrics = optimizer, loss, _named(metrics)
        self._n_inputs, self._clip, self._sub_batches, self._averages, self._options = n_inputs, clip, sub_batches, averages, options
        self.names: list[str] = [*(["loss"] if loss is not None else []), *self._metrics]
        self.inputs: list[Output] = []
        self.targets: list[Output] = []
        self.outputs: Any = None

    @classmethod
    def of_graph(cls, session: Session, feeds: Sequence[Output], loss: Optional[Output] = None, step: Optional[Operation] = None, *,
                 predictions: Any = (), metrics: Optional[Mapping[str, "metrics.Metric"]] = None,  # pylint: disable=redefined-outer-name
                 n_inputs: Optional[int] = None, accumulate: Optional[Operation] = None, sub_batches: int = 1,
                 averages: Optional[MovingAverages] = None, weights: Optional[Sequence[Variable]] = None) -> "Trainer":
        """Trains a graph of the program. feeds: array i of a batch is fed to feeds[i]; the first n_inputs of them suffice for predictions.
        loss: the mean over a batch.   step: the operation of Optimizer.minimize.   metrics: by name.   accumulate, sub_batches: as
        tw.train.accumulate_gradients gives them.   weights: what keep_best keeps; None: all variables of real numbers.
        The program initialises the variables."""
        self = cls.__new__(cls)
        self._handle, self.module, self.optimizer, self._servers = 0, None, None, None
        self.names = [*(["loss"] if loss is not None else []), *(metrics or {})]
        self.outputs, n = predictions, len(feeds) - 1 if n_inputs is None and len(feeds) > 1 else n_inputs or len(feeds)
        self.inputs, self.targets = list(feeds[:n]), list(feeds[n:])
        self._make(session, loss, step, dict(metrics or {}), accumulate, sub_batches, averages.swap() if averages else None, weights)
        return self

    def __del__(self, destroy: Any = _low.tw_trainer_destroy) -> None:
        destroy(getattr(self, "_handle", None))

    # ---- Training ----

    def fit(self, data: Data, epochs: int = 1, callbacks: Any = (), *, batch: int = 32, shuffle: bool = True, seed: int = 0,
            validation: Any = None, watch: Optional[str] = None, larger_is_better: Optional[bool] = None, patience: int = 0,
            least_change: float = 0.0, keep_best: bool = False, folder: Optional[Path] = None, every_steps: int = 0,
            every_seconds: float = 0.0, keep_last: int = 2, background: bool = False, progress: Optional[bool] = None,
            any_loss: bool = False, logdir: Optional[Path] = None, log_every_steps: int = 1) -> History:
        """Trains and returns the values of each epoch.

        data: arrays of one length, inputs first and targets last; or an Iterator, a data set with a method iterator(), a function of the
        epoch that gives batches, or tw.train.Batches.   batch, shuffle, seed: how arrays are cut into batches.
        validation: data that is evaluated after each epoch; a number below 1: that share of the rows, the last ones.
        watch: the name of the watched value, of the validation if there is one; None: the loss.   patience: stops after so many epochs
        without a better value (by more than least_change); 0: never.   keep_best: the weights become those of the best epoch.
        folder: for checkpoints, after every_steps or every_seconds, by default after each epoch; a call with the same folder goes on where
        the last one was interrupted, with the same losses to the bit, and `epochs` counts from its beginning.
        logdir: a folder for TensorBoard and `thalweg plot`. It gets the runs "train", with the graph, "step/loss" every log_every_steps
        steps, and "epoch/loss" and each metric; and "validation", with the latter.
        callbacks: functions of a Progress after each epoch, or objects with before_step, after_step and epoch_end; True stops.
        progress: True: a line an epoch on standard error; None: if that is a terminal.   any_loss: a loss that is not finite is no error.

        Raises FailedPreconditionError for a loss that is not finite, naming the step; errors of the step, the data and the callbacks."""
        if self._servers is not None and (folder is not None or keep_best):
            raise ValueError("checkpoints and the best weights are of one process; with servers leave out folder= and keep_best=, or train "
                             "by thalweg.SyncTraining or thalweg.AsyncTraining, which save the variables of a cluster")
        data, validation = _split(data, validation)
        given = self._iterator(data, batch, shuffle, seed)
        judge = None if validation is None else self._iterator(validation, max(batch, 256), False, 0)
        self._check_fitted()
        flags = (_low.TW_FIT_KEEP_BEST * keep_best | _low.TW_FIT_ANY_LOSS * any_loss | _low.TW_FIT_BACKGROUND * background
                 | _low.TW_FIT_LARGER_IS_BETTER * (bool(patience or keep_best) and _larger(watch, larger_is_better))
                 | (_low.TW_FIT_TERMINAL if progress is None else _low.TW_FIT_PROGRESS * progress))
        history, token = History(self.names, judge is not None), CancelToken()
        calls, keeper = callbacks_of(callbacks, history)
        options = _low.tw_fit_options(
            size=ctypes.sizeof(_low.tw_fit_options), flags=flags, epochs=epochs, validation=judge._handle if judge else None,
            watch=None if watch is None else c_text(watch), patience=patience, least_change=least_change,
            folder=None if folder is None else os.fsencode(folder), every_steps=every_steps, every_seconds=every_seconds,
            keep_last=keep_last, n_callbacks=len(calls), callbacks=(_low.tw_fit_callback * len(calls))(*calls),
            logdir=None if logdir is None else os.fsencode(logdir), log_every_steps=0 if logdir is None else log_every_steps)
        report = _low.tw_fit_report(size=ctypes.sizeof(_low.tw_fit_report))

        def train(handle: Any) -> Optional[int]:
            options.cancel = handle
            status: Optional[int] = _low.tw_trainer_fit(self._handle, given._handle, options, report)
            return status

        self._call(train, token, [keeper, given, judge])
        history._end(report)
        return history

    def evaluate(self, data: Data, batch: int = 256) -> dict[str, float]:
        """Returns the loss, the mean over all rows, and the metrics over one epoch of the data, by name."""
        given = self._iterator(data, batch, False, 0)
        out, token = (ctypes.c_double * len(self.names))(), CancelToken()
        self._call(lambda handle: _low.tw_trainer_evaluate(self._handle, given._handle, handle, out), token, [given])
        return dict(zip(self.names, out))

    def predict(self, data: Data, batch: int = 256) -> Any:
        """Returns the outputs of the module for one epoch of the data, as arrays with a row for each row; targets may be left out."""
        given = self._iterator(data, batch, False, 0, inputs_only=True)
        outputs, token = _flat(self.outputs), CancelToken()
        out = (ctypes.c_void_p * len(outputs))()
        self._call(lambda handle: _low.tw_trainer_predict(self._handle, given._handle, handle, out), token, [given])
        arrays = [Tensor._adopt(handle or 0).numpy() for handle in out]
        return arrays if isinstance(self.outputs, (list, tuple)) else arrays[0]

    def _call(self, step: Callable[[Any], Any], token: CancelToken, keepers: Iterable[Any]) -> None:
        """Calls into the library; raises what Python code behind it raised, or its status."""
        status = held_back(step, token)
        for keeper in keepers:
            if keeper is not None and keeper.failure is not None:
                keeper.check(status)
        check(status)

    # ---- Building ----

    def build(self, *examples: Any) -> None:
        """Builds graph and session for batches like these arrays; fit, evaluate and predict do it with their data. Without targets among
        the examples there are only predictions."""
        if self._handle:
            return
        n = self._n_inputs or max(1, len(examples) - 1)
        if self._loss is not None and len(examples) <= n:
            raise ValueError(f"the data has {len(examples)} arrays, so there is no target for the loss; call fit or evaluate first, or build")
        self.graph = Graph()
        assert self.module is not None
        servers = self._servers
        with self.graph, servers.variables(self.graph) if servers else nullcontext():
            values = [self.graph.placeholder(*_like(x), name=_name(i, n, len(examples))) for i, x in enumerate(examples)]
            self.inputs, self.targets = values[:n], values[n:]
            self.outputs = self.module(*self.inputs)
            loss = self._built_loss()
            found = {name: f(_one(self.outputs), *self.targets) for name, f in self._metrics.items()}
            step, accumulate, swap = self._built_step(loss)
            start = self.graph.initializer()
        if servers:
            self._options["target"] = servers.target
        self.session = Session(self.graph, **self._options)
        if servers:
            servers.start(self.session, start)
        else:
            self.session.run(start)
        weights = self.module.parameters() if isinstance(self.module, Module) else None
        self._make(self.session, loss, step, found, accumulate, self._sub_batches, swap, weights)

    def _built_loss(self) -> Optional[Output]:
        if self._loss is None:
            return None
        function: Callable[..., Any] = LOSSES[self._loss] if isinstance(self._loss, str) else self._loss
        loss = function(_one(self.outputs), *self.targets)
        if not isinstance(loss, Output):
            raise TypeError(f"the loss function answered {loss!r}; it must answer a value of the graph")
        return loss if loss.shape == () else loss.mean()

    def _built_step(self, loss: Optional[Output]) -> tuple[Optional[Operation], Optional[Operation], Optional[Operation]]:
        """The operations step, accumulate and swap."""
        if loss is None or self.optimizer is None:
            return None, None, None
        from .train import _clipped, accumulate_gradients
        servers, accumulate = self._servers, None
        variables: list[Variable] = []
        gradients: list[Gradient] = []
        if self._sub_batches > 1:
            variables = [v for v in self.graph.variables() if v.trainable and v.dtype.is_floating]
            gradients, added = accumulate_gradients(of_loss(loss, variables), self._sub_batches)
            accumulate = group(added, *nn.updates(loss))

        def clipped(gradients: list[Gradient]) -> list[Gradient]:
            with scopes.device(None, self.graph):  # not on a server, which would get the gradients of all variables
                return _clipped(gradients, self._clip)

        with servers.step(self.graph) if servers else nullcontext():
            optimizer = self.optimizer if hasattr(self.optimizer, "minimize") else self.optimizer()
            clip = self._clip if servers is None or self._clip is None else clipped
            if accumulate is not None:
                step = optimizer.apply(gradients, variables, clip=clip)
            else:
                step = optimizer.minimize(loss) if clip is None else optimizer.minimize(loss, clip=clip)
        if self._averages is None:
            return step, accumulate, None
        averages = MovingAverages(decay=self._averages)
        return averages.update(after=step), accumulate, averages.swap()

    def _make(self, session: Session, loss: Optional[Output], step: Optional[Operation], found: dict[str, "metrics.Metric"],
              accumulate: Optional[Operation], sub_batches: int, swap: Optional[Operation], weights: Optional[Sequence[Variable]]) -> None:
        self.graph, self.session, self.loss, self.step, self.swap = session.graph, session, loss, step, swap
        feeds, outputs, before = [*self.inputs, *self.targets], _flat(self.outputs), len(self.graph.operations())
        flag = self.graph._training
        made_ = [_low.tw_metric(size=ctypes.sizeof(_low.tw_metric), value=m.value.number, update=m.update._handle, reset=m.reset._handle)
                 for m in found.values()]
        model = _low.tw_trainer_model(
            size=ctypes.sizeof(_low.tw_trainer_model), graph=self.graph._handle, session=session._handle, feeds=_numbers(feeds),
            n_feeds=len(feeds), n_inputs=len(self.inputs), training=0 if flag is None else flag.number,
            loss=0 if loss is None else loss.number, step=step and step._handle, accumulate=accumulate and accumulate._handle,
            sub_batches=sub_batches if accumulate else 0, n_metrics=len(made_), metrics=(_low.tw_metric * len(made_))(*made_),
            metric_names=(ctypes.c_char_p * len(made_))(*(c_text(name) for name in found)), predictions=_numbers(outputs),
            n_predictions=len(outputs), weights=_numbers([v.handle for v in weights or []]), n_weights=len(weights or []),
            swap=swap and swap._handle)
        self._dtypes = [f.dtype for f in feeds]
        self._handle = made(_low.tw_trainer_create, model)
        own = self.graph.operations()[before:]
        self.graph._fixed.update(o.outputs[0].number for o in own if o.type == "VarHandleOp")

    def _iterator(self, data: Data, batch: int, shuffle: bool, seed: int, inputs_only: bool = False) -> Iterator:
        """The iterator of the data, after building for it."""
        if not self._handle:
            if isinstance(data, (list, tuple, np.ndarray, Tensor)):
                self.build(*map(_array, data if isinstance(data, (list, tuple)) else [data]))
            else:
                self._peek(data, batch, shuffle, seed)
        n = len(self.inputs) if inputs_only else len(self._dtypes)
        return iterator_of(data, n, self._dtypes, batch, shuffle, seed)

    def _peek(self, data: Data, batch: int, shuffle: bool, seed: int) -> None:
        """Builds for the first batch of the data, which is reset afterwards."""
        given = iterator_of(data, (self._n_inputs or 1) + (self._loss is not None), None, batch, shuffle, seed)
        given.reset(0)
        first = given.next()
        if first is None:
            raise ValueError("the data has no batch, so the types and sizes of its arrays are not known; call build with examples")
        self.build(*first)
        given.reset(0)

    def signature(self) -> tuple[dict[str, Output], dict[str, Output]]:
        """Returns the inputs and the outputs by name, as thalweg.save takes them: "input" and "output", with a number if there are several."""
        if not self._handle:
            raise ValueError("the trainer has no graph yet; fit, evaluate, predict and build make it")
        inputs, outputs = self.inputs, _flat(self.outputs)
        return ({"input" if len(inputs) == 1 else f"input_{i}": v for i, v in enumerate(inputs)},
                {"output" if len(outputs) == 1 else f"output_{i}": v for i, v in enumerate(outputs)})

    def _check_fitted(self) -> None:
        if self.step is None:
            raise ValueError("the trainer has no optimizer, so it cannot fit; give it a loss and an optimizer")


def _array(x: Any) -> Any:
    return x if isinstance(x, Tensor) else np.asarray(x)


def _like(x: Any) -> tuple[DType, list[Optional[int]]]:
    """The type and shape of a placeholder for batches like x."""
    dtype = as_dtype(x.dtype)
    return as_dtype("float32") if dtype.name in ("float64", "double") else dtype, [None, *x.shape[1:]]


def _name(i: int, n_inputs: int, n: int) -> str:
    kind, number, count = ("input", i, n_inputs) if i < n_inputs else ("target", i - n_inputs, n - n_inputs)
    return kind if count == 1 else f"{kind}_{number}"


def _one(outputs: Any) -> Any:
    return outputs[0] if isinstance(outputs, (list, tuple)) and len(outputs) == 1 else outputs


def _flat(outputs: Any) -> list[Output]:
    flat = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    for x in flat:
        if not isinstance(x, Output):
            raise TypeError(f"the module answered {x!r}; it must answer a value, or a list of values")
    return flat


def _numbers(values: Sequence[Output]) -> Any:
    return (ctypes.c_uint64 * len(values))(*(v.number for v in values))


def _named(given: Any) -> dict[str, Callable[..., "metrics.Metric"]]:
    if isinstance(given, Mapping):
        return dict(given)
    named: dict[str, Callable[..., metrics.Metric]] = {}
    for f in [given] if isinstance(given, str) or callable(given) else given:
        if isinstance(f, str):
            known = [name for name in metrics.__all__ if name not in ("Metric", "confusion")]
            if f not in known:
                raise ValueError(f"there is no metric '{f}' of a number; there are: {', '.join(known)}, and functions of outputs and targets")
            named[f] = getattr(metrics, f)
        elif callable(f):
            named[f.__name__] = f
        else:
            raise TypeError(f"{f!r} is no metric; names and functions of thalweg.metrics are")
    return named


def _larger(watch: Optional[str], given: Optional[bool]) -> bool:
    if given is not None:
        return given
    if (watch or "loss") not in _LARGER:
        raise ValueError(f"say larger_is_better=True or False: nothing is known about '{watch}'")
    return _LARGER[watch or "loss"]


def _split(data: Data, validation: Any) -> tuple[Data, Any]:
    """Takes a share of the rows for validation."""
    if not isinstance(validation, float):
        return data, validation
    if not isinstance(data, (list, tuple)) or not 0 < validation < 1:
        raise ValueError(f"validation is {validation}; a share above 0 and below 1 can be taken of arrays only")
    rows = [len(a) - max(1, round(validation * len(a))) for a in data]
    return tuple(a[:n] for a, n in zip(data, rows)), tuple(a[n:] for a, n in zip(data, rows))
