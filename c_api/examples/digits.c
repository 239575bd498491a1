/* Trains a small convolutional net on 1,797 handwritten digits of 8x8 pixels, then writes what `thalweg run` needs to use it.
 *
 * The data: one digit per line, 64 pixels from 0 to 16 and the label, separated by commas. Every fifth line is kept for the test.
 * Read it in this order: build_model (the graph), train (the loop), evaluate, save, main. */
#define _POSIX_C_SOURCE 200809L
#include "digits.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/stat.h>

#include "thalweg/thalweg.h"

enum { kPixels = 64, kBatch = 32, kWeights = 8 };

typedef struct options {
  const char *data, *out, *device;
  int epochs, threads, quiet;
  unsigned seed;
} options;

typedef struct digits { /* n pictures and their labels */
  float* pixels;
  int32_t* labels;
  int n;
} digits;

typedef struct model {
  tw_graph* graph;
  tw_output image, label, learning_rate; /* feeds */
  tw_output loss, correct, prediction;   /* fetches */
  const tw_operation *train, *init;      /* targets */
} model;

/* ---- Giving up: an example may just say why and stop ---- */

static void die(const char* format, ...) {
  va_list args;
  va_start(args, format);
  fputs("digits: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  exit(1);
}

static void check(tw_status* status) {
  if (status) die("%s", tw_status_message(status));
}

static void* allocate(size_t count, size_t size) {
  void* p = calloc(count, size);
  if (!p) die("out of memory");
  return p;
}

/* ---- The model ---- */

/* Random numbers from a normal distribution cut at two standard deviations; the same for the same seed on every machine. */
static tw_output random_weights(tw_scope* s, const int32_t* dims, uint32_t rank, double deviation, unsigned seed) {
  tw_op* op = tw_scope_begin(s, "TruncatedNormal", NULL);
  tw_op_add_input(op, tw_scope_ints(s, dims, rank));
  tw_op_set_type(op, "dtype", TW_FLOAT);
  tw_op_set_int(op, "seed", 87654321);
  tw_op_set_int(op, "seed2", seed);
  return tw_scope_op2(s, "Mul", tw_scope_end(s, op), tw_scope_scalar(s, TW_FLOAT, deviation));
}

static tw_output zeros(tw_scope* s, int32_t n) { return tw_scope_op2(s, "Fill", tw_scope_ints(s, &n, 1), tw_scope_scalar(s, TW_FLOAT, 0)); }

/* 3x3 convolution over [n, height, width, from] to [n, height, width, to], bias, relu, and the largest of each 2x2. */
static tw_output convolution_block(tw_scope* s, tw_output x, tw_output filter, tw_output bias) {
  const int64_t one[4] = {1, 1, 1, 1}, two[4] = {1, 2, 2, 1};
  tw_op* convolution = tw_scope_begin(s, "Conv2D", NULL);
  tw_op_add_input(convolution, x);
  tw_op_add_input(convolution, tw_variable_read(s, filter));
  tw_op_set_ints(convolution, "strides", one, 4);
  tw_op_set_string(convolution, "padding", "SAME", 4);
  tw_output y = tw_scope_op2(s, "BiasAdd", tw_scope_end(s, convolution), tw_variable_read(s, bias));
  tw_op* pool = tw_scope_begin(s, "MaxPool", NULL);
  tw_op_add_input(pool, tw_scope_op1(s, "Relu", y));
  tw_op_set_ints(pool, "ksize", two, 4);
  tw_op_set_ints(pool, "strides", two, 4);
  tw_op_set_string(pool, "padding", "VALID", 5);
  return tw_scope_end(s, pool);
}

static tw_output dense(tw_scope* s, tw_output x, tw_output weights, tw_output bias) {
  return tw_scope_op2(s, "BiasAdd", tw_scope_op2(s, "MatMul", x, tw_variable_read(s, weights)), tw_variable_read(s, bias));
}

/* The mean of a vector, as a named scalar. */
static tw_output mean(tw_scope* s, const char* name, tw_output x) {
  const int32_t axis = 0;
  return tw_scope_name(s, name, tw_scope_op2(s, "Mean", x, tw_scope_ints(s, &axis, 1)));
}

static void build_model(model* m, unsigned seed) {
  check(tw_graph_create(NULL, &m->graph));
  tw_scope* s = tw_scope_create(m->graph, NULL);

  const int64_t image_dims[] = {-1, kPixels}, label_dims[] = {-1};
  m->image = tw_scope_placeholder(s, "image", TW_FLOAT, image_dims, 2);
  m->label = tw_scope_placeholder(s, "label", TW_INT32, label_dims, 1);
  m->learning_rate = tw_scope_placeholder(s, "learning_rate", TW_FLOAT, NULL, 0);

  /* Deviations after He: sqrt(2 / inputs of a unit). */
  const int32_t filter1[] = {3, 3, 1, 16}, filter2[] = {3, 3, 16, 32}, hidden[] = {128, 64}, output[] = {64, kClasses};
  const tw_output w[kWeights] = {
      tw_variable_create(s, "conv1/filter", random_weights(s, filter1, 4, 0.47, seed)),
      tw_variable_create(s, "conv1/bias", zeros(s, 16)),
      tw_variable_create(s, "conv2/filter", random_weights(s, filter2, 4, 0.12, seed + 1)),
      tw_variable_create(s, "conv2/bias", zeros(s, 32)),
      tw_variable_create(s, "hidden/weights", random_weights(s, hidden, 2, 0.12, seed + 2)),
      tw_variable_create(s, "hidden/bias", zeros(s, 64)),
      tw_variable_create(s, "output/weights", random_weights(s, output, 2, 0.12, seed + 3)),
      tw_variable_create(s, "output/bias", zeros(s, kClasses)),
  };

  const int32_t square[] = {-1, 8, 8, 1}, flat[] = {-1, 128};
  tw_output x = tw_scope_op2(s, "Mul", m->image, tw_scope_scalar(s, TW_FLOAT, 1.0 / 16));
  x = tw_scope_op2(s, "Reshape", x, tw_scope_ints(s, square, 4));
  x = convolution_block(s, x, w[0], w[1]);                      /* [n, 4, 4, 16] */
  x = convolution_block(s, x, w[2], w[3]);                      /* [n, 2, 2, 32] */
  x = tw_scope_op2(s, "Reshape", x, tw_scope_ints(s, flat, 2)); /* [n, 128] */
  x = tw_scope_op1(s, "Relu", dense(s, x, w[4], w[5]));         /* [n, 64] */
  const tw_output logits = dense(s, x, w[6], w[7]);             /* [n, 10] */

  tw_scope_name(s, "probabilities", tw_scope_op1(s, "Softmax", logits));
  tw_op* largest = tw_scope_begin(s, "ArgMax", "prediction");
  tw_op_add_input(largest, logits);
  tw_op_add_input(largest, tw_scope_scalar(s, TW_INT32, 1));
  tw_op_set_type(largest, "output_type", TW_INT32);
  m->prediction = tw_scope_end(s, largest);

  m->loss = mean(s, "loss", tw_scope_op2(s, "SparseSoftmaxCrossEntropyWithLogits", logits, m->label));
  tw_op* hits = tw_scope_begin(s, "Cast", NULL);
  tw_op_add_input(hits, tw_scope_op2(s, "Equal", m->prediction, m->label));
  tw_op_set_type(hits, "DstT", TW_FLOAT);
  m->correct = mean(s, "correct", tw_scope_end(s, hits));

  tw_gradient gradients[kWeights];
  tw_scope_gradients(s, m->loss, w, kWeights, gradients);
  tw_adam adam;
  tw_adam_init(&adam);
  adam.learning_rate = m->learning_rate;
  m->train = tw_train_adam(s, w, gradients, kWeights, &adam);
  m->init = tw_variable_initializer(s, "init");
  check(tw_scope_finish(s));
}

/* ---- The data ---- */

static void add_digit(digits* d, char* line, const char* path, int number) {
  char* at = line;
  for (int i = 0; i <= kPixels; ++i) {
    char* end;
    const long value = strtol(at, &end, 10);
    const long most = i < kPixels ? 16 : kClasses - 1;
    if (end == at || value < 0 || value > most || (*end != ',' && i < kPixels)) {
      die("%s:%d: value %d is not a number from 0 to %ld", path, number, i + 1, most);
    }
    if (i < kPixels)
      d->pixels[(size_t)d->n * kPixels + (size_t)i] = (float)value;
    else
      d->labels[d->n] = (int32_t)value;
    at = end + 1;
  }
  ++d->n;
}

/* Every fifth digit goes to the test set, the others to the training set. */
static void load_digits(const char* path, digits* training, digits* test) {
  enum { kMost = 2000 };
  FILE* file = fopen(path, "r");
  if (!file) die("cannot read '%s': %s; --data says where the digits are", path, strerror(errno));
  digits* const sets[2] = {training, test};
  for (int i = 0; i < 2; ++i) {
    sets[i]->pixels = allocate((size_t)kMost * kPixels, sizeof(float));
    sets[i]->labels = allocate(kMost, sizeof(int32_t));
    sets[i]->n = 0;
  }
  char line[512];
  for (int number = 0; fgets(line, sizeof line, file); ++number) {
    if (number == kMost) die("%s: more than %d digits", path, kMost);
    add_digit(number % 5 == 0 ? test : training, line, path, number + 1);
  }
  fclose(file);
  if (training->n < kBatch || test->n == 0) die("%s: only %d digits", path, training->n + test->n);
}

/* Small and good enough to shuffle with (xorshift32); seeded, so that two runs are alike. */
static uint32_t random_number(uint32_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 17;
  *state ^= *state << 5;
  return *state;
}

static void shuffle(int* order, int n, uint32_t* state) {
  for (int i = n - 1; i > 0; --i) {
    const int j = (int)(random_number(state) % (uint32_t)(i + 1)), t = order[i];
    order[i] = order[j];
    order[j] = t;
  }
}

/* Tensors of the pictures and labels order[0 .. n). */
static void make_batch(const digits* d, const int* order, int n, tw_tensor** image, tw_tensor** label) {
  const int64_t dims[] = {n, kPixels};
  check(tw_tensor_create(TW_FLOAT, dims, 2, image));
  check(tw_tensor_create(TW_INT32, dims, 1, label));
  float* pixels = tw_tensor_mutable_data(*image);
  int32_t* labels = tw_tensor_mutable_data(*label);
  for (int i = 0; i < n; ++i) {
    memcpy(pixels + (size_t)i * kPixels, d->pixels + (size_t)order[i] * kPixels, kPixels * sizeof(float));
    labels[i] = d->labels[order[i]];
  }
}

/* ---- Progress: a bar that is drawn over itself, or a plain line per tenth where nobody watches ---- */

typedef struct progress {
  int steps, quiet, terminal, tenths;
  double started, drawn;
} progress;

static double now(void) {
  struct timespec t;
  timespec_get(&t, TIME_UTC);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void show_progress(progress* p, int step, double loss, double accuracy) {
  const double time = now(), spent = time - p->started;
  const double rate = spent > 0 ? step * (double)kBatch / spent : 0, left = spent / step * (p->steps - step);
  if (p->quiet) return;
  if (!p->terminal) {
    if (step * 10 / p->steps == p->tenths) return;
    p->tenths = step * 10 / p->steps;
    printf("step %d/%d  loss %.4f  accuracy %.1f %%  %.0f examples/s  %.1f s left\n", step, p->steps, loss, 100 * accuracy, rate, left);
    return;
  }
  if (time - p->drawn < 0.05 && step < p->steps) return;
  p->drawn = time;
  enum { kWidth = 24 };
  char bar[3 * kWidth + 1] = "";
  for (int i = 0; i < kWidth; ++i) strcat(bar, i * p->steps < step * kWidth ? "\u2588" : "\u2591");
  printf("\r%s step %d/%d  loss %.4f  accuracy %.1f %%  %.0f examples/s  %.1f s left \033[K", bar, step, p->steps, loss, 100 * accuracy,
         rate, left);
  if (step == p->steps) putchar('\n');
  fflush(stdout);
}

/* ---- Training and testing ---- */

static float scalar(const tw_tensor* t) { return *(const float*)tw_tensor_data(t); }

/* Accuracy on a set, in one step; counts[true][predicted] may be NULL. */
static double evaluate(tw_session* session, const model* m, const digits* d, int counts[kClasses][kClasses]) {
  const int64_t dims[] = {d->n, kPixels};
  tw_tensor *image, *prediction;
  check(tw_tensor_create_copy(TW_FLOAT, dims, 2, d->pixels, (uint64_t)d->n * kPixels * sizeof(float), &image));
  const tw_signature what = {.size = sizeof what, .feeds = &m->image, .n_feeds = 1, .fetches = &m->prediction, .n_fetches = 1};
  check(tw_session_run(session, &what, &image, NULL, &prediction));
  const int32_t* predicted = tw_tensor_data(prediction);
  int right = 0;
  for (int i = 0; i < d->n; ++i) {
    right += predicted[i] == d->labels[i];
    if (counts) ++counts[d->labels[i]][predicted[i]];
  }
  tw_tensor_release(image);
  tw_tensor_release(prediction);
  return (double)right / d->n;
}

static void train(tw_session* session, const model* m, const options* o, const digits* training, const digits* test, history* h) {
  const tw_output feeds[] = {m->image, m->label, m->learning_rate}, fetches[] = {m->loss, m->correct};
  const tw_signature step = {
      .size = sizeof step, .feeds = feeds, .n_feeds = 3, .fetches = fetches, .n_fetches = 2, .targets = &m->train, .n_targets = 1};
  const tw_signature start = {.size = sizeof start, .targets = &m->init, .n_targets = 1};
  check(tw_session_run(session, &start, NULL, NULL, NULL));
  tw_callable* run;
  check(tw_callable_create(session, &step, &run));

  const int batches = training->n / kBatch;
  int* order = allocate((size_t)training->n, sizeof(int));
  for (int i = 0; i < training->n; ++i) order[i] = i;
  h->loss = allocate((size_t)(o->epochs * batches), sizeof(float));
  h->accuracy = allocate((size_t)o->epochs, sizeof(float));
  progress p = {.steps = o->epochs * batches, .quiet = o->quiet, .terminal = isatty(STDOUT_FILENO), .started = now()};
  uint32_t random = 2463534242u ^ (o->seed * 2654435761u);
  double loss = 0, correct = 0; /* smoothed over the last few batches, for the eye */

  for (h->n_epochs = 0; h->n_epochs < o->epochs; ++h->n_epochs) {
    shuffle(order, training->n, &random);
    for (int b = 0; b < batches; ++b, ++h->n_steps) {
      tw_tensor *in[3], *out[2];
      const float left = 1 - (float)h->n_steps / (float)p.steps; /* the rate falls to nothing along a parabola */
      make_batch(training, order + b * kBatch, kBatch, &in[0], &in[1]);
      check(tw_tensor_create_float(0.004f * left * left, &in[2]));
      check(tw_callable_run(run, in, NULL, out));
      h->loss[h->n_steps] = scalar(out[0]);
      const double keep = h->n_steps == 0 ? 0 : 0.9;
      loss = keep * loss + (1 - keep) * scalar(out[0]);
      correct = keep * correct + (1 - keep) * scalar(out[1]);
      for (int i = 0; i < 3; ++i) tw_tensor_release(in[i]);
      for (int i = 0; i < 2; ++i) tw_tensor_release(out[i]);
      show_progress(&p, h->n_steps + 1, loss, correct);
    }
    h->accuracy[h->n_epochs] = (float)evaluate(session, m, test, NULL);
  }
  if (!o->quiet) printf("trained in %.2f s\n", now() - p.started);
  tw_callable_destroy(run);
  free(order);
}

/* ---- What is left behind ---- */

static FILE* create(const char* path) {
  FILE* file = fopen(path, "wb");
  if (!file) die("cannot write '%s': %s", path, strerror(errno));
  return file;
}

static void finish(FILE* file, const char* path) {
  const int failed = ferror(file);
  if (fclose(file) != 0 || failed) die("cannot write '%s': %s", path, strerror(errno));
}

static void save(tw_session* session, const model* m, const options* o, const history* h, int counts[kClasses][kClasses], double accuracy) {
  char path[4096];
  tw_buffer* bytes;
  tw_saver* saver;
  snprintf(path, sizeof path, "%s/model", o->out);
  check(tw_saver_create(m->graph, NULL, 0, &saver)); /* its operations are part of the graph that is written below */
  check(tw_saver_save(saver, session, path));
  tw_saver_destroy(saver);

  snprintf(path, sizeof path, "%s/graph.pb", o->out);
  check(tw_graph_export(m->graph, &bytes));
  FILE* file = create(path);
  fwrite(tw_buffer_data(bytes), 1, tw_buffer_bytes(bytes), file);
  finish(file, path);
  tw_buffer_release(bytes);

  snprintf(path, sizeof path, "%s/digits.svg", o->out);
  if (plot_digits(path, h, (const int(*)[kClasses])counts, accuracy) != 0) die("cannot write '%s': %s", path, strerror(errno));

  snprintf(path, sizeof path, "%s/accuracy.txt", o->out);
  file = create(path);
  fprintf(file, "%.2f\n", 100 * accuracy);
  finish(file, path);
}

/* ---- The command line ---- */

static const char kHelp[] =
    "usage: digits [--data FILE] [--out FOLDER] [--epochs N] [--seed N] [--threads N] [--device NAME] [--quiet]\n"
    "Trains a small convolutional net on handwritten digits and tests it.\n"
    "  --data FILE    64 pixels and a label a line (default: digits.csv)\n"
    "  --out FOLDER   for graph.pb, model.* (the checkpoint), digits.svg, accuracy.txt (default: digits)\n"
    "  --epochs N     passes over the training set (default: 25)\n"
    "  --seed N       another seed, other weights; the same seed, the same bits (default: 1)\n"
    "  --threads N    0: as many as there are processors (default)\n"
    "  --device NAME  where to train, such as OPENCL:0; what has no kernel there runs elsewhere (default: anywhere)\n"
    "  --quiet        only the last line\n"
    "Exit status: 0 trained and written, 1 something failed, 2 wrong arguments.\n";

static int number(const char* name, const char* text, long least, long most) {
  char* end;
  const long value = strtol(text, &end, 10);
  if (end == text || *end || value < least || value > most) {
    fprintf(stderr, "digits: %s takes a number from %ld to %ld, not '%s'\n", name, least, most, text);
    exit(2);
  }
  return (int)value;
}

static options parse(int argc, char** argv) {
  options o = {.data = "digits.csv", .out = "digits", .epochs = 25, .seed = 1};
  for (int i = 1; i < argc; ++i) {
    const char* name = argv[i];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
      fputs(kHelp, stdout);
      exit(0);
    }
    if (strcmp(name, "--quiet") == 0) {
      o.quiet = 1;
      continue;
    }
    const char* value = argv[i + 1]; /* NULL after the last */
    if (strcmp(name, "--data") == 0 && value)
      o.data = value;
    else if (strcmp(name, "--out") == 0 && value)
      o.out = value;
    else if (strcmp(name, "--epochs") == 0 && value)
      o.epochs = number(name, value, 1, 1000);
    else if (strcmp(name, "--seed") == 0 && value)
      o.seed = (unsigned)number(name, value, 0, 1000000);
    else if (strcmp(name, "--threads") == 0 && value)
      o.threads = number(name, value, 0, 1024);
    else if (strcmp(name, "--device") == 0 && value)
      o.device = value;
    else {
      fprintf(stderr, "digits: unknown argument '%s', or its value is missing; see digits --help\n", name);
      exit(2);
    }
    ++i;
  }
  return o;
}

int main(int argc, char** argv) {
  const options o = parse(argc, argv);
  if (mkdir(o.out, 0777) != 0 && errno != EEXIST) die("cannot make the folder '%s': %s", o.out, strerror(errno));
  digits training, test;
  load_digits(o.data, &training, &test);
  if (!o.quiet) printf("%d digits to learn from, %d to be tested on\n", training.n, test.n);

  char threads[32], device[128];
  snprintf(threads, sizeof threads, "threads=%d", o.threads);
  snprintf(device, sizeof device, "device=%s", o.device ? o.device : "");
  const char* session_options[] = {threads, device, "fallback=allow"};
  model m;
  tw_session* session;
  build_model(&m, o.seed);
  check(tw_session_create(m.graph, session_options, o.device ? 3 : 1, &session));

  history h = {0};
  train(session, &m, &o, &training, &test, &h);
  int counts[kClasses][kClasses] = {0};
  const double accuracy = evaluate(session, &m, &test, counts);
  save(session, &m, &o, &h, counts, accuracy);

  tw_session_destroy(session);
  tw_graph_destroy(m.graph);
  free(h.loss);
  free(h.accuracy);
  free(training.pixels);
  free(training.labels);
  free(test.pixels);
  free(test.labels);
  printf("digits: test accuracy %.2f %%\n", 100 * accuracy);
  return 0;
}
