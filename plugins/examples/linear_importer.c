/* An importer of a small format: y = x W + b, described by a text file with the weights in files
 * beside it. The runtime knows it after the plugin is found:
 *
 *     linear 1
 *     in 3
 *     out 2
 *     weights w.bin         3 * 2 floats, row-major, little-endian
 *     bias b.bin            optional: 2 floats
 *
 * tw_model_load recognises the first line, whatever the file is called. Build it like twice.c. */
#include <stdlib.h>
#include <string.h>

#include "thalweg/plugin/plugin.h"

static const char kHead[] = "linear 1\n";
enum { kHeadBytes = sizeof kHead - 1, kMost = 1 << 20 };

static tw_status* recognise(const tw_host* h, void* user, const tw_model_source* s, uint32_t* out_confidence) {
  (void)h, (void)user;
  *out_confidence = s->head_bytes >= kHeadBytes && memcmp(s->head, kHead, kHeadBytes) == 0 ? 100 : 0;
  return NULL;
}

/* Returns the word behind `key` at the begin of a line, NULL if there is none. */
static const char* find(const tw_model_bytes* text, const char* key, uint64_t* out_len) {
  const char *at = text->data, *end = at + text->bytes;
  const uint64_t len = strlen(key);
  while (at < end) {
    const char* line_end = memchr(at, '\n', (size_t)(end - at));
    if (!line_end) line_end = end;
    if ((uint64_t)(line_end - at) > len && memcmp(at, key, len) == 0 && at[len] == ' ') {
      *out_len = (uint64_t)(line_end - at) - len - 1;
      return at + len + 1;
    }
    at = line_end + (line_end < end);
  }
  return NULL;
}

/* Reads a size; reports what is wrong with it and returns 0. */
static int64_t size_of(tw_model_builder* to, const tw_model_bytes* text, const char* key) {
  uint64_t len = 0;
  int64_t n = 0;
  const char* word = find(text, key, &len);
  for (uint64_t i = 0; word && i < len; ++i) n = word[i] >= '0' && word[i] <= '9' && n >= 0 && n <= kMost ? 10 * n + word[i] - '0' : -1;
  if (n > 0 && n <= kMost) return n;
  char why[100] = "there must be a line with a number from 1 to 1048576: ";
  strcat(why, key);
  to->problem(to, TW_INVALID_ARGUMENT, why, strlen(why));
  return 0;
}

static void release(void* bytes) { ((tw_model_bytes*)bytes)->release(bytes); }

/* Makes a constant of a file. The elements stay in the file's memory. */
static tw_status* constant(const tw_import_call* c, const tw_model_bytes* text, const char* key, const int64_t* dims, uint32_t rank,
                           tw_edge* out_edge) {
  uint64_t len = 0;
  const char* name = find(text, key, &len);
  tw_model_bytes* bytes = NULL;
  tw_tensor* t = NULL;
  if (!name) return tw_fail(c->host, TW_INVALID_ARGUMENT, TW_S("there must be a line that begins with: weights"));
  TW_TRY(c->source->open(c->source, name, len, &bytes));
  const tw_import_memory memory = {TW_SIZED(tw_import_memory), dims, bytes->data, bytes->bytes, TW_FLOAT, rank, release, bytes};
  TW_TRY(c->to->borrow(c->to, &memory, &t));
  c->to->name(c->to, c->to->graph, key, strlen(key));
  *out_edge = c->to->constant(c->to, c->to->graph, t);
  c->host->tensor->release(t);
  return NULL;
}

static tw_status* build(const tw_import_call* c, const tw_model_bytes* text) {
  const tw_graph_api* g = c->host->graph;
  tw_model_builder* to = c->to;
  const int64_t dims[] = {size_of(to, text, "in"), size_of(to, text, "out")}, batch[] = {-1, dims[0]};
  const tw_shape shape = {batch, 2, 0};
  const tw_string symbols[] = {{TW_S("batch")}, {TW_S("")}};
  uint64_t len = 0;
  if (!dims[0] || !dims[1]) return NULL; /* the problems are the error */
  tw_edge in[2], y;
  TW_TRY(constant(c, text, "weights", dims, 2, &in[1]));
  const tw_edge x = in[0] = to->input(to, to->graph, TW_S("x"), TW_FLOAT, &shape);
  y = g->emit(to->graph, TW_S("MatMul"), in, 2, NULL, 0);
  if (find(text, "bias", &len)) {
    in[0] = y;
    TW_TRY(constant(c, text, "bias", dims + 1, 1, &in[1]));
    y = g->emit(to->graph, TW_S("AddV2"), in, 2, NULL, 0);
  }
  const tw_import_value input = {TW_SIZED(tw_import_value), TW_S("x"), x, .symbols = symbols, .n_symbols = 2};
  const tw_import_value output = {TW_SIZED(tw_import_value), TW_S("y"), y, .symbols = symbols, .n_symbols = 2};
  const tw_import_value *inputs = &input, *outputs = &output;
  const tw_import_signature s = {
      TW_SIZED(tw_import_signature), TW_S("apply"), TW_S("y = x W + b"), &inputs, &outputs, .n_inputs = 1, .n_outputs = 1};
  TW_TRY(to->property(to, TW_S("format"), TW_S("linear 1")));
  return to->signature(to, &s);
}

static tw_status* load(const tw_import_call* c) {
  tw_model_bytes* text = NULL;
  TW_TRY(c->source->open(c->source, NULL, 0, &text));
  tw_status* s = text->bytes >= kHeadBytes && memcmp(text->data, kHead, kHeadBytes) == 0
                     ? build(c, text)
                     : tw_fail(c->host, TW_INVALID_ARGUMENT, TW_S("the first line is not: linear 1"));
  text->release(text);
  return s;
}

static tw_status* init(const tw_host* host, tw_registrar* r, void** out_instance) {
  const tw_importer_def def = {TW_SIZED(tw_importer_def), TW_S("linear"),         TW_S("linear functions of the example"),
                               TW_S(".linear"),           .recognise = recognise, .load = load};
  (void)host, (void)out_instance;
  return tw_add_importer(r, &def);
}
TW_PLUGIN("org.example.linear_importer", "1.0", init)
