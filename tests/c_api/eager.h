/* Short forms of eager calls, which the tests of eager calls share. */
#ifndef EAGER_H
#define EAGER_H
#include "check.h"

#define ATTR_INT(name, ...) {name, (const int64_t[]){__VA_ARGS__}, TW_ATTR_INT, 0, 1, 0}
#define ATTR_BOOL(name, ...) {name, (const uint8_t[]){__VA_ARGS__}, TW_ATTR_BOOL, 0, 1, 0}
#define ATTR_TYPE(name, ...) {name, (const uint32_t[]){__VA_ARGS__}, TW_ATTR_TYPE, 0, 1, 0}
#define ATTR_TEXT(name, text) {name, (const tw_string[]){{text, sizeof(text) - 1}}, TW_ATTR_STRING, 0, 1, 0}

static inline tw_eager* new_eager(const char* option) {
  tw_eager* e = NULL;
  OK(tw_eager_create(NULL, &option, option != NULL, &e));
  return e;
}

/* One op of up to two inputs and one output, with attributes. */
static inline tw_status* eager_call(tw_eager* e, const char* op, tw_tensor* a, tw_tensor* b, const tw_eager_attr* attrs, uint32_t n_attrs,
                                    tw_tensor** out) {
  tw_tensor* inputs[] = {a, b};
  const tw_eager_call call = {.size = sizeof call,
                              .op = op,
                              .inputs = inputs,
                              .attrs = attrs,
                              .n_inputs = a ? b ? 2 : 1 : 0,
                              .n_attrs = n_attrs,
                              .n_outputs = out ? 1 : 0};
  return tw_eager_run(e, &call, out);
}

/* The same without attributes; the caller owns the result, NULL after a failure, which counts as one of the test. */
static inline tw_tensor* eager(tw_eager* e, const char* op, tw_tensor* a, tw_tensor* b) {
  tw_tensor* out = NULL;
  OK(eager_call(e, op, a, b, NULL, 0, &out));
  return out;
}

static inline tw_tensor* vector(uint32_t n, const float* values) { return floats((const int64_t[]){n}, 1, values); }

static inline tw_tensor* ints(uint32_t n, const int32_t* values) {
  tw_tensor* t = NULL;
  OK(tw_tensor_create_copy(TW_INT32, (const int64_t[]){n}, 1, values, n * sizeof *values, &t));
  return t;
}

/* Whether the tensor's elements are these, to 1e-5. */
static inline int holds(const tw_tensor* t, uint32_t n, const float* values) {
  if (!t || tw_tensor_count(t) != n) return 0;
  for (uint32_t i = 0; i < n; ++i)
    if (!near(((const float*)tw_tensor_data(t))[i], values[i], 1e-5)) return 0;
  return 1;
}
#define HOLDS(t, ...) CHECK(holds((t), sizeof((const float[]){__VA_ARGS__}) / sizeof(float), (const float[]){__VA_ARGS__}))

/* The handle of a float variable of that name. */
static inline tw_tensor* variable_handle(tw_eager* e, const char* name) {
  const tw_string shared = {name, strlen(name)};
  const tw_shape any = {NULL, -1, 0};
  const tw_eager_attr attrs[] = {
      ATTR_TYPE("dtype", TW_FLOAT), {"shape", &any, TW_ATTR_SHAPE, 0, 1, 0}, {"shared_name", &shared, TW_ATTR_STRING, 0, 1, 0}};
  tw_tensor* handle = NULL;
  OK(eager_call(e, "VarHandleOp", NULL, NULL, attrs, 3, &handle));
  return handle;
}

static inline tw_tensor* variable_value(tw_eager* e, tw_tensor* handle) {
  const tw_eager_attr dtype[] = {ATTR_TYPE("dtype", TW_FLOAT)};
  tw_tensor* out = NULL;
  OK(eager_call(e, "ReadVariableOp", handle, NULL, dtype, 1, &out));
  return out;
}

static inline void release(tw_tensor* const* tensors, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) tw_tensor_release(tensors[i]);
}
#define RELEASE(...) release((tw_tensor* const[]){__VA_ARGS__}, sizeof((tw_tensor* const[]){__VA_ARGS__}) / sizeof(tw_tensor*))

#endif
