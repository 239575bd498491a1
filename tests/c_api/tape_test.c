/* Tapes: gradients of eager calls against numeric ones, of any order; sparse ones; what is noted and what is not; errors. */
#include <pthread.h>

#include "eager.h"

static tw_tape* new_tape(tw_eager* e, tw_tensor* watched) {
  tw_tape* t = NULL;
  OK(tw_tape_create(e, &t));
  if (watched) OK(tw_tape_watch(t, watched));
  return t;
}

/* The gradient of one target by one source, which is dense or none; the caller owns it. */
static tw_tensor* gradient(tw_tape* tape, tw_tensor* y, tw_tensor* x) {
  tw_tape_result g = {NULL, NULL};
  OK(tw_tape_gradient(tape, &y, NULL, 1, &x, 1, &g));
  CHECK(!g.rows);
  return g.values;
}

static tw_tensor* doubles(uint32_t n, const double* values) {
  tw_tensor* t = NULL;
  OK(tw_tensor_create_copy(TW_DOUBLE, (const int64_t[]){n}, 1, values, n * sizeof *values, &t));
  return t;
}
static double at(const tw_tensor* t, uint32_t i) { return t && i < tw_tensor_count(t) ? ((const double*)tw_tensor_data(t))[i] : NAN; }

/* ---- Functions of a vector of n doubles, whose answer is a scalar ---- */

typedef tw_tensor* function(tw_eager* e, tw_tensor* x);

static tw_tensor* total(tw_eager* e, tw_tensor* x) { /* takes x */
  tw_tensor *axis = ints(1, (const int32_t[]){0}), *sum = eager(e, "Sum", x, axis);
  RELEASE(x, axis);
  return sum;
}

static tw_tensor* elementwise(tw_eager* e, tw_tensor* x) { /* sum of tanh(x) exp(sin x) / (1 + x^2), broadcast over a scalar */
  tw_tensor *one = NULL, *sine = eager(e, "Sin", x, NULL), *exponential = eager(e, "Exp", sine, NULL), *tanh_x = eager(e, "Tanh", x, NULL);
  OK(tw_tensor_create_double(1, &one));
  tw_tensor *square = eager(e, "Square", x, NULL), *below = eager(e, "AddV2", square, one);
  tw_tensor *above = eager(e, "Mul", tanh_x, exponential), *quotient = eager(e, "RealDiv", above, below);
  RELEASE(one, sine, exponential, tanh_x, square, below, above);
  return total(e, quotient);
}

static tw_tensor* matrices(tw_eager* e, tw_tensor* x) { /* of x as a [2, 2]: sum of softmax(x x^T) weighted by x */
  tw_tensor *dims = ints(2, (const int32_t[]){2, 2}), *flat = ints(1, (const int32_t[]){-1});
  tw_tensor *m = eager(e, "Reshape", x, dims), *product = NULL;
  const tw_eager_attr turned[] = {ATTR_BOOL("transpose_b", 1)};
  OK(eager_call(e, "MatMul", m, m, turned, 1, &product));
  tw_tensor *soft = eager(e, "Softmax", product, NULL), *weighted = eager(e, "Mul", soft, m), *line = eager(e, "Reshape", weighted, flat);
  RELEASE(dims, flat, m, product, soft, weighted);
  return total(e, line);
}

static tw_tensor* parts(tw_eager* e,
                        tw_tensor* x) { /* halves a and b of x: sum of a^3 b + b; several outputs, a list, one value used twice */
  tw_tensor *axis = NULL, *half[2] = {NULL}, *joined = NULL;
  OK(tw_tensor_create_int32(0, &axis));
  const tw_eager_attr two[] = {ATTR_INT("num_split", 2)};
  tw_tensor* in[] = {axis, x};
  const tw_eager_call split = {
      .size = sizeof split, .op = "Split", .inputs = in, .attrs = two, .n_inputs = 2, .n_attrs = 1, .n_outputs = 2};
  OK(tw_eager_run(e, &split, half));
  tw_tensor *square = eager(e, "Mul", half[0], half[0]), *cube = eager(e, "Mul", square, half[0]),
            *product = eager(e, "Mul", cube, half[1]);
  tw_tensor* both[] = {product, half[1], axis};
  const tw_eager_call concat = {.size = sizeof concat, .op = "ConcatV2", .inputs = both, .n_inputs = 3, .n_outputs = 1};
  OK(tw_eager_run(e, &concat, &joined));
  RELEASE(axis, half[0], half[1], square, cube, product);
  return total(e, joined);
}

static double value_at(tw_eager* e, function* f, const double* x, uint32_t n) {
  tw_tensor *t = doubles(n, x), *y = f(e, t);
  const double value = at(y, 0);
  RELEASE(t, y);
  return value;
}

static void gradient_at(tw_eager* e, function* f, const double* x, uint32_t n, double* out) {
  tw_tensor* t = doubles(n, x);
  tw_tape* tape = new_tape(e, t);
  tw_tensor *y = f(e, t), *g = gradient(tape, y, t);
  for (uint32_t i = 0; i < n; ++i) out[i] = at(g, i);
  RELEASE(t, y, g);
  tw_tape_destroy(tape);
}

enum { kN = 4 };
static const double kAt[kN] = {0.3, -0.7, 1.1, 0.4};
static function* const kFunctions[] = {elementwise, matrices, parts};

static void GradientsAgreeWithNumericOnes(void) {
  tw_eager* e = new_eager(NULL);
  const double h = 1e-5;
  for (int k = 0; k < 3; ++k) {
    double found[kN];
    gradient_at(e, kFunctions[k], kAt, kN, found);
    for (int i = 0; i < kN; ++i) {
      double x[kN];
      memcpy(x, kAt, sizeof x);
      x[i] = kAt[i] + h;
      const double above = value_at(e, kFunctions[k], x, kN);
      x[i] = kAt[i] - h;
      CHECK(near(found[i], (above - value_at(e, kFunctions[k], x, kN)) / (2 * h), 1e-8));
    }
  }
  tw_eager_destroy(e);
}

/* Of the sum of the gradient's elements times 1, 2, ..., by a tape around the tape. */
static void SecondDerivativesAgreeWithNumericOnes(void) {
  tw_eager* e = new_eager(NULL);
  const double h = 1e-5, weights[kN] = {1, 2, 3, 4};
  for (int k = 0; k < 3; ++k) {
    tw_tensor *x = doubles(kN, kAt), *w = doubles(kN, weights);
    tw_tape *outer = new_tape(e, x), *inner = new_tape(e, x);
    tw_tensor *y = kFunctions[k](e, x), *g = gradient(inner, y, x), *weighted = eager(e, "Mul", g, w), *sum = total(e, weighted);
    tw_tensor* second = gradient(outer, sum, x);
    for (int i = 0; i < kN; ++i) {
      double at_x[kN], above[kN], below[kN], numeric = 0;
      memcpy(at_x, kAt, sizeof at_x);
      at_x[i] = kAt[i] + h;
      gradient_at(e, kFunctions[k], at_x, kN, above);
      at_x[i] = kAt[i] - h;
      gradient_at(e, kFunctions[k], at_x, kN, below);
      for (int j = 0; j < kN; ++j) numeric += weights[j] * (above[j] - below[j]) / (2 * h);
      CHECK(near(at(second, (uint32_t)i), numeric, 1e-7));
    }
    RELEASE(x, w, y, g, sum, second);
    tw_tape_destroy(inner);
    tw_tape_destroy(outer);
  }
  tw_eager_destroy(e);
}

/* x^5 at 2: 80, 160, 240, 240. */
static void FourTapesGiveTheFourthDerivative(void) {
  tw_eager* e = new_eager(NULL);
  tw_tensor* x = scalar(2);
  tw_tape* tapes[4];
  for (int i = 0; i < 4; ++i) tapes[i] = new_tape(e, x);
  tw_tensor *two = eager(e, "Mul", x, x), *four = eager(e, "Square", two, NULL), *y = eager(e, "Mul", four, x);
  const float expected[] = {80, 160, 240, 240};
  tw_tensor* g = y;
  for (int i = 3; i >= 0; --i) {
    tw_tensor* next = gradient(tapes[i], g, x);
    HOLDS(next, expected[3 - i]);
    tw_tensor_release(g);
    g = next;
  }
  RELEASE(x, two, four, g);
  for (int i = 0; i < 4; ++i) tw_tape_destroy(tapes[i]);
  tw_eager_destroy(e);
}

/* A function in a part, and twice in itself: the bits are those without parts. */
static function* in_parts;

static tw_tensor* recomputed(tw_eager* e, tw_tensor* x) {
  uint64_t around = 0, first = 0, second = 0;
  OK(tw_tape_part_begin(e, &around));
  OK(tw_tape_part_begin(e, &first));
  tw_tensor* y = in_parts(e, x);
  OK(tw_tape_part_end(e, first));
  OK(tw_tape_part_begin(e, &second));
  tw_tensor *mine = eager(e, "Identity", x, NULL), *again = in_parts(e, mine), *product = eager(e, "Mul", y, again);
  OK(tw_tape_part_end(e, second));
  RELEASE(y, mine, again);
  tw_tensor* sine = eager(e, "Sin", product, NULL);
  RELEASE(product);
  OK(tw_tape_part_end(e, around));
  OK(tw_tape_part_end(e, second)); /* does nothing: it has ended */
  return sine;
}

static tw_tensor* squared(tw_eager* e, tw_tensor* x) { /* the same without parts */
  tw_tensor *y = in_parts(e, x), *again = in_parts(e, x), *product = eager(e, "Mul", y, again), *sine = eager(e, "Sin", product, NULL);
  RELEASE(y, again, product);
  return sine;
}

static void APartIsRecomputed(void) {
  tw_eager* e = new_eager(NULL);
  const double weights[kN] = {1, 2, 3, 4};
  for (int k = 0; k < 3; ++k) {
    in_parts = kFunctions[k];
    double plain[kN], again[kN], slopes[2][kN];
    gradient_at(e, squared, kAt, kN, plain);
    gradient_at(e, recomputed, kAt, kN, again);
    for (int i = 0; i < kN; ++i) CHECK(near(again[i], plain[i], 1e-12));
    for (int parts = 0; parts < 2; ++parts) { /* and the second derivative, weighted */
      tw_tensor *x = doubles(kN, kAt), *w = doubles(kN, weights);
      tw_tape *outer = new_tape(e, x), *inner = new_tape(e, x);
      tw_tensor *y = (parts ? recomputed : squared)(e, x), *g = gradient(inner, y, x), *weighted = eager(e, "Mul", g, w);
      tw_tensor *sum = total(e, weighted), *second = gradient(outer, sum, x);
      for (int i = 0; i < kN; ++i) slopes[parts][i] = at(second, (uint32_t)i);
      RELEASE(x, w, y, g, sum, second);
      tw_tape_destroy(inner);
      tw_tape_destroy(outer);
    }
    for (int i = 0; i < kN; ++i) CHECK(near(slopes[1][i], slopes[0][i], 1e-9));
  }
  tw_eager_destroy(e);
}

/* A value of the part that the program holds has a gradient, by itself and by what was made of it. */
static void AValueThatIsHeldStaysOnTheTape(void) {
  tw_eager* e = new_eager(NULL);
  tw_tensor* x = scalar(2);
  tw_tape* tape = new_tape(e, x);
  uint64_t part = 0;
  OK(tw_tape_part_begin(e, &part));
  tw_tensor *square = eager(e, "Square", x, NULL), *fourth = eager(e, "Square", square, NULL), *y = eager(e, "Neg", fourth, NULL);
  tw_tensor_release(fourth);
  OK(tw_tape_part_end(e, part));
  tw_tensor *by_x = gradient(tape, y, x), *between = gradient(tape, y, square), *sum = eager(e, "Add", y, square),
            *both = gradient(tape, sum, x);
  HOLDS(by_x, -32);
  HOLDS(between, -8);
  HOLDS(both, -28);
  RELEASE(x, square, y, by_x, between, sum, both);
  tw_tape_destroy(tape);
  OK(tw_tape_part_begin(e, &part)); /* no tape listens */
  OK(tw_tape_part_end(e, part));
  tw_eager_destroy(e);
}

static void ATapeAnswersAgainAndWeightsItsTargets(void) {
  tw_eager* e = new_eager(NULL);
  tw_tensor *x = vector(2, (const float[]){1, 2}), *weights = vector(2, (const float[]){10, 100}), *unused = scalar(1);
  tw_tape* tape = new_tape(e, x);
  OK(tw_tape_watch(tape, unused));
  tw_tensor *square = eager(e, "Square", x, NULL), *cube = eager(e, "Mul", square, x);
  tw_tensor *targets[] = {square, cube}, *dys[] = {weights, NULL}, *sources[] = {x, square, unused};
  for (int again = 0; again < 2; ++again) {
    tw_tape_result g[3];
    OK(tw_tape_gradient(tape, targets, dys, 2, sources, 3, g));
    HOLDS(g[0].values, 20 + 3, 400 + 12);
    HOLDS(g[1].values, 10 + 1, 100 + 2); /* of a value between: its own, and what comes by the cube */
    CHECK(!g[2].values && !g[0].rows);
    RELEASE(g[0].values, g[1].values);
  }
  RELEASE(x, weights, unused, square, cube);
  tw_tape_destroy(tape);
  tw_eager_destroy(e);
}

static void OnlyWhatWatchedValuesReachIsNoted(void) {
  tw_eager* e = new_eager(NULL);
  tw_tensor *x = scalar(3), *free = scalar(3);
  tw_tape* tape = new_tape(e, x);
  tw_tensor *y = eager(e, "Square", x, NULL), *z = eager(e, "Square", free, NULL), *same = gradient(tape, x, x), *g = gradient(tape, y, x);
  HOLDS(same, 1);
  HOLDS(g, 6);
  CHECK(!gradient(tape, z, free));
  tw_tape_stop(tape);
  tw_tensor* later = eager(e, "Square", x, NULL);
  CHECK(!gradient(tape, later, x));
  RELEASE(x, free, y, z, same, g, later);
  tw_tape_destroy(tape);
  tw_eager_destroy(e);
}

/* Ops that hand their input on share its memory, and are values of their own all the same. */
static void AValueThatIsHandedOnIsTakenForNoOther(void) {
  tw_eager* e = new_eager(NULL);
  tw_tensor* x = scalar(3);
  tw_tape* tape = new_tape(e, x);
  tw_tensor *copy = eager(e, "Identity", x, NULL), *fixed = eager(e, "StopGradient", x, NULL);
  tw_tensor *y = eager(e, "Mul", copy, fixed), *g = gradient(tape, y, x), *at_copy = gradient(tape, y, copy);
  HOLDS(g, 3);
  HOLDS(at_copy, 3);
  RELEASE(x, copy, fixed, y, g, at_copy);
  tw_tape_destroy(tape);
  tw_eager_destroy(e);
}

static tw_tensor* new_variable(tw_eager* e, const char* name, uint32_t rows, const float* values) {
  tw_tensor *w = variable_handle(e, name), *initial = floats((const int64_t[]){rows, 2}, 2, values);
  const tw_eager_attr dtype[] = {ATTR_TYPE("dtype", TW_FLOAT)};
  OK(eager_call(e, "AssignVariableOp", w, initial, dtype, 1, NULL));
  tw_tensor_release(initial);
  return w;
}

static void VariablesAreWatchedAndHaveGradients(void) {
  tw_eager* e = new_eager(NULL);
  tw_tensor* w = new_variable(e, "w", 1, (const float[]){1, 2});
  tw_tape* tape = new_tape(e, NULL);
  tw_tensor *first = variable_value(e, w), *second = variable_value(e, w), *y = eager(e, "Mul", first, second);
  tw_tensor *handle = variable_handle(e, "w"), *g = gradient(tape, y, handle); /* another handle to it */
  HOLDS(g, 2, 4);
  const tw_eager_attr dtype[] = {ATTR_TYPE("dtype", TW_FLOAT)};
  OK(eager_call(e, "AssignSubVariableOp", w, g, dtype, 1, NULL));
  tw_tensor *now = variable_value(e, w), *again = gradient(tape, y, w);
  HOLDS(now, -1, -2);
  HOLDS(again, 2, 4); /* of the values that were read */
  RELEASE(w, first, second, y, handle, g, now, again);
  tw_tape_destroy(tape);
  tw_eager_destroy(e);
}

static tw_tensor* gathered(tw_eager* e, tw_tensor* w, tw_tensor* rows) {
  const tw_eager_attr dtype[] = {ATTR_TYPE("dtype", TW_FLOAT)};
  tw_tensor* out = NULL;
  OK(eager_call(e, "ResourceGather", w, rows, dtype, 1, &out));
  return out;
}

static void GradientsOfGatheredRowsStaySparse(void) {
  tw_eager* e = new_eager(NULL);
  tw_tensor *w = new_variable(e, "table", 3, (const float[]){1, 2, 3, 4, 5, 6}), *rows = ints(3, (const int32_t[]){2, 0, 2});
  tw_tape* tape = new_tape(e, NULL);
  tw_tensor *some = gathered(e, w, rows), *square = eager(e, "Square", some, NULL);
  tw_tape_result g;
  OK(tw_tape_gradient(tape, &square, NULL, 1, &w, 1, &g));
  HOLDS(g.values, 10, 12, 2, 4, 10, 12);
  CHECK(g.rows && tw_tensor_count(g.rows) == 3 && memcmp(tw_tensor_data(g.rows), (const int32_t[]){2, 0, 2}, 12) == 0);
  RELEASE(g.values, g.rows);
  /* Rows of two gathers stand behind each other; beside a dense gradient all of it is dense. */
  tw_tensor *one = ints(1, (const int32_t[]){1}), *other = gathered(e, w, one), *targets[] = {square, other, NULL};
  OK(tw_tape_gradient(tape, targets, NULL, 2, &w, 1, &g));
  CHECK(g.rows && tw_tensor_count(g.rows) == 4 && tw_tensor_count(g.values) == 8);
  RELEASE(g.values, g.rows);
  tw_tensor *whole = variable_value(e, w), *negative = eager(e, "Neg", whole, NULL);
  targets[2] = negative;
  OK(tw_tape_gradient(tape, targets, NULL, 3, &w, 1, &g));
  CHECK(!g.rows && tw_tensor_rank(g.values) == 2);
  HOLDS(g.values, 2 - 1, 4 - 1, 1 - 1, 1 - 1, 20 - 1, 24 - 1);
  RELEASE(g.values, w, rows, some, square, one, other, whole, negative);
  tw_tape_destroy(tape);
  tw_eager_destroy(e);
}

/* sum of (rows of x)^3, gathered from a value: sparse at first, differentiated once more. */
static void SparseGradientsAreDifferentiatedAgain(void) {
  tw_eager* e = new_eager(NULL);
  tw_tensor *x = vector(3, (const float[]){1, 2, 3}), *rows = ints(2, (const int32_t[]){2, 2}), *axis = NULL;
  OK(tw_tensor_create_int32(0, &axis));
  tw_tape *outer = new_tape(e, x), *inner = new_tape(e, x);
  tw_tensor *in[] = {x, rows, axis}, *some = NULL;
  const tw_eager_call gather = {.size = sizeof gather, .op = "GatherV2", .inputs = in, .n_inputs = 3, .n_outputs = 1};
  OK(tw_eager_run(e, &gather, &some));
  tw_tensor *square = eager(e, "Square", some, NULL), *cube = eager(e, "Mul", square, some);
  tw_tape_result g, second;
  OK(tw_tape_gradient(inner, &cube, NULL, 1, &x, 1, &g));
  OK(tw_tape_gradient(outer, &g.values, NULL, 1, &x, 1, &second));
  HOLDS(g.values, 27, 27);
  CHECK(g.rows && second.values);
  if (second.rows) {
    HOLDS(second.values, 18, 18);
  } else {
    HOLDS(second.values, 0, 0, 36);
  }
  RELEASE(x, rows, axis, some, square, cube, g.values, g.rows, second.values, second.rows);
  tw_tape_destroy(inner);
  tw_tape_destroy(outer);
  tw_eager_destroy(e);
}

static void WhatHasNoGradientIsAnErrorOnlyOnTheWay(void) {
  tw_eager* e = new_eager(NULL);
  tw_tensor *x = vector(2, (const float[]){0.5f, 2}), *w = vector(2, (const float[]){1, 1}), *i = ints(1, (const int32_t[]){1});
  const tw_eager_attr attrs[] = {ATTR_TEXT("message", "not through here")};
  tw_tape* tape = new_tape(e, x);
  OK(tw_tape_watch(tape, w));
  tw_tensor* barred = NULL;
  OK(eager_call(e, "PreventGradient", x, NULL, attrs, 1, &barred));
  tw_tensor *y = eager(e, "Mul", barred, w), *g = gradient(tape, y, w);
  HOLDS(g, 0.5f, 2);
  tw_tape_result none = {x, x};
  FAILS(tw_tape_gradient(tape, &y, NULL, 1, &x, 1, &none), TW_INVALID_ARGUMENT, "not through here");
  CHECK(!none.values && !none.rows);
  FAILS(tw_tape_watch(tape, i), TW_INVALID_ARGUMENT, "a value of int32 cannot be watched");
  FAILS(tw_tape_gradient(tape, &i, NULL, 1, &x, 1, &none), TW_INVALID_ARGUMENT, "target 0 is int32");
  tw_tensor* wrong = scalar(1);
  FAILS(tw_tape_gradient(tape, &y, &wrong, 1, &w, 1, &none), TW_INVALID_ARGUMENT, "target 0 is float [], but the target is float [2]");
  RELEASE(x, w, i, barred, y, g, wrong);
  tw_tape_destroy(tape);
  tw_eager_destroy(e);
}

typedef struct visitor {
  tw_eager* eager;
  tw_tape* tape;
  tw_tensor *x, *y;
} visitor;

static void* visit(void* of) {
  visitor* v = of;
  v->y = eager(v->eager, "Square", v->x, NULL);
  FAILS(tw_tape_watch(v->tape, v->x), TW_FAILED_PRECONDITION, "the tape belongs to another thread");
  return NULL;
}

static void CallsOfOtherThreadsAreNotNoted(void) {
  visitor v = {new_eager(NULL), NULL, scalar(3), NULL};
  v.tape = new_tape(v.eager, v.x);
  pthread_t thread;
  pthread_create(&thread, NULL, visit, &v);
  pthread_join(thread, NULL);
  CHECK(!gradient(v.tape, v.y, v.x));
  RELEASE(v.x, v.y);
  tw_tape_destroy(v.tape);
  tw_eager_destroy(v.eager);
}

/* The cache holds one entry, and the context ends before its tape: what was noted stays. */
static void ATapeKeepsWhatItNoted(void) {
  tw_eager* e = new_eager("max_entries=1");
  tw_tensor* x = scalar(3);
  tw_tape* tape = new_tape(e, x);
  tw_tensor *square = eager(e, "Square", x, NULL), *y = eager(e, "Exp", square, NULL);
  tw_eager_destroy(e);
  RELEASE(square);
  tw_tensor* g = gradient(tape, y, x);
  HOLDS(g, 6 * expf(9));
  tw_tape_destroy(tape);
  RELEASE(x, y, g);
}

MAIN(TEST(GradientsAgreeWithNumericOnes), TEST(SecondDerivativesAgreeWithNumericOnes), TEST(FourTapesGiveTheFourthDerivative),
     TEST(APartIsRecomputed), TEST(AValueThatIsHeldStaysOnTheTape), TEST(ATapeAnswersAgainAndWeightsItsTargets),
     TEST(OnlyWhatWatchedValuesReachIsNoted), TEST(AValueThatIsHandedOnIsTakenForNoOther), TEST(VariablesAreWatchedAndHaveGradients),
     TEST(GradientsOfGatheredRowsStaySparse), TEST(SparseGradientsAreDifferentiatedAgain), TEST(WhatHasNoGradientIsAnErrorOnlyOnTheWay),
     TEST(CallsOfOtherThreadsAreNotNoted), TEST(ATapeKeepsWhatItNoted))
