"""The recurrent layers of thalweg.nn: LSTM and GRU over sequences [batch, steps, inputs], by the cells of thalweg.recurrent."""
from typing import Any, Optional

from . import ops
from .layers import _channels
from .module import Module
from .output import Output
from .recurrent import GRUCell, LSTMCell, ProjectedLSTMCell


class _Recurrent(Module):
    """units: size of the state.   sequences: True: the result is [batch, steps, units]; False: the last output [batch, units].
    reverse: from the last step to the first; the results keep the order of the steps.   seed: of the initial weights; 0: random.
    with_state: True: the result is a pair with the state after the last step of each sequence, (c, h) of an LSTM and h of a GRU.

    Calls take lengths [batch], before which sequences end, and the state before the first step; None: zeros. `cell` is the cell, whose
    `step` makes single steps."""

    def __init__(self, units: int, sequences: bool = False, reverse: bool = False, seed: int = 0, *, with_state: bool = False,
                 name: Optional[str] = None):
        super().__init__(name)
        self.units, self.sequences, self.reverse, self.seed, self.with_state = units, sequences, reverse, seed, with_state

    def _cell(self, inputs: int) -> Any:
        raise NotImplementedError

    def build(self, x: Any, lengths: Any = None, state: Any = None) -> None:
        self._check_outside()
        self.cell = self._cell(_channels(self, x))
        self.weights = list(self.cell.variables)

    def forward(self, x: Output, lengths: Any = None, state: Any = None) -> Any:
        steps = x.transpose([1, 0, 2])
        if self.reverse:
            steps = ops.reverse_v2(steps, [0]) if lengths is None else ops.reverse_sequence(steps, lengths, seq_dim=0, batch_dim=1)
        outputs, after = self.cell.loop(steps, lengths, state)
        result = self._result_of(outputs, after, lengths)
        return (result, after) if self.with_state else result

    def _result_of(self, outputs: Output, after: Any, lengths: Any) -> Output:
        if not self.sequences:
            last: Output = after[1] if isinstance(after, tuple) else after
            return last
        if self.reverse:
            outputs = ops.reverse_v2(outputs, [0]) if lengths is None else ops.reverse_sequence(outputs, lengths, seq_dim=0, batch_dim=1)
        return outputs.transpose([1, 0, 2])


class LSTM(_Recurrent):
    """A layer of LSTM cells (Hochreiter and Schmidhuber, 1997); with lengths [batch], sequences end before that step.
    projection: the size of the outputs, which are then the cell's times a matrix; see thalweg.recurrent.ProjectedLSTMCell. None: units."""

    def __init__(self, units: int, sequences: bool = False, reverse: bool = False, seed: int = 0, *, projection: Optional[int] = None,
                 with_state: bool = False, name: Optional[str] = None):
        super().__init__(units, sequences, reverse, seed, with_state=with_state, name=name)
        self.projection = projection

    def _cell(self, inputs: int) -> Any:
        if self.projection is None:
            return LSTMCell(inputs, self.units, name="cell", seed=self.seed)
        return ProjectedLSTMCell(inputs, self.units, self.projection, name="cell", seed=self.seed)


class GRU(_Recurrent):
    """A layer of GRU cells (Cho et al., arXiv:1406.1078); with lengths [batch], sequences end before that step."""

    def _cell(self, inputs: int) -> GRUCell:
        return GRUCell(inputs, self.units, name="cell", seed=self.seed)


class Bidirectional(Module):
    """Two recurrent layers of one kind, one of which runs from the last step to the first. Their outputs are concatenated.

        thalweg.nn.Bidirectional(lambda reverse: thalweg.nn.LSTM(64, sequences=True, reverse=reverse))"""

    def __init__(self, make: Any, *, name: Optional[str] = None):
        super().__init__(name)
        self.forwards, self.backwards = make(False), make(True)

    def forward(self, x: Output, lengths: Any = None) -> Output:
        both: Output = ops.concat_v2([self.forwards(x, lengths), self.backwards(x, lengths)], -1)
        return both
