/* Shared by the tests in C: expectations that print and count, and a runner. A test is a
 * function whose name is a sentence. */
#ifndef CHECK_H
#define CHECK_H
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "thalweg/thalweg.h"

static int failures;

#define CHECK(condition)                                                \
  do {                                                                  \
    if (!(condition)) {                                                 \
      printf("  %s:%d: expected %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                       \
    }                                                                   \
  } while (0)

/* Checks that the call succeeds. */
#define OK(call) check_ok((call), #call, __FILE__, __LINE__)
/* Checks that the call fails with that code and a message that contains `part`. */
#define FAILS(call, code, part) check_fails((call), (code), (part), #call, __FILE__, __LINE__)

static inline void check_ok(tw_status* s, const char* call, const char* file, int line) {
  if (!s) return;
  printf("  %s:%d: %s\n    failed: %s: %s\n", file, line, call, tw_status_code_name(tw_status_code(s)), tw_status_message(s));
  tw_status_release(s);
  ++failures;
}

static inline void check_fails(tw_status* s, uint32_t code, const char* part, const char* call, const char* file, int line) {
  if (tw_status_code(s) != code || !strstr(tw_status_message(s), part)) {
    printf("  %s:%d: %s\n    expected %s with '%s', got %s: %s\n", file, line, call, tw_status_code_name(code), part,
           tw_status_code_name(tw_status_code(s)), tw_status_message(s));
    ++failures;
  }
  tw_status_release(s);
}

typedef struct test {
  const char* name;
  void (*run)(void);
} test;
#define TEST(name) {#name, name}

static inline int run_tests(const test* tests, size_t n) {
  int failed = 0;
  for (size_t i = 0; i < n; ++i) {
    const int before = failures;
    tests[i].run();
    failed += failures > before;
    printf("%s  %s\n", failures > before ? "FAILED" : "passed", tests[i].name);
  }
  printf("%zu tests, %d failed\n", n, failed);
  return failed > 0;
}
#define MAIN(...)                                              \
  int main(void) {                                             \
    const test tests[] = {__VA_ARGS__};                        \
    return run_tests(tests, sizeof(tests) / sizeof(tests[0])); \
  }

/* ---- Short forms for common calls ---- */

static inline tw_tensor* floats(const int64_t* dims, uint32_t rank, const float* values) {
  tw_tensor* t = NULL;
  uint64_t n = 1;
  for (uint32_t i = 0; i < rank; ++i) n *= (uint64_t)dims[i];
  OK(tw_tensor_create_copy(TW_FLOAT, dims, rank, values, n * sizeof(float), &t));
  return t;
}

static inline tw_tensor* scalar(float value) {
  tw_tensor* t = NULL;
  OK(tw_tensor_create_float(value, &t));
  return t;
}

/* Runs one fetch with one feed (feed 0: none). The caller owns the result, which is NULL after a
 * failure. */
static inline tw_tensor* fetch(tw_session* session, tw_output feed, tw_tensor* value, tw_output what) {
  tw_tensor* out = NULL;
  const tw_signature signature = {.size = sizeof signature, .feeds = &feed, .n_feeds = feed != 0, .fetches = &what, .n_fetches = 1};
  OK(tw_session_run(session, &signature, &value, NULL, &out));
  return out;
}

static inline void run(tw_session* session, const tw_operation* target) {
  const tw_signature signature = {.size = sizeof signature, .targets = &target, .n_targets = 1};
  OK(tw_session_run(session, &signature, NULL, NULL, NULL));
}

static inline float as_float(tw_tensor* t) { /* also releases t */
  const float value = t ? *(const float*)tw_tensor_data(t) : NAN;
  tw_tensor_release(t);
  return value;
}

static inline int near(double a, double b, double tolerance) { return fabs(a - b) <= tolerance * fmax(1, fabs(b)); }

#endif
