"""Writes operators.npz and nets.npz: TensorFlow Lite files with inputs and the results of TensorFlow's interpreter. Also limits.npz: files
that an importer must refuse, and constants that are stored without their zeros.

usage: make.py [FOLDER]     needs tensorflow; made with 2.21

The keys are NAME/file (the bytes), NAME/in/INPUT and NAME/out/OUTPUT. Operators are written with TensorFlow's schema, one in each file; nets
come from its converter."""
import pathlib
import sys

import numpy as np
import tensorflow as tf

from builder import Builder, Given, Result, Stored, quantization, run, run_signature, single

rng = np.random.default_rng(11)


def floats(*shape, scale=1.0):
    return (rng.normal(size=shape) * scale).astype(np.float32)


def given(*shape, scale=1.0):
    return Given(floats(*shape, scale=scale))


def whole(*shape, low=-9, high=10, dtype=np.int32):
    return rng.integers(low, high, shape).astype(dtype)


def i32(*values):
    return np.array(values, np.int32)


def operators():
    """Yields name, file and inputs."""
    def case(key, *arguments, **options):
        return (key, *single(*arguments, **options))

    I32, I64, BOOL = Result(np.int32), Result(np.int64), Result(np.bool_)
    x, small = given(2, 3, 4), given(4)
    for name, options in (("ADD", "AddOptions"), ("SUB", "SubOptions"), ("MUL", "MulOptions"), ("DIV", "DivOptions")):
        yield case(f"{name.lower()}", name, [x, small], options=options)
        yield case(f"{name.lower()}_relu6", name, [x, floats(3, 1)], options=options, fusedActivationFunction=3)
        yield case(f"{name.lower()}_int", name, [Given(whole(5)), whole(5, low=1)], [I32], options=options)
    for name, options, inputs in (
            ("MAXIMUM", "MaximumMinimumOptions", [x, small]), ("MINIMUM", "MaximumMinimumOptions", [x, small]),
            ("POW", "PowOptions", [Given(np.abs(floats(3, 4))), small]), ("SQUARED_DIFFERENCE", "SquaredDifferenceOptions", [x, small]),
            ("FLOOR_DIV", "FloorDivOptions", [x, floats(4)]), ("FLOOR_MOD", "FloorModOptions", [x, floats(4)]), ("ATAN2", "ATan2Options", [x, given(2, 3, 4)])):
        yield case(name.lower(), name, inputs, options=options)
    for name in ("FLOOR_DIV", "FLOOR_MOD"):
        yield case(f"{name.lower()}_int", name, [Given(whole(2, 6)), i32(2, -3, 4, -5, 6, 7)], [I32])
    for name, options in (("LESS", "LessOptions"), ("LESS_EQUAL", "LessEqualOptions"), ("GREATER", "GreaterOptions"),
                          ("GREATER_EQUAL", "GreaterEqualOptions"), ("EQUAL", "EqualOptions"), ("NOT_EQUAL", "NotEqualOptions")):
        yield case(name.lower(), name, [Given(whole(3, 5, low=0, high=3)), whole(5, low=0, high=3)], [BOOL], options=options)
    truth = Given(np.array([True, False, True, False])), np.array([True, True, False, False])
    yield case("logical_and", "LOGICAL_AND", truth, [BOOL])
    yield case("logical_or", "LOGICAL_OR", truth, [BOOL])
    yield case("logical_not", "LOGICAL_NOT", truth[:1], [BOOL])
    yield case("bitwise_xor", "BITWISE_XOR", [Given(whole(6)), whole(6)], [I32])
    yield case("right_shift", "RIGHT_SHIFT", [Given(whole(6)), whole(6, low=0, high=5)], [I32])
    for name in ("ABS", "NEG", "EXP", "SIN", "COS", "SQUARE", "FLOOR", "CEIL", "ROUND", "SIGN", "LOGISTIC", "TANH", "RELU", "RELU6",
                 "RELU_N1_TO_1", "RELU_0_TO_1", "ELU", "HARD_SWISH", "LOG_SOFTMAX", "ZEROS_LIKE"):
        yield case(name.lower(), name, [given(2, 3, 5, scale=4)])
    for name in ("LOG", "SQRT", "RSQRT"):
        yield case(name.lower(), name, [Given(np.abs(floats(2, 7)) + np.float32(0.1))])
    yield case("round_ties", "ROUND", [Given(np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5], np.float32))])
    yield case("leaky_relu", "LEAKY_RELU", [x], options="LeakyReluOptions", alpha=0.3)
    yield case("prelu", "PRELU", [given(2, 3, 3, 4), np.abs(floats(1, 1, 4))])
    for approximate in (False, True):
        yield case(f"gelu_{approximate}".lower(), "GELU", [given(3, 7, scale=2)], options="GeluOptions", approximate=approximate)
    yield case("softmax", "SOFTMAX", [given(2, 5)], options="SoftmaxOptions", beta=1.0)
    yield case("softmax_beta", "SOFTMAX", [given(2, 3, 5)], options="SoftmaxOptions", beta=0.5)
    yield case("add_n", "ADD_N", [given(2, 3), floats(2, 3), given(2, 3)])
    yield case("cast_int", "CAST", [given(7, scale=5)], [I32], options="CastOptions")
    yield case("cast_float", "CAST", [Given(whole(7, dtype=np.int64))], options="CastOptions")
    yield case("cast_bool", "CAST", [Given(np.array([0, 1, 0, 3], np.int32))], [BOOL], options="CastOptions")
    yield case("bitcast", "BITCAST", [given(5)], [I32])
    yield case("select", "SELECT", [Given(np.array([True, False])), given(2, 3), floats(2, 3)])
    yield case("select_v2", "SELECT_V2", [Given(np.array([[True], [False]])), given(2, 3), floats(3)])

    for padding in (0, 1):
        for stride, dilation in ((1, 1), (2, 1), (1, 2)):
            yield case(f"conv_2d_{padding}{stride}{dilation}", "CONV_2D", [given(2, 7, 8, 3), floats(4, 3, 2, 3), floats(4)], options="Conv2DOptions",
                       padding=padding, strideW=stride, strideH=stride, dilationWFactor=dilation, dilationHFactor=dilation,
                       fusedActivationFunction=padding)
            yield case(f"depthwise_{padding}{stride}{dilation}", "DEPTHWISE_CONV_2D", [given(1, 7, 8, 3), floats(1, 3, 2, 6), floats(6)], version=2,
                       options="DepthwiseConv2DOptions", padding=padding, strideW=stride, strideH=stride, depthMultiplier=2,
                       dilationWFactor=dilation, dilationHFactor=dilation, fusedActivationFunction=3 * padding)
    yield case("conv_2d_strides", "CONV_2D", [given(1, 9, 9, 2), floats(3, 3, 3, 2), floats(3)], options="Conv2DOptions", padding=0, strideW=1, strideH=2,
               fusedActivationFunction=2)
    yield case("conv_2d_groups", "CONV_2D", [given(1, 5, 5, 4), floats(6, 3, 3, 2), floats(6)], version=6, options="Conv2DOptions", padding=1, strideW=1,
               strideH=1, fusedActivationFunction=1)
    yield case("transpose_conv", "TRANSPOSE_CONV", [i32(1, 8, 6, 2), floats(2, 3, 2, 3), given(1, 4, 3, 3)], options="TransposeConvOptions", padding=0,
               strideW=2, strideH=2)
    yield case("transpose_conv_bias", "TRANSPOSE_CONV", [i32(2, 5, 5, 2), floats(2, 3, 3, 3), given(2, 3, 3, 3), floats(2)], version=4,
               options="TransposeConvOptions", padding=1, strideW=1, strideH=1, fusedActivationFunction=1)
    yield case("conv_3d", "CONV_3D", [given(1, 4, 5, 6, 2), floats(2, 3, 2, 2, 3), floats(3)], options="Conv3DOptions", padding=0, strideD=1, strideH=2,
               strideW=1)
    yield case("conv_3d_transpose", "CONV_3D_TRANSPOSE", [i32(1, 4, 6, 6, 2), floats(2, 2, 2, 2, 3), given(1, 2, 3, 3, 3)],
               options="Conv3DOptions", padding=0, strideD=2, strideH=2, strideW=2)
    for name in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"):
        for padding in (0, 1):
            yield case(f"{name.lower()}_{padding}", name, [given(2, 6, 7, 3)], options="Pool2DOptions", padding=padding, strideW=2, strideH=1,
                       filterWidth=3, filterHeight=2, fusedActivationFunction=padding)
    yield case("fully_connected", "FULLY_CONNECTED", [given(2, 3, 4), floats(5, 4), floats(5)], options="FullyConnectedOptions",
               fusedActivationFunction=1)
    yield case("fully_connected_keep", "FULLY_CONNECTED", [given(2, 3, 4), floats(5, 4), None], version=5, options="FullyConnectedOptions", keepNumDims=True)
    yield case("batch_matmul", "BATCH_MATMUL", [given(2, 3, 4), given(2, 5, 4)], options="BatchMatMulOptions", adjY=True)
    yield case("embedding_lookup", "EMBEDDING_LOOKUP", [Given(i32(2, 0, 1)), floats(4, 3)])
    yield case("l2_normalization", "L2_NORMALIZATION", [given(2, 2, 3, 4)], options="L2NormOptions")
    yield case("local_response", "LOCAL_RESPONSE_NORMALIZATION", [given(1, 2, 3, 6)], options="LocalResponseNormalizationOptions", radius=2, bias=1.5,
               alpha=0.4, beta=0.6)
    for name in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"):
        options = "ResizeBilinearOptions" if name == "RESIZE_BILINEAR" else "ResizeNearestNeighborOptions"
        for corners, centers in ((False, False), (True, False), (False, True)):
            for size in ((7, 9), (2, 3)):
                yield case(f"{name.lower()}_{corners}_{centers}_{size[0]}".lower(), name, [given(1, 4, 5, 2), i32(*size)], version=3, options=options,
                           alignCorners=corners, halfPixelCenters=centers)

    yield case("reshape", "RESHAPE", [x, i32(4, -1)])
    yield case("reshape_option", "RESHAPE", [x], options="ReshapeOptions", newShape=[6, 4])
    yield case("squeeze", "SQUEEZE", [given(1, 3, 1, 2)], options="SqueezeOptions", squeezeDims=[0, -2])
    yield case("expand_dims", "EXPAND_DIMS", [x, i32(-1)[0]])
    yield case("transpose", "TRANSPOSE", [x, i32(2, 0, 1)])
    yield case("concatenation", "CONCATENATION", [x, floats(2, 1, 4)], options="ConcatenationOptions", axis=-2)
    yield case("pack", "PACK", [given(2, 3), floats(2, 3)], options="PackOptions", axis=1, valuesCount=2)
    yield case("unpack", "UNPACK", [x], [Result()] * 3, options="UnpackOptions", axis=1, num=3)
    yield case("split", "SPLIT", [i32(2)[0], x], [Result()] * 2, options="SplitOptions", numSplits=2)
    yield case("split_v", "SPLIT_V", [x, i32(1, -1), i32(2)[0]], [Result()] * 2, options="SplitVOptions", numSplits=2)
    yield case("slice", "SLICE", [x, i32(0, 1, 1), i32(2, -1, 2)])
    yield case("strided_slice", "STRIDED_SLICE", [x, i32(1, 0, 3), i32(0, 2, 0), i32(1, 1, -2)], options="StridedSliceOptions", shrinkAxisMask=1, endMask=4)
    yield case("strided_slice_offset", "STRIDED_SLICE", [x, i32(0, 1, 1), i32(2, 2, 2), i32(1, 1, 1)], version=8, options="StridedSliceOptions", offset=True)
    yield case("pad", "PAD", [x, np.array([[0, 1], [2, 0], [1, 1]], np.int32)])
    yield case("padv2", "PADV2", [x, np.array([[0, 1], [2, 0], [1, 1]], np.int64), np.float32(2.5)])
    for mode in (0, 1):
        yield case(f"mirror_pad_{mode}", "MIRROR_PAD", [x, np.array([[1, 0], [1, 2], [0, 3]], np.int32)], options="MirrorPadOptions", mode=mode)
    yield case("tile", "TILE", [x, i32(1, 2, 2)])
    yield case("fill", "FILL", [Given(i32(2, 3)), np.float32(1.5)])
    yield case("range", "RANGE", [Given(i32(3)[0]), i32(11)[0], i32(3)[0]], [I32])
    yield case("reverse_v2", "REVERSE_V2", [x, i32(1)])
    yield case("reverse_sequence", "REVERSE_SEQUENCE", [given(3, 4, 2), i32(2, 4, 1)], options="ReverseSequenceOptions", seqDim=1, batchDim=0)
    yield case("broadcast_to", "BROADCAST_TO", [given(3, 1), i32(2, 3, 4)], version=2)
    yield case("broadcast_args", "BROADCAST_ARGS", [Given(i32(3, 1)), i32(2, 1, 4)], [I32])
    yield case("space_to_batch", "SPACE_TO_BATCH_ND", [given(1, 4, 6, 2), i32(2, 3), np.array([[1, 1], [0, 0]], np.int32)])
    yield case("batch_to_space", "BATCH_TO_SPACE_ND", [given(6, 2, 2, 1), i32(2, 3), np.array([[1, 0], [0, 2]], np.int32)])
    yield case("space_to_depth", "SPACE_TO_DEPTH", [given(1, 4, 6, 2)], options="SpaceToDepthOptions", blockSize=2)
    yield case("depth_to_space", "DEPTH_TO_SPACE", [given(1, 2, 3, 8)], options="DepthToSpaceOptions", blockSize=2)
    yield case("shape", "SHAPE", [x], [I64], options="ShapeOptions", outType=4)
    yield case("rank", "RANK", [x], [I32])
    yield case("one_hot", "ONE_HOT", [Given(i32(1, 0, 3)), i32(4)[0], np.float32(2), np.float32(-1)], options="OneHotOptions", axis=0)
    yield case("matrix_diag", "MATRIX_DIAG", [given(2, 3)])
    yield case("matrix_set_diag", "MATRIX_SET_DIAG", [given(2, 3, 3), floats(2, 3)])

    for name in ("MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN"):
        yield case(name.lower(), name, [x, i32(0, -1)], options="ReducerOptions", keepDims=name == "SUM")
    for name in ("REDUCE_ANY", "REDUCE_ALL"):
        yield case(name.lower(), name, [Given(rng.random((3, 4)) > 0.6), i32(1)], [BOOL], options="ReducerOptions", keepDims=True)
    yield case("arg_max", "ARG_MAX", [x, i32(-1)[0]], [I64], options="ArgMaxOptions", outputType=4)
    yield case("arg_min", "ARG_MIN", [x, i32(1)], [I32], options="ArgMinOptions", outputType=2)
    yield case("cumsum", "CUMSUM", [x, i32(1)[0]], options="CumsumOptions", exclusive=True, reverse=True)
    yield case("segment_sum", "SEGMENT_SUM", [given(5, 2), i32(0, 0, 1, 2, 2)])
    for name in ("UNSORTED_SEGMENT_SUM", "UNSORTED_SEGMENT_PROD", "UNSORTED_SEGMENT_MAX", "UNSORTED_SEGMENT_MIN"):
        yield case(name.lower(), name, [given(5, 2), i32(2, 0, 1, 2, 0), i32(3)[0]])

    yield case("gather", "GATHER", [x, Given(i32(2, 0, 2))], options="GatherOptions", axis=1)
    yield case("gather_batch", "GATHER", [given(2, 3, 4), Given(whole(2, 2, low=0, high=3))], version=5, options="GatherOptions", axis=1, batchDims=1)
    yield case("gather_nd", "GATHER_ND", [x, np.array([[0, 2], [1, 1]], np.int32)])
    yield case("scatter_nd", "SCATTER_ND", [np.array([[1], [3], [1]], np.int32), given(3, 2), i32(5, 2)])
    yield case("sparse_to_dense", "SPARSE_TO_DENSE", [np.array([[0, 1], [2, 2]], np.int32), i32(3, 4), given(2), np.float32(-1)],
               options="SparseToDenseOptions")
    yield case("dynamic_update_slice", "DYNAMIC_UPDATE_SLICE", [given(4, 5), floats(2, 3), Given(i32(1, 4))])
    yield case("topk", "TOPK_V2", [given(2, 6), i32(3)[0]], [Result(), I32])
    yield case("unique", "UNIQUE", [Given(i32(3, 1, 3, 2, 1))], [I32, I32], options="UniqueOptions", idxOutType=2)
    yield case("where", "WHERE", [Given(np.array([[True, False], [True, True]]))], [I64])
    yield case("bucketize", "BUCKETIZE", [given(3, 3, scale=2)], [I32], options="BucketizeOptions", boundaries=[-1.0, 0.0, 1.5])
    boxes = np.sort(rng.random((6, 2, 2)), 1).reshape(6, 4).astype(np.float32)
    suppress = [Given(boxes), Given(rng.random(6).astype(np.float32)), i32(4)[0], np.float32(0.3), np.float32(0.05)]
    yield case("nms_v4", "NON_MAX_SUPPRESSION_V4", suppress, [I32, I32])
    yield case("nms_v5", "NON_MAX_SUPPRESSION_V5", suppress + [np.float32(0.5)], [I32, Result(), I32])

    yield case("rfft2d", "RFFT2D", [given(2, 4, 8), i32(4, 8)], [Result(np.complex64)])
    wave = Given((rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3))).astype(np.complex64))
    for name in ("REAL", "IMAG", "COMPLEX_ABS"):
        yield case(name.lower(), name, [wave])
    yield case("fake_quant", "FAKE_QUANT", [given(3, 5, scale=3)], options="FakeQuantOptions", min=-4.0, max=5.0, numBits=8)

    zeros, cell, inside = np.zeros, 3, 2
    for major in (False, True):
        lstm = [given(2, 5, inside)] + [floats(cell, inside) for _ in range(4)] + [floats(cell, cell) for _ in range(4)] + [None] * 3
        lstm += [floats(cell) for _ in range(4)] + [None] * 2
        batch = 5 if major else 2
        lstm += [Given(zeros((batch, cell), np.float32)), Given(zeros((batch, cell), np.float32))]
        yield "lstm_" + str(major).lower(), *states(lstm, timeMajor=major, fusedActivationFunction=4, cellClip=0.0 if major else 1.0)

    yield case("dequantize_half", "DEQUANTIZE", [floats(3, 4).astype(np.float16)], version=2)
    steps = Given(whole(2, 6, low=-128, high=128, dtype=np.int8), 0.05, 3)
    yield case("dequantize_int8", "DEQUANTIZE", [steps], version=2)
    yield case("dequantize_axis", "DEQUANTIZE", [Stored(whole(3, 4, low=-127, high=128, dtype=np.int8), [0.1, 0.2, 0.05], [0, 0, 0], 0)], version=5)
    yield case("quantize_int8", "QUANTIZE", [given(4, 5)], [Result(np.int8, 0.02, -5)])
    yield case("requantize_int8", "QUANTIZE", [steps], [Result(np.int8, 0.1, -4)], version=2)
    yield case("add_int8", "ADD", [steps, Stored(whole(6, low=-128, high=128, dtype=np.int8), 0.03, 0)], [Result(np.int8, 0.07, 1)], version=2,
               options="AddOptions")
    yield case("mul_int8", "MUL", [steps, Stored(whole(6, low=-128, high=128, dtype=np.int8), 0.03, 0)], [Result(np.int8, 0.15, 1)], version=2,
               options="MulOptions")
    yield case("conv_2d_int8", "CONV_2D", [Given(whole(1, 5, 6, 3, low=-128, high=128, dtype=np.int8), 0.04, -3),
                                           Stored(whole(4, 3, 3, 3, low=-127, high=128, dtype=np.int8), [0.01, 0.02, 0.005, 0.01], [0] * 4, 0),
                                           Stored(whole(4, low=-900, high=900), [0.0004, 0.0008, 0.0002, 0.0004], [0] * 4, 0)],
               [Result(np.int8, 0.15, -20)], version=3, options="Conv2DOptions", padding=0, strideW=1, strideH=1, fusedActivationFunction=1)
    yield case("fully_connected_int8", "FULLY_CONNECTED", [Given(whole(2, 8, low=-128, high=128, dtype=np.int8), 0.04, 7),
                                                           Stored(whole(5, 8, low=-127, high=128, dtype=np.int8), 0.01, 0),
                                                           Stored(whole(5, low=-900, high=900), 0.0004, 0)],
               [Result(np.int8, 0.09, 4)], version=4, options="FullyConnectedOptions")
    yield case("average_pool_int8", "AVERAGE_POOL_2D", [Given(whole(1, 4, 4, 2, low=-128, high=128, dtype=np.int8), 0.04, 7)], [Result(np.int8, 0.04, 7)],
               version=2, options="Pool2DOptions", padding=1, strideW=2, strideH=2, filterWidth=2, filterHeight=2)
    yield case("softmax_int8", "SOFTMAX", [Given(whole(2, 6, low=-128, high=128, dtype=np.int8), 0.06, 3)], [Result(np.int8, 1 / 256, -128)], version=2,
               options="SoftmaxOptions", beta=1.0)
    yield case("concatenation_uint8_int8", "CONCATENATION", [Given(whole(2, 3, low=0, high=256, dtype=np.uint8), 0.05, 128), Given(
        whole(2, 2, low=0, high=256, dtype=np.uint8), 0.05, 128)], [Result(np.uint8, 0.05, 128)], options="ConcatenationOptions", axis=1)


def states(inputs, **fields):
    """An LSTM whose last two inputs are states that the runtime keeps."""
    b = Builder()
    at = [b.input(value) for value in inputs]
    for state in at[-2:]:
        b.graph.tensors[state].isVariable = True
        b.graph.inputs.remove(state)
    at += [-1] * (24 - len(at))
    b.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", at, [b.result(Result())], "UnidirectionalSequenceLSTMOptions", **fields)
    names = {b.graph.tensors[i].name.decode() for i in b.graph.inputs}
    return b.bytes(), {key: value for key, value in b.fed.items() if key in names}


# ---- Nets of the converter ----

def converted(function, *specs, **options):
    module = tf.Module()
    module.f = tf.function(function, input_signature=specs)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([module.f.get_concrete_function()], module)
    for key, value in options.items():
        setattr(converter, key, value)
    return converter.convert()


def image_net():
    """A convolution net: inverted residual blocks, pooling, a classifier."""
    tf.keras.utils.set_random_seed(3)
    k = tf.keras.layers
    inputs = x = tf.keras.Input((16, 16, 3), name="x")
    x = k.Conv2D(8, 3, 2, padding="same", use_bias=False)(x)
    x = k.ReLU(6)(k.BatchNormalization()(x))
    y = k.DepthwiseConv2D(3, padding="same")(x)
    x = k.Add()([x, k.Conv2D(8, 1)(k.ReLU(6)(y))])
    x = k.Conv2DTranspose(6, 3, 2, padding="same", activation="tanh")(x)
    x = k.UpSampling2D(2, interpolation="bilinear")(k.MaxPooling2D(2)(x))
    x = k.Dense(5)(k.GlobalAveragePooling2D()(k.LeakyReLU()(x)))
    return tf.keras.Model(inputs, k.Softmax()(x))


def keras_file(model, **options):
    """A file of a Keras model. Its input is named "x" in the model."""
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    for key, value in options.items():
        setattr(converter, key, value)
    return converter.convert()


def nets():
    """Yields name, file and inputs. All have signatures."""
    spec, f32, i = tf.TensorSpec, tf.float32, tf.int32
    model, images = image_net(), floats(3, 16, 16, 3)
    yield "image", keras_file(model), {"x": images}
    light = {"optimizations": [tf.lite.Optimize.DEFAULT]}
    yield "image_half", keras_file(model, target_spec=tf.lite.TargetSpec(supported_types=[tf.float16]), **light), {"x": images}
    eight = dict(light, representative_dataset=lambda: ([floats(1, 16, 16, 3)] for _ in range(20)))
    yield "image_net_int8", keras_file(model, **eight), {"x": images[:1]}

    def attention(x):
        q, k, v = (tf.einsum("bti,ihd->bthd", x, tf.constant(floats(6, 2, 3))) for _ in range(3))
        weights = tf.nn.softmax(tf.einsum("bqhd,bkhd->bhqk", q, k) / 1.7)
        y = tf.reshape(tf.einsum("bhqk,bkhd->bqhd", weights, v), [-1, 4, 6])
        mean, variance = tf.nn.moments(y, -1, keepdims=True)
        return {"y": tf.nn.gelu((y - mean) * tf.math.rsqrt(variance + 1e-5)), "weights": weights}
    yield "attention", converted(attention, spec([None, 4, 6], f32, "x")), {"x": floats(2, 4, 6)}

    def loop(x, n):
        w = tf.constant(floats(4, 4, scale=0.5))
        return {"y": tf.while_loop(lambda k, h: k < n, lambda k, h: (k + 1, tf.tanh(h @ w)), (0, x))[1]}
    yield "loop", converted(loop, spec([2, 4], f32, "x"), spec([], i, "n")), {"x": floats(2, 4), "n": np.int32(5)}

    def branch(x):
        return {"y": tf.cond(tf.reduce_sum(x) > 0, lambda: tf.exp(x), lambda: x * 2 - 1)}
    data = converted(branch, spec([5], f32, "x"))
    yield "branch", data, {"x": np.abs(floats(5))}
    yield "branch_not", data, {"x": -np.abs(floats(5))}

    def sizes(x):
        n = tf.shape(x)[0]
        return {"y": tf.reshape(tf.tile(x[:, None], [1, 2, 1]), [n * 2, 3]), "n": n}
    yield "sizes", converted(sizes, spec([None, 3], f32, "x")), {"x": floats(4, 3)}

    lstm = tf.keras.Sequential([tf.keras.Input((6, 3), batch_size=1, name="x"), tf.keras.layers.LSTM(4), tf.keras.layers.Dense(2)])
    yield "keras_lstm", keras_file(lstm), {"x": floats(1, 6, 3)}

    class Two(tf.Module):
        @tf.function(input_signature=[spec([None, 2], f32, "x")])
        def double(self, x):
            return {"twice": 2 * x}

        @tf.function(input_signature=[spec([3], f32, "x")])
        def total(self, x):
            return {"sum": tf.reduce_sum(x)}
    two = Two()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([two.double.get_concrete_function(), two.total.get_concrete_function()], two)
    yield "two_signatures", converter.convert(), {"x": floats(3, 2)}


# ---- Files for tflite_test.py alone ----

def matrix(dense, axes, order, blocks=()):
    """A product with a sparse constant of shape [4, 4]. dense: its elements in the order in which they are stored."""
    from tensorflow.lite.python import schema_py_generated as schema
    b = Builder()
    x = b.input(Given(np.eye(4, dtype=np.float32)))
    w = b.tensor("w", np.float32, [4, 4], np.array(dense, np.float32))
    s = b.graph.tensors[w].sparsity = schema.SparsityParametersT()
    s.traversalOrder, s.blockMap, s.dimMetadata = list(order), list(blocks), []
    for axis in axes:
        m = schema.DimensionMetadataT()
        if isinstance(axis, int):
            m.format, m.denseSize = schema.DimensionType.DENSE, axis
        else:
            m.format, (segments, indices) = schema.DimensionType.SPARSE_CSR, axis
            m.arraySegmentsType = m.arrayIndicesType = schema.SparseIndexVector.Int32Vector
            m.arraySegments, m.arrayIndices = schema.Int32VectorT(), schema.Int32VectorT()
            m.arraySegments.values, m.arrayIndices.values = segments, indices
        s.dimMetadata.append(m)
    full = b.tensor("full", np.float32, [4, 4])
    b.operator("DENSIFY", [w], [full])
    b.operator("FULLY_CONNECTED", [x, full, -1], [b.result(Result())], "FullyConnectedOptions")
    return b.bytes()


def limits():
    """Yields names and files."""
    b = Builder()
    x = b.input(given(2, 2))
    for custom in (True, True, False):
        b.operator("CUSTOM" if custom else "HASHTABLE_LOOKUP", [x], [b.result(Result())])
        if custom:
            b.model.operatorCodes[-1].customCode = b"Resample"
    yield "unknown", b.bytes()
    b = Builder()
    b.input(given(2, 2))
    b.model.version = 4
    yield "version", b.bytes()
    b = Builder()
    b.operator("NEG", [b.tensor("w", np.float32, [2, 2], floats(3))], [b.result(Result())])
    yield "bytes", b.bytes()
    b = Builder()
    x = b.input(given(2, 2))
    b.operator("DEPTHWISE_CONV_2D", [x, x, -1], [b.result(Result())], "DepthwiseConv2DOptions", strideW=1, strideH=1)
    b.operator("SPLIT", [x, x], [b.result(Result())], "SplitOptions", numSplits=2)
    yield "two", b.bytes()
    b = Builder()  # a body that is its own body
    x = b.input(given(2, 2))
    b.operator("WHILE", [x], [b.result(Result())], "WhileOptions", condSubgraphIndex=1, bodySubgraphIndex=1)
    b.model.subgraphs.append(b.graph)
    yield "itself", b.bytes()
    b = Builder()  # very many tensors that are one table
    b.input(given(2, 2))
    b.graph.tensors = b.graph.tensors * 2
    data = bytearray(b.bytes())
    yield "names", many(data)
    b = Builder()  # one buffer for very many quantised constants
    shared = b.tensor("w", np.int8, [1 << 18], np.zeros(1 << 18, np.int8))
    total = b.result(Result())
    weights = []
    for k in range(90):
        weights.append(b.tensor(f"w{k}", np.int8, [1 << 18]))
        b.graph.tensors[weights[-1]].buffer = b.graph.tensors[shared].buffer
        b.graph.tensors[weights[-1]].quantization = quantization(Result(np.int8, 0.5 + k))
    b.operator("ADD_N", weights, [total])
    yield "made", b.bytes()
    b = Builder()
    b.operator("NEG", [b.tensor("nothing", np.float32, [2])], [b.result(Result())])
    yield "state", b.bytes()


def many(data):
    """The file with a list of 2^14 tensors in place of its own, all of them the first one. The list stands behind the end."""
    import struct

    def u32(at):
        return struct.unpack_from("<I", data, at)[0]

    def field(table, i):
        vtable = table - struct.unpack_from("<i", data, table)[0]
        return table + struct.unpack_from("<H", data, vtable + 4 + 2 * i)[0]
    subgraphs = field(u32(0), 2)
    subgraphs += u32(subgraphs)
    graph = subgraphs + 4 + u32(subgraphs + 4)
    tensors = field(graph, 0)
    old = tensors + u32(tensors)
    first = old + 4 + u32(old + 4)
    # Offsets lead forward, so a copy of the first tensor's table and list of fields stands at the end.
    vtable = first - struct.unpack_from("<i", data, first)[0]
    size, length = struct.unpack_from("<HH", data, vtable)
    count = 1 << 14
    data += b"\0" * (-len(data) % 4)
    at = len(data)
    struct.pack_into("<I", data, tensors, at - tensors)
    table = at + 4 + 4 * count + size
    data += struct.pack("<I", count) + b"".join(struct.pack("<I", table - (at + 4 + 4 * k)) for k in range(count))
    data += data[vtable:vtable + size] + data[first:first + length]
    struct.pack_into("<i", data, table, size)
    # Fields that are offsets would lead elsewhere: the copy has none of them.
    for i in (0, 3, 4, 6, 7):
        if 4 + 2 * i < size:
            struct.pack_into("<H", data, table - size + 4 + 2 * i, 0)
    return bytes(data)


def sparse(folder):
    arrays = {name: np.frombuffer(data, np.uint8) for name, data in limits()}
    arrays["dense"] = np.array([[1, 0, 0, 2], [0, 3, 0, 0], [4, 5, 0, 0], [6, 7, 0, 0]], np.float32)
    arrays["sparse_rows"] = np.frombuffer(matrix([1, 2, 3, 4, 5, 6, 7], [4, ([0, 2, 3, 5, 7], [0, 3, 1, 0, 1, 0, 1])], [0, 1]), np.uint8)
    blocks = [1, 0, 0, 3, 0, 2, 0, 0, 4, 5, 6, 7]
    arrays["sparse_blocks"] = np.frombuffer(matrix(blocks, [2, ([0, 2, 3], [0, 1, 0]), 2, 2], [0, 1, 2, 3], [0, 1]), np.uint8)
    for name in ("rows", "blocks"):
        result = run(arrays[f"sparse_{name}"].tobytes(), {"x0": np.eye(4, dtype=np.float32)})["y0"]
        assert np.array_equal(result, arrays["dense"].T), (name, result)
    np.savez_compressed(folder / "limits.npz", **arrays)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    arrays, refused = {}, []
    for name, data, fed in operators():
        try:
            # The reference kernel of LOCAL_RESPONSE_NORMALIZATION leaves out the last channel of each sum.
            results = run(data, fed, plain=name == "local_response")
        except (RuntimeError, ValueError) as e:
            refused.append(f"{name}: {str(e).splitlines()[0]}")
            continue
        for part, values in (("in", fed), ("out", results)):
            arrays.update({f"{name}/{part}/{key}": value for key, value in values.items()})
        arrays[f"{name}/file"] = np.frombuffer(data, np.uint8)
    if refused:
        sys.exit("the interpreter refuses " + "; ".join(refused))
    np.savez_compressed(folder / "operators.npz", **arrays)
    print(len([key for key in arrays if key.endswith("/file")]), "operators")
    arrays, before = {}, None
    for name, data, fed in nets():
        key = "double" if name == "two_signatures" else None
        results = run_signature(data, fed, key)
        for part, values in (("in", fed), ("out", results)):
            arrays.update({f"{name}/{part}/{k}": np.asarray(value) for k, value in values.items()})
        if data is not before:
            arrays[f"{name}/file"] = np.frombuffer(data, np.uint8)
        before = data
    np.savez_compressed(folder / "nets.npz", **arrays)
    sparse(folder)


if __name__ == "__main__":
    main()
