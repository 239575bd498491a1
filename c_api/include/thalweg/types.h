/* Types shared by the application API and the plugin API: element types, status codes, strings,
 * shapes, opaque handles.
 * Numbers are frozen: element types and their meaning are TensorFlow's `DataType`, status codes are
 * those of Abseil and gRPC.
 * Threads: nothing here has behaviour. */
#ifndef THALWEG_TYPES_H
#define THALWEG_TYPES_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Codes of failures. A NULL `tw_status*` is success. */
enum {
  TW_OK = 0,
  TW_CANCELLED = 1,           /* the caller gave up */
  TW_UNKNOWN = 2,             /* an error without a code of its own */
  TW_INVALID_ARGUMENT = 3,    /* the argument is invalid in any state: fix it */
  TW_DEADLINE_EXCEEDED = 4,   /* time ran out; the work may be tried again */
  TW_NOT_FOUND = 5,           /* the named object does not exist */
  TW_ALREADY_EXISTS = 6,      /* the name is taken */
  TW_PERMISSION_DENIED = 7,   /* a rule of the host forbids it */
  TW_RESOURCE_EXHAUSTED = 8,  /* out of memory, disk, quota */
  TW_FAILED_PRECONDITION = 9, /* valid argument, wrong state: initialise, load or close first */
  TW_ABORTED = 10,            /* lost a race; try again */
  TW_OUT_OF_RANGE = 11,       /* past the end */
  TW_UNIMPLEMENTED = 12,      /* not offered here */
  TW_INTERNAL = 13,           /* a broken invariant of the runtime or a plugin: a bug */
  TW_UNAVAILABLE = 14,        /* not available for now; retry later */
  TW_DATA_LOSS = 15,          /* stored bytes are damaged */
  TW_UNAUTHENTICATED = 16     /* no valid credentials */
};

/* Element types. `TW_FLOAT + TW_REF` is the reference form of TW_FLOAT. */
enum {
  TW_INVALID_TYPE = 0,
  TW_FLOAT = 1,
  TW_DOUBLE = 2,
  TW_INT32 = 3,
  TW_UINT8 = 4,
  TW_INT16 = 5,
  TW_INT8 = 6,
  TW_STRING = 7, /* elements are tw_string, bytes owned by the tensor */
  TW_COMPLEX64 = 8,
  TW_INT64 = 9,
  TW_BOOL = 10, /* one byte, 0 or 1 */
  TW_QINT8 = 11,
  TW_QUINT8 = 12,
  TW_QINT32 = 13,
  TW_BFLOAT16 = 14,
  TW_QINT16 = 15,
  TW_QUINT16 = 16,
  TW_UINT16 = 17,
  TW_COMPLEX128 = 18,
  TW_HALF = 19,
  TW_RESOURCE = 20, /* elements are references to resources; see plugin/resource.h */
  TW_VARIANT = 21,
  TW_UINT32 = 22,
  TW_UINT64 = 23,
  TW_FLOAT8_E5M2 = 24,
  TW_FLOAT8_E4M3FN = 25,
  TW_FLOAT8_E4M3FNUZ = 26,
  TW_FLOAT8_E4M3B11FNUZ = 27,
  TW_FLOAT8_E5M2FNUZ = 28,
  TW_INT4 = 29,  /* one element a byte */
  TW_UINT4 = 30, /* one element a byte */
  TW_INT2 = 31,  /* one element a byte */
  TW_UINT2 = 32, /* one element a byte */
  TW_REF = 100
};

/* Kinds of attribute values; `count` entries of the C type named here. */
enum {
  TW_ATTR_INT = 1,    /* int64_t */
  TW_ATTR_FLOAT = 2,  /* double */
  TW_ATTR_BOOL = 3,   /* uint8_t */
  TW_ATTR_STRING = 4, /* tw_string */
  TW_ATTR_TYPE = 5,   /* uint32_t */
  TW_ATTR_SHAPE = 6,  /* tw_shape */
  TW_ATTR_TENSOR = 7, /* tw_tensor* */
  TW_ATTR_FUNC = 8    /* tw_string: the function's name */
};

/* Bytes with a length; text is UTF-8, not necessarily terminated. Also the element of a string
 * tensor. */
typedef struct tw_string {
  const char* data;
  uint64_t size;
} tw_string;

/* Sizes per axis. rank -1: unknown rank. A dim of -1 is unknown; a dim below -1 is an unknown with
 * a name (a symbol). */
typedef struct tw_shape {
  const int64_t* dims;
  int32_t rank;
  uint32_t reserved;
} tw_shape;

typedef struct tw_status tw_status;   /* the report of one failure; NULL is success */
typedef struct tw_tensor tw_tensor;   /* a reference-counted n-dimensional array */
typedef struct tw_runtime tw_runtime; /* plugins, devices, threads and state: runtime.h */

#ifdef __cplusplus
}
#endif
#endif
