"""Our intended differences from TensorFlow 2.21 on x86-64. TensorFlow also takes denormal numbers for 0, which golden.py handles."""
import numpy as np

import tw


def by_op(reasons):
    return {op: why for ops, why in reasons.items() for op in ops.split()}


# ---- Other results: functions of the op's inputs that return True, or a mask of the elements of output k that differ ----


def beyond(inputs, attrs, k):
    to = tw.numpy_of(attrs["DstT"])
    x = inputs[0].real if inputs[0].dtype.kind == "c" else inputs[0]
    if x.dtype.kind != "f" or to.kind not in "iu":
        return False
    x = x.astype(np.float64)
    return ~((x > float(np.iinfo(to).min) - 1) & (x < float(np.iinfo(to).max) + (to.itemsize < 8)))


def reserved(inputs, attrs, k):
    return k > 2 or k > 0 and not inputs[0].size


def empty(inputs, attrs, k):
    return not inputs[0].size


def nothing_arrives(inputs, attrs, k):
    return not inputs[2].size


def extreme(inputs, attrs, k):
    """An attribute is near the limit of float, or beyond."""
    return any(isinstance(v, float) and not abs(v) < 1e30 for v in attrs.values())


def beyond_double(inputs, attrs, k):
    return inputs[0].dtype.kind in "iu" and bool((abs(inputs[0].astype(object)) > 2**53).any())


def no_indices(inputs, attrs, k):
    return not inputs[1].size


def has_nan(inputs, attrs, k):
    return bool(np.isnan(inputs[0]).any())


def not_finite(inputs, attrs, k):
    return ~np.isfinite(inputs[0]) if len({x.shape for x in inputs}) == 1 else any(not np.isfinite(x).all() for x in inputs)


def pole(x):
    """The poles of a complex quotient or logarithm, and inputs that are not finite."""
    def there(inputs, attrs, k):
        return inputs[0].dtype.kind == "c" and any(not np.isfinite(v).all() for v in inputs) or inputs[0].dtype.kind == "c" and (inputs[-1] == x)
    return there


def squared(inputs, attrs, k):
    """Values that are not finite; 0, which wins in TensorFlow; and in half, values whose square half cannot hold."""
    if inputs[0].shape != inputs[1].shape:
        return True
    square = abs(inputs[0]) ** 2 if attrs["T"] == tw.thalweg.as_dtype("half") else 1
    return ~np.isfinite(inputs[0]) | ~np.isfinite(inputs[1]) | (inputs[1] == 0) | (square > 65504) | (square < 2.0**-14)


def zero_arrives(inputs, attrs, k):
    """0 in the second input; in half, also the values of `squared`."""
    if attrs["T"] == tw.thalweg.as_dtype("half"):
        return squared(inputs, attrs, k)
    return inputs[1] == 0 if inputs[0].shape == inputs[1].shape else True


def far(inputs, attrs, k):
    return ~np.isfinite(inputs[1])


def unsorted(inputs, attrs, k):
    return not attrs.get("sorted", True) or inputs[0].dtype.kind == "f" and has_nan(inputs, attrs, k)


def huge(inputs, attrs, k):
    return abs(inputs[0]) > 1e100


def whole_numbers(inputs, attrs, k):
    return inputs[0].dtype.kind in "iu"


def zero_byte(inputs, attrs, k):
    return np.array([attrs.get("encoding") == "utf-8" and b"\0" in text for text in inputs[0].flat], bool).reshape(inputs[0].shape)


def behind_the_end(inputs, attrs, k):
    return (np.arange(len(inputs[1])) >= inputs[0])[:, None, None]


def to_the_end(inputs, attrs, k):
    return (attrs.get("unit") == "UTF8_CHAR") & (inputs[2] < 0)


RESULTS = by_op({
    "Cast": (beyond, "what does not fit into whole numbers becomes the nearest that does; TensorFlow's depends on the processor"),
    "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3": (reserved, "the reserved outputs hold what the gradient here needs; nothing has no mean in TensorFlow, in use too"),
    "FusedBatchNormGradV3": (empty, "without elements, TensorFlow answers the shape in which it computes"),
    "FusedBatchNormGrad FusedBatchNormGradV2 LRNGrad": (extreme, "infinities instead of NaN"),
    "DepthwiseConv2dNativeBackpropFilter": (nothing_arrives, "where nothing arrives TensorFlow leaves its output as the memory was"),
    "MaxPoolGradGrad MaxPoolGradGradV2": (beyond_double, "TensorFlow compares whole numbers as doubles"),
    "MaxPool MaxPoolV2 SegmentMax": (has_nan, "NaN wins; in TensorFlow it depends on where it stands"),
    "ReluGrad Relu6Grad": (not_finite, "0 where nothing flows; TensorFlow multiplies, so that infinities become NaN"),
    "InvGrad": (squared, "0 times infinity is NaN; half is computed in float and rounded once"),
    "SqrtGrad RsqrtGrad ReciprocalGrad": (zero_arrives, "0 times infinity is NaN; half is computed in float and rounded once"),
    "BlockLSTM BlockLSTMV2": (behind_the_end, "0; TensorFlow leaves all but cs and h as the memory was"),
    "NthElement": (has_nan, "NaN is the largest; in TensorFlow it depends on where it stands"),
    "Zeta": (far, "NaN of infinity and of NaN"),
    "Xdivy": (pole(0), "complex infinities"),
    "Log1p": (pole(-1), "complex infinities"),
    "SparseSegmentSumGrad SparseSegmentMeanGrad SparseSegmentSqrtNGrad":
        (no_indices, "without indices TensorFlow leaves its output as the memory was"),
    "TopKV2": (unsorted, "in any order; NaN is the largest"),
    "Erf": (huge, "NaN far out in TensorFlow"),
    "StringLower StringUpper": (zero_byte, "with encoding utf-8 TensorFlow ends at a zero byte"),
    "Substr": (to_the_end, "in UTF-8 characters a negative length is the rest, as described; TensorFlow answers nothing, or an error"),
    "Round": (whole_numbers, "whole numbers stay; TensorFlow answers 0"),
    "EuclideanNorm": (whole_numbers, "squares in more bits; TensorFlow's wrap"),
})
# Errors of TensorFlow's results that are larger than golden.py allows, in ulps.
LOOSER = by_op({
    "SoftplusGrad": (dict(half=128), "exponentials in half"),
    "SparseSoftmaxCrossEntropyWithLogits": (dict(bfloat16=32, half=32), "sums in the type itself"),
    "LRN": (dict(float=128), "powers through logarithms in float"),
})
# Invalid uses that TensorFlow accepts and we reject.
STRICTER = by_op({
    "SqrtGrad RsqrtGrad ReciprocalGrad InvGrad TanhGrad SigmoidGrad": "shapes that differ",
    "LSTMBlockCell LSTMBlockCellGrad BlockLSTM BlockLSTMV2 BlockLSTMGrad BlockLSTMGradV2": "peepholes and states of other sizes",
    "FixedUnigramCandidateSampler": "weights that are no numbers, and fewer than no reserved classes",
    "Fill Range Reshape ReverseV2": "a vector for a scalar, or a scalar for a vector",
    "SoftmaxCrossEntropyWithLogits BiasAddGrad ResizeBilinearGrad": "other ranks or channels than those described",
    "PlaceholderWithDefault": "a default that does not fit the shape",
    "Gather SparseSegmentMeanGrad SparseSegmentSqrtNGrad": "indices out of range where there is nothing to read",
    "Sum Prod Mean Max Min All Any EuclideanNorm": "a matrix of axes",
    "UnsortedSegmentProd": "segments that are none where there is nothing to multiply, or so many that no memory holds them",
    "SparseReorder": "places outside of the shape, and sizes below 0",
    "ArgMin Transpose": "axes out of range where any would do",
    "MaxPoolV2": "strides over channels",
    "DepthwiseConv2dNative DepthwiseConv2dNativeBackpropInput DepthwiseConv2dNativeBackpropFilter": "dilations that are none",
    "RandomUniformInt StatelessRandomUniformV2 StatelessRandomNormalV2 StatelessTruncatedNormalV2 StatelessRandomUniformIntV2 "
    "StatelessRandomUniformFullIntV2":
        "limits and algorithms that are none, where nothing is drawn",
    "StatelessRandomGammaV2 StatelessRandomGammaV3 StatelessRandomPoisson":
        "shapes, counters and algorithms that do not fit, where nothing is drawn",
    "IdentityN": "types that are not those of the attribute",
})
