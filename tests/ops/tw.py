"""The layer of the tests of ops over the Python binding: raw operations, also invalid ones; inputs that are given in each of the WAYS;
steps that return lists of arrays. Tests make raw calls through `low`. Arrays of bytes objects (dtype object) are string tensors; types
that NumPy lacks are structured ones (ABSENT), so that no package is needed for them."""
import ctypes as c
import dataclasses
import functools
import itertools
import os
import re

import numpy as np

import thalweg
from thalweg import Error, Tensor, _low as low, attributes
from thalweg.errors import made
from thalweg.output import Operation, Output

# The types that NumPy lacks, each as a structure of one field with the type's name.
ABSENT = {name: np.dtype([(name, f"u{size}")]) for size, names in (
    (1, "qint8 quint8 float8_e5m2 float8_e4m3fn float8_e4m3fnuz float8_e4m3b11fnuz float8_e5m2fnuz int4 uint4 int2 uint2"),
    (2, "bfloat16 qint16 quint16"), (4, "qint32")) for name in names.split()}
bfloat16 = ABSENT["bfloat16"]
string = np.dtype(object)


def to_bfloat16(array):
    """Rounds to the nearest bfloat16, ties to even; NaN stays NaN."""
    bits = np.asarray(array, np.float32).view(np.uint32).astype(np.int64)
    rounded = np.where(np.isnan(array), 0x7fc0, (bits + 0x7fff + (bits >> 16 & 1)) >> 16)
    return np.asarray(rounded, np.uint16).view(bfloat16)


def from_bfloat16(array):
    return np.asarray(np.asarray(array).view(np.uint16).astype(np.int64) << 16, np.uint32).view(np.float32)


@functools.cache
def number_of(kind):
    """Returns the number of an element type, which the binding or NumPy names."""
    return thalweg.as_dtype(kind.names[0] if isinstance(kind, np.dtype) and kind.names else kind).number


def number_name(kind):
    return low.tw_dtype_name(number_of(kind)).decode()


def numpy_of(dtype):
    return ABSENT.get(dtype.name) or dtype.numpy


def to_tensor(array):
    """Makes a tensor of the array without a conversion: the runtime gets an array of a wrong type unchanged."""
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


class Func(str):
    """The name of a function, as the value of an attribute."""


def set_funcs(op, name, functions):
    low.tw_op_set_funcs(op, name, attributes._strings([f.encode() for f in functions]), len(functions))


def set_list(op, name, values):
    if values and isinstance(values[0], Func):
        set_funcs(op, name, values)
    elif values and isinstance(values[0], (tuple, type(None))):
        attributes._set_shapes(op, name, values)
    elif values and isinstance(values[0], str):
        low.tw_op_set_strings(op, name, attributes._strings([t.encode() for t in values]), len(values))
    elif values and isinstance(values[0], TYPES):
        low.tw_op_set_types(op, name, (c.c_uint32 * len(values))(*map(number_of, values)), len(values))
    elif values and isinstance(values[0], float):
        low.tw_op_set_floats(op, name, (c.c_double * len(values))(*values), len(values))
    else:
        low.tw_op_set_ints(op, name, (c.c_int64 * len(values))(*values), len(values))


# The functions that set attributes. Tuples are shapes (None: unknown rank), lists have numbers, texts, shapes or types, arrays are tensors.
SETTERS = ((bool, low.tw_op_set_bool), (TYPES, lambda op, name, kind: low.tw_op_set_type(op, name, number_of(kind))),
           (int, low.tw_op_set_int), (float, low.tw_op_set_float), (Func, lambda op, name, f: low.tw_op_set_func(op, name, f.encode())),
           (str, lambda op, name, text: low.tw_op_set_string(op, name, text.encode(), len(text.encode()))),
           (bytes, lambda op, name, text: low.tw_op_set_string(op, name, text, len(text))),
           ((tuple, type(None)), set_shape), ((np.ndarray, Tensor), set_tensor), (list, set_list))


@functools.cache
def setter_of(kind):
    return next(setter for kinds, setter in SETTERS if issubclass(kind, kinds))


# The ways to give values: the planner may fold a constant; a feed has no known rank before the step ("fed"), or a known shape ("shaped");
# a value that another op computes is in memory that the op may overwrite.
WAYS = ("constant", "fed", "shaped", "computed")


class Graph:
    """A graph of the binding, to which tests add valid and invalid operations."""

    def __init__(self):
        self.graph = thalweg.Graph()

    def add(self, op, *inputs, **more):
        """Adds an operation and returns it."""
        return Operation(self.graph, self._add(op, inputs, **more))

    def op(self, op, *inputs, **more):
        """Adds an operation and returns its output 0."""
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
        """Returns the array as a value, by one of the WAYS, or `late`: nothing is known of it, not even its shape, before other kernels
        have run. Adds the necessary feeds to `feeds`."""
        if how == "constant":
            return self.constant(array)
        if how == "late":
            return self.late(array, feeds)
        value = self.placeholder(array.dtype, array.shape if how == "shaped" else None)
        feeds[value] = array
        if how != "computed":
            return value
        yes = self.placeholder(np.bool_)
        feeds[yes] = np.bool_(True)
        return self.op("SelectV2", yes, value, value)

    def late(self, array, feeds):
        value, shape = self.placeholder(array.dtype), self.constant(np.array(array.shape, np.int64))
        feeds[value] = array
        yes = self.op("Less", self.op("RandomUniform", self.constant(np.zeros(0, np.int32)), dtype=np.dtype(np.float32)),
                      self.constant(np.float32(1)))
        rank = self.constant(np.array([array.ndim], np.int64))
        known = self.op("Slice", shape, self.constant(np.zeros(1, np.int64)), self.op("SelectV2", yes, rank, rank))
        return self.op("Reshape", self.op("SelectV2", yes, value, value), known)

    def variable(self, x, how="fed", reference=False):
        """Makes a variable. Returns (its handle or reference, a list of the operations that assign its value, its handle)."""
        known = dict(dtype=x.dtype, shape=x.shape if how == "shaped" else None, shared_name=f"variable {next(_variables)}")
        handle = self.op("VarHandleOp", **known)
        start = [self.add("AssignVariableOp", handle, self.constant(x.array), dtype=x.dtype)] if x.set else []
        return self.op("VariableV2", **known) if reference else handle, start, handle

    def list(self, x, how, feeds):
        """Returns the rows of the array as a list, whose elements may have any shape; the array is given by one of the WAYS."""
        rows, any_shape = self.enter(x.array, how, feeds), self.constant(np.int32(-1))
        return self.op("TensorListFromTensor", rows, any_shape, element_dtype=x.dtype, shape_type=np.int32)

    def session(self, **options):
        return Session(self.graph, **options)


_variables = itertools.count()  # their names


@dataclasses.dataclass
class Held:
    """Stands for an input that refers to an array. It has the attributes of the array."""
    array: np.ndarray

    def __post_init__(self):
        self.array = np.asarray(self.array)
        self.dtype, self.shape, self.ndim, self.size = self.array.dtype, self.array.shape, self.array.ndim, self.array.size

    def __array__(self, dtype=None, copy=None):
        return np.array(self.array, dtype)

    def __len__(self):
        return len(self.array)

    def tolist(self):
        return self.array.tolist()


@dataclasses.dataclass
class Variable(Held):
    """Stands for an input that is a handle of a variable, or a reference to one. The variable holds the array or, if not `set`, nothing."""
    set: bool = True


@dataclasses.dataclass
class List(Held):
    """Stands for an input that is a variant: a list of the array's rows."""


def fed(array):
    """Returns the array in a form that the binding can feed."""
    return array if isinstance(array, Tensor) or array.dtype.kind != "V" else to_tensor(array)


# The default options of sessions: THALWEG_TEST_SESSION, "key=value" separated by blanks, runs the whole suite on a device.
SESSION = dict(option.split("=", 1) for option in os.environ.get("THALWEG_TEST_SESSION", "").split())


def runtime(**options):
    """Returns a new runtime, with the options of the default one from THALWEG_OPTIONS."""
    given = dict(option.split("=", 1) for option in os.environ.get("THALWEG_OPTIONS", "").split(";") if option)
    return thalweg.Runtime(**{**given, **options})


class Session(thalweg.Session):
    def __init__(self, graph, **options):
        super().__init__(graph, **{**SESSION, **options})

    def run(self, fetches, feeds=None, targets=()):
        """Runs one step. Returns the fetched arrays."""
        feeds = {x: fed(array) for x, array in (feeds or {}).items()}
        return list(map(to_array, super().run([*fetches, *targets], feeds, as_tensors=True)[:len(fetches)]))

    def step(self, fetches, feeds=(), targets=(), read=to_array, timeout=None):
        """Prepares a step. Returns a function of the fed arrays, which returns the tensors as `read` converts them. timeout: in seconds."""
        run = self.callable(fetches, feeds, targets)
        return lambda arrays: list(map(read, run(*map(fed, arrays), timeout=timeout, as_tensors=True)))


class Call:
    """One op in a graph of its own. enter(graph, array, feeds): an input as a value; how: as Graph.enter. Variables among the inputs get
    their values in the step of the op and are read after it. results: the op's outputs, then what each variable holds."""

    def __init__(self, op, inputs, how, attrs, enter=None):
        self.graph, self.feeds, handles, start = Graph(), {}, [], []
        references = referred(op)
        values = []
        for k, x in enumerate(inputs):
            if isinstance(x, Variable):
                value, before, handle = self.graph.variable(x, how, k in references)
                start += before
                handles.append((handle, x.dtype))
            elif isinstance(x, List):
                value = self.graph.list(x, how, self.feeds)
            else:
                value = enter(self.graph, x, self.feeds) if enter else self.graph.enter(np.asarray(x), how, self.feeds)
            values.append(value)
        self.operation = self.graph.add(op, *values, name="op", after=start, **attrs)
        self.results = [self.consumed(y) if how == "computed" else y for y in self.operation.outputs]
        if handles:
            self.results += [self.graph.op("ReadVariableOp", handle, dtype=dtype, after=[self.operation]) for handle, dtype in handles]

    def consumed(self, y):
        """Passes y through another op, because a fetched value itself never shares the memory of an input."""
        if y.dtype.name in ("resource", "variant"):
            return y
        yes = self.graph.placeholder(np.bool_)
        self.feeds[yes] = np.bool_(True)
        return self.graph.op("SelectV2", yes, y, y)

    def step(self, outputs=None, read=to_array, **options):
        """Runs one step. Returns its results, or the first `outputs` of them."""
        results = self.results[:outputs]
        return self.graph.session(**options).step(results, self.feeds, [] if results else [self.operation], read)(self.feeds.values())


@functools.cache
def referred(op):
    """Returns the inputs of the op that are references to variables."""
    about = ops().get(op)
    names = re.findall(r"(\w+)\s*:\s*ref\(", about["schema"].partition("->")[0]) if about else []
    return {k for k, x in enumerate(about["inputs"]) if x["name"] in names} if names else set()


@functools.cache
def refers_to_its_variable(op):
    """Returns whether the op's output is a reference to the variable that it changes."""
    about = ops()[op]
    return bool(referred(op)) and "ref(" in about["schema"].partition("->")[2].partition(";")[0]


def run(op, inputs, outputs=None, how="fed", **attrs):
    """Runs one op. Returns its outputs and then the values of its variables, or the first `outputs` of these, as arrays. how: as in
    Graph.enter."""
    return Call(op, inputs, how, attrs).step(outputs)


@functools.cache
def ops():
    """Returns the schemas of every op that the runtime knows, by name, like Runtime.ops."""
    return thalweg.Runtime.default().ops()
