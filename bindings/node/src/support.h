/* Conversions between values of JavaScript and of C. Numbers are checked; pointers are null, an address, or the memory of a buffer; texts
 * are strings. A wrong type throws a TypeError that names function and parameter, and the function of C is not called. */
#ifndef THALWEG_NODE_SUPPORT_H
#define THALWEG_NODE_SUPPORT_H
#define NAPI_VERSION 8
#include <node_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <thalweg/thalweg.h>

enum { kMostArguments = 16, kShortText = 120 };

typedef struct call {
  napi_env env;
  const char* name;
  napi_value argv[kMostArguments];
  int failed, n_texts;
  char* texts[kMostArguments];     /* to be freed */
  char short_texts[4][kShortText]; /* no allocation for most */
  int n_short;
} call;

void add_low(napi_env env, napi_value exports);
void add_callbacks(napi_env env, napi_value exports);

static inline void add_function(napi_env env, napi_value exports, const char* name, napi_callback function) {
  napi_value value;
  if (napi_create_function(env, name, NAPI_AUTO_LENGTH, function, NULL, &value) == napi_ok)
    napi_set_named_property(env, exports, name, value);
}

static inline void refuse(call* c, const char* parameter, const char* want) {
  char text[200];
  if (c->failed) return;
  c->failed = 1;
  snprintf(text, sizeof text, "%s: %s must be %s", c->name, parameter, want);
  napi_throw_type_error(c->env, "INVALID_ARGUMENT", text);
}

static inline int begin(call* c, napi_env env, napi_callback_info info, const char* name, size_t want) {
  size_t argc = kMostArguments;
  c->env = env, c->name = name, c->failed = c->n_texts = c->n_short = 0;
  if (napi_get_cb_info(env, info, &argc, c->argv, NULL, NULL) != napi_ok) return 0;
  if (argc == want) return 1;
  char text[32];
  snprintf(text, sizeof text, "%zu, not %zu", want, argc);
  refuse(c, "the number of arguments", text);
  return 0;
}

static inline napi_value end(call* c, napi_value result) {
  for (int i = 0; i < c->n_texts; ++i) free(c->texts[i]);
  return result;
}

static inline double arg_f64(call* c, int i, const char* parameter) {
  double value = 0;
  if (napi_get_value_double(c->env, c->argv[i], &value) != napi_ok) refuse(c, parameter, "a number");
  return value;
}

static inline double whole(call* c, int i, const char* parameter, double least, double most, const char* want) {
  const double value = arg_f64(c, i, parameter);
  if (c->failed) return 0;
  if (!(value >= least && value <= most) || value != (double)(int64_t)value) {
    refuse(c, parameter, want);
    return 0;
  }
  return value;
}

static inline int32_t arg_i32(call* c, int i, const char* parameter) {
  return (int32_t)whole(c, i, parameter, -2147483648.0, 2147483647.0, "a whole number of 32 bits");
}
static inline uint32_t arg_u32(call* c, int i, const char* parameter) {
  return (uint32_t)whole(c, i, parameter, 0, 4294967295.0, "a whole number of 32 bits, at least 0");
}

static inline int64_t arg_i64(call* c, int i, const char* parameter) {
  int64_t big = 0;
  bool lossless = false;
  if (napi_get_value_bigint_int64(c->env, c->argv[i], &big, &lossless) == napi_ok) {
    if (!lossless) refuse(c, parameter, "a whole number of 64 bits");
    return big;
  }
  return (int64_t)whole(c, i, parameter, -9007199254740992.0, 9007199254740992.0, "a whole number, a bigint beyond 53 bits");
}
static inline uint64_t arg_u64(call* c, int i, const char* parameter) {
  uint64_t big = 0;
  bool lossless = false;
  if (napi_get_value_bigint_uint64(c->env, c->argv[i], &big, &lossless) == napi_ok) {
    if (!lossless) refuse(c, parameter, "a whole number of 64 bits, at least 0");
    return big;
  }
  return (uint64_t)whole(c, i, parameter, 0, 9007199254740992.0, "a whole number, at least 0, a bigint beyond 53 bits");
}
static inline uint64_t arg_output(call* c, int i, const char* parameter) {
  uint64_t big = 0;
  bool lossless = false;
  if (napi_get_value_bigint_uint64(c->env, c->argv[i], &big, &lossless) != napi_ok || !lossless)
    refuse(c, parameter, "a value of a graph (a bigint)");
  return big;
}

static inline void* arg_pointer(call* c, int i, const char* parameter) {
  napi_valuetype type;
  if (napi_typeof(c->env, c->argv[i], &type) != napi_ok) type = napi_symbol;
  if (type == napi_null || type == napi_undefined) return NULL;
  if (type == napi_number) return (void*)(uintptr_t)whole(c, i, parameter, 0, 9007199254740992.0, "an address, a buffer or null");
  if (type == napi_bigint) return (void*)(uintptr_t)arg_u64(c, i, parameter);
  if (type == napi_object) {
    void* data = NULL;
    bool yes = false;
    if (napi_is_typedarray(c->env, c->argv[i], &yes) == napi_ok && yes &&
        napi_get_typedarray_info(c->env, c->argv[i], NULL, NULL, &data, NULL, NULL) == napi_ok)
      return data;
    if (napi_is_arraybuffer(c->env, c->argv[i], &yes) == napi_ok && yes &&
        napi_get_arraybuffer_info(c->env, c->argv[i], &data, NULL) == napi_ok)
      return data;
    if (napi_is_dataview(c->env, c->argv[i], &yes) == napi_ok && yes &&
        napi_get_dataview_info(c->env, c->argv[i], NULL, &data, NULL, NULL) == napi_ok)
      return data;
  }
  refuse(c, parameter, "an address, a buffer or null");
  return NULL;
}

static inline const char* arg_text(call* c, int i, const char* parameter) {
  napi_valuetype type;
  if (napi_typeof(c->env, c->argv[i], &type) != napi_ok) type = napi_symbol;
  if (type == napi_number || type == napi_bigint) refuse(c, parameter, "a text, a buffer or null");
  if (type != napi_string) return c->failed ? NULL : arg_pointer(c, i, parameter);
  size_t length = 0;
  if (c->n_short < 4) { /* a short text; a longer one fills the room and is read again */
    char* room = c->short_texts[c->n_short];
    if (napi_get_value_string_utf8(c->env, c->argv[i], room, kShortText, &length) == napi_ok && length < kShortText - 4) {
      ++c->n_short;
      if (strlen(room) != length) refuse(c, parameter, "a text without a zero character");
      return room;
    }
  }
  char* text = NULL;
  if (napi_get_value_string_utf8(c->env, c->argv[i], NULL, 0, &length) == napi_ok) text = malloc(length + 1);
  if (!text) {
    refuse(c, parameter, "a text that fits into memory");
    return NULL;
  }
  c->texts[c->n_texts++] = text;
  napi_get_value_string_utf8(c->env, c->argv[i], text, length + 1, &length);
  if (strlen(text) != length) refuse(c, parameter, "a text without a zero character");
  return text;
}

static inline napi_value of_number(napi_env env, double number) {
  napi_value value = NULL;
  napi_create_double(env, number, &value);
  return value;
}
static inline napi_value of_pointer(napi_env env, const void* p) { return of_number(env, (double)(uintptr_t)p); }
static inline napi_value of_output(napi_env env, uint64_t output) {
  napi_value value = NULL;
  napi_create_bigint_uint64(env, output, &value);
  return value;
}
static inline napi_value of_text(napi_env env, const char* text) {
  napi_value value = NULL;
  if (!text)
    napi_get_null(env, &value);
  else
    napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &value);
  return value;
}
#endif
