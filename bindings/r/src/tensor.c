/* Tensors of R's vectors and back. R stores the first axis fastest and the library the last, so that elements change places. */
#include "support.h"

enum { kMostAxes = 32 };

static void release_tensor(void* tensor) { tw_tensor_release(tensor); }

tw_tensor* tensor_of(SEXP value, const char* what) {
  if (!Rf_inherits(value, "thalweg_tensor")) RAISE(TW_INVALID_ARGUMENT, "%s must be a tensor", what);
  return as_handle(value, "a call", what)->address;
}

SEXP tensors_of(tw_tensor** tensors, int n) {
  SEXP list = PROTECT(Rf_allocVector(VECSXP, n));
  for (int i = 0; i < n; ++i) SET_VECTOR_ELT(list, i, handle_create(tensors[i], release_tensor, "thalweg_tensor", NULL, NULL));
  UNPROTECT(1);
  return list;
}

/* The place in an array of R of the element that is the library's next; `index` counts. */
static R_xlen_t next_place(int64_t* index, const int64_t* dims, const R_xlen_t* strides, int rank, R_xlen_t at) {
  for (int axis = rank - 1; axis >= 0; --axis) {
    at += strides[axis];
    if (++index[axis] < dims[axis]) return at;
    at -= strides[axis] * (R_xlen_t)dims[axis];
    index[axis] = 0;
  }
  return at;
}

#define FOR_EACH(body)                                 \
  do {                                                 \
    int64_t index[kMostAxes] = {0};                    \
    R_xlen_t at = 0;                                   \
    for (R_xlen_t i = 0; i < n; ++i) {                 \
      body;                                            \
      at = next_place(index, dims, strides, rank, at); \
    }                                                  \
  } while (0)

static R_xlen_t strides_of(const int64_t* dims, int rank, R_xlen_t* strides) {
  R_xlen_t n = 1;
  for (int axis = 0; axis < rank; ++axis) {
    strides[axis] = n;
    if (dims[axis] < 0 || (dims[axis] && n > R_XLEN_T_MAX / dims[axis]))
      RAISE(TW_INVALID_ARGUMENT, "the sizes of a tensor are too large, or below 0");
    n *= (R_xlen_t)dims[axis];
  }
  return n;
}

static double number_at(SEXP values, R_xlen_t i) {
  switch (TYPEOF(values)) {
    case REALSXP: return REAL(values)[i];
    case RAWSXP: return RAW(values)[i];
    default: {
      const int value = TYPEOF(values) == INTSXP ? INTEGER(values)[i] : LOGICAL(values)[i];
      return value == NA_INTEGER ? NA_REAL : value;
    }
  }
}

static void store(void* data, uint32_t dtype, R_xlen_t i, double value) {
  switch (dtype) {
    case TW_FLOAT: ((float*)data)[i] = (float)value; break;
    case TW_DOUBLE: ((double*)data)[i] = value; break;
    case TW_INT8: ((int8_t*)data)[i] = (int8_t)value; break;
    case TW_UINT8: ((uint8_t*)data)[i] = (uint8_t)value; break;
    case TW_INT16: ((int16_t*)data)[i] = (int16_t)value; break;
    case TW_UINT16: ((uint16_t*)data)[i] = (uint16_t)value; break;
    case TW_INT32: ((int32_t*)data)[i] = (int32_t)value; break;
    case TW_UINT32: ((uint32_t*)data)[i] = (uint32_t)value; break;
    case TW_INT64: ((int64_t*)data)[i] = (int64_t)value; break;
    case TW_UINT64: ((uint64_t*)data)[i] = (uint64_t)value; break;
    default: ((uint8_t*)data)[i] = value != 0; break; /* bool */
  }
}

/* The least and the largest number that a type of whole numbers holds, of those that R holds exactly. */
static int range_of(uint32_t dtype, double* least, double* most) {
  static const struct {
    uint32_t dtype;
    double least, most;
  } all[] = {{TW_INT8, -128, 127},
             {TW_UINT8, 0, 255},
             {TW_INT16, -32768, 32767},
             {TW_UINT16, 0, 65535},
             {TW_INT32, -2147483648.0, 2147483647.0},
             {TW_UINT32, 0, 4294967295.0},
             {TW_INT64, -9007199254740992.0, 9007199254740992.0},
             {TW_UINT64, 0, 9007199254740992.0},
             {TW_BOOL, 0, 1}};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
    if (all[i].dtype == dtype) {
      *least = all[i].least, *most = all[i].most;
      return 1;
    }
  return dtype == TW_FLOAT || dtype == TW_DOUBLE ? 0 : -1;
}

/* values: numbers, logicals, bytes or texts; dims: the sizes, all known. */
SEXP R_tensor_create(SEXP values, SEXP dtype_, SEXP dims_) {
  const uint32_t dtype = (uint32_t)as_whole(dtype_, 0, 1000, "tensor", "dtype");
  const int rank = (int)XLENGTH(dims_);
  int64_t dims[kMostAxes];
  R_xlen_t strides[kMostAxes];
  double least = 0, most = 0;
  tw_tensor* tensor = NULL;
  if (rank > kMostAxes) RAISE(TW_INVALID_ARGUMENT, "a tensor of R has at most %d axes", kMostAxes);
  for (int i = 0; i < rank; ++i) dims[i] = (int64_t)REAL(dims_)[i];
  const R_xlen_t n = strides_of(dims, rank, strides);
  if (n != XLENGTH(values)) RAISE(TW_INVALID_ARGUMENT, "%.0f elements do not fill the sizes", (double)XLENGTH(values));
  const int text = TYPEOF(values) == STRSXP, range = text ? 0 : range_of(dtype, &least, &most);
  if (text != (dtype == TW_STRING) || range < 0) RAISE(TW_INVALID_ARGUMENT, "the values of R do not fit a tensor of type %u", dtype);
  for (R_xlen_t i = 0; !text && range && i < n; ++i) {
    const double value = number_at(values, i);
    if (!(value >= least && value <= most) || value != (double)(int64_t)value)
      RAISE(TW_INVALID_ARGUMENT, "element %.0f, %g, is no number of that type", (double)i + 1, value);
  }
  for (R_xlen_t i = 0; text && i < n; ++i)
    if (STRING_ELT(values, i) == NA_STRING) RAISE(TW_INVALID_ARGUMENT, "text %.0f is NA", (double)i + 1);
  check(tw_tensor_create(dtype, dims, (uint32_t)rank, &tensor));
  SEXP result = PROTECT(handle_create(tensor, release_tensor, "thalweg_tensor", NULL, NULL));
  void* data = text ? NULL : tw_tensor_mutable_data(tensor);
  if (text)
    FOR_EACH({
      const char* one = Rf_translateCharUTF8(STRING_ELT(values, at));
      check(tw_tensor_set_string(tensor, (uint64_t)i, one, strlen(one)));
    });
  else if (rank <= 1 && dtype == TW_FLOAT && TYPEOF(values) == REALSXP)
    for (R_xlen_t i = 0; i < n; ++i) ((float*)data)[i] = (float)REAL(values)[i];
  else
    FOR_EACH(store(data, dtype, i, number_at(values, at)));
  UNPROTECT(1);
  return result;
}

static double load(const void* data, uint32_t dtype, R_xlen_t i) {
  switch (dtype) {
    case TW_FLOAT: return ((const float*)data)[i];
    case TW_DOUBLE: return ((const double*)data)[i];
    case TW_INT8: return ((const int8_t*)data)[i];
    case TW_UINT8: return ((const uint8_t*)data)[i];
    case TW_INT16: return ((const int16_t*)data)[i];
    case TW_UINT16: return ((const uint16_t*)data)[i];
    case TW_INT32: return ((const int32_t*)data)[i];
    case TW_UINT32: return ((const uint32_t*)data)[i];
    case TW_INT64: return (double)((const int64_t*)data)[i];
    case TW_UINT64: return (double)((const uint64_t*)data)[i];
    default: return ((const uint8_t*)data)[i];
  }
}

/* The elements as a vector of R, in R's order: logicals, texts, integers where all numbers of the type fit, otherwise doubles. */
SEXP R_tensor_values(SEXP value) {
  tw_tensor* tensor = tensor_of(value, "x");
  const uint32_t dtype = tw_tensor_dtype(tensor);
  const int rank = (int)tw_tensor_rank(tensor);
  int64_t dims[kMostAxes];
  R_xlen_t strides[kMostAxes];
  double least = 0, most = 0;
  if (rank > kMostAxes) RAISE(TW_INVALID_ARGUMENT, "an array of R has at most %d axes", kMostAxes);
  if (tw_tensor_device(tensor)) RAISE(TW_FAILED_PRECONDITION, "the tensor is in a device's memory");
  if (dtype != TW_STRING && range_of(dtype, &least, &most) < 0) RAISE(TW_UNIMPLEMENTED, "R has no vectors for tensors of type %u", dtype);
  for (int i = 0; i < rank; ++i) dims[i] = tw_tensor_dim(tensor, (uint32_t)i);
  const R_xlen_t n = strides_of(dims, rank, strides);
  const void* data = dtype == TW_STRING ? NULL : tw_tensor_data(tensor);
  SEXP result;
  if (dtype == TW_STRING) {
    result = PROTECT(Rf_allocVector(STRSXP, n));
    FOR_EACH({
      const char* bytes = NULL;
      uint64_t length = 0;
      check(tw_tensor_get_string(tensor, (uint64_t)i, &bytes, &length));
      if (length > INT32_MAX || memchr(bytes ? bytes : "", 0, length))
        RAISE(TW_INVALID_ARGUMENT, "a text of the tensor has a zero, or is too long for R");
      SET_STRING_ELT(result, at, Rf_mkCharLenCE(bytes ? bytes : "", (int)length, CE_UTF8));
    });
  } else if (dtype == TW_BOOL) {
    result = PROTECT(Rf_allocVector(LGLSXP, n));
    FOR_EACH(LOGICAL(result)[at] = ((const uint8_t*)data)[i]);
  } else if (dtype == TW_INT8 || dtype == TW_UINT8 || dtype == TW_INT16 || dtype == TW_UINT16 || dtype == TW_INT32) {
    result = PROTECT(Rf_allocVector(INTSXP, n));
    FOR_EACH(INTEGER(result)[at] = (int)load(data, dtype, i));
  } else {
    result = PROTECT(Rf_allocVector(REALSXP, n));
    FOR_EACH(REAL(result)[at] = load(data, dtype, i));
  }
  UNPROTECT(1);
  return result;
}

SEXP R_tensor_dims(SEXP value) {
  tw_tensor* tensor = tensor_of(value, "x");
  const int rank = (int)tw_tensor_rank(tensor);
  SEXP dims = Rf_allocVector(REALSXP, rank);
  for (int i = 0; i < rank; ++i) REAL(dims)[i] = (double)tw_tensor_dim(tensor, (uint32_t)i);
  return dims;
}

SEXP R_tensor_count(SEXP value) { return Rf_ScalarReal((double)tw_tensor_count(tensor_of(value, "x"))); }
