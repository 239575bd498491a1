"""Sequences from a model that scores the next token: sampling, greedy choice and beam search. Each is a loop in the graph.

    with trainer.graph:
        logits, caches = net(prompt, net.caches(1, 200), 0)
        text = tw.generation.generate(next_token, logits[:, -1], caches, 100, temperature=0.8, k=40)

Tokens are int32. The model is a function step(tokens [batch], i, state) that is called with the i-th new token of each sequence, i from 0,
and returns (logits [batch, classes] of the token after it, next state). The state is a value, or nested lists, tuples and dicts of
values, whose first axis is the batch, such as caches of attention and states of recurrent cells. A step keeps dtypes and shapes of
the state. Modules are called once before, where their variables go."""
import numbers
from collections.abc import Callable
from typing import Any, Optional

import numpy as np

from . import flow, layers, ops
from .nested import flatten, rebuild
from .output import Output

__all__ = ["beam_search", "generate", "sample", "top_k"]

Step = Callable[[Output, Output, Any], tuple[Any, Any]]


def __dir__() -> list[str]:
    return __all__


def top_k(logits: Any, k: int) -> Output:
    """The logits [batch, classes], with -infinity in place of those below the k-th largest of their row. Equals of that one all stay.
    Where there are no more than k classes, all logits stay."""
    k = _whole("top_k", "k", k, 1)
    most = ops.minimum(np.int32(k), ops.shape(logits)[-1])
    least = ops.top_kv2(logits, most).values[:, -1:]
    kept: Output = ops.select_v2(logits < least, ops.log(ops.zeros_like(least)), logits)  # -infinity of the type of the logits
    return kept


def sample(logits: Any, temperature: Any = 1.0, k: Optional[int] = None, seed: int = 0) -> Output:
    """Draws a class for each row of logits [batch, classes]: int32 [batch]. temperature: the logits are divided by it; 0: the class of the
    largest logit, without a draw; a number, or a scalar value above 0.   k: only the k likeliest classes are drawn, all where there are
    fewer; None: all.
    seed: 0: that of thalweg.random, else other draws in each session."""
    if isinstance(temperature, numbers.Real):
        temperature = float(temperature)
        if not 0 <= temperature < np.inf:
            raise ValueError(f"sample: temperature is {temperature:g}; it must be 0 or a finite number above it")
    if isinstance(temperature, float) and temperature == 0:
        best: Output = ops.arg_max(logits, -1, output_type="int32")
        return best
    scaled = (logits if k is None else top_k(logits, k)) / temperature
    seeds: dict[str, Any] = {"seed": seed, "seed2": 1} if seed else {}
    drawn: Output = ops.multinomial(scaled, 1, output_dtype="int32", **seeds)
    return drawn[:, 0]


def generate(step: Step, logits: Any, state: Any, length: Any, *, temperature: Any = 1.0, k: Optional[int] = None,
             end: Optional[int] = None, seed: int = 0) -> Output:
    """Returns `length` tokens for each sequence: [batch, length].

    step: see the module.   logits: [batch, classes] of the first token, as the model gives them behind a prompt.   state: behind the
    prompt.   length: a number, or an int32 scalar.   temperature, k, seed: as in sample.   end: a token behind which a sequence
    only has this token; the loop stops when all sequences have ended. None: none."""
    graph = flow.graph_for([logits, length])
    leaves: list[Any] = []
    form = flatten(state, leaves)
    first = [flow.own(graph, v) for v in leaves]
    logits, count = _rows("generate", flow.own(graph, logits)), _count(graph, "generate", length)
    end = _end("generate", end, logits)
    batch = graph.op("Shape", logits)[0]
    ended = graph.op("Fill", graph.op("Pack", [batch]), np.bool_(False))
    text = graph.op("Fill", graph.op("Pack", [count, batch]), np.int32(0 if end is None else end))

    def more(i: Output, _: Output, ended: Output, *__: Output) -> Output:
        return i < count if end is None else (i < count) & ~ops.all(ended)

    def write(i: Output, logits: Output, ended: Output, text: Output, *state: Output) -> list[Any]:
        token = sample(logits, temperature, k, seed)
        if end is not None:
            token = ops.select_v2(ended, np.int32(end), token)
            ended = ended | (token == end)
        text = ops.tensor_scatter_update(text, i.reshape(1, 1), token[None])
        new_logits, after = _stepped("generate", step(token, i, rebuild(form, iter(state))))
        return [i + 1, new_logits, ended, text, *_leaves("generate", form, after)]

    given = [graph.constant(0, "int32"), logits, ended, text, *first]
    shapes = [(), *(_any_batch(v.shape) for v in given[1:3]), (None, None), *(_any_batch(v.shape) for v in first)]
    written: Output = flow.while_loop(more, write, given, shapes)[3]
    return written.transpose(1, 0)


def beam_search(step: Step, logits: Any, state: Any, length: Any, beams: int, *, end: Optional[int] = None, alpha: float = 0.0) \
        -> tuple[Output, Output]:
    """Searches for the likeliest sequences, and returns tokens [batch, beams, length] and scores [batch, beams], the best first.

    step, logits, state, length: as in generate; step gets batch * beams rows, those of a sequence next to each other.
    beams: the number of sequences that the search keeps for each example.   end: the token that ends a sequence; the others of its row
    are `end` too. None: all have the whole length.   alpha: of the length penalty: the score is the logarithm of the probability over
    ((5 + n) / 6) ** alpha, where n counts the tokens, with `end` (Wu et al., arXiv:1609.08144). It orders the results; the search itself
    keeps the likeliest sequences. A score of -infinity marks a row without a sequence, as when there are fewer sequences than beams.
    Scores are float32. Of equal ones the sequence comes first that extends a better one, then the one with the smaller token."""
    beams = _whole("beam_search", "beams", beams, 1)
    if not isinstance(alpha, numbers.Real) or not np.isfinite(alpha):
        raise ValueError(f"beam_search: alpha is {alpha!r}; it must be a finite number")
    graph = flow.graph_for([logits, length])
    leaves: list[Any] = []
    form = flatten(state, leaves)
    logits, count = _rows("beam_search", flow.own(graph, logits)), _count(graph, "beam_search", length)
    classes: Any = None if logits.shape is None else logits.shape[-1]
    if classes is None:
        raise ValueError(f"beam_search: the number of classes of {logits!r} must be known; reshape the logits to [batch, classes]")
    end = _end("beam_search", end, logits)
    batch = graph.op("Shape", logits)[0]
    examples = graph.op("Range", 0, batch, 1)
    every = graph.op("FloorDiv", graph.op("Range", 0, batch * beams, 1), beams)  # the example of each row
    spread = [graph.op("GatherV2", flow.own(graph, v), every, 0) for v in (logits, *leaves)]
    # At first all rows of an example are alike, so that only one of them counts.
    scores = graph.op("Tile", graph.constant(np.array([[0.0] + [-np.inf] * (beams - 1)], np.float32)), graph.op("Pack", [batch, 1]))
    ended = graph.op("Fill", graph.op("Pack", [batch * beams]), np.bool_(False))
    text = graph.op("Fill", graph.op("Pack", [batch * beams, count]), np.int32(0 if end is None else end))
    sizes = graph.op("Fill", graph.op("Pack", [batch * beams]), np.int32(0))
    only_end = np.full((1, classes), -np.inf, np.float32)
    if end is not None:
        only_end[0, end] = 0

    def more(i: Output, _: Output, __: Output, ended: Output, *___: Output) -> Output:
        return i < count if end is None else (i < count) & ~ops.all(ended)

    def extend(i: Output, logits: Output, scores: Output, ended: Output, sizes: Output, text: Output, *state: Output) -> list[Any]:
        steps = layers.activation("log_softmax", logits.astype("float32"))
        if end is not None:
            steps = ops.select_v2(ended[:, None], only_end, steps)
        total = scores[:, :, None] + steps.reshape(-1, beams, classes)
        best = ops.top_kv2(total.reshape(-1, beams * classes), beams)
        rows = (best.indices // classes + examples[:, None] * beams).reshape(-1)
        token = (best.indices % classes).reshape(-1)
        ended, sizes, text, *state = (ops.gather_v2(v, rows, 0) for v in (ended, sizes, text, *state))  # type: ignore[assignment]
        sizes = sizes + (~ended).astype("int32")
        text = ops.select_v2((ops.range(0, count) == i)[None], token[:, None], text)
        if end is not None:
            ended = ended | (token == end)
        new_logits, after = _stepped("beam_search", step(token, i, rebuild(form, iter(state))))
        return [i + 1, new_logits, best.values, ended, sizes, text, *_leaves("beam_search", form, after)]

    given = [graph.constant(0, "int32"), spread[0], scores, ended, sizes, text, *spread[1:]]
    shapes = [(), (None, classes), (None, None), (None,), (None,), (None, None), *(_any_batch(v.shape) for v in spread[1:])]
    _, _, scores, _, sizes, text, *_ = flow.while_loop(more, extend, given, shapes)
    scores = scores / ((5 + sizes.reshape(-1, beams).astype("float32")) / 6) ** float(alpha)
    order = ops.top_kv2(scores, beams)
    rows = (order.indices + examples[:, None] * beams).reshape(-1)
    return ops.gather_v2(text, rows, 0).reshape(graph.op("Pack", [batch, beams, count])), order.values


def _whole(what: str, name: str, given: Any, least: int) -> int:
    if isinstance(given, bool) or not isinstance(given, numbers.Integral) or given < least:
        raise ValueError(f"{what}: {name} is {given!r}; it must be a whole number {'above 0' if least else 'of 0 or more'}")
    return int(given)


def _rows(what: str, logits: Output) -> Output:
    if logits.shape is not None and len(logits.shape) != 2:
        raise ValueError(f"{what}: the logits {logits!r} must have two axes, [batch, classes]; reshape them, or take those of the last place")
    return logits


def _end(what: str, end: Any, logits: Output) -> Optional[int]:
    if end is None:
        return None
    token, classes = _whole(what, "end", end, 0), None if logits.shape is None else logits.shape[1]
    if classes is not None and token >= classes:
        raise ValueError(f"{what}: end is {end}; it must be one of the {classes} tokens, below {classes}")
    return token


def _count(graph: Any, what: str, length: Any) -> Output:
    count: Output = flow.own(graph, length).astype("int32") if isinstance(length, Output) \
        else graph.constant(_whole(what, "length", length, 0), "int32")
    return count


def _stepped(what: str, answer: Any) -> tuple[Any, Any]:
    if not isinstance(answer, (list, tuple)) or len(answer) != 2:
        raise TypeError(f"{what}: step gives {answer!r}; it must give a pair: the logits of the token after it, and the next state")
    return answer[0], answer[1]


def _any_batch(shape: flow.Shape) -> flow.Shape:
    return shape if not shape else (None, *shape[1:])


def _leaves(what: str, form: Any, state: Any) -> list[Any]:
    """The values of the next state, which has the form of the first one."""
    leaves: list[Any] = []
    if _plain(flatten(state, leaves)) != _plain(form):
        raise TypeError(f"{what}: step gives a state of another form than the first one: {state!r}")
    return leaves


def _plain(form: Any) -> Any:
    """A form in which lists and tuples are alike."""
    return form if form is None else (form[0] is dict, form[1], tuple(_plain(f) for f in form[2]))
