"""Metrics: measures of a model over many batches, whose sums are in variables of the graph, so that the graph does not grow.

    accuracy = thalweg.metrics.accuracy(logits, labels)
    s.run(g.initializer())
    s.run(accuracy.reset)
    for bx, by in batches:
        s.run(accuracy.update, {x: bx, y: by})
    print(s.run(accuracy.value))

A trainer (tw.train.Trainer) takes the functions themselves, or their names, and does the rest. An update that runs together with a training
step measures the values of before the step. Weights: one for each example; None: each example counts once. A value without any example
is NaN. The definitions are in c_api/include/thalweg/metric.h."""
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from . import _low, build, scopes
from ._handle import c_text
from .graph import Graph
from .output import Formula, Operation, Output
from .variable import listed

__all__ = ["Metric", "accuracy", "auc", "confusion", "mean", "perplexity", "precision", "recall", "top_k"]


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # a type checker would conclude from it that every name exists
    def __getattr__(name):
        from .op_functions import unknown
        raise AttributeError(unknown("metrics", name, __all__))


class Metric(NamedTuple):
    """value: the measure over all batches since the last reset, a double.   update: adds the batch of its step.   reset: forgets all."""
    value: Output
    update: Operation
    reset: Operation


def _made(name: str, create: Callable[..., None], values: list[Any], *more: Any, weights: Any = None) -> Metric:
    """Calls create(scope, name, *values, *more, weights, metric)."""
    graph = build.graph_of([*values, weights]) or scopes.current().graph
    if not isinstance(graph, Graph):
        raise TypeError(f"metrics.{create.__name__.removeprefix('tw_metric_')} adds operations; build it in `with thalweg.Graph()`")
    numbers = [(v._value() if isinstance(v, Formula) and not v.graph.computes else graph.constant(v)).number for v in values]
    weighted = 0 if weights is None else (weights._value() if isinstance(weights, Formula) else graph.constant(weights)).number
    prefix = scopes.current(graph).prefix
    free = graph._new_prefix(prefix + name)[len(prefix):-1]
    made, before = _low.tw_metric(), {v.handle.number for v in listed(graph)}
    with graph.building() as scope:
        create(scope, c_text(free), *numbers, *more, weighted, made)
    graph._fixed.update({v.handle.number for v in listed(graph)} - before)  # its sums are not trainable
    return Metric(Output(graph, made.value), Operation(graph, made.update), Operation(graph, made.reset))


def _with(create: Callable[..., None], *between: Any) -> Callable[..., None]:
    """Puts arguments between the values and the weights, which a function of C has last."""
    def call(scope: int, name: bytes, *rest: Any) -> None:
        create(scope, name, *rest[:-2], *between, *rest[-2:])
    call.__name__ = create.__name__
    return call


def mean(values: Any, weights: Any = None, name: str = "mean") -> Metric:
    """The mean of all elements."""
    return _made(name, _low.tw_metric_mean, [values], weights=weights)


def perplexity(losses: Any, weights: Any = None, name: str = "perplexity") -> Metric:
    """exp of the mean of losses, which are negative natural logarithms of probabilities."""
    return _made(name, _low.tw_metric_perplexity, [losses], weights=weights)


def accuracy(predictions: Any, labels: Any, weights: Any = None, name: str = "accuracy") -> Metric:
    """The share of examples whose class is the label. predictions: scores [.., classes], of which the largest is the class, or classes."""
    return _made(name, _low.tw_metric_accuracy, [predictions, labels], weights=weights)


def top_k(scores: Any, labels: Any, k: int = 5, weights: Any = None, name: str = "top_k") -> Metric:
    """The share of examples whose label is among the k classes of the largest scores [batch, classes]."""
    return _made(name, _with(_low.tw_metric_top_k, k), [scores, labels], weights=weights)


def precision(predictions: Any, labels: Any, threshold: float = 0.5, weights: Any = None, name: str = "precision") -> Metric:
    """Of the examples that are predicted as positive (above the threshold, or True), the share that is positive (its label is not 0)."""
    return _made(name, _with(_low.tw_metric_precision, threshold), [predictions, labels], weights=weights)


def recall(predictions: Any, labels: Any, threshold: float = 0.5, weights: Any = None, name: str = "recall") -> Metric:
    """Of the positive examples, the share that is predicted as positive; see precision."""
    return _made(name, _with(_low.tw_metric_recall, threshold), [predictions, labels], weights=weights)


def auc(scores: Any, labels: Any, buckets: int = 1000, weights: Any = None, name: str = "auc") -> Metric:
    """The area under the curve of true over false positive rates, of probabilities that are sorted into buckets of equal width."""
    return _made(name, _with(_low.tw_metric_auc, buckets), [scores, labels], weights=weights)


def confusion(predictions: Any, labels: Any, classes: int, weights: Any = None, name: str = "confusion") -> Metric:
    """Counts [classes, classes]: in row i and column j the examples of label i that are predicted as j. predictions: as accuracy's."""
    return _made(name, _with(_low.tw_metric_confusion, classes), [predictions, labels], weights=weights)
