"""Recurrent cells: their variables, one step, and sequences of steps, unrolled or in a loop. The formulas are those of the ops
LSTMBlockCell and GRUBlockCell; see c_api/include/thalweg/recurrent.h.

    cell = thalweg.recurrent.LSTMCell(28, 64)
    outputs, (state, last) = cell.unroll([rows[:, t] for t in range(28)])
    outputs, (state, last) = cell.loop(rows.transpose([1, 0, 2]))               # as many steps as there are; outputs is one value

ProjectedLSTMCell is an LSTM cell with an output that is smaller than its state.

A sequence of a batch may end early, before step lengths[i]; after that its outputs are 0 and its state stays."""
import ctypes
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np

from . import _low, scopes
from ._handle import c_text
from .dtypes import DTypeLike, as_dtype
from .graph import Graph
from .output import Formula, Output
from .random import next_seed
from .slices import each
from .variable import Variable, listed

__all__ = ["GRUCell", "LSTMCell", "ProjectedLSTMCell"]


def __dir__() -> list[str]:
    return __all__


def _value(graph: Graph, x: Any) -> Output:
    return x._value() if isinstance(x, Formula) and not x.graph.computes else graph.constant(x)


def _numbers(graph: Graph, values: Sequence[Any]) -> Any:
    numbers = [_value(graph, x).number for x in values]
    return (ctypes.c_uint64 * len(numbers))(*numbers)


def _given(graph: Graph, x: Any) -> int:
    return 0 if x is None else _value(graph, x).number


class _Cell:
    """Base of cells. variables: in the order of the record's fields."""
    variables: list[Variable]

    def _make(self, record: Any, name: str, fields: tuple[str, ...], create: Any) -> None:
        self.graph = scopes.current().graph
        self._cell = record
        unique = self.graph._new_prefix(scopes.current().prefix + name)[len(scopes.current().prefix):-1]
        with self.graph.building() as scope:
            create(scope, c_text(unique))
        handles = {v.handle.number: v for v in listed(self.graph)}
        self.variables = [handles[getattr(record, field)] for field in fields]


class LSTMCell(_Cell):
    """An LSTM cell with the variables `name`/kernel and `name`/bias in the current graph.

    seed: of the kernel's initial values; 0: that of thalweg.random, else different values in each session.   cell_clip: bound of the
    state; 0: none."""

    def __init__(self, input_size: int, cell_size: int, name: str = "lstm", dtype: DTypeLike = "float32", forget_bias: float = 1.0,
                 cell_clip: float = 0.0, seed: int = 0):
        cell = _low.tw_lstm_cell()
        self._make(cell, name, ("kernel", "bias"), lambda scope, text: _low.tw_lstm_cell_create(
            scope, text, as_dtype(dtype).number, input_size, cell_size, next_seed(self.graph, seed), cell))
        cell.forget_bias, cell.cell_clip = forget_bias, cell_clip

    def step(self, x: Any, state: Optional[tuple[Any, Any]] = None) -> tuple[Output, tuple[Output, Output]]:
        """Returns the output for x [batch, input], and the next state (c, h). state: the previous one; None: zeros."""
        graph = scopes.working(self.graph)
        c, h = state or (None, None)
        at, out_c = [_given(graph, v) for v in (x, c, h)], ctypes.c_uint64()
        with graph.building() as scope:
            made = _low.tw_lstm_step(scope, self._cell, *at, out_c)
        output = Output(graph, made)
        return output, (Output(graph, out_c.value), output)

    def unroll(self, inputs: Sequence[Any], lengths: Any = None, state: Optional[tuple[Any, Any]] = None) \
            -> tuple[list[Output], tuple[Output, Output]]:
        """Returns an output for each of the inputs [batch, input], and the state (c, h) after the last step of each sequence."""
        graph = scopes.working(self.graph)
        c, h = state or (None, None)
        at, (ends, first_c, first_h) = _numbers(graph, inputs), [_given(graph, v) for v in (lengths, c, h)]
        out, out_c, out_h = (ctypes.c_uint64 * len(at))(), ctypes.c_uint64(), ctypes.c_uint64()
        with graph.building() as scope:
            _low.tw_lstm_unroll(scope, self._cell, at, len(at), ends, first_c, first_h, out, out_c, out_h)
        return [Output(graph, n) for n in out], (Output(graph, out_c.value), Output(graph, out_h.value))

    def loop(self, inputs: Any, lengths: Any = None, state: Optional[tuple[Any, Any]] = None) -> tuple[Output, tuple[Output, Output]]:
        """Returns outputs [steps, batch, cell] for inputs [steps, batch, input], and the last state (c, h) of each sequence."""
        graph = scopes.working(self.graph)
        c, h = state or (None, None)
        at = [_given(graph, v) for v in (inputs, lengths, c, h)]
        outputs, out_c, out_h = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_uint64()
        with graph.building() as scope:
            _low.tw_lstm_loop(scope, self._cell, *at, outputs, out_c, out_h)
        return Output(graph, outputs.value), (Output(graph, out_c.value), Output(graph, out_h.value))


class GRUCell(_Cell):
    """A GRU cell of float with the variables `name`/gates/kernel, /gates/bias, /candidate/kernel and /candidate/bias.

    seed: of the kernels' initial values; 0: that of thalweg.random, else different values in each session."""

    def __init__(self, input_size: int, cell_size: int, name: str = "gru", seed: int = 0):
        cell = _low.tw_gru_cell()
        fields = ("gates_kernel", "gates_bias", "candidate_kernel", "candidate_bias")
        self._make(cell, name, fields, lambda scope, text: _low.tw_gru_cell_create(scope, text, input_size, cell_size,
                                                                                   next_seed(self.graph, seed), cell))

    def step(self, x: Any, state: Any = None) -> Output:
        """Returns the output for x [batch, input], which is also the next state. state: the previous one; None: zeros."""
        graph = scopes.working(self.graph)
        at = [_given(graph, v) for v in (x, state)]
        with graph.building() as scope:
            made = _low.tw_gru_step(scope, self._cell, *at)
        return Output(graph, made)

    def unroll(self, inputs: Sequence[Any], lengths: Any = None, state: Any = None) -> tuple[list[Output], Output]:
        """Returns an output for each of the inputs [batch, input], and the state after the last step of each sequence."""
        graph = scopes.working(self.graph)
        at, ends, first = _numbers(graph, inputs), _given(graph, lengths), _given(graph, state)
        out, out_h = (ctypes.c_uint64 * len(at))(), ctypes.c_uint64()
        with graph.building() as scope:
            _low.tw_gru_unroll(scope, self._cell, at, len(at), ends, first, out, out_h)
        return [Output(graph, n) for n in out], Output(graph, out_h.value)

    def loop(self, inputs: Any, lengths: Any = None, state: Any = None) -> tuple[Output, Output]:
        """Returns outputs [steps, batch, cell] for inputs [steps, batch, input], and the state after the last step of each sequence."""
        graph = scopes.working(self.graph)
        at, outputs, out_h = [_given(graph, v) for v in (inputs, lengths, state)], ctypes.c_uint64(), ctypes.c_uint64()
        with graph.building() as scope:
            _low.tw_gru_loop(scope, self._cell, *at, outputs, out_h)
        return Output(graph, outputs.value), Output(graph, out_h.value)


class ProjectedLSTMCell:
    """An LSTM cell of float32 whose output is its content times a matrix [cell, projection], so that the output may be smaller than the
    state (Sak et al., arXiv:1402.1128, without peepholes). Variables: `name`/kernel [input + projection, 4 cell], with the columns of
    LSTMCell, `name`/bias and `name`/projection, in the current graph.

    forget_bias: added before the sigmoid of the forget gate.   seed: of the initial values; 0: that of thalweg.random, else different
    values in each session. The state is (c [batch, cell], h [batch, projection])."""

    def __init__(self, input_size: int, cell_size: int, projection: int, name: str = "lstm", forget_bias: float = 1.0, seed: int = 0):
        for what, size in (("input_size", input_size), ("cell_size", cell_size), ("projection", projection)):
            least = 0 if what == "input_size" else 1
            if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < least:
                raise ValueError(f"ProjectedLSTMCell: {what} is {size!r}; it must be a whole number {'above 0' if least else 'of 0 or more'}")
        self.graph, self.sizes, self.forget_bias = scopes.current().graph, (cell_size, projection), forget_bias
        with scopes.name_scope(name):
            self.kernel = Variable(self._evenly(input_size + projection, 4 * cell_size, seed, 1), name="kernel")
            self.bias = Variable(np.zeros(4 * cell_size, np.float32), name="bias")
            self.projection = Variable(self._evenly(cell_size, projection, seed, 2), name="projection")
        self.variables = [self.kernel, self.bias, self.projection]

    def _evenly(self, rows: int, columns: int, seed: int, number: int) -> Output:
        """Drawn evenly from +-sqrt(6 / (rows + columns)) (Glorot and Bengio, 2010)."""
        reach = float(np.sqrt(6 / (rows + columns)))
        seeds: dict[str, Any] = {"seed": seed, "seed2": number} if seed else {}
        drawn: Output = self.graph.op("RandomUniform", [rows, columns], dtype="float32", **seeds)
        return drawn * (2 * reach) - reach

    def step(self, x: Any, state: Optional[tuple[Any, Any]] = None) -> tuple[Output, tuple[Output, Output]]:
        """Returns the output for x [batch, input], and the next state (c, h). state: the previous one; None: zeros."""
        x = _value(scopes.working(self.graph), x)
        return self._step(x, self._state(state, x, 0), [v.read() for v in self.variables])

    def unroll(self, inputs: Sequence[Any], lengths: Any = None, state: Optional[tuple[Any, Any]] = None) \
            -> tuple[list[Output], tuple[Output, Output]]:
        """Returns an output for each of the inputs [batch, input], and the state (c, h) after the last step of each sequence."""
        graph = scopes.working(self.graph)
        values = [_value(graph, x) for x in inputs]
        if not values:
            raise ValueError("ProjectedLSTMCell.unroll: there are no inputs; a sequence has a step or more")
        ends, weights, outputs = None if lengths is None else _value(graph, lengths), [v.read() for v in self.variables], []
        c, h = (_value(graph, v) for v in self._state(state, values[0], 0))
        for t, x in enumerate(values):
            output, (c, h) = self._masked(x, (c, h), weights, None if ends is None else graph.constant(t, ends.dtype) < ends)
            outputs.append(output)
        return outputs, (c, h)

    def loop(self, inputs: Any, lengths: Any = None, state: Optional[tuple[Any, Any]] = None) -> tuple[Output, tuple[Output, Output]]:
        """Returns outputs [steps, batch, projection] for inputs [steps, batch, input], and the last state (c, h) of each sequence."""
        graph = scopes.working(self.graph)
        x, weights = _value(graph, inputs), [v.read() for v in self.variables]
        ends = None if lengths is None else _value(graph, lengths)
        first: list[Any] = [*self._state(state, x, 1), *([] if ends is None else [graph.constant(0, ends.dtype)])]

        def step(states: list[Output], slices: list[Output]) -> tuple[list[Any], list[Any]]:
            output, after = self._masked(slices[0], (states[0], states[1]), weights, None if ends is None else states[2] < ends)
            return [*after, *(t + 1 for t in states[2:])], [output]

        last, results = each("ProjectedLSTMCell.loop", step, x, first, False, None)
        return results[0], (last[0], last[1])

    def _state(self, state: Any, x: Output, axis: int) -> tuple[Any, Any]:
        """The state that is given, or zeros."""
        if state is None:
            return self._zeros(x, axis)
        if not isinstance(state, (list, tuple)) or len(state) != 2:
            raise ValueError(f"ProjectedLSTMCell: state is {state!r}; it must be a pair (c [batch, {self.sizes[0]}], h [batch, {self.sizes[1]}])")
        return state[0], state[1]

    def _zeros(self, x: Output, axis: int) -> tuple[Output, Output]:
        """A state of zeros for inputs with the batch along that axis."""
        graph = scopes.working(self.graph)
        batch = None if x.shape is None else x.shape[axis]
        if batch is not None:
            c, h = (graph.constant(np.zeros((batch, size), np.float32)) for size in self.sizes)
        else:
            rows = graph.op("Shape", x)[axis]
            c, h = (graph.op("EnsureShape", graph.op("Fill", graph.op("Pack", [rows, size]), np.float32(0)), shape=[None, size])
                    for size in self.sizes)
        return c, h

    def _step(self, x: Output, state: tuple[Any, Any], weights: list[Output]) -> tuple[Output, tuple[Output, Output]]:
        graph, (kernel, bias, projection), (c, h) = scopes.working(self.graph), weights, state
        gates = graph.op("BiasAdd", graph.op("ConcatV2", [x, h], 1) @ kernel, bias)
        i, new, f, o = graph.op("Split", 1, gates, num_split=4)
        c = graph.op("Sigmoid", f + self.forget_bias) * c + graph.op("Sigmoid", i) * graph.op("Tanh", new)
        h = (graph.op("Sigmoid", o) * graph.op("Tanh", c)) @ projection
        return h, (c, h)

    def _masked(self, x: Output, state: tuple[Output, Output], weights: list[Output], going: Optional[Output]) \
            -> tuple[Output, tuple[Output, Output]]:
        """A step of the sequences that go on; of the others the output is 0 and the state stays."""
        output, after = self._step(x, state, weights)
        if going is None:
            return output, after
        graph, rows = scopes.working(self.graph), going[:, None]
        c, h = (graph.op("SelectV2", rows, new, old) for new, old in zip(after, state))
        return graph.op("SelectV2", rows, output, np.float32(0)), (c, h)
