"""Types that the schemas allow, as in TensorFlow, and that no kernel computes. For declared ops the declaration lists them
(`no_kernel`)."""
import functools

import tw

QUANTISED = ["qint8", "qint16", "qint32", "quint8", "quint16"]
COMPLEX = ["complex64", "complex128"]
WHOLE = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
SMALL = ["float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz", "int4", "uint4", "int2", "uint2"]
OPTIMIZERS = " ".join(op for op in tw.ops() if op.startswith(("Apply", "ResourceApply", "ResourceSparseApply")))
SCATTERS = "ResourceScatterNdAdd ResourceScatterNdSub ResourceScatterNdMax ResourceScatterNdMin"

# (reason, ops, types)
MISSING = [
    ("quantised arithmetic needs ranges, which these ops do not carry",
     "AddN ArgMax ArgMin AssignAddVariableOp AssignSubVariableOp BiasAdd BiasAddGrad Cumsum Max Mean Min Prod Sum "
     f"{OPTIMIZERS} AssignAdd AssignSub ScatterAdd ScatterSub ResourceScatterAdd ResourceScatterSub {SCATTERS} ScatterNd UnsortedSegmentSum "
     "SparseFillEmptyRowsGrad", QUANTISED),
    ("quantised, and in a layout of a GPU's", "MaxPool Relu", ["qint8"]),
    ("numbers of 8 bits and fewer are stored and moved, not computed with",
     f"AssignAddVariableOp AssignSubVariableOp Equal NotEqual ScatterNd SparseFillEmptyRowsGrad {SCATTERS}", SMALL),
    ("no sum", f"SparseFillEmptyRowsGrad AssignAddVariableOp AssignSubVariableOp {SCATTERS}", ["bool", "string"]),
    ("no op makes a variant of complex numbers alone", "Conj", ["variant"]),
    ("complex numbers have no order and no floor", "FloorDiv Round ResourceScatterNdMax ResourceScatterNdMin", COMPLEX),
    ("a quotient of whole numbers is not whole; Div and FloorDiv round it", "RealDiv", WHOLE),
    ("as RealDiv", "Reciprocal", ["int8", "int16", "int32", "int64"]),
    ("optimizers divide and take roots", OPTIMIZERS, WHOLE),
    ("complex numbers have no order", " ".join(op for op in OPTIMIZERS.split() if any(word in op for word in ("Ftrl", "Amsgrad", "AdaMax"))), COMPLEX),
]


@functools.cache
def types(op):
    """Returns the names of the types that this op lacks."""
    return {t for _, ops, types in MISSING if op in ops.split() for t in types}
