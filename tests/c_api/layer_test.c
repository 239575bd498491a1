/* Layers against their formulas in double, their first values against what the initializers promise, and their errors. */
#include "check.h"

static tw_graph* graph;
static tw_scope* s;

static void begin(void) {
  OK(tw_graph_create(NULL, &graph));
  s = tw_scope_create(graph, NULL);
}

static tw_session* finish(void) {
  const tw_operation* init = tw_variable_initializer(s, "init");
  tw_session* session = NULL;
  OK(tw_scope_finish(s));
  OK(tw_session_create(graph, NULL, 0, &session));
  if (session) run(session, init);
  return session;
}

static void end(tw_session* session) {
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

/* n different numbers around 0, the same for the same seed. */
static const float* numbers(int n, int seed) {
  static float all[8][512];
  float* out = all[seed & 7];
  for (int i = 0; i < n; ++i) out[i] = (float)sin(1.7 * i + 0.9 * seed + 0.3);
  return out;
}

static tw_output value_of(const int64_t* dims, uint32_t rank, const float* values) {
  tw_tensor* t = floats(dims, rank, values);
  const tw_output made = tw_scope_constant(s, t);
  tw_tensor_release(t);
  return made;
}
#define VALUE(values, ...) \
  value_of((const int64_t[]){__VA_ARGS__}, (uint32_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), values)

/* The last number of elements that `what` has, and its values. */
static const float* values_of(tw_session* session, tw_output what, uint64_t count) {
  static float copy[512];
  tw_tensor* t = fetch(session, 0, NULL, what);
  CHECK(t && tw_tensor_count(t) == count);
  if (t && tw_tensor_count(t) == count && count <= 512) memcpy(copy, tw_tensor_data(t), count * sizeof(float));
  tw_tensor_release(t);
  return copy;
}

static void check_near(const float* got, const double* wanted, int n, double tolerance, const char* what) {
  for (int i = 0; i < n; ++i) {
    if (near(got[i], wanted[i], tolerance)) continue;
    printf("  %s: element %d is %.9g, expected %.9g\n", what, i, got[i], wanted[i]);
    ++failures;
    return;
  }
}

/* The failure of everything since begin. */
#define REFUSED(part)                                     \
  do {                                                    \
    FAILS(tw_scope_finish(s), TW_INVALID_ARGUMENT, part); \
    tw_graph_destroy(graph);                              \
  } while (0)

/* ---- Dense ---- */

static void DenseIsAProductAndASumOverTheLastAxis(void) {
  const float *x = numbers(24, 0), *k = numbers(20, 1), *b = numbers(5, 2);
  for (int rank = 1; rank <= 3; ++rank) {
    const int rows = rank == 1 ? 1 : 6;
    begin();
    tw_dense dense = {.size = sizeof dense, .kernel = VALUE(k, 4, 5), .bias = VALUE(b, 5)};
    const tw_output in = rank == 1 ? VALUE(x, 4) : rank == 2 ? VALUE(x, 6, 4) : VALUE(x, 2, 3, 4);
    const tw_output y = tw_dense_apply(s, &dense, in);
    tw_shape shape;
    OK(tw_graph_describe(graph, y, NULL, &shape));
    CHECK(shape.rank == rank && shape.dims[rank - 1] == 5);
    tw_session* session = finish();
    double wanted[30];
    for (int r = 0; r < rows; ++r) {
      for (int u = 0; u < 5; ++u) {
        wanted[r * 5 + u] = b[u];
        for (int i = 0; i < 4; ++i) wanted[r * 5 + u] += (double)x[r * 4 + i] * k[i * 5 + u];
      }
    }
    check_near(values_of(session, y, (uint64_t)(5 * rows)), wanted, 5 * rows, 1e-5, "dense");
    end(session);
  }
}

static void DenseTakesBatchesOfAnySize(void) {
  begin();
  tw_dense dense;
  tw_dense_create(s, "dense", NULL, 4, 5, &dense);
  const int64_t dims[] = {-1, -1, 4};
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, dims, 3), y = tw_dense_apply(s, &dense, x);
  tw_session* session = finish();
  for (int64_t n = 0; n < 3; ++n) {
    const int64_t given[] = {n, 3, 4};
    tw_tensor *fed = floats(given, 3, numbers(36, 0)), *got = fetch(session, x, fed, y);
    CHECK(got && tw_tensor_rank(got) == 3 && tw_tensor_dim(got, 0) == n && tw_tensor_dim(got, 1) == 3 && tw_tensor_dim(got, 2) == 5);
    tw_tensor_release(got);
    tw_tensor_release(fed);
  }
  end(session);
}

static void LayersMakeVariablesUnderTheirName(void) {
  begin();
  tw_dense dense;
  tw_layer_options options;
  tw_layer_options_init(&options);
  tw_dense_create(s, "first", &options, 2, 3, &dense);
  CHECK(dense.kernel && dense.bias);
  options.no_bias = 1;
  tw_dense_create(s, "second", &options, 2, 3, &dense);
  CHECK(dense.kernel && !dense.bias);
  tw_attention attention;
  tw_attention_create(s, "attention", NULL, 4, 2, &attention);
  tw_batch_norm norm;
  tw_batch_norm_init(&norm);
  tw_batch_norm_create(s, "norm", NULL, NULL, 3, &norm);
  OK(tw_scope_finish(s));
  const char* const wanted[] = {"first/kernel",          "first/bias",
                                "second/kernel",         "attention/query/kernel",
                                "attention/query/bias",  "attention/key/kernel",
                                "attention/key/bias",    "attention/value/kernel",
                                "attention/value/bias",  "attention/output/kernel",
                                "attention/output/bias", "norm/scale",
                                "norm/offset",           "norm/mean",
                                "norm/variance"};
  tw_variables* all = NULL;
  OK(tw_variables_create(graph, &all));
  CHECK(tw_variables_count(all) == sizeof wanted / sizeof *wanted);
  for (uint32_t i = 0; i < tw_variables_count(all) && i < sizeof wanted / sizeof *wanted; ++i)
    CHECK(!strcmp(tw_variables_name(all, i), wanted[i]));
  tw_variables_destroy(all);
  tw_graph_destroy(graph);
}

/* ---- Initializers ---- */

/* Mean, variance and largest magnitude of 20,000 elements [100, 200]. */
static void measure(uint32_t kind, double scale, double* mean, double* variance, double* most) {
  begin();
  tw_initializer how;
  tw_initializer_init(&how);
  how.kind = kind;
  how.scale = scale;
  how.seed = 7;
  const int64_t dims[] = {100, 200};
  const tw_output drawn = tw_initializer_value(s, &how, TW_FLOAT, dims, 2);
  tw_session* session = finish();
  tw_tensor* t = fetch(session, 0, NULL, drawn);
  const float* v = t ? tw_tensor_data(t) : NULL;
  double sum = 0, squares = 0;
  *most = 0;
  for (int i = 0; v && i < 20000; ++i) {
    sum += v[i];
    squares += (double)v[i] * v[i];
    *most = fmax(*most, fabs(v[i]));
  }
  *mean = sum / 20000;
  *variance = squares / 20000 - *mean * *mean;
  tw_tensor_release(t);
  end(session);
}

static void InitializersHaveTheVariancesThatTheyPromise(void) {
  const struct {
    uint32_t kind;
    double scale, variance, most; /* most: 0: no bound */
  } wanted[] = {
      {TW_INITIALIZER_DEFAULT, 1, 2.0 / 300, sqrt(6.0 / 300)},
      {TW_INITIALIZER_GLOROT_UNIFORM, 1, 2.0 / 300, sqrt(6.0 / 300)},
      {TW_INITIALIZER_GLOROT_NORMAL, 2, 8.0 / 300, 2 * 2 * sqrt(2.0 / 300) / 0.8796},
      {TW_INITIALIZER_HE_UNIFORM, 1, 0.02, sqrt(0.06)},
      {TW_INITIALIZER_HE_NORMAL, 1, 0.02, 2 * sqrt(0.02) / 0.8796},
      {TW_INITIALIZER_LECUN_UNIFORM, 1, 0.01, sqrt(0.03)},
      {TW_INITIALIZER_LECUN_NORMAL, 1, 0.01, 0.2 / 0.8796},
      {TW_INITIALIZER_UNIFORM, 0.3, 0.03, 0.3},
      {TW_INITIALIZER_NORMAL, 0.5, 0.25, 0},
      {TW_INITIALIZER_TRUNCATED_NORMAL, 0.5, 0.25 * 0.8796 * 0.8796, 1},
  };
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; ++i) {
    double mean, variance, most;
    measure(wanted[i].kind, wanted[i].scale, &mean, &variance, &most);
    /* Six standard errors of the mean; the variance of 20,000 draws is within 5 % of the true one. */
    CHECK(fabs(mean) < 6 * sqrt(wanted[i].variance / 20000));
    CHECK(fabs(variance / wanted[i].variance - 1) < 0.05);
    CHECK(!wanted[i].most || (most <= wanted[i].most * 1.0001 && most > wanted[i].most * 0.97));
  }
}

static void WeightsOfOneLayerAndOfOneSeedAreDrawnApart(void) {
  begin();
  tw_layer_options options;
  tw_layer_options_init(&options);
  options.seed = 11;
  options.kernel_initializer = options.bias_initializer = TW_INITIALIZER_UNIFORM;
  tw_dense one, same;
  tw_dense_create(s, "one", &options, 1, 8, &one);
  tw_dense_create(s, "same", &options, 1, 8, &same);
  const tw_output kernel = tw_variable_read(s, one.kernel), bias = tw_variable_read(s, one.bias), again = tw_variable_read(s, same.kernel);
  tw_session* session = finish();
  float first[8];
  memcpy(first, values_of(session, kernel, 8), sizeof first);
  CHECK(!memcmp(first, values_of(session, again, 8), sizeof first));
  CHECK(memcmp(first, values_of(session, bias, 8), sizeof first));
  end(session);
}

/* ---- Activations ---- */

static double relu6(double x) { return fmin(fmax(x, 0), 6); }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static double activation(uint32_t kind, double x) {
  switch (kind) {
    case TW_ACTIVATION_RELU: return fmax(x, 0);
    case TW_ACTIVATION_RELU6: return relu6(x);
    case TW_ACTIVATION_LEAKY_RELU: return x < 0 ? 0.2 * x : x;
    case TW_ACTIVATION_ELU: return x < 0 ? expm1(x) : x;
    case TW_ACTIVATION_SELU: return 1.0507009873554805 * (x < 0 ? 1.6732632423543773 * expm1(x) : x);
    case TW_ACTIVATION_GELU: return x * (1 + erf(x / sqrt(2))) / 2;
    case TW_ACTIVATION_GELU_TANH: return x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x))) / 2;
    case TW_ACTIVATION_SILU: return x * sigmoid(x);
    case TW_ACTIVATION_MISH: return x * tanh(log1p(exp(x)));
    case TW_ACTIVATION_SIGMOID: return sigmoid(x);
    case TW_ACTIVATION_HARD_SIGMOID: return relu6(x + 3) / 6;
    case TW_ACTIVATION_HARD_SWISH: return x * relu6(x + 3) / 6;
    case TW_ACTIVATION_TANH: return tanh(x);
    case TW_ACTIVATION_SOFTPLUS: return log1p(exp(x));
    case TW_ACTIVATION_SOFTSIGN: return x / (1 + fabs(x));
    default: return x;
  }
}

static void ActivationsHaveTheirFormulas(void) {
  const float x[] = {-8, -3.5f, -1, -0.25f, 0, 0.5f, 1, 2.75f, 5, 9};
  for (uint32_t kind = TW_ACTIVATION_NONE; kind <= TW_ACTIVATION_LOG_SOFTMAX; ++kind) {
    begin();
    const tw_output y = tw_activation(s, kind, VALUE(x, 1, 10));
    tw_session* session = finish();
    double wanted[10], sum = 0;
    for (int i = 0; i < 10; ++i) sum += exp((double)x[i]);
    for (int i = 0; i < 10; ++i) {
      wanted[i] = activation(kind, x[i]);
      if (kind == TW_ACTIVATION_SOFTMAX) wanted[i] = exp((double)x[i]) / sum;
      if (kind == TW_ACTIVATION_LOG_SOFTMAX) wanted[i] = (double)x[i] - log(sum);
    }
    char name[32];
    snprintf(name, sizeof name, "activation %u", kind);
    check_near(values_of(session, y, 10), wanted, 10, 2e-6, name);
    end(session);
  }
}

/* ---- Convolutions ---- */

static void ACausalConvolutionSeesNothingLater(void) {
  enum { N = 2, T = 7, C = 3, F = 4, K = 3, D = 2 };
  const float *x = numbers(N * T * C, 0), *k = numbers(K * C * F, 1), *b = numbers(F, 2);
  begin();
  tw_convolution c;
  tw_convolution_init(&c);
  c.rank = 1;
  c.padding = TW_PADDING_CAUSAL;
  c.dilation_1 = D;
  c.kernel = VALUE(k, K, C, F);
  c.bias = VALUE(b, F);
  const tw_output y = tw_convolution_apply(s, &c, VALUE(x, N, T, C));
  tw_session* session = finish();
  double wanted[N * T * F];
  for (int n = 0; n < N; ++n) {
    for (int t = 0; t < T; ++t) {
      for (int f = 0; f < F; ++f) {
        double sum = b[f];
        for (int i = 0; i < K; ++i) {
          const int at = t - (K - 1 - i) * D;
          for (int ch = 0; at >= 0 && ch < C; ++ch) sum += (double)x[(n * T + at) * C + ch] * k[(i * C + ch) * F + f];
        }
        wanted[(n * T + t) * F + f] = sum;
      }
    }
  }
  check_near(values_of(session, y, N * T * F), wanted, N * T * F, 1e-5, "causal convolution");
  end(session);
}

static void AConvolutionInGroupsSeesItsOwnChannels(void) {
  enum { H = 5, W = 4, C = 4, F = 4, K = 3, G = 4 };
  const float *x = numbers(H * W * C, 3), *k = numbers(K * K * F, 4);
  begin();
  tw_convolution c;
  tw_convolution_init(&c);
  c.stride_1 = 2;
  c.padding = TW_PADDING_VALID;
  c.kernel = VALUE(k, K, K, C / G, F);
  const tw_output y = tw_convolution_apply(s, &c, VALUE(x, 1, H, W, C));
  tw_session* session = finish();
  double wanted[2 * 2 * F];
  for (int h = 0; h < 2; ++h) {
    for (int w = 0; w < 2; ++w) {
      for (int f = 0; f < F; ++f) {
        double sum = 0;
        for (int i = 0; i < K; ++i)
          for (int j = 0; j < K; ++j) sum += (double)x[((2 * h + i) * W + w + j) * C + f] * k[(i * K + j) * F + f];
        wanted[(h * 2 + w) * F + f] = sum;
      }
    }
  }
  check_near(values_of(session, y, 2 * 2 * F), wanted, 2 * 2 * F, 1e-5, "convolution in groups");
  end(session);
}

static void AConvolutionOverVolumesIsMade(void) {
  begin();
  tw_convolution c;
  tw_convolution_init(&c);
  c.rank = 3;
  c.stride_2 = 2;
  tw_convolution_sizes sizes;
  tw_convolution_sizes_init(&sizes);
  sizes.channels = 2;
  sizes.filters = 3;
  tw_layer_options ones;
  tw_layer_options_init(&ones);
  ones.kernel_initializer = TW_INITIALIZER_CONSTANT;
  tw_convolution_create(s, "volume", &ones, &c, &sizes, &c);
  const float* x = numbers(2 * 4 * 2 * 2, 5);
  const tw_output y = tw_convolution_apply(s, &c, VALUE(x, 1, 2, 4, 2, 2));
  tw_session* session = finish();
  double wanted[2 * 2 * 2 * 3];
  for (int d = 0; d < 2; ++d)
    for (int h = 0; h < 2; ++h)
      for (int w = 0; w < 2; ++w)
        for (int f = 0; f < 3; ++f) {
          const float* at = x + ((d * 4 + 2 * h) * 2 + w) * 2;
          wanted[((d * 2 + h) * 2 + w) * 3 + f] = (double)at[0] + at[1];
        }
  check_near(values_of(session, y, 24), wanted, 24, 1e-6, "convolution over volumes");
  end(session);
}

/* ---- Norms ---- */

static void NormsHaveTheirFormulas(void) {
  enum { N = 2, P = 3, C = 6 };
  const float *x = numbers(N * P * C, 0), *scale = numbers(C, 1), *offset = numbers(C, 2);
  const struct {
    uint32_t groups, rms;
  } kinds[] = {{0, 0}, {0, 1}, {1, 0}, {3, 0}, {6, 0}};
  for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; ++kind) {
    begin();
    tw_norm norm;
    tw_norm_init(&norm);
    norm.groups = kinds[kind].groups;
    norm.rms = kinds[kind].rms;
    norm.epsilon = 1e-3;
    norm.scale = VALUE(scale, C);
    norm.offset = VALUE(offset, C);
    const tw_output y = tw_norm_apply(s, &norm, VALUE(x, N, P, C));
    tw_session* session = finish();
    double wanted[N * P * C];
    for (int i = 0; i < N * P * C; ++i) {
      const int n = i / (P * C), p = i / C % P, c = i % C;
      double sum = 0, squares = 0, count = 0;
      for (int j = 0; j < P * C; ++j) {
        const int same = norm.groups ? j % C / (C / (int)norm.groups) == c / (C / (int)norm.groups) : j / C == p;
        if (!same) continue;
        sum += x[n * P * C + j];
        squares += (double)x[n * P * C + j] * x[n * P * C + j];
        ++count;
      }
      const double mean = norm.rms ? 0 : sum / count;
      wanted[i] = (x[i] - mean) / sqrt(squares / count - mean * mean + 1e-3) * scale[c] + offset[c];
    }
    char name[32];
    snprintf(name, sizeof name, "norm %zu", kind);
    check_near(values_of(session, y, N * P * C), wanted, N * P * C, 1e-5, name);
    end(session);
  }
}

/* Ranks 2 to 5: the batch's own statistics in training, the averages otherwise; the averages move in training only. */
static void BatchNormNormalisesByTheBatchWhileTraining(void) {
  enum { ROWS = 8, C = 3 };
  const float* x = numbers(ROWS * C, 0);
  for (int rank = 2; rank <= 5; ++rank) {
    begin();
    tw_batch_norm norm;
    tw_batch_norm_init(&norm);
    norm.momentum = 0.9;
    tw_batch_norm_create(s, "norm", NULL, &norm, C, &norm);
    const tw_output training = tw_scope_placeholder(s, "training", TW_BOOL, NULL, 0);
    const tw_output in = rank == 2   ? VALUE(x, ROWS, C)
                         : rank == 3 ? VALUE(x, 2, 4, C)
                         : rank == 4 ? VALUE(x, 2, 2, 2, C)
                                     : VALUE(x, 1, 2, 2, 2, C);
    const tw_operation* update = NULL;
    const tw_output y = tw_batch_norm_apply(s, &norm, in, training, &update);
    const tw_output mean = tw_variable_read(s, norm.mean), variance = tw_variable_read(s, norm.variance);
    CHECK(update != NULL);
    tw_session* session = finish();
    double m[C] = {0}, v[C] = {0}, wanted[ROWS * C], still[ROWS * C];
    for (int i = 0; i < ROWS * C; ++i) m[i % C] += x[i] / (double)ROWS;
    for (int i = 0; i < ROWS * C; ++i) v[i % C] += (x[i] - m[i % C]) * (x[i] - m[i % C]) / ROWS;
    for (int i = 0; i < ROWS * C; ++i) wanted[i] = (x[i] - m[i % C]) / sqrt(v[i % C] + 1e-3);
    for (int i = 0; i < ROWS * C; ++i) still[i] = x[i] / sqrt(1 + 1e-3);
    for (uint8_t on = 0; on <= 1; ++on) {
      tw_tensor* flag = NULL;
      OK(tw_tensor_create_copy(TW_BOOL, NULL, 0, &on, 1, &flag));
      tw_tensor* got = NULL;
      const tw_signature step = {
          .size = sizeof step, .feeds = &training, .n_feeds = 1, .fetches = &y, .n_fetches = 1, .targets = &update, .n_targets = 1};
      OK(tw_session_run(session, &step, &flag, NULL, &got));
      if (got) check_near(tw_tensor_data(got), on ? wanted : still, ROWS * C, 1e-5, on ? "in training" : "in inference");
      tw_tensor_release(got);
      tw_tensor_release(flag);
      double means[C], variances[C]; /* of the population, of which the batch is a sample */
      for (int c = 0; c < C; ++c) {
        means[c] = on ? 0.1 * m[c] : 0;
        variances[c] = on ? 0.9 + 0.1 * v[c] * ROWS / (ROWS - 1) : 1;
      }
      check_near(values_of(session, mean, C), means, C, 1e-5, "average mean");
      check_near(values_of(session, variance, C), variances, C, 1e-5, "average variance");
    }
    end(session);
  }
}

static void NoGradientReachesTheAverages(void) {
  begin();
  tw_batch_norm norm;
  tw_batch_norm_init(&norm);
  tw_batch_norm_create(s, "norm", NULL, NULL, 3, &norm);
  const tw_output training = tw_scope_placeholder(s, "training", TW_BOOL, NULL, 0);
  const tw_operation* update = NULL;
  const tw_output y = tw_batch_norm_apply(s, &norm, VALUE(numbers(12, 0), 4, 3), training, &update);
  const int32_t axes[] = {0, 1};
  const tw_output loss = tw_scope_op2(s, "Sum", tw_scope_op1(s, "Square", y), tw_scope_ints(s, axes, 2));
  const tw_output all[] = {norm.scale, norm.offset, norm.mean, norm.variance};
  tw_gradient gradients[4];
  tw_scope_gradients(s, loss, all, 4, gradients);
  CHECK(gradients[0].values && gradients[1].values && !gradients[2].values && !gradients[3].values);
  OK(tw_scope_finish(s));
  tw_graph_destroy(graph);
}

/* ---- Transposed convolution, pooling ---- */

static void ATransposedConvolutionSpreadsEachElement(void) { /* tests/python/layers_test.py has more axes, strides and dilations */
  const float *x = numbers(6, 0), *k = numbers(12, 1), *b = numbers(2, 2);
  begin();
  tw_convolution c;
  tw_convolution_init(&c);
  c.rank = 1, c.padding = TW_PADDING_VALID, c.stride_1 = 2;
  c.kernel = VALUE(k, 3, 2, 2), c.bias = VALUE(b, 2);
  const tw_output y = tw_transposed_convolution_apply(s, &c, VALUE(x, 1, 3, 2));
  tw_session* session = finish();
  double wanted[14];
  for (int i = 0; i < 14; ++i) wanted[i] = b[i % 2];
  for (int at = 0; at < 3; ++at) {
    for (int w = 0; w < 3; ++w) {
      for (int f = 0; f < 2; ++f) {
        for (int i = 0; i < 2; ++i) wanted[(2 * at + w) * 2 + f] += (double)x[at * 2 + i] * k[(w * 2 + f) * 2 + i];
      }
    }
  }
  check_near(values_of(session, y, 14), wanted, 14, 1e-5, "transposed convolution");
  end(session);
}

static void PoolsTakeTheLargestOrTheMeanOfEachWindow(void) {
  const float* x = numbers(24, 3);
  for (uint32_t kind = TW_POOL_MAX; kind <= TW_POOL_MEAN; ++kind) {
    begin();
    tw_pool pool;
    tw_pool_init(&pool);
    pool.kind = kind, pool.window_2 = 3;
    const tw_output in = VALUE(x, 1, 2, 6, 2), y = tw_pool_apply(s, &pool, in), all = tw_pool_global(s, kind, in);
    tw_session* session = finish();
    double wanted[4], global[2] = {kind ? 0 : -INFINITY, kind ? 0 : -INFINITY};
    for (int at = 0; at < 4; ++at) {
      const int column = at / 2, channel = at % 2;
      wanted[at] = kind ? 0 : -INFINITY;
      for (int i = 0; i < 6; ++i) {
        const double v = x[((i / 3) * 6 + 3 * column + i % 3) * 2 + channel];
        wanted[at] = kind ? wanted[at] + v / 6 : fmax(wanted[at], v);
        global[channel] = kind ? global[channel] + v / 12 : fmax(global[channel], v);
      }
    }
    check_near(values_of(session, y, 4), wanted, 4, 1e-6, "pool");
    check_near(values_of(session, all, 2), global, 2, 1e-6, "global pool");
    end(session);
  }
}

static void RotationsKeepLengthsAndTurnByThePosition(void) {
  const float* x = numbers(12, 4);
  begin();
  tw_rotary rotary;
  tw_rotary_init(&rotary);
  rotary.base = 100, rotary.interleaved = 1;
  const tw_output y = tw_rotary_apply(s, &rotary, VALUE(x, 3, 4));
  tw_session* session = finish();
  double wanted[12];
  for (int p = 0; p < 3; ++p) {
    for (int k = 0; k < 2; ++k) {
      const double a = x[p * 4 + 2 * k], b = x[p * 4 + 2 * k + 1], angle = p * pow(100, -k / 2.0);
      wanted[p * 4 + 2 * k] = a * cos(angle) - b * sin(angle);
      wanted[p * 4 + 2 * k + 1] = a * sin(angle) + b * cos(angle);
    }
  }
  check_near(values_of(session, y, 12), wanted, 12, 1e-6, "rotation");
  end(session);
}

static void FurtherLayersRefuseWhatDoesNotFit(void) {
  tw_convolution c;
  tw_convolution_init(&c);
  tw_convolution_sizes sizes;
  tw_convolution_sizes_init(&sizes);
  sizes.channels = sizes.filters = sizes.groups = 2;
  begin();
  tw_transposed_convolution_create(s, "up", NULL, NULL, &sizes, &c);
  REFUSED("tw_transposed_convolution_create: groups is 2; it must be 1");
  begin();
  tw_convolution_init(&c);
  c.padding = TW_PADDING_CAUSAL, c.rank = 1;
  tw_transposed_convolution_apply(s, &c, VALUE(numbers(6, 0), 1, 3, 2));
  REFUSED("padding is causal");
  begin();
  tw_convolution_init(&c);
  c.groups = 3, c.kernel = VALUE(numbers(12, 0), 1, 1, 2, 6);
  tw_convolution_apply(s, &c, VALUE(numbers(16, 0), 1, 2, 2, 4));
  REFUSED("so 4 channels; the weights are for 6, in 3 groups");
  tw_pool pool;
  tw_pool_init(&pool);
  pool.rank = 3;
  begin();
  tw_pool_apply(s, &pool, VALUE(numbers(6, 0), 1, 3, 2));
  REFUSED("tw_pool_apply: rank is 3");
  begin();
  tw_pool_global(s, 2, VALUE(numbers(6, 0), 1, 3, 2));
  REFUSED("tw_pool_global: kind is 2");
  begin();
  tw_rotary_apply(s, NULL, VALUE(numbers(6, 0), 2, 3));
  REFUSED("its last size must be known and even");
  begin();
  tw_attention attention;
  tw_attention_create(s, "a", NULL, 4, 2, &attention);
  tw_attention_options options;
  tw_attention_options_init(&options);
  options.key_cache = VALUE(numbers(8, 0), 1, 2, 2, 2);
  tw_attention_apply_with(s, &attention, VALUE(numbers(4, 0), 1, 1, 4), &options, NULL, NULL);
  REFUSED("key_cache, value_cache and position belong together");
  begin();
  tw_initializer how;
  tw_initializer_init(&how);
  how.kind = TW_INITIALIZER_ORTHOGONAL;
  tw_initializer_value(s, &how, TW_FLOAT, (const int64_t[]){4}, 1);
  REFUSED("an orthogonal matrix has at least two axes");
}

/* ---- Embedding, dropout, attention ---- */

static void AnEmbeddingHasASparseGradient(void) {
  begin();
  const tw_output table = tw_embedding_create(s, "table", NULL, 10, 4);
  const int32_t numbers_of[] = {3, 3, 9};
  const tw_output rows = tw_embedding_apply(s, table, tw_scope_ints(s, numbers_of, 3));
  const int32_t axes[] = {0, 1};
  tw_gradient gradient;
  tw_scope_gradients(s, tw_scope_op2(s, "Sum", rows, tw_scope_ints(s, axes, 2)), &table, 1, &gradient);
  CHECK(gradient.values && gradient.rows);
  const tw_output whole = tw_variable_read(s, table);
  tw_session* session = finish();
  float all[40];
  memcpy(all, values_of(session, whole, 40), sizeof all);
  const float* got = values_of(session, rows, 12);
  CHECK(!memcmp(got, all + 12, 16) && !memcmp(got + 4, all + 12, 16) && !memcmp(got + 8, all + 36, 16));
  for (int i = 0; i < 40; ++i) CHECK(fabs(all[i]) <= 0.05);
  end(session);
}

static void DropoutDropsItsShareWhileTraining(void) {
  enum { N = 20000 };
  float* ones = malloc(N * sizeof(float));
  for (int i = 0; i < N; ++i) ones[i] = 1;
  begin();
  const tw_output training = tw_scope_placeholder(s, "training", TW_BOOL, NULL, 0);
  const tw_output y = tw_dropout(s, VALUE(ones, N), 0.25, training, 3);
  CHECK(tw_dropout(s, y, 0.25, 0, 3) == y && tw_dropout(s, y, 0, training, 3) == y);
  tw_session* session = finish();
  for (uint8_t on = 0; on <= 1; ++on) {
    tw_tensor* flag = NULL;
    OK(tw_tensor_create_copy(TW_BOOL, NULL, 0, &on, 1, &flag));
    tw_tensor* got = fetch(session, training, flag, y);
    const float* v = got ? tw_tensor_data(got) : NULL;
    int dropped = 0;
    for (int i = 0; v && i < N; ++i) {
      dropped += v[i] == 0;
      if (v[i] != 0 && !near(v[i], on ? 1 / 0.75 : 1, 1e-6)) CHECK(!"a kept element is divided by 1 - rate");
    }
    CHECK(on ? abs(dropped - N / 4) < 6 * 61.2 : dropped == 0); /* six standard deviations of the binomial distribution */
    tw_tensor_release(got);
    tw_tensor_release(flag);
  }
  end(session);
  free(ones);
}

static void AttentionMixesTheValuesOfEachHead(void) {
  enum { Q = 3, K = 4, W = 4, HEADS = 2, D = W / HEADS };
  const float *x = numbers(Q * W, 0), *to = numbers(K * W, 1);
  for (int causal = 0; causal <= 1; ++causal) {
    begin();
    tw_attention a;
    tw_layer_options seeded;
    tw_layer_options_init(&seeded);
    seeded.seed = 5;
    seeded.bias_initializer = TW_INITIALIZER_UNIFORM;
    tw_attention_create(s, "a", &seeded, W, HEADS, &a);
    const tw_output y = tw_attention_apply(s, &a, VALUE(x, 1, Q, W), VALUE(to, 1, K, W), 0, (uint32_t)causal);
    const tw_output kernels[] = {a.query_kernel, a.key_kernel, a.value_kernel, a.output_kernel};
    const tw_output biases[] = {a.query_bias, a.key_bias, a.value_bias, a.output_bias};
    tw_output read[8];
    for (int i = 0; i < 4; ++i) {
      read[i] = tw_variable_read(s, kernels[i]);
      read[4 + i] = tw_variable_read(s, biases[i]);
    }
    tw_session* session = finish();
    float k[4][W * W], b[4][W];
    for (int i = 0; i < 4; ++i) {
      memcpy(k[i], values_of(session, read[i], W * W), sizeof k[i]);
      memcpy(b[i], values_of(session, read[4 + i], W), sizeof b[i]);
    }
    double q[Q * W], keys[K * W], values[K * W], mixed[Q * W], wanted[Q * W];
    for (int part = 0; part < 3; ++part) {
      const float* from = part == 0 ? x : to;
      double* out = part == 0 ? q : part == 1 ? keys : values;
      for (int r = 0; r < (part == 0 ? Q : K); ++r) {
        for (int u = 0; u < W; ++u) {
          out[r * W + u] = b[part][u];
          for (int i = 0; i < W; ++i) out[r * W + u] += (double)from[r * W + i] * k[part][i * W + u];
        }
      }
    }
    for (int r = 0; r < Q; ++r) {
      for (int h = 0; h < HEADS; ++h) {
        double share[K], sum = 0;
        const int seen = causal ? r + 1 : K;
        for (int j = 0; j < seen; ++j) {
          double score = 0;
          for (int d = 0; d < D; ++d) score += q[r * W + h * D + d] * keys[j * W + h * D + d];
          sum += share[j] = exp(score / sqrt(D));
        }
        for (int d = 0; d < D; ++d) {
          mixed[r * W + h * D + d] = 0;
          for (int j = 0; j < seen; ++j) mixed[r * W + h * D + d] += share[j] / sum * values[j * W + h * D + d];
        }
      }
    }
    for (int r = 0; r < Q; ++r) {
      for (int u = 0; u < W; ++u) {
        wanted[r * W + u] = b[3][u];
        for (int i = 0; i < W; ++i) wanted[r * W + u] += mixed[r * W + i] * k[3][i * W + u];
      }
    }
    check_near(values_of(session, y, Q * W), wanted, Q * W, 1e-5, causal ? "causal attention" : "attention");
    end(session);
  }
}

/* ---- Unknown and empty axes ---- */

static void SizesThatAreKnownStayKnownBehindUnknownAxes(void) {
  begin();
  const int64_t any[] = {-1, -1, 4};
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, any, 3);
  tw_dense dense;
  tw_dense_create(s, "dense", NULL, 4, 6, &dense);
  tw_attention attention;
  tw_attention_create(s, "attention", NULL, 6, 2, &attention);
  tw_norm norm;
  tw_norm_init(&norm);
  norm.groups = 3;
  tw_norm_create(s, "norm", NULL, &norm, 6, &norm);
  const tw_output y = tw_norm_apply(s, &norm, tw_attention_apply(s, &attention, tw_dense_apply(s, &dense, x), 0, 0, 0));
  tw_shape shape = {NULL, -1, 0};
  OK(tw_graph_describe(graph, y, NULL, &shape));
  CHECK(shape.rank == 3 && shape.dims[0] == -1 && shape.dims[1] == -1 && shape.dims[2] == 6);
  tw_session* session = finish();
  for (int64_t rows = 0; rows <= 2; ++rows) { /* 0: an empty batch goes through */
    tw_tensor* fed = floats((const int64_t[]){rows, 3, 4}, 3, numbers(24, 0));
    tw_tensor* got = NULL;
    const tw_signature step = {.size = sizeof step, .feeds = &x, .n_feeds = 1, .fetches = &y, .n_fetches = 1};
    OK(tw_session_run(session, &step, &fed, NULL, &got));
    CHECK(got && tw_tensor_dim(got, 0) == rows && tw_tensor_dim(got, 1) == 3 && tw_tensor_dim(got, 2) == 6);
    tw_tensor_release(got);
    tw_tensor_release(fed);
  }
  end(session);
}

static void AnEmptyBatchLeavesTheAveragesAlone(void) {
  begin();
  const int64_t any[] = {-1, 3};
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, any, 2);
  tw_batch_norm norm;
  tw_batch_norm_create(s, "norm", NULL, NULL, 3, &norm);
  const tw_operation* update = NULL;
  tw_batch_norm_apply(s, &norm, x, tw_scope_scalar(s, TW_BOOL, 1), &update);
  const tw_output mean = tw_variable_read(s, norm.mean), variance = tw_variable_read(s, norm.variance);
  tw_session* session = finish();
  tw_tensor* fed = floats((const int64_t[]){0, 3}, 2, numbers(1, 0));
  const tw_signature step = {.size = sizeof step, .feeds = &x, .n_feeds = 1, .targets = &update, .n_targets = 1};
  OK(tw_session_run(session, &step, &fed, NULL, NULL));
  tw_tensor_release(fed);
  check_near(values_of(session, mean, 3), (const double[]){0, 0, 0}, 3, 0, "average mean");
  check_near(values_of(session, variance, 3), (const double[]){1, 1, 1}, 3, 0, "average variance");
  end(session);
}

/* ---- Errors ---- */

static void AfterAFailureRecordsHaveNoWeights(void) {
  begin();
  tw_convolution like;
  tw_convolution_init(&like);
  like.kernel = like.bias = VALUE(numbers(1, 0), 1);
  tw_norm norm_like;
  tw_norm_init(&norm_like);
  norm_like.scale = norm_like.offset = like.kernel;
  tw_batch_norm batch_like;
  tw_batch_norm_init(&batch_like);
  batch_like.scale = batch_like.offset = batch_like.mean = batch_like.variance = like.kernel;
  tw_scope_fail(s, tw_status_create(TW_INVALID_ARGUMENT, "failed before"));
  tw_convolution c;
  tw_norm norm;
  tw_batch_norm batch;
  tw_convolution_create(s, "c", NULL, &like, NULL, &c);
  tw_norm_create(s, "n", NULL, &norm_like, 3, &norm);
  tw_batch_norm_create(s, "b", NULL, &batch_like, 3, &batch);
  CHECK(c.kernel == 0 && c.bias == 0 && norm.scale == 0 && norm.offset == 0);
  CHECK(batch.scale == 0 && batch.offset == 0 && batch.mean == 0 && batch.variance == 0);
  REFUSED("failed before");
}

static void MessagesNameTheScope(void) {
  OK(tw_graph_create(NULL, &graph));
  s = tw_scope_create(graph, "encoder/head");
  tw_dense dense;
  tw_dense_create(s, "", NULL, 4, 0, &dense);
  REFUSED("tw_dense_create 'encoder/head': units is 0");
}

static tw_output as(uint32_t dtype, tw_output x) {
  tw_op* cast = tw_scope_begin(s, "Cast", NULL);
  tw_op_add_input(cast, x);
  tw_op_set_type(cast, "DstT", dtype);
  return tw_scope_end(s, cast);
}

static void TypesAndChannelsThatDoNotFitAreRefused(void) {
  tw_dense dense;
  tw_norm norm;
  tw_convolution c;
  tw_attention attention;
  tw_convolution_sizes sizes;
  tw_convolution_sizes_init(&sizes);
  sizes.channels = 3;
  sizes.filters = 1;
  begin();
  tw_dense_create(s, "d", NULL, 3, 5, &dense);
  tw_dense_apply(s, &dense, as(TW_HALF, VALUE(numbers(6, 0), 2, 3)));
  REFUSED("the input is half and the kernel is float; cast the input");
  begin();
  tw_convolution_create(s, "c", NULL, NULL, &sizes, &c);
  tw_convolution_apply(s, &c, as(TW_DOUBLE, VALUE(numbers(6, 0), 1, 2, 1, 3)));
  REFUSED("the input is double and the kernel is float; cast the input");
  begin();
  tw_attention_create(s, "a", NULL, 6, 2, &attention);
  tw_attention_apply(s, &attention, VALUE(numbers(12, 0), 1, 2, 6), 0, tw_scope_scalar(s, TW_BOOL, 1), 0);
  REFUSED("bias is bool and the input is float");
  begin();
  tw_norm_create(s, "n", NULL, NULL, 3, &norm);
  tw_norm_apply(s, &norm, VALUE(numbers(2, 0), 2, 1)); /* broadcasting would make 3 channels of one */
  REFUSED("so 1 channels; the weights are for 3");
}

static void WrongLayersAreRefusedWithTheValue(void) {
  tw_dense dense;
  tw_norm norm;
  tw_batch_norm batch;
  tw_convolution c;
  tw_attention attention;
  const int64_t dims[] = {3, 3};
  tw_convolution_sizes sizes;
  tw_convolution_sizes_init(&sizes);
  sizes.window_1 = sizes.window_2 = 3;
  sizes.channels = 4;
  sizes.filters = 6;
  begin();
  tw_dense_create(s, "d", NULL, 0, 5, &dense);
  REFUSED("tw_dense_create: inputs is 0");
  begin();
  tw_dense_create(s, NULL, NULL, 4, 5, &dense);
  REFUSED("tw_dense_create: name is NULL");
  begin();
  tw_dense_create(s, "d", NULL, 4, 5, NULL);
  REFUSED("out_dense is NULL");
  begin();
  tw_dense_create(s, "d", NULL, 4, 5, &dense);
  tw_dense_apply(s, &dense, VALUE(numbers(6, 0), 2, 3));
  REFUSED("the input has shape [2, 3], so 3 channels; the weights are for 4");
  begin();
  tw_dense_apply(s, NULL, VALUE(numbers(6, 0), 2, 3));
  REFUSED("tw_dense is NULL");
  begin();
  memset(&dense, 0, sizeof dense);
  tw_dense_apply(s, &dense, VALUE(numbers(6, 0), 2, 3));
  REFUSED("its size is 0");
  begin();
  tw_activation(s, 99, VALUE(numbers(6, 0), 2, 3));
  REFUSED("kind is 99");
  begin();
  tw_dropout(s, VALUE(numbers(6, 0), 2, 3), 1, 0, 0);
  REFUSED("tw_dropout: rate is 1");
  begin();
  tw_norm_init(&norm);
  norm.groups = 4;
  tw_norm_create(s, "n", NULL, &norm, 6, &norm);
  REFUSED("groups is 4, which does not divide the 6 channels");
  begin();
  tw_norm_init(&norm);
  norm.epsilon = -1;
  tw_norm_apply(s, &norm, VALUE(numbers(6, 0), 2, 3));
  REFUSED("epsilon is -1");
  begin();
  tw_batch_norm_init(&batch);
  tw_batch_norm_create(s, "b", NULL, NULL, 3, &batch);
  tw_batch_norm_apply(s, &batch, VALUE(numbers(6, 0), 2, 3), tw_scope_scalar(s, TW_BOOL, 1), NULL);
  REFUSED("out_update is NULL");
  begin();
  sizes.groups = 4;
  tw_convolution_create(s, "c", NULL, NULL, &sizes, &c);
  REFUSED("groups is 4; it must divide channels, 4, and filters, 6");
  begin();
  tw_convolution_init(&c);
  c.padding = TW_PADDING_CAUSAL;
  sizes.groups = 1;
  tw_convolution_create(s, "c", NULL, &c, &sizes, &c);
  REFUSED("causal padding needs rank 1, which is 2");
  begin();
  tw_convolution_create(s, "c", NULL, NULL, &sizes, &c);
  tw_convolution_apply(s, &c, VALUE(numbers(45, 0), 5, 3, 3));
  REFUSED("it must have 4 axes");
  begin();
  tw_attention_create(s, "a", NULL, 6, 4, &attention);
  REFUSED("heads is 4, which does not divide the width 6");
  begin();
  tw_embedding_apply(s, tw_embedding_create(s, "e", NULL, 6, 4), VALUE(numbers(3, 0), 3));
  REFUSED("ids are float; they must be int32 or int64");
  begin();
  tw_initializer_value(s, NULL, TW_INT32, dims, 2);
  REFUSED("tw_initializer_value: dtype is 3");
}

MAIN(TEST(ATransposedConvolutionSpreadsEachElement), TEST(PoolsTakeTheLargestOrTheMeanOfEachWindow),
     TEST(RotationsKeepLengthsAndTurnByThePosition), TEST(FurtherLayersRefuseWhatDoesNotFit), TEST(DenseIsAProductAndASumOverTheLastAxis),
     TEST(DenseTakesBatchesOfAnySize), TEST(LayersMakeVariablesUnderTheirName), TEST(InitializersHaveTheVariancesThatTheyPromise),
     TEST(WeightsOfOneLayerAndOfOneSeedAreDrawnApart), TEST(ActivationsHaveTheirFormulas), TEST(ACausalConvolutionSeesNothingLater),
     TEST(AConvolutionInGroupsSeesItsOwnChannels), TEST(AConvolutionOverVolumesIsMade), TEST(NormsHaveTheirFormulas),
     TEST(BatchNormNormalisesByTheBatchWhileTraining), TEST(NoGradientReachesTheAverages), TEST(AnEmbeddingHasASparseGradient),
     TEST(DropoutDropsItsShareWhileTraining), TEST(AttentionMixesTheValuesOfEachHead), TEST(SizesThatAreKnownStayKnownBehindUnknownAxes),
     TEST(AnEmptyBatchLeavesTheAveragesAlone), TEST(AfterAFailureRecordsHaveNoWeights), TEST(MessagesNameTheScope),
     TEST(TypesAndChannelsThatDoNotFitAreRefused), TEST(WrongLayersAreRefusedWithTheValue))
