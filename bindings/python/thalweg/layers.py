"""The layers of thalweg.nn, over the C functions of c_api/include/thalweg/layer.h. Inputs have channels last: [batch, positions.., channels]."""
import copy
import ctypes
import operator
import threading
import types
from collections.abc import Callable, Sequence
from typing import Any, Optional, Union

import numpy as np

from . import _low, at_once, scopes
from ._handle import c_text
from .dtypes import DType, DTypeLike, as_dtype, from_number
from .graph import Graph
from .module import Leaf, Module
from .output import Formula, Operation, Output
from .random import next_seed
from .tensor import Tensor
from .variable import Variable, of_handle

# The numbers of c_api/include/thalweg/layer.h.
ACTIVATIONS = ("none", "relu", "relu6", "leaky_relu", "elu", "selu", "gelu", "gelu_tanh", "silu", "mish", "sigmoid", "hard_sigmoid",
               "hard_swish", "tanh", "softplus", "softsign", "softmax", "log_softmax")
INITIALIZERS = ("default", "glorot_uniform", "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal", "uniform", "normal",
                "truncated_normal", "constant", "orthogonal")
POOLS = ("max", "mean")
PADDINGS = ("valid", "same", "causal")

Initializer = Union[str, tuple[str, float]]
Padding = Union[str, int, Sequence[Union[int, Sequence[int]]]]
Activation = Union[None, str, Callable[[Any], Any]]


def _number(table: tuple[str, ...], what: str, name: str) -> int:
    if name not in table:
        raise ValueError(f"there is no {what} '{name}'; there are: {', '.join(table)}")
    return table.index(name)


def _whole(layer: str, what: str, given: Any, bits: int = 64) -> int:
    """Returns an integer that fits into so many bits."""
    try:
        number = operator.index(given)
    except TypeError:
        raise TypeError(f"{layer}: {what} is {given!r}; it must be a whole number") from None
    if not -2 ** (bits - 1) <= number < 2 ** (bits - 1):
        raise ValueError(f"{layer}: {what} is {number}; it must fit into {bits} bits")
    return number


def _number_of(graph: Graph, x: Any, dtype: Optional[DType] = None) -> int:
    """Of a value, or of a constant, which a Value becomes; 0 for None. dtype: of constants of numbers; None: their own."""
    if x is None:
        return 0
    if isinstance(x, Formula) and not x.graph.computes:
        return x._value().number
    numbers = dtype is not None and not isinstance(x, (Tensor, Formula)) and np.asarray(x).dtype.kind in "iuf"
    return graph.constant(x, dtype if numbers else None).number


def _graph_of(x: Any) -> Graph:
    if not isinstance(x, Formula):
        return scopes.current().graph
    return scopes.working(scopes.building(x.graph, "layers and activations add operations"))


def activation(name: str, x: Any) -> Output:
    """Applies the activation of that name to each element; softmax and log_softmax work over the last axis."""
    kind, context = _number(ACTIVATIONS, "activation", name), at_once.context_of([x])
    if context is not None:
        made_: Output = vars(context).setdefault("_activations", {}).setdefault(name, _Activation(name))(x)
        return made_
    graph = _graph_of(x)
    number = _number_of(graph, x)
    with graph.building() as scope:
        made = _low.tw_activation(scope, kind, number)
    return Output(graph, made)


def _checked(how: Activation) -> Activation:
    if isinstance(how, str):
        _number(ACTIVATIONS, "activation", how)
    elif how is not None and (not callable(how) or isinstance(how, type)):
        raise TypeError(f"activation is {how!r}; it must be a name, a function of one value, or None")
    return how


def _activated(how: Activation, x: Output) -> Any:
    return x if how is None else activation(how, x) if isinstance(how, str) else how(x)


class _Activation(Leaf):
    def __init__(self, activation_: str):
        super().__init__()
        self.activation = activation_

    def forward(self, x: Any) -> Output:
        return activation(self.activation, x)


_training_lock = threading.Lock()


def training(graph: Optional[Graph] = None) -> Output:
    """Returns the flag of a graph that marks a step as training for dropout and batch normalisation: a bool scalar, False unless fed.

        s.run(step, {x: images, thalweg.nn.training(): True})"""
    graph = graph or scopes.current().graph
    while graph.outer is not None:
        graph = graph.outer
    with _training_lock:
        if graph._training is None:
            if graph.has("training/flag") and graph.operation("training/flag").type == "PlaceholderWithDefault":  # imported
                graph._training = graph["training/flag"]
            else:
                with scopes._inside(scopes.Scope(graph, "training/")):  # shared, so no device or control dependency
                    graph._training = graph.op("PlaceholderWithDefault", graph.constant(False), shape=[], name="flag")
    return graph._training


class Layer(Leaf):
    """Base of layers with weights.

    kernel, bias: initial values: the name of an initializer ("he_normal", "zeros" is ("constant", 0)), or a pair of name and scale.
    use_bias: False: no bias.   dtype: of the weights.   seed: of the initial values; 0: that of
    thalweg.random, else different values in each session."""

    _record: Any  # of C
    _fields: Sequence[str] = ()  # of the record: those with handles

    def __init__(self, name: Optional[str], use_bias: bool = True, kernel: Optional[Initializer] = None, bias: Optional[Initializer] = None,
                 dtype: DTypeLike = "float32", seed: int = 0):
        super().__init__(name)
        self._options = _low.tw_layer_options()
        _low.tw_layer_options_init(self._options)
        self._options.dtype, self._options.no_bias, self._options.seed = as_dtype(dtype).number, not use_bias, _whole(type(self).__name__, "seed", seed)
        for field, given in (("kernel", kernel), ("bias", bias)):
            given = ("default", 1.0) if given is None else (given, 1.0) if isinstance(given, str) else given
            if not (isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str) and isinstance(given[1], (int, float))):
                raise TypeError(f"{type(self).__name__}: {field} is {given!r}; it must be the name of an initializer, or a pair of name and scale")
            kind, scale = given
            setattr(self._options, field + "_initializer", _number(INITIALIZERS, "initializer", kind))
            setattr(self._options, field + "_scale", scale)

    def _number_type(self) -> Any:
        return from_number(self._options.dtype)

    def _made(self, create: Callable[[int], Any], *fields: str) -> None:
        """Runs create(scope), which fills self._record; the handles in its fields become attributes."""
        self._check_outside()
        graph = scopes.current().graph
        self._options.seed = next_seed(graph, self._options.seed)
        with graph.building() as scope:
            create(scope)
        self._fields = fields
        for field in fields:
            number = getattr(self._record, field)
            setattr(self, field, of_handle(Output(graph, number)) if number else None)

    def _here(self, graph: Graph) -> Any:
        """The record for a graph: in a function that is traced, with what stands there for the layer's variables."""
        if graph._root().traces is None:
            return self._record
        record = copy.copy(self._record)
        for field in self._fields:
            variable = getattr(self, field)
            if variable is not None:
                setattr(record, field, variable.handle.number)
        return record

    def _applied(self, apply: Callable[..., int], *inputs: Any) -> Output:
        """Calls apply(scope, record, inputs). An array becomes a constant of the layer's type, or after the first input, of its type."""
        graph, first = _graph_of(inputs[0]), inputs[0]
        own = from_number(self._options.dtype)
        beside = first._value().dtype if isinstance(first, Formula) else own
        numbers, record = [_number_of(graph, x, beside if i else own) for i, x in enumerate(inputs)], self._here(graph)
        with graph.building() as scope:
            made = apply(scope, record, *numbers)
        return Output(graph, made)


def _channels(layer: Module, x: Any) -> int:
    shape = x._value().shape if isinstance(x, Formula) else np.shape(x)
    if not shape or shape[-1] is None:
        raise ValueError(f"module '{layer.name}': the last axis of its first input {x!r} must be known; it says how many weights there are")
    return int(shape[-1])


class Dense(Layer):
    """x kernel + bias over the last axis: [.., inputs] to [.., units]. activation: a name, or a function of one value."""

    def __init__(self, units: int, activation: Activation = None, *, name: Optional[str] = None, **options: Any):
        super().__init__(name, **options)
        self.units, self.activation, self._record = _whole("Dense", "units", units), _checked(activation), _low.tw_dense()

    def build(self, x: Any) -> None:
        self._made(lambda scope: _low.tw_dense_create(scope, c_text(""), self._options, _channels(self, x), self.units, self._record),
                   "kernel", "bias")

    def forward(self, x: Any) -> Any:
        return _activated(self.activation, self._applied(_low.tw_dense_apply, x))


def _padding(layer: str, kinds: Sequence[str], given: Any, axes: int) -> tuple[int, Optional[list[tuple[int, int]]]]:
    """Returns the number of a named padding, and for sizes that of "valid" with the sizes (before, behind) of each axis."""
    if isinstance(given, str):
        return _number(tuple(kinds), "padding", given), None
    each = list(given) if isinstance(given, (list, tuple)) else [given] * axes
    pairs = [tuple(_whole(layer, "padding", size) for size in (one if isinstance(one, (list, tuple)) else (one, one))) for one in each]
    if len(pairs) != axes or any(len(pair) != 2 or min(pair) < 0 for pair in pairs):
        raise ValueError(f"{layer}: padding is {given!r}; it must be {', '.join(map(repr, kinds))}, a number of 0 or more, or for each of "
                         f"{axes} axes a number or a pair (before, behind)")
    return PADDINGS.index("valid"), [(before, behind) for before, behind in pairs]


class _Convolution(Layer):
    axes, transposed = 2, False

    def __init__(self, filters: int, window: Union[int, Sequence[int]], activation: Activation = None, *,
                 strides: Union[int, Sequence[int]] = 1, padding: Padding = "same", dilations: Union[int, Sequence[int]] = 1, groups: int = 1,
                 name: Optional[str] = None, **options: Any):
        super().__init__(name, **options)
        self.filters, self.groups = (_whole(type(self).__name__, *given) for given in (("filters", filters), ("groups", groups)))
        self.activation = _checked(activation)
        self._window = self._each("window", window)
        self._record = _low.tw_convolution()
        _low.tw_convolution_init(self._record)
        if self.transposed and not isinstance(padding, str):
            raise ValueError(f"{type(self).__name__}: padding is {padding!r}; it must be 'valid' or 'same'")
        self._record.rank = self.axes
        self._record.padding, self._around = _padding(type(self).__name__, PADDINGS, padding, self.axes)
        for field, given in (("stride", strides), ("dilation", dilations)):
            for i, size in enumerate(self._each(field + "s", given)):
                setattr(self._record, f"{field}_{i + 1}", size)

    def _each(self, what: str, given: Any) -> list[int]:
        many = isinstance(given, (list, tuple, np.ndarray)) and np.ndim(given) > 0
        sizes = [_whole(type(self).__name__, what, size) for size in (list(given) if many else [given] * self.axes)]
        if len(sizes) != self.axes:
            raise ValueError(f"{type(self).__name__}: {what} is {given!r}; it must be a number, or one for each of {self.axes} axes")
        return sizes

    def build(self, x: Any) -> None:
        sizes = _low.tw_convolution_sizes()
        _low.tw_convolution_sizes_init(sizes)
        sizes.channels, sizes.filters, sizes.groups = _channels(self, x), self.filters, self.groups
        for i, size in enumerate(self._window):
            setattr(sizes, f"window_{i + 1}", size)
        create = _low.tw_transposed_convolution_create if self.transposed else _low.tw_convolution_create
        self._made(lambda scope: create(scope, c_text(""), self._options, self._record, sizes, self._record), "kernel", "bias")

    def forward(self, x: Any) -> Any:
        apply = _low.tw_transposed_convolution_apply if self.transposed else _low.tw_convolution_apply
        if self._around and np.any(self._around):
            x = self._padded(x, self._around)
        return _activated(self.activation, self._applied(apply, x))

    def _padded(self, x: Any, around: list[tuple[int, int]]) -> Any:
        """x with zeros before and behind each axis of positions."""
        graph = _graph_of(x)
        value = x._value() if isinstance(x, Formula) else graph.constant(x, from_number(self._options.dtype))
        if value.shape is not None and len(value.shape) != self.axes + 2:
            raise ValueError(f"module '{self.name}': its input {value!r} has {len(value.shape)} axes; it needs {self.axes + 2}, [batch, "
                             "positions.., channels]")
        return graph.op("Pad", value, np.array([(0, 0), *around, (0, 0)], np.int32))


class Conv1D(_Convolution):
    """A convolution along one axis: [batch, positions, channels]. padding: "same": as many results as positions, over the stride; "valid":
    the window stays inside; "causal": a result depends on no later position; or so many zeros at each end of an axis: a number, or for
    each axis a number or a pair (before, behind).
    groups: group g of the filters reads group g of the channels; as many groups as channels: depthwise."""
    axes = 1


class Conv2D(_Convolution):
    """A convolution of images [batch, height, width, channels]; arguments as Conv1D's, without "causal"."""


class Conv3D(_Convolution):
    """A convolution of volumes [batch, depth, height, width, channels]; arguments as Conv1D's, without "causal" and groups."""
    axes = 3


class Conv1DTranspose(_Convolution):
    """The transpose of a convolution along one axis: n positions become n * strides with "same" padding, and
    (n - 1) * strides + (window - 1) * dilations + 1 with "valid" padding. Arguments as Conv1D's, without groups and other paddings."""
    axes, transposed = 1, True


class Conv2DTranspose(_Convolution):
    """The transpose of a convolution of images; as Conv1DTranspose."""
    transposed = True


class Conv3DTranspose(_Convolution):
    """The transpose of a convolution of volumes; as Conv1DTranspose."""
    axes, transposed = 3, True


class _Norm(Layer):
    def __init__(self, epsilon: float, groups: int, rms: bool, name: Optional[str], options: dict[str, Any]):
        super().__init__(name, **options)
        self._record = _low.tw_norm()
        _low.tw_norm_init(self._record)
        self._record.epsilon, self._record.groups, self._record.rms = epsilon, groups, rms

    def build(self, x: Any) -> None:
        self._made(lambda scope: _low.tw_norm_create(scope, c_text(""), self._options, self._record, _channels(self, x), self._record),
                   "scale", "offset")

    def forward(self, x: Any) -> Output:
        return self._applied(_low.tw_norm_apply, x)


class LayerNorm(_Norm):
    """Mean 0 and variance 1 over the last axis, times scale plus offset."""

    def __init__(self, epsilon: float = 1e-5, *, name: Optional[str] = None, **options: Any):
        super().__init__(epsilon, 0, False, name, options)


class RMSNorm(_Norm):
    """x over the root of its mean square along the last axis, times scale."""

    def __init__(self, epsilon: float = 1e-6, *, name: Optional[str] = None, **options: Any):
        super().__init__(epsilon, 0, True, name, options)


class GroupNorm(_Norm):
    """Mean 0 and variance 1 over each group of channels and all positions, times scale plus offset."""

    def __init__(self, groups: int, epsilon: float = 1e-5, *, name: Optional[str] = None, **options: Any):
        if _whole("GroupNorm", "groups", groups, 32) < 1:
            raise ValueError(f"GroupNorm: groups is {groups}; it must be above 0")
        super().__init__(epsilon, groups, False, name, options)


class BatchNorm(Layer):
    """Normalises by the batch if training() is fed True, else by moving averages. Optimizer.minimize moves the averages with the step of
    a loss that depends on the layer; updates() lists the operations that do so. In the body of a loop or a condition the averages move
    whenever the body runs, even if only the loss is computed."""

    mean: Variable
    variance: Variable

    def __init__(self, momentum: float = 0.99, epsilon: float = 1e-3, *, name: Optional[str] = None, **options: Any):
        super().__init__(name, **options)
        self._record = _low.tw_batch_norm()
        _low.tw_batch_norm_init(self._record)
        self._record.momentum, self._record.epsilon = momentum, epsilon

    def build(self, x: Any) -> None:
        self._made(lambda scope: _low.tw_batch_norm_create(scope, c_text(""), self._options, self._record, _channels(self, x), self._record),
                   "scale", "offset", "mean", "variance")
        self._averages = {self.mean.handle.number, self.variance.handle.number}
        self.mean.graph._fixed.update(self._averages)

    def forward(self, x: Any) -> Output:
        graph, update = _graph_of(x), ctypes.c_void_p()
        numbers, record = [_number_of(graph, x, as_dtype("float32")), _number_of(graph, training(graph))], self._here(graph)
        with graph.building() as scope:
            made = Output(graph, _low.tw_batch_norm_apply(scope, record, *numbers, update))
        if update.value:  # none where the flag is constantly False
            graph._layer_updates.append((made, Operation(graph, update.value)))
        return made


def updates(loss: Optional[Output] = None) -> list[Operation]:
    """Returns the operations that move the averages of batch normalisation: all of the current graph, or those for `loss`'s layers."""
    if loss is None:
        return [update for _, update in scopes.current().graph._layer_updates]
    made = loss.graph._layer_updates
    if not made:
        return []
    seen, todo = set(), [loss.operation]
    while todo:
        operation = todo.pop()
        if operation.name not in seen:
            seen.add(operation.name)
            todo += [value.operation for value in operation.inputs]
    return [update for value, update in made if value.operation.name in seen]


class Embedding(Layer):
    """The rows of a table for ids of any shape: [ids.., width]. Its gradient is sparse."""

    def __init__(self, rows: int, width: int, *, name: Optional[str] = None, **options: Any):
        super().__init__(name, **options)
        self.rows, self.width = _whole("Embedding", "rows", rows), _whole("Embedding", "width", width)

    def build(self, ids: Any) -> None:
        self._record = types.SimpleNamespace(table=0)

        def create(scope: int) -> None:
            self._record.table = _low.tw_embedding_create(scope, c_text(""), self._options, self.rows, self.width)
        self._made(create, "table")

    def _number_type(self) -> Any:
        return None

    def forward(self, ids: Any) -> Output:
        graph = _graph_of(ids)
        number, table = _number_of(graph, ids), self._here(graph).table
        with graph.building() as scope:
            made = _low.tw_embedding_apply(scope, table, number)
        return Output(graph, made)


class Dropout(Leaf):
    """If training() is fed True, each element becomes 0 with probability rate, and is divided by 1 - rate otherwise.
    seed: 0: that of thalweg.random, else different values in each session."""

    def __init__(self, rate: float, seed: int = 0, *, name: Optional[str] = None):
        super().__init__(name)
        if not isinstance(rate, (int, float)):
            raise TypeError(f"Dropout: rate is {rate!r}; it must be a number")
        self.rate, self.seed = rate, _whole("Dropout", "seed", seed)

    def forward(self, x: Any) -> Output:
        graph = _graph_of(x)
        numbers, seed = [_number_of(graph, x), _number_of(graph, training(graph))], next_seed(graph, self.seed)
        with graph.building() as scope:
            made = _low.tw_dropout(scope, numbers[0], self.rate, numbers[1], seed)
        return Output(graph, made)


class MultiHeadAttention(Layer):
    """Attention of x [batch, queries, width] to `to` [batch, keys, width], by default to x itself, in `heads` parts of the width.
    mask: numbers added to the scores [batch, heads, queries, keys], to which it broadcasts; -infinity hides a key from a
    query.   causal: queries attend to no later keys.
    rotary: True: rotary position embeddings of queries and keys, of base 10,000; a number: that base.
    cache: (keys, values, position): the caches, each [batch, heads, length, depth], and the position of the first row of x, an int32 scalar:
    the rows of x take their place in the caches and attend to all rows up to their own. The result is then (result, keys, values)."""

    def __init__(self, heads: int, *, rotary: Union[bool, float] = False, name: Optional[str] = None, **options: Any):
        super().__init__(name, **options)
        self.heads, self._record = _whole("MultiHeadAttention", "heads", heads), _low.tw_attention()
        self._rotary = None if rotary is False else _rotary(10_000.0 if rotary is True else rotary, 0, False)

    def build(self, x: Any, to: Any = None, mask: Any = None, causal: bool = False, cache: Any = None) -> None:
        self._made(lambda scope: _low.tw_attention_create(scope, c_text(""), self._options, _channels(self, x), self.heads, self._record),
                   *(f"{part}_{weight}" for part in ("query", "key", "value", "output") for weight in ("kernel", "bias")))

    def forward(self, x: Any, to: Any = None, mask: Any = None, causal: bool = False, cache: Any = None) -> Any:
        keys, values, position = cache or (None, None, None)
        if position is not None and not isinstance(position, Formula):
            position = _graph_of(x).constant(position, "int32")
        options, out = _low.tw_attention_options(size=ctypes.sizeof(_low.tw_attention_options), causal=causal), [ctypes.c_uint64() for _ in range(2)]
        if self._rotary is not None:
            options.rotary = ctypes.pointer(self._rotary)

        def apply(scope: int, record: Any, x: int, *numbers: int) -> int:
            options.to, options.bias, options.key_cache, options.value_cache, options.position = numbers
            made: int = _low.tw_attention_apply_with(scope, record, x, options, *out)
            return made

        made = self._applied(apply, x, to, mask, keys, values, position)
        return made if cache is None else (made, *(Output(made.graph, number.value) for number in out))


def _rotary(base: float, first: int, interleaved: bool) -> "_low.tw_rotary":
    return _low.tw_rotary(size=ctypes.sizeof(_low.tw_rotary), base=base, first=first, interleaved=interleaved)


def rotary(x: Any, first: Any = None, *, base: float = 10_000.0, interleaved: bool = False) -> Output:
    """Rotary position embedding of x [.., positions, depth]: rotates pairs of elements by angles that grow with the position.
    first: the position of the first row, a whole number or a value; None: 0.   interleaved: a pair is elements 2k and 2k + 1, else k and
    k + depth / 2 (Su et al., arXiv:2104.09864)."""
    graph = _graph_of(x)
    number, at = _number_of(graph, x), 0 if first is None else _number_of(graph, graph.constant(first, "int32") if isinstance(first, int) else first)
    with graph.building() as scope:
        made = _low.tw_rotary_apply(scope, _rotary(base, at, interleaved), number)
    return Output(graph, made)


class Flatten(Module):
    """[batch, ..] to [batch, n]."""

    def forward(self, x: Output) -> Output:
        size = 1
        for dim in (x.shape or (None, None))[1:]:
            if dim is None:
                raise ValueError(f"module '{self.name}': all axes of {x!r} but the first must be known")
            size *= dim
        return x.reshape(-1, size)


class _Pool(Leaf):
    axes, kind = 2, "max"

    def __init__(self, window: Union[int, Sequence[int]] = 2, strides: Union[None, int, Sequence[int]] = None, padding: Padding = "valid", *,
                 name: Optional[str] = None):
        super().__init__(name)
        named, self._around = _padding(type(self).__name__, PADDINGS[:2], padding, self.axes)
        if self._around and self.kind != "max":
            raise ValueError(f"{type(self).__name__}: padding is {padding!r}; a mean needs 'valid' or 'same', which count no padding")
        self._record = _low.tw_pool(size=ctypes.sizeof(_low.tw_pool), kind=_number(POOLS, "pooling", self.kind), rank=self.axes, padding=named)
        for field, given in (("window", window), ("stride", window if strides is None else strides)):
            for i, size in enumerate(self._each(field + "s" * (field == "stride"), given)):
                setattr(self._record, f"{field}_{i + 1}", size)

    def _each(self, what: str, given: Any) -> list[int]:
        name = type(self).__name__
        sizes = [_whole(name, what, size) for size in (given if isinstance(given, (list, tuple)) else [given] * self.axes)]
        if len(sizes) != self.axes:
            raise ValueError(f"{name}: {what} is {given!r}; it must be a number" + (f", or one for each of {self.axes} axes" if self.axes > 1 else ""))
        if min(sizes) < 1:
            raise ValueError(f"{name}: {what} is {given!r}; it must be above 0")
        return sizes

    def forward(self, x: Any) -> Output:
        graph = _graph_of(x)
        if self._around and np.any(self._around):
            return self._overhanging(graph, x._value() if isinstance(x, Formula) else graph.constant(x, "float32"), self._around)
        number = _number_of(graph, x, as_dtype("float32"))
        with graph.building() as scope:
            made = _low.tw_pool_apply(scope, self._record, number)
        return Output(graph, made)

    def _overhanging(self, graph: Graph, x: Output, around: list[tuple[int, int]]) -> Output:
        """The largest of windows that begin before the input and end behind it. One axis is one row of an image."""
        one = self.axes == 1
        ones, record = [1] * (2 if one else 1), self._record
        rows: list[tuple[int, int]] = [(0, 0)] * len(ones)
        windows, strides = ([getattr(record, f"{field}_{i + 1}") for i in range(self.axes)] for field in ("window", "stride"))
        made: Output = graph.op("MaxPool", graph.op("ExpandDims", x, np.int32(1)) if one else x, ksize=[*ones, *windows, 1],
                                strides=[*ones, *strides, 1], padding="EXPLICIT",
                                explicit_paddings=[size for pair in (*rows, *around, (0, 0)) for size in pair])
        return graph.op("Squeeze", made, squeeze_dims=[1]) if one else made


class MaxPool1D(_Pool):
    """The largest of each window along one axis: [batch, positions, channels]. strides: None: the window. padding: "valid": windows stay
    inside; "same": as many results as positions, over the stride; or how far windows begin before and end behind an axis, less than the
    window: a number, or for each axis a number or a pair. Padding is never the largest."""
    axes = 1


class AvgPool1D(_Pool):
    """The mean of each window along one axis; as MaxPool1D, without sizes of padding. A mean is of the elements inside the input."""
    axes, kind = 1, "mean"


class MaxPool2D(_Pool):
    """The largest of each window of images [batch, height, width, channels]; arguments as MaxPool1D's."""


class AvgPool2D(_Pool):
    """The mean of each window of images; arguments as AvgPool1D's."""
    kind = "mean"


class _GlobalPool(Leaf):
    kind = "mean"

    def forward(self, x: Any) -> Output:
        graph = _graph_of(x)
        number = _number_of(graph, x, as_dtype("float32"))
        with graph.building() as scope:
            made = _low.tw_pool_global(scope, POOLS.index(self.kind), number)
        return Output(graph, made)


class GlobalAvgPool(_GlobalPool):
    """The mean over all positions: [batch, positions.., channels] to [batch, channels]."""


class GlobalMaxPool(_GlobalPool):
    """The largest over all positions; as GlobalAvgPool."""
    kind = "max"
