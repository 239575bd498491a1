/* Eager calls and the gradients of what they computed. */
#include "programs.h"

static tw_status* call(tw_eager* eager, const char* op, tw_tensor* a, tw_tensor* b, tw_tensor** out) {
  tw_tensor* inputs[] = {a, b};
  const tw_eager_call what = {.size = sizeof what, .op = op, .inputs = inputs, .n_inputs = b ? 2 : 1, .n_outputs = 1};
  return tw_eager_run(eager, &what, out);
}

static tw_status* eager_calls(void) {
  const char* options[] = {"max_entries=2"};
  tw_eager* eager = NULL;
  tw_tensor *x = NULL, *y = NULL, *z = NULL;
  tw_status* status = NULL;
  TRY(tw_eager_create(runtime, options, 1, &eager));
  TRY(tw_tensor_create_float(2, &x));
  const char* ops[] = {"Neg", "Exp", "Square", "Neg"};
  for (int i = 0; i < 4; ++i) {
    TRY(call(eager, ops[i], x, NULL, &y));
    TRY(call(eager, "Mul", x, y, &z));
    tw_tensor_release(y);
    tw_tensor_release(z);
    y = z = NULL;
  }
done:
  tw_tensor_release(x);
  tw_tensor_release(y);
  tw_tensor_release(z);
  tw_eager_destroy(eager);
  return status;
}

/* x^3 at 2, twice: 12 and 12. */
static tw_status* tapes(void) {
  tw_eager* eager = NULL;
  tw_tape *outer = NULL, *inner = NULL;
  tw_tensor *x = NULL, *y = NULL, *z = NULL;
  tw_tape_result first = {NULL, NULL}, second = {NULL, NULL};
  tw_status* status = NULL;
  TRY(tw_eager_create(runtime, NULL, 0, &eager));
  TRY(tw_tensor_create_float(2, &x));
  TRY(tw_tape_create(eager, &outer));
  TRY(tw_tape_create(eager, &inner));
  TRY(tw_tape_watch(outer, x));
  TRY(tw_tape_watch(inner, x));
  TRY(call(eager, "Square", x, NULL, &y));
  TRY(call(eager, "Mul", x, y, &z));
  TRY(tw_tape_gradient(inner, &z, NULL, 1, &x, 1, &first));
  TRY(tw_tape_gradient(outer, &first.values, NULL, 1, &x, 1, &second));
  EXPECT(*(const float*)tw_tensor_data(first.values) == 12 && *(const float*)tw_tensor_data(second.values) == 12);
done:
  tw_tensor_release(x);
  tw_tensor_release(y);
  tw_tensor_release(z);
  tw_tensor_release(first.values);
  tw_tensor_release(second.values);
  tw_tape_destroy(inner);
  tw_tape_destroy(outer);
  tw_eager_destroy(eager);
  return status;
}

const program eager_programs[] = {PROGRAM(eager_calls, 0), PROGRAM(tapes, 0), {NULL, NULL, 0}};
