"""One plain use of each undeclared op, from its schema: arrays of ones, matrices of two rows. This file also has the special needs of
single ops."""
import numpy as np

import lists
import tw
from draws import Use
from schema import ALL, type_of

# Names of scalar inputs.
SCALARS = set("lr alpha rho epsilon momentum beta1 beta2 beta1_power beta2_power l1 l2 lr_power l2_shrinkage minval maxval shard "
              "num_shards basename prefix destination_prefix condition".split())
NEGATIVE = {"lr_power"}
image, kernel, pooled = (np.ones(shape, np.float32) for shape in ((1, 4, 4, 2), (2, 2, 2, 3), (1, 3, 3, 2)))
sizes, result = np.array(image.shape, np.int32), np.ones((1, 3, 3, 3), np.float32)
windows = dict(strides=[1, 1, 1, 1], padding="VALID")
pools = windows | dict(ksize=[1, 2, 2, 1])
rows = np.array([[0], [1]], np.int32)
held = tw.Variable(np.ones((2, 3), np.float32))
tag, sound = np.array(b"tag", object), np.ones((1, 8, 1), np.float32)
between = dict(send_device="CPU:0", send_device_incarnation=1, recv_device="CPU:0", tensor_name="t")
alone = [np.int32(1), np.int32(1), np.int32(1)]  # the keys of a group of one
summed = dict(merge_op="Add", final_op="Id")
OWN = {
    "CollectiveReduceV2": ([np.ones(2, np.float32), *alone, [held]], summed | dict(Nordering_token=1)), "CollectiveReduceScatterV2": ([np.ones(2, np.float32), *alone, [held]], summed | dict(Nordering_token=1)),
    "CollectiveGatherV2": ([np.ones(2, np.float32), *alone, [held]], dict(Nordering_token=1)), "CollectiveAllToAllV2": ([np.ones(2, np.float32), *alone, [held]], dict(Nordering_token=1)),
    "CollectiveBcastSendV2": ([np.ones(2, np.float32), *alone], {}),
    "CollectiveBcastRecvV2": ([*alone, np.int32([2])], dict(T=np.float32)),
    "CollectivePermute": ([np.ones(2, np.float32), np.int32([[0, 0]])], {}),
    "Conv2D": ([image, kernel], windows), "Conv2DBackpropInput": ([sizes, kernel, result], windows),
    "Conv2DBackpropFilter": ([image, np.array(kernel.shape, np.int32), result], windows),
    "MaxPool": ([image], pools), "MaxPoolGrad": ([image, pooled, pooled], pools), "MaxPoolGradGrad": ([image, pooled, image], pools),
    "AvgPool": ([image], pools), "AvgPoolGrad": ([sizes, pooled], pools),
    "RandomUniformInt": ([np.int32([2]), np.int32(0), np.int32(9)], {}),
    "Const": ([], dict(value=np.float32([1, 2]), dtype=np.float32)), "Placeholder": ([], dict(dtype=np.float32)),
    "VarHandleOp": ([], dict(dtype=np.float32, shape=(2,), shared_name="made")),
    "VariableV2": ([], dict(dtype=np.float32, shape=(2,), shared_name="made too")),
    "Variable": ([], dict(dtype=np.float32, shape=(2,), shared_name="made three")),
    "RestoreResources": ([[tw.Variable(np.ones(2, np.float32))], [np.array([b"variable", b"", b""], object)]], dict(N=1)),
    "Assert": ([np.bool_(True), [np.float32(1)]], dict(T=[np.float32])), "StringJoin": ([[np.array([b"a"], object)] * 2], dict(N=2)),
    **{op: (inputs, attrs) for op, inputs, attrs in lists.USES},
    "StackV2": ([np.int32(2)], dict(elem_type=np.float32)), "TensorArrayV3": ([np.int32(2)], dict(dtype=np.float32)),
    "MutableDenseHashTableV2": ([np.int64(1), np.int64(2)], dict(key_dtype=np.int64, value_dtype=np.float32, shared_name="made four")),
    "ReadVariables": ([[held]], dict(N=1, dtypes=[np.float32])),
    "AssignVariables": ([[held], np.zeros(1, np.int64), [held.array]], dict(N=1, dtypes=[np.float32])),
    "_SelectHandle": ([np.int32(0), [held]], dict(N=1)), "RefSelect": ([np.int32(0), [held]], dict(N=1, T=np.float32)),
    "RefEnter": ([held], dict(frame_name="f", T=np.float32)),
    "AudioSummary": ([tag, sound], dict(sample_rate=8000.0)), "AudioSummaryV2": ([tag, sound, np.float32(8000)], {}),
    "HistogramSummary": ([tag, np.ones(2, np.float32)], dict(T=np.float32)),
    "ImageSummary": ([tag, image[..., :1]], dict(T=np.float32, bad_color=np.uint8([255, 0, 0, 255]))),
    "TensorSummaryV2": ([tag, np.ones(2, np.float32), np.array(b"", object)], dict(T=np.float32)),
    "NormalizeUTF8": ([tag], dict(normalization_form="NFC")),
    "RegexSplitWithOffsets": ([np.array([b"a b"], object), np.array(b"( )", object), np.array(b"", object)], {}),
    "MergeSummary": ([[np.array(b"", object)]], dict(N=1)),
    "_Send": ([np.float32(1)], between | dict(T=np.float32)), "_Recv": ([], between | dict(tensor_type=np.float32)),
}


def chosen(op):
    """Returns a type for each type attribute: float, and an integer type for indices."""
    types = {}
    for a in tw.ops()[op]["attrs"]:
        if a["kind"] == "type" and not a["list"]:
            allowed = a.get("allowed", ALL)
            types[a["name"]] = "float" if "float" in allowed else "int32" if "int32" in allowed else allowed[0]
    return types


def array_for(x, kind):
    name, dtype = x["name"], np.dtype(np.float32) if kind in ("resource", "variant") else tw.numpy_of(type_of(kind))
    if name == "indices" and dtype.kind in "iu":
        return np.array([0, 1], dtype)
    shape = () if name in SCALARS else (2,) if dtype.kind in "iu" else (2, 3)
    ones = np.full(shape, b"1", object) if dtype == tw.string else np.ones(shape, dtype)
    return -ones if name in NEGATIVE else ones


def simple_use(op):
    if op in OWN:
        inputs, attrs = OWN[op]
        return Use(op, list(inputs), attrs, {})
    types, inputs, attrs = chosen(op), [], {}
    for x in tw.ops()[op]["inputs"]:
        array = array_for(x, x.get("type") or types.get(x.get("type_attr"), "float"))
        if op.startswith(("ResourceScatterNd", "ResourceGatherNd")) and x["name"] == "indices":
            array = rows
        handle = x.get("type") == "resource" or len(inputs) in tw.referred(op)
        inputs.append(tw.Variable(array) if handle else tw.List(array) if x.get("type") == "variant" else array)
        if "number_attr" in x or "list_attr" in x:
            inputs[-1] = [inputs[-1]]
            attrs[x.get("number_attr") or x["list_attr"]] = 1 if "number_attr" in x else [array.dtype]
    return Use(op, inputs, attrs | {a: type_of(t) for a, t in types.items()}, types)
