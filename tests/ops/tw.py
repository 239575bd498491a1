"""What the tests of ops need on top of the Python binding: operations that are described raw, wrong ones too; inputs that come in each of
the WAYS; steps that answer lists of arrays. Tests that need raw calls make them through `low`.
Arrays of bytes objects (dtype object) are string tensors; types that NumPy lacks are structured ones (ABSENT), so that no package is
needed for them."""
import ctypes as c
import functools
import os

import numpy as np

import thalweg
from thalweg import Error, Tensor, _low as low
from thalweg.errors import made
from thalweg.output import Operation, Output

# The types that NumPy lacks, as structures of one field of that name.
ABSENT = {name: np.dtype([(name, f"u{size}")]) for size, names in (
    (1, "qint8 quint8 float8_e5m2 float8_e4m3fn float8_e4m3fnuz float8_e4m3b11fnuz float8_e5m2fnuz int4 uint4 int2 uint2"),
    (2, "bfloat16 qint16 quint16"), (4, "qint32")) for name in names.split()}
bfloat16 = ABSENT["bfloat16"]
string = np.dtype(object)


def to_bfloat16(array):
    """Rounded to the nearest, halves to even; NaN stays NaN."""
    bits = np.asarray(array, np.float32).view(np.uint32).astype(np.int64)
    rounded = np.where(np.isnan(array), 0x7fc0, (bits + 0x7fff + (bits >> 16 & 1)) >> 16)
    return np.asarray(rounded, np.uint16).view(bfloat16)


def from_bfloat16(array):
    return np.asarray(np.asarray(array).view(np.uint16).astype(np.int64) << 16, np.uint32).view(np.float32)


@functools.cache
def number_of(kind):
    """Of an element type, as the binding and NumPy name it."""
    return thalweg.as_dtype(kind.names[0] if isinstance(kind, np.dtype) and kind.names else kind).number


def number_name(kind):
    return low.tw_dtype_name(number_of(kind)).decode()


def numpy_of(dtype):
    return ABSENT.get(dtype.name) or dtype.numpy


def to_tensor(array):
    """Nothing of the array is converted: what is of the wrong type goes to the runtime as it is."""
    array = np.asarray(array)
    if array.dtype.kind != "V":
        return Tensor(array)
    array = array.copy()  # dense
    return Tensor._adopt(made(low.tw_tensor_create_copy, number_of(array.dtype), (c.c_int64 * array.ndim)(*array.shape), array.ndim,
                              array.ctypes.data, array.nbytes))


def to_array(tensor):
    absent = ABSENT.get(tensor.dtype.name)
    if absent is None:
        return tensor.numpy()
    bits = c.string_at(low.tw_tensor_data(tensor._handle), tensor.nbytes) if tensor.nbytes else b""
    return np.frombuffer(bits, absent).reshape(tensor.shape)


TYPES = (np.dtype, type, thalweg.DType)


def set_shape(op, name, dims):
    low.tw_op_set_shape(op, name, (c.c_int64 * len(dims or ()))(*(dims or ())), -1 if dims is None else len(dims))


def set_tensor(op, name, array):
    tensor = array if isinstance(array, Tensor) else to_tensor(array)
    low.tw_op_set_tensor(op, name, tensor._handle)


def set_list(op, name, values):
    if values and isinstance(values[0], TYPES):
        low.tw_op_set_types(op, name, (c.c_uint32 * len(values))(*map(number_of, values)), len(values))
    elif values and isinstance(values[0], float):
        low.tw_op_set_floats(op, name, (c.c_double * len(values))(*values), len(values))
    else:
        low.tw_op_set_ints(op, name, (c.c_int64 * len(values))(*values), len(values))


# How attributes are written. Tuples are shapes (None: of unknown rank), lists are of numbers or of types, arrays are tensors.
SETTERS = ((bool, low.tw_op_set_bool), (TYPES, lambda op, name, kind: low.tw_op_set_type(op, name, number_of(kind))),
           (int, low.tw_op_set_int), (float, low.tw_op_set_float),
           (str, lambda op, name, text: low.tw_op_set_string(op, name, text.encode(), len(text.encode()))),
           ((tuple, type(None)), set_shape), ((np.ndarray, Tensor), set_tensor), (list, set_list))


@functools.cache
def setter_of(kind):
    return next(setter for kinds, setter in SETTERS if issubclass(kind, kinds))


# How values come in: the planner may fold a constant; what is fed has no rank before the step, or its shape, which is all that is known of
# it; what another op computes lies in memory that an op may write over.
WAYS = ("constant", "fed", "shaped", "computed")


class Graph:
    """A graph of the binding's, to which operations are added whether they are right or wrong."""

    def __init__(self):
        self.graph = thalweg.Graph()

    def add(self, op, *inputs, **more):
        """A new operation."""
        return Operation(self.graph, self._add(op, inputs, **more))

    def op(self, op, *inputs, **more):
        """Output 0 of a new operation."""
        return Output(self.graph, low.tw_operation_output(self._add(op, inputs, **more), 0))

    def _add(self, op, inputs, name=None, after=(), **attrs):
        builder = low.tw_op_create(self.graph._handle, op.encode(), name and name.encode())
        for value in inputs:
            low.tw_op_add_input(builder, value.number)
        for before in after:
            low.tw_op_add_control(builder, before._handle)
        for attr, value in attrs.items():
            setter_of(type(value))(builder, attr.encode(), value)
        return made(low.tw_op_finish, builder)

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

    def session(self, **options):
        return Session(self.graph, **options)


def fed(array):
    """What the binding can be fed for it."""
    return array if isinstance(array, Tensor) or array.dtype.kind != "V" else to_tensor(array)


# How sessions are made where a test does not say: THALWEG_TEST_SESSION, "key=value" separated by blanks, puts the whole suite on a device.
SESSION = dict(option.split("=", 1) for option in os.environ.get("THALWEG_TEST_SESSION", "").split())


class Session(thalweg.Session):
    def __init__(self, graph, **options):
        super().__init__(graph, **{**SESSION, **options})

    def run(self, fetches, feeds=None, targets=()):
        """One step. Answers the fetched arrays."""
        feeds = {x: fed(array) for x, array in (feeds or {}).items()}
        return list(map(to_array, super().run([*fetches, *targets], feeds, as_tensors=True)[:len(fetches)]))

    def step(self, fetches, feeds=(), targets=(), read=to_array):
        """The same, prepared: a function of the arrays, which answers what `read` makes of the tensors."""
        run = self.callable(fetches, feeds, targets)
        return lambda arrays: list(map(read, run(*map(fed, arrays), as_tensors=True)))


def run(op, inputs, outputs=None, how="fed", **attrs):
    """The outputs of one op, or as many as are asked for, as arrays. how: as Graph.enter."""
    graph, feeds = Graph(), {}
    values = [graph.enter(np.asarray(x), how, feeds) for x in inputs]
    results = graph.add(op, *values, name="op", **attrs).outputs
    return graph.session().step(results[:outputs], feeds)(feeds.values())


@functools.cache
def ops():
    """The schemas of every op that the runtime knows, by name, as Runtime.ops."""
    return thalweg.Runtime.default().ops()
