// Sets of element types that the schemas share, as string literals to concatenate: "T: " OPS_FLOATS
// "; ...". They are TensorFlow's, quantised and complex types included, whether or not a device has
// kernels for all of them.
#pragma once

#define OPS_FLOATS "{half, bfloat16, float, double}"
#define OPS_FLOATS_COMPLEX "{half, bfloat16, float, double, complex64, complex128}"
#define OPS_SIGNED "{half, bfloat16, float, double, int8, int16, int32, int64}"
#define OPS_SIGNED_COMPLEX "{half, bfloat16, float, double, int8, int16, int32, int64, complex64, complex128}"
#define OPS_REALS "{half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64}"
#define OPS_ARITHMETIC "{half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}"
#define OPS_REALS_QUANTISED                                                                                                   \
  "{half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, qint8, qint16, qint32, quint8, " \
  "quint16}"
#define OPS_NUMBERS                                                                                                          \
  "{half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128, qint8, " \
  "qint16, qint32, quint8, quint16}"
#define OPS_INDEX "{int32, int64}"
#define OPS_INDEX_SHORT "{int16, int32, int64}"
