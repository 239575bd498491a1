"""Values of the test data as values of the runtime, and back. A sequence is a list of tensors (TensorList) in a scalar variant; an optional
is such a list too, without an element or with one. bfloat16 and other types that NumPy lacks are widened."""
import numpy as np
import thalweg as tw

import onnx_messages

RUNTIME = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool", 10: "float16",
           11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16", 17: "float8_e4m3fn", 18: "float8_e4m3fnuz",
           19: "float8_e5m2", 20: "float8_e5m2fnuz", 21: "uint4", 22: "int4", 25: "uint2", 26: "int2"}
WIDE = {"bfloat16": "float32", "uint4": "uint8", "int4": "int8", "uint2": "uint8", "int2": "int8"}
ANY_SHAPE = np.int32(-1)


def element_type(kind):
    """Returns the element type of a list's elements."""
    return RUNTIME[kind.element.element] if kind.element.form == "tensor" else "variant"


def wide(name):
    """Returns the type that stands for an element type in NumPy; None: NumPy has the type itself."""
    return "float32" if name.startswith("float8") else WIDE.get(name)


def computed(value, kind):
    """Returns the value as one of the runtime's eager values."""
    if kind.form == "tensor":
        if wide(RUNTIME[kind.element]):
            return tw.ops.cast(tw.constant(value if value.ndim else value[()]), DstT=RUNTIME[kind.element])
        return tw.constant(value if value.ndim or value.dtype == object else value[()], RUNTIME[kind.element])
    element = element_type(kind)
    items = value if kind.form == "sequence" else [] if value is onnx_messages.EMPTY else [value]
    found = tw.ops.empty_tensor_list(ANY_SHAPE, ANY_SHAPE, element_dtype=element)
    for item in items:
        found = tw.ops.tensor_list_push_back(found, computed(item, kind.element))
    return found


def to_runtime(value, kind):
    """Returns what a model is fed: an array, or a tensor for values that NumPy cannot hold."""
    if kind.form == "tensor" and not wide(RUNTIME[kind.element]):
        return value
    return computed(value, kind).tensor


def uncomputed(value, kind):
    if kind.form == "tensor":
        if wide(str(value.dtype)):
            if str(value.dtype) != RUNTIME[kind.element]:
                raise TypeError(f"the result is {value.dtype} where {RUNTIME[kind.element]} is declared")
            value = tw.ops.cast(value, DstT=wide(str(value.dtype)))
        return np.array(value.numpy())
    count = int(tw.ops.tensor_list_length(value).numpy())
    get = tw.ops.tensor_list_get_item
    items = [uncomputed(get(value, np.int32(i), ANY_SHAPE, element_dtype=element_type(kind)), kind.element) for i in range(count)]
    if kind.form == "sequence":
        return items
    return items[0] if items else onnx_messages.EMPTY


def from_runtime(result, kind):
    """Returns the value of a tensor that a model returned."""
    return uncomputed(tw.constant(result), kind)
