"""The size of a network: multiply-accumulates of a forward pass, and parameters.

    with tw.Graph():
        net = model.network()
        outputs = net(tw.placeholder("float32", [1, 224, 224, 3]))
    print(counts.multiply_accumulates(outputs), counts.parameters(net))

Both are read from the graph, whose shapes must be known. A multiply-accumulate is half of what is called two floating-point
operations. Only products count: matrices, convolutions and attention, not biases, activations, normalisations and pooling."""
import functools
import math


def multiply_accumulates(outputs):
    """Returns the multiply-accumulates of all operations on which the outputs depend. Raises ValueError for a product whose sizes
    are not known, and for operations that run functions with products, such as loops, whose turns the graph does not say."""
    todo = [x.operation for x in (outputs if isinstance(outputs, (list, tuple)) else [outputs])]
    seen, total, inner = set(), 0, _functions(todo[0].graph, len(todo[0].graph))
    while todo:
        operation = todo.pop()
        if operation.name in seen:
            continue
        seen.add(operation.name)
        if operation.type in RULES:
            total += RULES[operation.type](operation)
        elif _is_product(operation.type):
            raise ValueError(f"'{operation.name}' is a {operation.type}, for which counts.py has no rule; add one to RULES")
        elif found := _products_of(operation, inner):
            raise ValueError(f"'{operation.name}' ({operation.type}) runs a function with {found}, whose products are not counted")
        todo += [x.operation for x in operation.inputs] + operation.control_inputs
    return total


def parameters(module):
    """Returns the number of trained weights of a module that was called."""
    return sum(math.prod(v.shape) for v in module.parameters(trainable=True))


def _sizes(value):
    if value.shape is None or None in value.shape:
        raise ValueError(f"the sizes of {value!r} are not known; give the placeholders whole shapes")
    return value.shape


def _convolution(operation):
    """Each result is a sum over the window and the channels of its group."""
    *kernel, _ = _sizes(operation.inputs[1])
    return math.prod(_sizes(operation.outputs[0])) * math.prod(kernel)


def _depthwise(operation):
    height, width, *_ = _sizes(operation.inputs[1])
    return math.prod(_sizes(operation.outputs[0])) * height * width


def _transposed(operation):
    """The gradient of a convolution for its input: as many products as the convolution has."""
    *kernel, _ = _sizes(operation.inputs[1])
    return math.prod(_sizes(operation.inputs[2])) * math.prod(kernel)


def _product(flag):
    """Each result is a sum over the inner axis of the first matrix. flag: the attribute that says that it is transposed."""
    def count(operation):
        inner = _sizes(operation.inputs[0])[-2 if operation.attributes[flag] else -1]
        return math.prod(_sizes(operation.outputs[0])) * inner
    return count


def _attention(operation):
    """Scores of all keys for each query, and a weighted sum of the values."""
    query, key, value = (_sizes(x) for x in operation.inputs[:3])
    return math.prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


RULES = {"Conv2D": _convolution, "Conv3D": _convolution, "DepthwiseConv2dNative": _depthwise, "Conv2DBackpropInput": _transposed,
         "Conv3DBackpropInputV2": _transposed, "MatMul": _product("transpose_a"), "BatchMatMul": _product("adj_x"),
         "BatchMatMulV2": _product("adj_x"), "ScaledDotProductAttention": _attention}


# ---- Functions, which conditions and loops run ----

def _is_product(op):
    return op in RULES or any(part in op for part in ("MatMul", "Conv", "Einsum", "LSTM", "GRU"))


def _products_of(operation, functions):
    """The name of an op of products in the functions that an operation names, and in theirs; None if there is none."""
    todo, seen = [name for name in operation.attributes.values() if isinstance(name, str) and name in functions], set()
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            for op, named in functions[name]:
                if _is_product(op):
                    return op
                todo += [n for n in named if n in functions]
    return None


@functools.lru_cache(1)
def _functions(graph, _):
    """{name of a function: its operations, each with its op and the functions that it names}, from the stored form of the graph, as
    long as it has that many operations."""
    found = {}
    for number, library in _fields(graph.to_bytes()):
        for _, function in _fields(library) if number == 2 else ():
            parts = list(_fields(function))
            name = next(dict(_fields(value))[1] for number_, value in parts if number_ == 1).decode()
            found[name] = [_operation(value) for number_, value in parts if number_ == 3]
    return found


def _operation(node):
    op, named = "", []
    for number, value in _fields(node):
        if number == 2:
            op = value.decode()
        elif number == 5:  # an attribute; field 10 of its value is a function, field 1 of which is its name
            function = dict(_fields(dict(_fields(value)).get(2, b""))).get(10)
            named += [] if function is None else [dict(_fields(function))[1].decode()]
    return op, named


def _fields(message):
    """(number, value) of the fields of a Protocol Buffers message; values are bytes, or numbers."""
    at, end = 0, len(message)

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < end:
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = varint() if key & 7 == 2 else 8 if key & 7 == 1 else 4
        at += size
        yield key >> 3, message[at - size:at]
