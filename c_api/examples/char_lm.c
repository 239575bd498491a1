/* A character-level language model: an LSTM learns from real English text which character comes next, and then writes some of its own.
 *
 * Each training step reads the next piece of several streams of text and goes on from the LSTM's state after the last piece, but gradients
 * reach back to the beginning of the piece only (truncated back-propagation). All that a step leaves to the next is in variables, and so in
 * the checkpoints: a run that was stopped goes on as if it had not been. bindings/python/examples/char_lm.py is the same program; either
 * goes on from the other's checkpoints.
 * Read it in this order: build_model (the graph), build_writer (a loop in the graph), train, main. */
#define _POSIX_C_SOURCE 200809L
#include "char_lm.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sys/stat.h>

#include "thalweg/thalweg.h"

enum {
  kStreams = 32, /* a training step reads kPiece characters of each */
  kPiece = 64,
  kHeldOut = 128, /* so many pieces, each so long, at the end of the text are never trained on */
  kEvery = 25,    /* steps between two looks at them */
  kWeights = 5
};

typedef struct options {
  const char *data, *out, *device;
  int steps, cells, length, threads, quiet;
  int64_t seed;
} options;

typedef struct text { /* characters, numbered in the order of their codes */
  int32_t* numbers;
  int64_t n, stream; /* in all; in each of kStreams streams to train on */
  unsigned char letters[256];
  int n_letters;
} text;

typedef struct model {
  tw_graph* graph;
  tw_lstm_cell cell;
  tw_output embedding, weights, bias; /* variables */
  tw_output x, y, begin, length;      /* feeds */
  tw_output smoothed, held_out, text; /* fetches */
  const tw_operation *step, *init;    /* targets */
  int n_letters, cells;
  int64_t seed;
} model;

/* ---- Giving up: an example may just say why and stop ---- */

static void die(const char* format, ...) {
  va_list args;
  va_start(args, format);
  fputs("char_lm: ", stderr);
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

static tw_output scalar(tw_scope* s, double value) { return tw_scope_scalar(s, TW_FLOAT, value); }
static tw_output whole(tw_scope* s, int32_t value) { return tw_scope_scalar(s, TW_INT32, value); }

/* Numbers from -reach to reach; the same for the same seed on every machine. */
static tw_output uniform(tw_scope* s, int32_t rows, int32_t columns, double reach, int64_t seed) {
  const int32_t dims[] = {rows, columns};
  tw_op* op = tw_scope_begin(s, "RandomUniform", NULL);
  tw_op_add_input(op, tw_scope_ints(s, dims, 2));
  tw_op_set_type(op, "dtype", TW_FLOAT);
  tw_op_set_int(op, "seed", seed);
  tw_op_set_int(op, "seed2", seed);
  return tw_scope_op2(s, "Sub", tw_scope_op2(s, "Mul", tw_scope_end(s, op), scalar(s, 2 * reach)), scalar(s, reach));
}

static tw_output zeros(tw_scope* s, int32_t rows, int32_t columns) {
  const int32_t dims[] = {rows, columns};
  return tw_scope_op2(s, "Fill", tw_scope_ints(s, rows ? dims : dims + 1, rows ? 2 : 1), scalar(s, 0));
}

static tw_output reshaped(tw_scope* s, tw_output value, const int32_t* dims, uint32_t rank) {
  return tw_scope_op2(s, "Reshape", value, tw_scope_ints(s, dims, rank));
}

static tw_output embedded(tw_scope* s, const model* m, tw_output characters) {
  return tw_scope_op3(s, "GatherV2", tw_variable_read(s, m->embedding), characters, whole(s, 0));
}

/* What the model thinks of each letter after outputs [n, cells] of the cell. */
static tw_output logits_of(tw_scope* s, const model* m, tw_output outputs) {
  const tw_output products = tw_scope_op2(s, "MatMul", outputs, tw_variable_read(s, m->weights));
  return tw_scope_op2(s, "AddV2", products, tw_variable_read(s, m->bias));
}

/* The mean loss of a piece; state: c and h before it (0: zeros) and then behind it. */
static tw_output loss_from(tw_scope* s, const model* m, tw_output state[2]) {
  const int32_t rows[] = {-1, m->cells}, flat = -1, axis = 0;
  tw_output outputs = 0;
  tw_lstm_loop(s, &m->cell, embedded(s, m, m->x), 0, state[0], state[1], &outputs, &state[0], &state[1]);
  const tw_output logits = logits_of(s, m, reshaped(s, outputs, rows, 2));
  const tw_output losses = tw_scope_op2(s, "SparseSoftmaxCrossEntropyWithLogits", logits, reshaped(s, m->y, &flat, 1));
  return tw_scope_op2(s, "Mean", losses, tw_scope_ints(s, &axis, 1));
}

static const tw_operation* add_to(tw_scope* s, tw_output variable, tw_output value) {
  tw_op* op = tw_scope_begin(s, "AssignAddVariableOp", NULL);
  tw_op_add_input(op, variable);
  tw_op_add_input(op, value);
  return tw_scope_end_operation(s, op);
}

/* Adam with gradients of a bounded norm and a rate that falls by half every 500 steps. */
static const tw_operation* build_update(tw_scope* s, const model* m, tw_output loss) {
  const tw_output weights[kWeights] = {m->embedding, m->cell.kernel, m->cell.bias, m->weights, m->bias};
  tw_gradient gradients[kWeights];
  tw_scope_gradients(s, loss, weights, kWeights, gradients);
  tw_clip_by_global_norm(s, gradients, kWeights, 1);
  tw_adam adam;
  tw_adam_init(&adam);
  adam.learning_rate = tw_schedule_exponential(s, tw_variable_read(s, tw_global_step(s)), 0.005, 500, 0.5, 0);
  return tw_global_step_advance(s, tw_train_adam(s, weights, gradients, kWeights, &adam));
}

/* `length` characters after `begin`, each drawn by what the model thinks comes next: a loop in the graph. */
static tw_output build_writer(tw_scope* s, const model* m) {
  const int32_t one = 1, pair[] = {1, 1};
  const tw_output vector = tw_scope_ints(s, &one, 1);
  const tw_output first[] = {whole(s, 0), tw_scope_op2(s, "Reshape", m->begin, vector), zeros(s, 1, m->cells), zeros(s, 1, m->cells),
                             tw_scope_op2(s, "Fill", tw_scope_op2(s, "Reshape", m->length, vector), whole(s, 0))};
  tw_output at[5], last[5]; /* number, character, c, h, text */

  tw_block* more = tw_block_begin(s);
  tw_block_arguments(more, first, 5, NULL, at);
  const tw_output less = tw_scope_op2(tw_block_scope(more), "Less", at[0], m->length);
  tw_block_give(more, &less, 1);

  tw_block* write = tw_block_begin(s);
  tw_scope* in = tw_block_scope(write);
  tw_block_arguments(write, first, 5, NULL, at);
  tw_output c = 0;
  const tw_output h = tw_lstm_step(in, &m->cell, embedded(in, m, at[1]), at[2], at[3], &c);
  tw_op* draw = tw_scope_begin(in, "Multinomial", NULL);
  tw_op_add_input(draw, logits_of(in, m, h));
  tw_op_add_input(draw, whole(in, 1));
  tw_op_set_int(draw, "seed", m->seed + 4);
  tw_op_set_int(draw, "seed2", 5);
  tw_op_set_type(draw, "output_dtype", TW_INT32);
  const tw_output drawn = reshaped(in, tw_scope_end(in, draw), &one, 1);
  const tw_output written = tw_scope_op3(in, "TensorScatterUpdate", at[4], reshaped(in, at[0], pair, 2), drawn);
  const tw_output next[] = {tw_scope_op2(in, "AddV2", at[0], whole(in, 1)), drawn, c, h, written};
  tw_block_give(write, next, 5);
  tw_while_loop(s, more, write, first, 5, NULL, last);
  return last[4];
}

static void build_model(model* m, const options* o, int n_letters) {
  check(tw_graph_create(NULL, &m->graph));
  tw_scope* s = tw_scope_create(m->graph, NULL);
  const int64_t any[] = {-1, -1};
  const int32_t width = o->cells / 4;
  m->n_letters = n_letters;
  m->cells = o->cells;
  m->seed = o->seed;
  m->x = tw_scope_placeholder(s, "characters", TW_INT32, any, 2);
  m->y = tw_scope_placeholder(s, "next", TW_INT32, any, 2);
  m->embedding = tw_variable_create(s, "embedding", uniform(s, n_letters, width, 0.1, o->seed + 1));
  tw_lstm_cell_create(s, "lstm", TW_FLOAT, width, m->cells, o->seed + 2, &m->cell);
  m->weights = tw_variable_create(s, "output/weights", uniform(s, m->cells, n_letters, pow(m->cells, -0.5), o->seed + 3));
  m->bias = tw_variable_create(s, "output/bias", zeros(s, 0, n_letters));
  const tw_output state[] = {tw_variable_create(s, "state/c", zeros(s, kStreams, m->cells)),
                             tw_variable_create(s, "state/h", zeros(s, kStreams, m->cells))};

  tw_output now[] = {tw_variable_read(s, state[0]), tw_variable_read(s, state[1])}, none[] = {0, 0};
  const tw_output loss = loss_from(s, m, now);
  m->held_out = loss_from(s, m, none);
  const tw_output smoothed = tw_variable_create(s, "smoothed_loss", scalar(s, log(n_letters)));
  m->smoothed = tw_variable_read(s, smoothed);
  const tw_output part = tw_scope_op2(s, "Mul", tw_scope_op2(s, "Sub", loss, tw_variable_read(s, smoothed)), scalar(s, 0.05));
  const tw_operation* updates[] = {build_update(s, m, loss), add_to(s, smoothed, part), tw_variable_assign(s, state[0], now[0]),
                                   tw_variable_assign(s, state[1], now[1])};
  m->step = tw_scope_group(s, "step", updates, 4);

  m->begin = tw_scope_placeholder(s, "begin", TW_INT32, NULL, 0);
  m->length = tw_scope_placeholder(s, "length", TW_INT32, NULL, 0);
  m->text = build_writer(s, m);
  m->init = tw_variable_initializer(s, "init");
  check(tw_scope_finish(s));
}

/* ---- The data ---- */

static void load_text(const char* path, text* t) {
  FILE* file = fopen(path, "rb");
  struct stat about;
  if (!file || fstat(fileno(file), &about) != 0) die("cannot read '%s': %s; --data says where the text is", path, strerror(errno));
  t->n = about.st_size;
  const int64_t held_out = kHeldOut * kHeldOut + 1;
  t->stream = (t->n - held_out - 1) / kStreams;
  if (t->stream < kPiece) die("%s: %lld characters are too few", path, (long long)t->n);
  unsigned char* bytes = allocate((size_t)t->n, 1);
  if (fread(bytes, 1, (size_t)t->n, file) != (size_t)t->n) die("cannot read '%s'", path);
  fclose(file);
  int number[256] = {0};
  for (int64_t i = 0; i < t->n; ++i) number[bytes[i]] = 1;
  for (int code = 0; code < 256; ++code) {
    if (!number[code]) continue;
    number[code] = t->n_letters;
    t->letters[t->n_letters++] = (unsigned char)code;
  }
  t->numbers = allocate((size_t)t->n, sizeof(int32_t));
  for (int64_t i = 0; i < t->n; ++i) t->numbers[i] = number[bytes[i]];
  free(bytes);
}

/* Characters [length, count] and those that follow them: count columns that begin `apart` characters after each other. */
static void make_pieces(const int32_t* numbers, int64_t length, int64_t count, int64_t apart, tw_tensor* out[2]) {
  const int64_t dims[] = {length, count};
  for (int next = 0; next < 2; ++next) {
    check(tw_tensor_create(TW_INT32, dims, 2, &out[next]));
    int32_t* data = tw_tensor_mutable_data(out[next]);
    for (int64_t i = 0; i < length; ++i)
      for (int64_t k = 0; k < count; ++k) data[i * count + k] = numbers[k * apart + i + next];
  }
}

static void training_piece(const text* t, int step, tw_tensor* out[2]) {
  make_pieces(t->numbers + step % (t->stream / kPiece) * kPiece, kPiece, kStreams, t->stream, out);
}

static void held_out_pieces(const text* t, tw_tensor* out[2]) {
  make_pieces(t->numbers + t->n - (kHeldOut * kHeldOut + 1), kHeldOut, kHeldOut, kHeldOut, out);
}

/* ---- The curve, as text, so that a run that goes on has it ---- */

static FILE* open_file(const options* o, const char* name, const char* mode) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", o->out, name);
  FILE* file = fopen(path, mode);
  if (!file && *mode == 'w') die("cannot write '%s': %s", path, strerror(errno));
  return file;
}

static void read_curve(const options* o, int64_t last, curve* c) {
  FILE* file = open_file(o, "curve.csv", "r");
  if (!file) return;
  char line[256];
  point p;
  while (fgets(line, sizeof line, file) && c->n < o->steps / kEvery) {
    if (sscanf(line, "%d,%lf,%lf", &p.step, &p.training, &p.held_out) == 3 && p.step <= last) c->points[c->n++] = p;
  }
  fclose(file);
}

static void write_curve(const options* o, const curve* c) {
  FILE* file = open_file(o, "curve.csv", "w");
  fputs("step,training,held out\n", file);
  for (int i = 0; i < c->n; ++i) fprintf(file, "%d,%.6g,%.6g\n", c->points[i].step, c->points[i].training, c->points[i].held_out);
  if (fclose(file) != 0) die("cannot write curve.csv: %s", strerror(errno));
}

/* ---- Training ---- */

static double now(void) {
  struct timespec t;
  timespec_get(&t, TIME_UTC);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static point look(tw_session* session, const model* m, tw_tensor* const* held_out, int step) {
  const tw_output feeds[] = {m->x, m->y}, fetches[] = {m->smoothed, m->held_out};
  const tw_signature what = {.size = sizeof what, .feeds = feeds, .n_feeds = 2, .fetches = fetches, .n_fetches = 2};
  tw_tensor* losses[2];
  check(tw_session_run(session, &what, held_out, NULL, losses));
  double perplexity[2];
  for (int i = 0; i < 2; ++i) {
    perplexity[i] = exp((double)*(const float*)tw_tensor_data(losses[i]));
    tw_tensor_release(losses[i]);
  }
  return (point){step, perplexity[0], perplexity[1]};
}

static void tell(const options* o, point p, int first, double begun) {
  const double rate = (p.step - first) / (now() - begun);
  if (o->quiet) return;
  printf("step %d/%d  perplexity %.2f in training, %.2f held out  %.0f characters/s  %.0f s left\n", p.step, o->steps, p.training,
         p.held_out, rate * kStreams * kPiece, (o->steps - p.step) / rate);
  fflush(stdout);
}

/* Goes on from the newest checkpoint up to the last step. */
static void train(tw_session* session, const model* m, const options* o, const text* t, curve* c) {
  char folder[4096];
  snprintf(folder, sizeof folder, "%s/checkpoints", o->out);
  tw_saver* saver;
  tw_checkpointer* checkpoints;
  tw_checkpointer_options keeping;
  tw_checkpointer_options_init(&keeping);
  keeping.every_steps = kEvery;
  keeping.every_seconds = 0;
  keeping.keep_last = 2;
  check(tw_saver_create(m->graph, NULL, 0, &saver));
  check(tw_checkpointer_create(saver, session, folder, &keeping, &checkpoints));
  int64_t first = 0;
  tw_status* nothing = tw_checkpointer_restore(checkpoints, TW_CHECKPOINT_LATEST, &first, NULL);
  if (nothing && tw_status_code(nothing) != TW_NOT_FOUND) check(nothing);
  tw_status_release(nothing);
  read_curve(o, first, c);

  const tw_output feeds[] = {m->x, m->y};
  const tw_signature what = {.size = sizeof what, .feeds = feeds, .n_feeds = 2, .targets = &m->step, .n_targets = 1};
  tw_callable* run;
  check(tw_callable_create(session, &what, &run));
  tw_tensor *held_out[2], *piece[2];
  held_out_pieces(t, held_out);
  const double begun = now();
  for (int step = (int)first; step < o->steps; ++step) {
    training_piece(t, step, piece);
    check(tw_callable_run(run, piece, NULL, NULL));
    for (int i = 0; i < 2; ++i) tw_tensor_release(piece[i]);
    if ((step + 1) % kEvery == 0) {
      c->points[c->n++] = look(session, m, held_out, step + 1);
      write_curve(o, c);
      tell(o, c->points[c->n - 1], (int)first, begun);
    }
    check(tw_checkpointer_step(checkpoints, step + 1, NULL, NULL));
  }
  if (first < o->steps && o->steps % kEvery != 0) check(tw_checkpointer_save(checkpoints, o->steps, NULL));
  for (int i = 0; i < 2; ++i) tw_tensor_release(held_out[i]);
  tw_callable_destroy(run);
  tw_checkpointer_destroy(checkpoints);
  tw_saver_destroy(saver);
}

/* Writes what comes after the end of a line, into text.txt, too. */
static void write_text(tw_session* session, const model* m, const options* o, const text* t) {
  int32_t newline = 0;
  while (newline < t->n_letters - 1 && t->letters[newline] < '\n') ++newline;
  const tw_output feeds[] = {m->begin, m->length};
  const tw_signature what = {.size = sizeof what, .feeds = feeds, .n_feeds = 2, .fetches = &m->text, .n_fetches = 1};
  tw_tensor *in[2], *out;
  check(tw_tensor_create_int32(newline, &in[0]));
  check(tw_tensor_create_int32(o->length, &in[1]));
  check(tw_session_run(session, &what, in, NULL, &out));
  const int32_t* numbers = tw_tensor_data(out);
  char* written = allocate((size_t)o->length + 1, 1);
  for (int i = 0; i < o->length; ++i) written[i] = (char)t->letters[numbers[i]];
  FILE* file = open_file(o, "text.txt", "w");
  fputs(written, file);
  if (fclose(file) != 0) die("cannot write text.txt: %s", strerror(errno));
  if (!o->quiet) printf("\n%s\n\n", written);
  free(written);
  tw_tensor_release(out);
  for (int i = 0; i < 2; ++i) tw_tensor_release(in[i]);
}

/* ---- The command line ---- */

static const char kHelp[] =
    "usage: char_lm [--data FILE] [--out FOLDER] [--steps N] [--cells N] [--length N] [--seed N] [--threads N]\n"
    "               [--device NAME] [--quiet]\n"
    "An LSTM learns which character comes next, and writes.\n"
    "  --data FILE    a text; tools/setup --print-data says where kjv.txt is (default: kjv.txt)\n"
    "  --out FOLDER   for checkpoints, curve.csv, perplexity.svg, text.txt (default: char_lm); a run that finds\n"
    "                 checkpoints there goes on from the newest\n"
    "  --steps N      training steps in all, runs before this one included (default: 1000)\n"
    "  --cells N      of the LSTM (default: 128)\n"
    "  --length N     characters to write at the end (default: 500)\n"
    "  --seed N       another seed, other weights; the same seed, the same bits (default: 1)\n"
    "  --threads N    0: as many as there are processors (default)\n"
    "  --device NAME  where to train, such as OPENCL:0; what has no kernel there runs elsewhere (default: anywhere)\n"
    "  --quiet        only the last line\n"
    "Exit status: 0 trained and written, 1 something failed, 2 wrong arguments.\n";

static int number(const char* name, const char* value, long least, long most) {
  char* end;
  const long n = strtol(value, &end, 10);
  if (end == value || *end || n < least || n > most) {
    fprintf(stderr, "char_lm: %s takes a number from %ld to %ld, not '%s'\n", name, least, most, value);
    exit(2);
  }
  return (int)n;
}

static options parse(int argc, char** argv) {
  options o = {.data = "kjv.txt", .out = "char_lm", .steps = 1000, .cells = 128, .length = 500, .seed = 1};
  for (int i = 1; i < argc; ++i) {
    const char *name = argv[i], *value = argv[i + 1]; /* NULL after the last */
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
      fputs(kHelp, stdout);
      exit(0);
    }
    if (strcmp(name, "--quiet") == 0) {
      o.quiet = 1;
      continue;
    }
    if (strcmp(name, "--data") == 0 && value)
      o.data = value;
    else if (strcmp(name, "--out") == 0 && value)
      o.out = value;
    else if (strcmp(name, "--steps") == 0 && value)
      o.steps = number(name, value, kEvery, 1000000);
    else if (strcmp(name, "--cells") == 0 && value)
      o.cells = number(name, value, 4, 4096);
    else if (strcmp(name, "--length") == 0 && value)
      o.length = number(name, value, 1, 1000000);
    else if (strcmp(name, "--seed") == 0 && value)
      o.seed = number(name, value, 0, 1000000);
    else if (strcmp(name, "--threads") == 0 && value)
      o.threads = number(name, value, 0, 1024);
    else if (strcmp(name, "--device") == 0 && value)
      o.device = value;
    else {
      fprintf(stderr, "char_lm: unknown argument '%s', or its value is missing; see char_lm --help\n", name);
      exit(2);
    }
    ++i;
  }
  return o;
}

int main(int argc, char** argv) {
  const options o = parse(argc, argv);
  if (mkdir(o.out, 0777) != 0 && errno != EEXIST) die("cannot make the folder '%s': %s", o.out, strerror(errno));
  text t = {0};
  load_text(o.data, &t);
  model m = {0};
  build_model(&m, &o, t.n_letters);

  char threads[32], device[128];
  snprintf(threads, sizeof threads, "threads=%d", o.threads);
  snprintf(device, sizeof device, "device=%s", o.device ? o.device : "");
  const char* session_options[] = {threads, device, "fallback=allow"};
  tw_session* session;
  check(tw_session_create(m.graph, session_options, o.device ? 3 : 1, &session));
  const tw_signature start = {.size = sizeof start, .targets = &m.init, .n_targets = 1};
  check(tw_session_run(session, &start, NULL, NULL, NULL));

  curve c = {allocate((size_t)(o.steps / kEvery), sizeof(point)), 0};
  train(session, &m, &o, &t, &c);
  write_text(session, &m, &o, &t);
  char path[4096];
  snprintf(path, sizeof path, "%s/perplexity.svg", o.out);
  if (c.n == 0) die("'%s' has checkpoints but no curve.csv", o.out);
  if (plot_char_lm(path, &c) != 0) die("cannot write '%s': %s", path, strerror(errno));
  printf("char_lm: held-out perplexity %.2f after %d steps\n", c.points[c.n - 1].held_out, c.points[c.n - 1].step);
  free(c.points);
  free(t.numbers);
  tw_session_destroy(session);
  tw_graph_destroy(m.graph);
  return 0;
}
