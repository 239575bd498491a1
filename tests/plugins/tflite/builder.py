"""Writes TensorFlow Lite files of single operators with TensorFlow's schema, and runs files in its interpreter."""
import flatbuffers
import numpy as np
import tensorflow as tf
from tensorflow.lite.python import schema_py_generated as schema

TYPES = {np.float32: "FLOAT32", np.float16: "FLOAT16", np.int32: "INT32", np.uint8: "UINT8", np.int64: "INT64", np.bool_: "BOOL", np.int16: "INT16",
         np.complex64: "COMPLEX64", np.int8: "INT8", np.float64: "FLOAT64", np.uint32: "UINT32", np.uint64: "UINT64"}


class Given:
    """An input that the program gives; an array alone is a constant. scale and zero: a scalar, or one for each index of `axis`."""

    def __init__(self, value, scale=None, zero=0, axis=0):
        self.value, self.scale, self.zero, self.axis, self.given = np.asarray(value), scale, zero, axis, True


class Stored(Given):
    """A constant that is quantised."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.given = False


class Result:
    """An output of a type. The interpreter knows its shape."""

    def __init__(self, dtype=np.float32, scale=None, zero=0):
        self.dtype, self.scale, self.zero, self.axis = np.dtype(dtype), scale, zero, 0


def quantization(of):
    q = schema.QuantizationParametersT()
    q.scale = np.atleast_1d(np.asarray(of.scale, np.float32))
    q.zeroPoint = np.atleast_1d(np.asarray(of.zero, np.int64))
    q.quantizedDimension = of.axis
    return q


class Builder:
    """A model of one subgraph."""

    def __init__(self):
        self.model, self.graph = schema.ModelT(), schema.SubGraphT()
        self.model.version, self.model.description = 3, b"made by tests"
        self.model.buffers, self.model.operatorCodes, self.model.subgraphs = [schema.BufferT()], [], [self.graph]
        self.graph.tensors, self.graph.inputs, self.graph.outputs, self.graph.operators = [], [], [], []
        self.fed = {}

    def tensor(self, name, dtype, shape, data=None):
        t = schema.TensorT()
        t.name, t.type, t.shape = name.encode(), getattr(schema.TensorType, TYPES[np.dtype(dtype).type]), list(shape)
        t.buffer = 0
        if data is not None:
            t.buffer = len(self.model.buffers)
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(np.ascontiguousarray(data).tobytes(), np.uint8)
            self.model.buffers.append(buffer)
        self.graph.tensors.append(t)
        return len(self.graph.tensors) - 1

    def input(self, value):
        if value is None:
            return -1
        if not isinstance(value, Given):
            value = Stored(value)
        name = f"x{len(self.graph.inputs)}" if value.given else f"c{len(self.graph.tensors)}"
        at = self.tensor(name, value.value.dtype, value.value.shape, None if value.given else value.value)
        if value.scale is not None:
            self.graph.tensors[at].quantization = quantization(value)
        if value.given:
            self.graph.inputs.append(at)
            self.fed[name] = value.value
        return at

    def operator(self, name, inputs, outputs, options=None, version=1, **fields):
        code = schema.OperatorCodeT()
        code.builtinCode = getattr(schema.BuiltinOperator, name)
        code.deprecatedBuiltinCode, code.version = min(code.builtinCode, 127), version
        op = schema.OperatorT()
        op.opcodeIndex, op.inputs, op.outputs = len(self.model.operatorCodes), inputs, outputs
        self.model.operatorCodes.append(code)
        if options:
            table = getattr(schema, options + "T")()
            for key, value in fields.items():
                assert hasattr(table, key), (options, key)
                setattr(table, key, value)
            second = hasattr(schema.BuiltinOptions2, options)
            setattr(op, "builtinOptions2Type" if second else "builtinOptionsType",
                    getattr(schema.BuiltinOptions2 if second else schema.BuiltinOptions, options))
            setattr(op, "builtinOptions2" if second else "builtinOptions", table)
        self.graph.operators.append(op)

    def result(self, of):
        at = self.tensor(f"y{len(self.graph.outputs)}", of.dtype, [])
        if of.scale is not None:
            self.graph.tensors[at].quantization = quantization(of)
        self.graph.outputs.append(at)
        return at

    def bytes(self):
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def single(name, inputs, outputs=None, options=None, version=1, **fields):
    """Returns a file with one operator, and the values of its inputs by name."""
    b = Builder()
    at = [b.input(value) for value in inputs]
    b.operator(name, at, [b.result(of) for of in outputs or [Result()]], options, version, **fields)
    return b.bytes(), b.fed


def interpreter_of(data, plain=False):
    """The interpreter with its reference kernels, or, if `plain` or for operators that have none, with those for every day."""
    resolvers = tf.lite.experimental.OpResolverType
    try:
        if not plain:
            return tf.lite.Interpreter(model_content=data, experimental_op_resolver_type=resolvers.BUILTIN_REF)
    except ValueError:
        pass
    return tf.lite.Interpreter(model_content=data, experimental_op_resolver_type=resolvers.BUILTIN_WITHOUT_DEFAULT_DELEGATES)


def run(data, fed, plain=False):
    """Runs a file without signatures. Returns the outputs by name."""
    interpreter = interpreter_of(data, plain)
    for detail in interpreter.get_input_details():
        interpreter.resize_tensor_input(detail["index"], fed[detail["name"]].shape)
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], fed[detail["name"]])
    interpreter.invoke()
    return {detail["name"]: interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()}


def run_signature(data, fed, key=None):
    """Runs a signature of a file. Returns the outputs by name."""
    return interpreter_of(data).get_signature_runner(key)(**fed)
