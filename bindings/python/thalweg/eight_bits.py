"""Inference in numbers of 8 bits: convolutions and products of a trained net in place of those in float32.

    small = thalweg.quantize(session, batches, inputs={"x": x}, outputs={"y": logits})
    scores = session.run(small.outputs["y"], {x: images})
    thalweg.save(session, "small.model", {"serving_default": ({"x": x}, small.outputs)})

Weights get a range for each output channel, and values between operations one range each, which is collected while the batches run.
Operations with a bias, a batch normalisation of inference, an added value or a Relu behind them become one operation. All else stays
float32."""
import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Optional, Union

import numpy as np

from .build import add_operation, schema_of
from .dtypes import Array
from .errors import InvalidArgumentError, UnimplementedError
from .graph import Graph
from .model import Model
from .op_text import python_name
from .output import Formula, Operation, Output
from .scopes import control_dependencies, device, working
from .session import Session
from .trainer import Trainer

__all__ = ["Quantized", "QuantizedLayer", "quantize"]

Values = Mapping[str, Formula]

_FEW_RESULTS = 16  # groups of fewer output channels are slower in 8 bits
_LOOPS = {"Enter", "Exit", "NextIteration", "Merge", "Switch", "LoopCond"}
_BINS = 2048


def __dir__() -> list[str]:
    return __all__


class QuantizedLayer(NamedTuple):
    """An operation that runs in 8 bits. name: that of the convolution or product.   result: the value that it makes with what was joined
    to it.   input_range, output_range: the largest magnitudes that the numbers stand for."""
    name: str
    result: str
    input_range: float
    output_range: float


class Quantized(NamedTuple):
    """The values of a net in 8 bits, in the graph of the original.   inputs: those of the original.   layers: what runs in 8 bits."""
    inputs: dict[str, Output]
    outputs: dict[str, Output]
    layers: list[QuantizedLayer]


def quantize(source: Union[Session, Trainer, Model], data: Iterable[Any], *, inputs: Optional[Values] = None,
             outputs: Optional[Values] = None, signature: Optional[str] = None, method: str = "minmax", percentile: float = 99.99,
             skip: Sequence[str] = ()) -> Quantized:
    """Adds to the graph of a trained net its convolutions and products in 8 bits, and returns the outputs that use them; the net itself
    stays. source: a session, with the values that are fed and fetched, by name; or a trainer or a model from a file, which know them.
    data: some batches as the net gets them (a hundred examples are often enough): each a dict by name, a tuple in the order of the
    inputs, or the array of the only input.   signature: that of a model; None: the default one.
    method: the range of a value: "minmax", all of it; or "percentile", all but the largest magnitudes: `percentile` % of them stay.
    skip: patterns of names of operations that stay as they are, such as "head/*".
    Weights are read now: operations in 8 bits do not follow later training.
    Raises InvalidArgumentError if no batch comes or nothing can run in 8 bits, saying why; UnimplementedError for loops of primitives."""
    if method not in ("minmax", "percentile"):
        raise ValueError(f"method is {method!r}; it must be 'minmax' or 'percentile'")
    if not 50 < percentile <= 100:
        raise ValueError(f"percentile is {percentile}; it must be above 50 and at most 100")
    session, fed, wanted = _ends(source, inputs, outputs, signature)
    net = _Net(session.graph, list(fed.values()), list(wanted.values()))
    layers = _layers(net, session, skip)
    if not layers:
        raise InvalidArgumentError("no operation can run in 8 bits; these are taken: Conv2D and MatMul of float32 whose weights do not "
                                   f"depend on the inputs, and which none of {list(skip)} names")
    ranges = _ranges(session, fed, layers, data, None if method == "minmax" else percentile)
    made = _Writer(net, layers, ranges)
    results = {name: made.output(value) for name, value in wanted.items()}
    report = [QuantizedLayer(layer.name, layer.result.name, ranges[layer.x].high, ranges[layer.result].high) for layer in layers]
    return Quantized(fed, results, report)


def _ends(source: Any, inputs: Optional[Values], outputs: Optional[Values],
          signature: Optional[str]) -> tuple[Session, dict[str, Output], dict[str, Output]]:
    """The session, and the values that are fed and fetched."""
    if isinstance(source, Trainer):
        session, (fed, wanted) = source.session, source.signature()
    elif isinstance(source, Model):
        session, (fed, wanted) = source.session, source.values(signature)
    elif isinstance(source, Session):
        if not inputs or not outputs:
            raise ValueError("a session does not know the net; say which values are fed and fetched: inputs={'x': x}, outputs={'y': y}")
        session, fed, wanted = source, {}, {}
    else:
        raise TypeError(f"{source!r} is no session, trainer or model")
    if inputs:
        fed = {name: v._value() for name, v in inputs.items()}
    if outputs:
        wanted = {name: v._value() for name, v in outputs.items()}
    return session, fed, wanted


class _Net:
    """The operations between the inputs and the outputs, in an order in which they can run."""

    def __init__(self, graph: Graph, fed: list[Output], wanted: list[Output]):
        self.graph, self.wanted = graph, set(wanted)
        self.order: list[Operation] = []
        self.changing: set[Output] = set(fed)  # values that depend on the inputs
        self.users: dict[Output, list[Operation]] = {}
        self.claimed: set[Operation] = set()  # by layers
        sources = {v.operation for v in fed}
        seen: set[Operation] = set()
        stack = [(v.operation, False) for v in wanted]
        while stack:
            operation, ready = stack.pop()
            if ready:
                self._add(operation)
            elif operation not in seen and operation not in sources:
                seen.add(operation)
                stack.append((operation, True))
                stack += [(x.operation, False) for x in operation.inputs if x not in self.changing]

    def _add(self, operation: Operation) -> None:
        inputs = operation.inputs
        if not any(x in self.changing for x in inputs):
            return
        if operation.type in _LOOPS:
            raise UnimplementedError(f"operation '{operation.name}' is a {operation.type}: loops and branches of primitives cannot be "
                                     "copied; leave them out of the outputs")
        self.order.append(operation)
        self.changing.update(operation.outputs)
        for x in inputs:
            self.users.setdefault(x, []).append(operation)

    def only_user(self, value: Output) -> Optional[Operation]:
        """The one operation that reads the value, if nothing else needs it."""
        users = self.users.get(value, [])
        return users[0] if len(users) == 1 and value not in self.wanted else None


class _Layer:
    """A convolution or product with what is joined to it. weights: its last axis is that of the results."""

    def __init__(self, operation: Operation, weights: Array):
        self.operation, self.name, self.attrs = operation, operation.name, operation.attributes
        self.x: Output = operation.inputs[0]
        self.result: Output = operation.outputs[0]
        self.last = operation
        self.weights = np.asarray(weights, np.float32)
        self.bias = np.zeros(weights.shape[-1])
        self.summand: Optional[Output] = None
        self.relu = False
        self.limit: Optional[float] = None  # of Relu6

    @property
    def convolution(self) -> bool:
        return self.operation.type == "Conv2D"

    @property
    def channels_first(self) -> bool:
        return self.convolution and self.attrs["data_format"] == "NCHW"

    def join(self, operation: Operation, claimed: set[Operation]) -> None:
        claimed.add(operation)
        self.last, self.result = operation, operation.outputs[0]

    def values(self) -> list[Output]:
        return [self.x, self.result] + ([self.summand] if self.summand is not None else [])


def _layers(net: _Net, session: Session, skip: Sequence[str]) -> list[_Layer]:
    found: list[_Layer] = []
    claimed: set[Operation] = set()
    for operation in net.order:
        if operation.type not in ("Conv2D", "MatMul") or any(fnmatch.fnmatchcase(operation.name, p) for p in skip):
            continue
        x, w = operation.inputs
        if x not in net.changing or w in net.changing or x.dtype.name != "float32":
            continue
        attrs = operation.attributes
        weights = np.asarray(session.run(w))
        if operation.type == "MatMul":
            weights = weights.T if attrs["transpose_b"] else weights
        elif not _fits(x, attrs, weights):
            continue
        layer = _Layer(operation, weights)
        claimed.add(operation)
        _join(net, session, layer, claimed)
        if not (np.isfinite(layer.weights).all() and np.isfinite(layer.bias).all()):
            raise InvalidArgumentError(f"the weights of '{layer.name}', or what is joined to them up to '{layer.last.name}', are not finite; "
                                       f"mend them, or leave the operation out with skip=['{layer.name}']")
        found.append(layer)
    net.claimed = claimed
    return found


def _fits(x: Output, attrs: dict[str, Any], weights: Array) -> bool:
    shape = x.shape
    channels = None if shape is None else shape[1 if attrs["data_format"] == "NCHW" else 3]
    if channels is None:
        return False
    groups = channels // weights.shape[2]
    return groups == 1 or weights.shape[3] // groups >= _FEW_RESULTS


def _join(net: _Net, session: Session, layer: _Layer, claimed: set[Operation]) -> None:
    """Joins the operations behind the layer that its form in 8 bits computes, too, unless another layer has claimed them."""
    results = layer.weights.shape[-1]
    while (user := net.only_user(layer.result)) is not None:
        kind, inputs = user.type, user.inputs
        if user in claimed:
            return None
        rest = [x for x in inputs if x is not layer.result]
        fixed = [x for x in rest if x not in net.changing]
        if kind == "Relu" or (kind == "Relu6" and layer.summand is None):
            layer.relu, layer.limit = True, 6.0 if kind == "Relu6" else None
            return layer.join(user, claimed)
        if layer.summand is not None:
            return None
        if kind == "BiasAdd" and len(fixed) == 1 and (layer.channels_first == (user.attributes["data_format"] == "NCHW")):
            layer.bias = layer.bias + np.asarray(session.run(fixed[0]), np.float64)
        elif kind in ("AddV2", "Add") and len(fixed) == 1 and _is_row(fixed[0], results, layer):
            layer.bias = layer.bias + np.asarray(session.run(fixed[0]), np.float64).reshape(-1)
        elif kind.startswith("FusedBatchNorm") and inputs[0] is layer.result and len(fixed) == 4 and _is_inference(net, user, layer):
            gamma, beta, mean, variance = (np.asarray(v, np.float64) for v in session.run(inputs[1:5]))
            scale = gamma / np.sqrt(variance + user.attributes["epsilon"])
            layer.weights, layer.bias = (layer.weights * scale).astype(np.float32), (layer.bias - mean) * scale + beta
        elif kind in ("AddV2", "Add") and len(rest) == 1 and not fixed and layer.convolution and _is_relu_sum(net, user, rest[0]):
            layer.summand = rest[0]
        else:
            return None
        layer.join(user, claimed)
    return None


def _is_row(value: Output, results: int, layer: _Layer) -> bool:
    """Whether a value has an entry for each channel of the layer's result, and adding it leaves the result's rank."""
    shape = value.shape
    if layer.channels_first or not shape or len(shape) > (4 if layer.convolution else 2):
        return False
    return shape[-1] == results and all(n == 1 for n in shape[:-1])


def _is_inference(net: _Net, operation: Operation, layer: _Layer) -> bool:
    attrs = operation.attributes
    format_ = layer.attrs["data_format"] if layer.convolution else None
    return not attrs["is_training"] and attrs["data_format"] == format_ and not any(net.users.get(v) or v in net.wanted
                                                                                    for v in operation.outputs[1:])


def _is_relu_sum(net: _Net, operation: Operation, summand: Output) -> bool:
    """Whether a Relu alone reads a sum of two values of one shape."""
    user = net.only_user(operation.outputs[0])
    if user is None or user.type != "Relu" or summand.dtype.name != "float32":
        return False
    here, there = (v.shape for v in operation.inputs)
    return here is not None and here == there and None not in here[1:]


# ---- Ranges ----

class _Range:
    """The range of a value, from the batches that ran. high: its largest magnitude."""

    def __init__(self, share: Optional[float]):
        self.low, self.high, self._share = 0.0, 0.0, share
        self._counts, self._top, self._finite = np.zeros(_BINS), 0.0, True

    def add(self, array: Array) -> None:
        array = np.asarray(array)
        if not array.size:
            return
        self.low = min(self.low, float(array.min()))
        top = float(np.abs(array).max())
        if not np.isfinite(top):
            self._finite = False
            return
        if self._share is None:
            self.high = max(self.high, top)
            return
        while top > self._top:  # bins of twice the width take the counts of two
            if self._top == 0:
                self._top = top
            else:
                self._counts = np.concatenate([self._counts.reshape(-1, 2).sum(1), np.zeros(_BINS // 2)])
                self._top *= 2
        if self._top:
            self._counts += np.histogram(np.abs(array), _BINS, (0, self._top))[0]

    def end(self, value: Output) -> None:
        if self._share is not None and self._top:
            within = np.cumsum(self._counts) >= self._counts.sum() * self._share / 100
            self.high = self._top * (int(np.argmax(within)) + 1) / _BINS
        if not self._finite:
            raise InvalidArgumentError(f"value '{value.name}' is not finite for some batches; a range needs finite numbers")
        self.high = max(self.high, 1e-6)


def _ranges(session: Session, fed: dict[str, Output], layers: list[_Layer], data: Iterable[Any],
            share: Optional[float]) -> dict[Output, _Range]:
    ranges = {v: _Range(share) for layer in layers for v in layer.values()}
    values, batches = list(ranges), 0
    for batch in data:
        arrays = batch if isinstance(batch, (Mapping, tuple, list)) else (batch,)
        if not isinstance(arrays, Mapping) and len(arrays) != len(fed):
            raise InvalidArgumentError(f"batch {batches} has {len(arrays)} values, but the inputs are {list(fed)}; give one for each")
        given = arrays if isinstance(arrays, Mapping) else dict(zip(fed, arrays))
        if given.keys() != fed.keys():
            raise InvalidArgumentError(f"batch {batches} has values for {list(given)}, but the inputs are {list(fed)}")
        for value, array in zip(values, session.run(values, {fed[name]: x for name, x in given.items()})):
            ranges[value].add(array)
        batches += 1
    if not batches:
        raise InvalidArgumentError("there are no batches, from which ranges would follow; give at least one")
    for value, found in ranges.items():
        found.end(value)
    for layer in layers:
        if layer.limit is not None:
            ranges[layer.result].low, ranges[layer.result].high = 0.0, layer.limit  # the ends of the range are those of Relu6
    return ranges


# ---- The net in 8 bits ----

class _Number(NamedTuple):
    """A value in 8 bits. channels_last: its axes are [batch, height, width, channels], though those of the value are in another order."""
    value: Output
    kind: str
    high: float
    channels_last: bool

    @property
    def low(self) -> float:
        return 0.0 if self.kind == "quint8" else -self.high


class _Writer:
    """Copies the operations behind layers, and adds layers in 8 bits."""

    def __init__(self, net: _Net, layers: list[_Layer], ranges: dict[Output, _Range]):
        self.net, self.graph, self.ranges = net, net.graph, ranges
        self.floats: dict[Output, Output] = {}
        self.numbers: dict[Output, _Number] = {}
        self.wanted = {v for layer in layers for v in (layer.x, layer.summand) if v is not None}
        ends = {layer.last: layer for layer in layers}
        for operation in net.order:
            if operation in ends:
                self._layer(ends[operation])
            elif operation not in net.claimed:
                self._copy(operation)

    def output(self, value: Output) -> Output:
        return self._float(value)

    def _float(self, value: Output) -> Output:
        """The value in float32: as it was, copied, or from numbers of 8 bits."""
        if value in self.floats or value not in self.numbers:
            return self.floats.get(value, value)
        number = self.numbers[value]
        made = self.graph.op("Dequantize", number.value, np.float32(number.low), np.float32(number.high), mode="SCALED")
        self.floats[value] = self._turned(made, (0, 3, 1, 2)) if number.channels_last else made
        return self.floats[value]

    def _number(self, value: Output, channels_last: bool) -> _Number:
        """The value in 8 bits, with its channels last if they should be and are not."""
        if value not in self.numbers:
            kind, high = "quint8" if self.ranges[value].low >= 0 else "qint8", self.ranges[value].high
            low = 0.0 if kind == "quint8" else -high
            steps = self.graph.op("QuantizeV2", self._float(value), np.float32(low), np.float32(high), T=kind, mode="SCALED",
                                  round_mode="HALF_TO_EVEN", ensure_minimum_range=0.0).output
            self.numbers[value] = _Number(steps, kind, high, False)
        number = self.numbers[value]
        if number.channels_last == channels_last:
            return number
        axes = (0, 2, 3, 1) if channels_last else (0, 3, 1, 2)
        turned = number._replace(value=self._turned(number.value, axes), channels_last=channels_last)
        if channels_last:
            self.numbers[value] = turned
        return turned

    def _turned(self, value: Output, axes: tuple[int, ...]) -> Output:
        made: Output = self.graph.op("Transpose", value, np.array(axes, np.int32))
        return made

    def _copy(self, operation: Operation) -> None:
        """Copies an operation of which an input has changed, if a value of it is needed."""
        if not any(x in self.floats or x in self.numbers for x in operation.inputs):
            return
        if operation.inputs[0] in self.numbers and self._moves(operation):
            return
        inputs = [self._float(x) for x in operation.inputs]
        schema, attrs = schema_of(self.graph, operation.type), operation.attributes
        grouped: list[Any] = []
        for argument in schema["inputs"]:
            many = len(attrs[argument["list_attr"]]) if "list_attr" in argument else attrs.get(argument.get("number_attr"))
            grouped.append(inputs.pop(0) if many is None else [inputs.pop(0) for _ in range(many)])
        named = {python_name(name): value for name, value in attrs.items()}
        with control_dependencies(operation.control_inputs, self.graph), device(operation.device, self.graph):
            copied = add_operation(working(self.graph), operation.type, tuple(grouped), named, None)
        self.floats.update(zip(operation.outputs, copied.outputs))

    def _moves(self, operation: Operation) -> bool:
        """Copies an operation that works on the numbers as they are, and returns whether it is one."""
        kind, value, number = operation.type, operation.outputs[0], self.numbers[operation.inputs[0]]
        if kind == "Shape" and not number.channels_last:
            self.floats[value] = self.graph.op("Shape", number.value, out_type=operation.attributes["out_type"])
            return True
        if kind in ("Reshape", "Squeeze", "ExpandDims", "Identity") and not number.channels_last:
            rest = [self._float(x) for x in operation.inputs[1:]]
            given = {"squeeze_dims": operation.attributes["squeeze_dims"]} if kind == "Squeeze" else {}
            made = self.graph.op(kind, number.value, *rest, **given)
        elif kind == "MaxPool" and operation.attributes["padding"] != "EXPLICIT":
            attrs = operation.attributes
            if (attrs["data_format"] == "NCHW") != number.channels_last:
                return False
            order = (0, 2, 3, 1) if number.channels_last else (0, 1, 2, 3)
            sizes: dict[str, Any] = {name: [attrs[name][k] for k in order] for name in ("ksize", "strides")}
            made = self.graph.op("QuantizedMaxPool", number.value, np.float32(number.low), np.float32(number.high),
                                 padding=attrs["padding"], **sizes).output
        else:
            return False
        self.numbers[value] = number._replace(value=made)
        return True

    def _layer(self, layer: _Layer) -> None:
        x, found = self._number(layer.x, layer.channels_first), self.ranges[layer.result]
        others = tuple(range(layer.weights.ndim - 1))
        highs = np.maximum(np.abs(layer.weights).max(others, initial=0), 1e-30).astype(np.float32)
        steps = np.clip(np.rint(layer.weights / highs * 127), -127, 127).astype(np.int8)
        weights = self.graph.op("Bitcast", self.graph.constant(steps), type="qint8")
        kind = "quint8" if layer.relu else "qint8"
        out = _Number(x.value, kind, found.high, layer.channels_first)
        inputs = [x.value, weights, layer.bias.astype(np.float32), np.float32(x.low), np.float32(x.high), -highs, highs,
                  np.float32(out.low), np.float32(out.high)]
        made = self._convolution(layer, inputs, kind) if layer.convolution else self._product(layer, inputs, kind)
        if made is not None:
            self.numbers[layer.result] = out._replace(value=made)

    def _product(self, layer: _Layer, inputs: list[Any], kind: str) -> Optional[Output]:
        attrs = dict(transpose_a=layer.attrs["transpose_a"], input_quant_mode="SCALED")
        if not layer.relu and layer.result not in self.wanted:
            self.floats[layer.result] = self.graph.op("QuantizedMatMulWithBiasAndDequantize", *inputs, Toutput="float32", **attrs)
            return None
        op = "QuantizedMatMulWithBiasAndReluAndRequantize" if layer.relu else "QuantizedMatMulWithBiasAndRequantize"
        made: Output = self.graph.op(op, *inputs, Toutput=kind, **attrs).out
        return made

    def _convolution(self, layer: _Layer, inputs: list[Any], kind: str) -> Output:
        def last(values: Sequence[int]) -> list[int]:
            """The entries for each axis, in the order of images with their channels last."""
            pairs = np.reshape(values, (4, -1))
            return [int(v) for v in (pairs[[0, 2, 3, 1]] if layer.channels_first else pairs).ravel()]

        attrs: dict[str, Any] = {name: last(layer.attrs[name]) for name in ("strides", "dilations")}
        attrs["padding"] = layer.attrs["padding"]
        if attrs["padding"] == "EXPLICIT":
            attrs.update(padding="VALID", padding_list=last(layer.attrs["explicit_paddings"]))
        op = "QuantizedConv2DWithBias"
        if layer.summand is not None:
            summand = self._number(layer.summand, layer.channels_first)
            inputs += [summand.value, np.float32(summand.low), np.float32(summand.high)]
            op += "SumAndReluAndRequantize"
        else:
            op += "AndReluAndRequantize" if layer.relu else "AndRequantize"
        made: Output = self.graph.op(op, *inputs, out_type=kind, **attrs).output
        return made
