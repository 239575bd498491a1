"""Where we differ from TensorFlow on purpose, {ops: why}. TensorFlow 2.21 on x86-64; it takes denormal numbers for 0, which golden.py knows."""


def by_op(reasons):
    return {op: why for ops, why in reasons.items() for op in ops.split()}


# Other results.
RESULTS = by_op({
    "Cast": "what does not fit into whole numbers becomes the nearest that does; TensorFlow's depends on the processor",
    "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3": "the reserved outputs hold what the gradient here needs",
    "FusedBatchNormGradV3": "without elements, TensorFlow answers the shape in which it computes",
    "MaxPoolV2 SegmentMax": "NaN wins; in TensorFlow it depends on where it stands",
    "ReluGrad Relu6Grad": "0 where nothing flows; TensorFlow multiplies, so that infinities become NaN",
    "InvGrad": "0 times infinity is NaN",
    "TensorScatterSub ReciprocalGrad": "half is computed in float and rounded once",
    "Xdivy Log1p": "complex infinities",
    "SparseSegmentSumGrad SparseSegmentMeanGrad SparseSegmentSqrtNGrad": "without indices TensorFlow leaves its output as the memory was",
    "TopKV2": "with sorted=false, in any order",
    "Erf": "NaN at infinity in TensorFlow",
    "StringLower StringUpper": "with encoding utf-8 TensorFlow ends at a zero byte",
    "Substr": "in UTF-8 characters a negative length is the rest, as described; TensorFlow answers nothing, or an error",
    "Round": "whole numbers stay; TensorFlow answers 0",
})
# Errors for what TensorFlow takes, though something is wrong with it.
STRICTER = by_op({
    "SqrtGrad RsqrtGrad ReciprocalGrad InvGrad TanhGrad SigmoidGrad": "shapes that differ",
    "Fill Range Reshape ReverseV2": "a vector for a scalar, or a scalar for a vector",
    "SoftmaxCrossEntropyWithLogits BiasAddGrad ResizeBilinearGrad": "other ranks or channels than those described",
    "PlaceholderWithDefault": "a default that does not fit the shape",
    "Gather SparseSegmentMeanGrad SparseSegmentSqrtNGrad": "indices out of range where there is nothing to read",
    "ArgMin Transpose": "axes out of range where any would do",
    "MaxPoolV2": "strides over channels",
    "IdentityN": "types that are not those of the attribute",
})
