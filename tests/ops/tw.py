"""The public C API through ctypes: as much of it as the tests of ops need. A Graph grows op by op, a Session runs it on NumPy arrays.
Arrays of bytes objects (dtype object) are string tensors; bfloat16 is a structured type of NumPy's, made and read by functions below."""
import ctypes as c
import os
import pathlib
import weakref

import numpy as np

lib = c.CDLL(str(pathlib.Path(os.environ.get("THALWEG_LIBRARY", "libthalweg.so"))))
P, S, I32, U32, U64, F64 = c.c_void_p, c.c_char_p, c.c_int32, c.c_uint32, c.c_uint64, c.c_double
for name, (result, *arguments) in {
    "tw_status_message": (S, P), "tw_status_code": (U32, P), "tw_status_release": (None, P), "tw_status_code_name": (S, U32),
    "tw_buffer_data": (P, P), "tw_buffer_bytes": (U64, P), "tw_buffer_release": (None, P),
    "tw_tensor_create": (P, U32, P, U32, P), "tw_tensor_create_copy": (P, U32, P, U32, P, U64, P), "tw_tensor_release": (None, P),
    "tw_tensor_dtype": (U32, P), "tw_tensor_rank": (U32, P), "tw_tensor_dims": (c.POINTER(c.c_int64), P), "tw_tensor_count": (U64, P),
    "tw_tensor_data": (P, P), "tw_tensor_get_string": (P, P, U64, P, P), "tw_tensor_set_string": (P, P, U64, S, U64),
    "tw_dtype_name": (S, U32), "tw_dtype_find": (U32, S),
    "tw_graph_create": (P, P, P), "tw_graph_destroy": (None, P), "tw_graph_describe": (P, P, U64, P, P), "tw_graph_export": (P, P, P),
    "tw_graph_verify": (P, P, P, U64),
    "tw_op_create": (P, P, S, S), "tw_op_add_input": (None, P, U64), "tw_op_add_control": (None, P, P), "tw_op_finish": (P, P, P),
    "tw_op_set_int": (None, P, S, c.c_int64), "tw_op_set_float": (None, P, S, F64), "tw_op_set_bool": (None, P, S, c.c_uint8),
    "tw_op_set_string": (None, P, S, S, U64), "tw_op_set_type": (None, P, S, U32), "tw_op_set_tensor": (None, P, S, P),
    "tw_op_set_shape": (None, P, S, P, I32), "tw_op_set_ints": (None, P, S, P, U32), "tw_op_set_types": (None, P, S, P, U32),
    "tw_operation_output": (U64, P, U32), "tw_operation_output_count": (U32, P),
    "tw_gradients_add": (P, P, P, P, U32, P, U32, P),
    "tw_session_create": (P, P, P, U32, P), "tw_session_destroy": (None, P), "tw_session_run": (P, P, P, P, P, P),
    "tw_ops_create": (P, P, P), "tw_ops_destroy": (None, P), "tw_ops_count": (U32, P), "tw_ops_name": (S, P, U32),
    "tw_ops_schema": (S, P, U32), "tw_ops_no_gradient": (S, P, U32),
}.items():
    function = getattr(lib, name)
    function.restype, function.argtypes = result, arguments

bfloat16 = np.dtype([("bfloat16", np.uint16)])
string = np.dtype(object)
RESOURCE = 20
NUMBERS = {np.dtype(name): number for name, number in {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "object": 7, "complex64": 8, "int64": 9, "bool": 10,
    "uint16": 17, "complex128": 18, "float16": 19, "uint32": 22, "uint64": 23}.items()}
NUMBERS[bfloat16] = 14
DTYPES = {number: dtype for dtype, number in NUMBERS.items()}


class Type(int):
    """An element type by its number, for types that NumPy has no name for."""


class Error(Exception):
    """A status: its message, and the name of its code."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class Signature(c.Structure):
    _fields_ = [("size", U32), ("flags", U32), ("feeds", P), ("fetches", P), ("targets", P), ("n_feeds", U32), ("n_fetches", U32),
                ("n_targets", U32), ("reserved", U32)]


class Gradient(c.Structure):
    """values 0: none; rows not 0: values are those of some rows of x alone."""
    _fields_ = [("values", U64), ("rows", U64)]


def check(status):
    if status:
        error = Error(lib.tw_status_code_name(lib.tw_status_code(status)).decode(), lib.tw_status_message(status).decode(errors="replace"))
        lib.tw_status_release(status)
        raise error


def made(function, *arguments):
    """What a function of the C API answers through its last parameter."""
    out = P()
    check(function(*arguments, c.byref(out)))
    return out


def to_bfloat16(array):
    """Rounded to the nearest, halves to even; NaN stays NaN."""
    bits = np.asarray(array, np.float32).view(np.uint32).astype(np.int64)
    rounded = np.where(np.isnan(array), 0x7fc0, (bits + 0x7fff + (bits >> 16 & 1)) >> 16)
    return np.asarray(rounded, np.uint16).view(bfloat16)


def from_bfloat16(array):
    return np.asarray(np.asarray(array).view(np.uint16).astype(np.int64) << 16, np.uint32).view(np.float32)


def number_of(dtype):
    return int(dtype) if isinstance(dtype, Type) else NUMBERS[np.dtype(dtype)]


def to_tensor(array):
    array = np.asarray(array)
    shape = array.shape  # np.ascontiguousarray would make a vector of a scalar
    dims = (c.c_int64 * max(1, len(shape)))(*shape)
    if array.dtype != string:
        array = np.ascontiguousarray(array)
        return made(lib.tw_tensor_create_copy, NUMBERS[array.dtype], dims, len(shape), array.ctypes.data, array.nbytes)
    tensor = made(lib.tw_tensor_create, NUMBERS[string], dims, len(shape))
    for i, text in enumerate(array.reshape(-1)):
        check(lib.tw_tensor_set_string(tensor, i, text, len(text)))
    return tensor


def to_array(tensor):
    shape = tuple(lib.tw_tensor_dims(tensor)[i] for i in range(lib.tw_tensor_rank(tensor)))
    dtype, count = DTYPES[lib.tw_tensor_dtype(tensor)], lib.tw_tensor_count(tensor)
    if dtype != string:
        data = c.string_at(lib.tw_tensor_data(tensor), count * dtype.itemsize) if count else b""
        return np.frombuffer(data, dtype).reshape(shape)
    texts, at, size = np.empty(count, object), P(), U64()
    for i in range(count):
        check(lib.tw_tensor_get_string(tensor, i, c.byref(at), c.byref(size)))
        texts[i] = c.string_at(at, size.value)
    return texts.reshape(shape)


def set_attr(op, name, value):
    """Tuples are shapes (None: unknown), lists are lists of whole numbers or of types, arrays are tensors."""
    name = name.encode()
    if isinstance(value, bool):
        lib.tw_op_set_bool(op, name, value)
    elif isinstance(value, (np.dtype, type, Type)):
        lib.tw_op_set_type(op, name, number_of(value))
    elif isinstance(value, int):
        lib.tw_op_set_int(op, name, value)
    elif isinstance(value, float):
        lib.tw_op_set_float(op, name, value)
    elif isinstance(value, str):
        lib.tw_op_set_string(op, name, value.encode(), len(value.encode()))
    elif value is None or isinstance(value, tuple):
        lib.tw_op_set_shape(op, name, (c.c_int64 * max(1, len(value or ())))(*(value or ())), -1 if value is None else len(value))
    elif isinstance(value, np.ndarray):
        tensor = to_tensor(value)
        lib.tw_op_set_tensor(op, name, tensor)
        lib.tw_tensor_release(tensor)
    elif value and isinstance(value[0], (np.dtype, type, Type)):
        lib.tw_op_set_types(op, name, (U32 * len(value))(*map(number_of, value)), len(value))
    else:
        lib.tw_op_set_ints(op, name, (c.c_int64 * max(1, len(value)))(*value), len(value))


# How values come in: the planner may fold a constant; what is fed has no rank before the step, or its shape, which is all that is known of
# it; what another op computes lies in memory that an op may write over.
WAYS = ("constant", "fed", "shaped", "computed")


class Graph:
    """Values are plain numbers (tw_output), operations are addresses."""

    def __init__(self):
        self.handle = made(lib.tw_graph_create, None)
        weakref.finalize(self, lib.tw_graph_destroy, self.handle)

    def operation(self, op, *inputs, name=None, after=(), **attrs):
        builder = lib.tw_op_create(self.handle, op.encode(), name and name.encode())
        for value in inputs:
            lib.tw_op_add_input(builder, value)
        for before in after:
            lib.tw_op_add_control(builder, before)
        for attr, value in attrs.items():
            set_attr(builder, attr, value)
        return made(lib.tw_op_finish, builder).value

    def outputs(self, operation):
        return [lib.tw_operation_output(operation, i) for i in range(lib.tw_operation_output_count(operation))]

    def op(self, op, *inputs, **more):
        """Output 0 of a new operation."""
        return lib.tw_operation_output(self.operation(op, *inputs, **more), 0)

    def placeholder(self, dtype, shape=None):
        return self.op("Placeholder", dtype=dtype, shape=shape)

    def constant(self, array):
        array = np.asarray(array)
        return self.op("Const", value=array, dtype=array.dtype)

    def enter(self, array, how, feeds):
        """The array as a value, by one of the WAYS; what has to be fed for it is added to `feeds`."""
        if how == "constant":
            return self.constant(array)
        value = self.placeholder(array.dtype, array.shape if how == "shaped" else None)
        feeds[value] = array
        if how != "computed":
            return value
        yes = self.placeholder(np.bool_)
        feeds[yes] = np.bool_(True)
        return self.op("SelectV2", yes, value, value)

    def describe(self, value):
        """Element type and shape, as far as they are known; None: the rank is unknown."""
        class Shape(c.Structure):
            _fields_ = [("dims", c.POINTER(c.c_int64)), ("rank", I32), ("reserved", U32)]
        dtype, shape = U32(), Shape()
        check(lib.tw_graph_describe(self.handle, value, c.byref(dtype), c.byref(shape)))
        return dtype.value, None if shape.rank < 0 else tuple(shape.dims[i] for i in range(shape.rank))

    def gradients(self, ys, xs, dys=None):
        out = (Gradient * max(1, len(xs)))()
        check(lib.tw_gradients_add(self.handle, (U64 * len(ys))(*ys), dys and (U64 * len(dys))(*dys), len(ys), (U64 * len(xs))(*xs),
                                   len(xs), out))
        return list(out)[:len(xs)]

    def verify(self):
        """Refuses a graph with an operation that no device has a kernel for."""
        data = made(lib.tw_graph_export, self.handle)
        try:
            check(lib.tw_graph_verify(None, lib.tw_buffer_data(data), lib.tw_buffer_bytes(data)))
        finally:
            lib.tw_buffer_release(data)

    def session(self, *options):
        return Session(self, options)


class Session:
    def __init__(self, graph, options=()):
        texts = (S * max(1, len(options)))(*[o.encode() for o in options])
        self.handle = made(lib.tw_session_create, graph.handle, texts, len(options))
        weakref.finalize(self, lib.tw_session_destroy, self.handle)

    def run(self, fetches, feeds=None, targets=(), read=to_array):
        """One step; feeds: arrays by value. Answers the fetched arrays, or what `read` makes of the tensors."""
        feeds = feeds or {}
        tensors, results = [to_tensor(x) for x in feeds.values()], (P * max(1, len(fetches)))()
        lists = (U64 * max(1, len(feeds)))(*feeds), (U64 * max(1, len(fetches)))(*fetches), (P * max(1, len(targets)))(*targets)
        what = Signature(c.sizeof(Signature), 0, *map(c.addressof, lists), len(feeds), len(fetches), len(targets), 0)
        try:
            check(lib.tw_session_run(self.handle, c.byref(what), (P * max(1, len(tensors)))(*[t.value for t in tensors]), None, results))
            return [read(r) for r in results[:len(fetches)]]
        finally:
            for tensor in tensors + list(results):
                lib.tw_tensor_release(tensor)


def run(op, inputs, outputs=None, how="fed", **attrs):
    """The outputs of one op, or as many as are asked for, as arrays. how: as Graph.enter."""
    graph, feeds = Graph(), {}
    values = [graph.enter(np.asarray(x), how, feeds) for x in inputs]
    results = graph.outputs(graph.operation(op, *values, name="op", **attrs))
    return graph.session().run(results[:outputs], feeds)


def ops():
    """{name: (schema, why it is not differentiable)} of every op that the runtime knows."""
    handle = made(lib.tw_ops_create, None)
    try:
        return {lib.tw_ops_name(handle, i).decode(): (lib.tw_ops_schema(handle, i).decode(), lib.tw_ops_no_gradient(handle, i).decode())
                for i in range(lib.tw_ops_count(handle))}
    finally:
        lib.tw_ops_destroy(handle)
