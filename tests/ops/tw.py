"""The public C API through ctypes: as much of it as the oracle tests need. One call of run() builds a graph of one op, with its inputs fed or
constant, and runs it."""
import ctypes as c
import os
import pathlib

import numpy as np

lib = c.CDLL(str(pathlib.Path(os.environ.get("THALWEG_LIBRARY", "libthalweg.so"))))
for name, result in {
    "tw_status_message": c.c_char_p, "tw_scope_create": c.c_void_p, "tw_scope_finish": c.c_void_p, "tw_scope_begin": c.c_void_p,
    "tw_scope_end": c.c_uint64, "tw_scope_output": c.c_uint64, "tw_scope_placeholder": c.c_uint64, "tw_scope_constant": c.c_uint64,
    "tw_tensor_data": c.c_void_p, "tw_tensor_dims": c.POINTER(c.c_int64), "tw_graph_create": c.c_void_p, "tw_session_create": c.c_void_p,
    "tw_session_run": c.c_void_p, "tw_tensor_create_copy": c.c_void_p, "tw_tensor_rank": c.c_uint32, "tw_tensor_dtype": c.c_uint32,
}.items():
    getattr(lib, name).restype = result

DTYPES = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "int64": 9, "bool": 10, "uint16": 17, "float16": 19}
NAMES = {number: name for name, number in DTYPES.items()}


class Error(Exception):
    pass


class Signature(c.Structure):
    _fields_ = [("size", c.c_uint32), ("flags", c.c_uint32), ("feeds", c.c_void_p), ("fetches", c.c_void_p), ("targets", c.c_void_p),
                ("n_feeds", c.c_uint32), ("n_fetches", c.c_uint32), ("n_targets", c.c_uint32), ("reserved", c.c_uint32)]


def check(status):
    if status:
        text = lib.tw_status_message(c.c_void_p(status)).decode()
        lib.tw_status_release(c.c_void_p(status))
        raise Error(text)


def to_tensor(array):
    array = np.asarray(array)
    shape = array.shape  # np.ascontiguousarray would make a vector of a scalar
    array = np.ascontiguousarray(array)
    out = c.c_void_p()
    dims = (c.c_int64 * max(1, len(shape)))(*shape)
    check(lib.tw_tensor_create_copy(DTYPES[array.dtype.name], dims, len(shape), c.c_void_p(array.ctypes.data), c.c_uint64(array.nbytes), c.byref(out)))
    return out


def to_array(tensor):
    rank = lib.tw_tensor_rank(tensor)
    shape = tuple(lib.tw_tensor_dims(tensor)[i] for i in range(rank))
    dtype = np.dtype(NAMES[lib.tw_tensor_dtype(tensor)])
    n = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    data = c.string_at(lib.tw_tensor_data(tensor), n) if n else b""
    return np.frombuffer(data, dtype).reshape(shape)


def set_attr(op, name, value):
    name = name.encode()
    if isinstance(value, bool):
        lib.tw_op_set_bool(op, name, c.c_uint8(value))
    elif isinstance(value, int):
        lib.tw_op_set_int(op, name, c.c_int64(value))
    elif isinstance(value, float):
        lib.tw_op_set_float(op, name, c.c_double(value))
    elif isinstance(value, str):
        lib.tw_op_set_string(op, name, value.encode(), c.c_uint64(len(value)))
    elif isinstance(value, (np.dtype, type)):
        lib.tw_op_set_type(op, name, c.c_uint32(DTYPES[np.dtype(value).name]))
    else:
        lib.tw_op_set_ints(op, name, (c.c_int64 * max(1, len(value)))(*value), c.c_uint32(len(value)))


def run(op_type, inputs, outputs=1, fed=True, **attrs):
    """Outputs of one op as arrays. fed: inputs come in with the step and their rank is unknown before, so that shapes are inferred while it
    runs or planned for these sizes; otherwise they are constants and the planner may fold the op."""
    graph, session = c.c_void_p(), c.c_void_p()
    check(lib.tw_graph_create(None, c.byref(graph)))
    tensors, results = [to_tensor(x) for x in inputs], (c.c_void_p * outputs)()
    try:
        scope = c.c_void_p(lib.tw_scope_create(graph, None))
        edges = []
        for i, (tensor, x) in enumerate(zip(tensors, inputs)):
            if fed:
                edges.append(lib.tw_scope_placeholder(scope, b"in%d" % i, c.c_uint32(DTYPES[np.asarray(x).dtype.name]), None, -1))
            else:
                edges.append(lib.tw_scope_constant(scope, tensor))
        op = c.c_void_p(lib.tw_scope_begin(scope, op_type.encode(), b"op"))
        for edge in edges:
            lib.tw_op_add_input(op, c.c_uint64(edge))
        for name, value in attrs.items():
            set_attr(op, name, value)
        first = lib.tw_scope_end(scope, op)
        fetches = (c.c_uint64 * outputs)(*[lib.tw_scope_output(scope, c.c_uint64(first), i) for i in range(outputs)])
        check(lib.tw_scope_finish(scope))
        check(lib.tw_session_create(graph, None, 0, c.byref(session)))
        n = len(inputs) if fed else 0
        feeds, values = (c.c_uint64 * max(1, len(edges)))(*edges), (c.c_void_p * max(1, len(edges)))(*[t.value for t in tensors])
        what = Signature(c.sizeof(Signature), 0, c.addressof(feeds), c.addressof(fetches), None, n, outputs, 0, 0)
        check(lib.tw_session_run(session, c.byref(what), values, None, results))
        return [to_array(c.c_void_p(r)) for r in results]
    finally:
        for t in list(tensors) + [c.c_void_p(r) for r in results]:
            lib.tw_tensor_release(t)
        lib.tw_session_destroy(session)
        lib.tw_graph_destroy(graph)
