/* An importer for tests: a variable that a step fills, a function, an input with a default, an
 * option, an effect, and problems. The file's text chooses a mistake to make. */
#include <string.h>

#include "thalweg/plugin/plugin.h"

static int says(const tw_import_call* c, const char* word) {
  const char* head = c->source->head;
  for (uint64_t i = 0; i + strlen(word) <= c->source->head_bytes; ++i) {
    if (memcmp(head + i, word, strlen(word)) == 0) return 1;
  }
  return 0;
}

static tw_status* recognise(const tw_host* h, void* user, const tw_model_source* s, uint32_t* out_confidence) {
  (void)h, (void)user;
  *out_confidence = s->head_bytes >= 5 && memcmp(s->head, "steps", 5) == 0 ? 60 : 0;
  return NULL;
}

static tw_tensor* number(const tw_host* h, float value) {
  tw_tensor* t = NULL;
  tw_status* s = tw_make_tensor(h, TW_FLOAT, NULL, 0, &t);
  h->status->release(s);
  if (t) *(float*)h->tensor->view(t)->data = value;
  return t;
}

/* (x) -> (x + x) */
static tw_status* add_function(const tw_import_call* c, tw_string* out_name) {
  tw_builder* body = NULL;
  const tw_shape any = {NULL, -1, 0};
  TW_TRY(c->to->begin_function(c->to, &body));
  const tw_edge x = c->to->input(c->to, body, TW_S("x"), TW_FLOAT, &any);
  const tw_edge in[] = {x, x};
  const tw_edge y = c->host->graph->emit(body, TW_S("Add"), in, 2, NULL, 0);
  const tw_import_function f = {TW_SIZED(tw_import_function), TW_S("twice"), &x, &y, NULL, 1, 1, 0, 0};
  TW_TRY(c->to->end_function(c->to, body, &f, out_name));
  tw_string again;
  tw_status* s = c->to->end_function(c->to, body, &f, &again); /* a body is a function once */
  if (!s) return tw_fail(c->host, TW_INTERNAL, TW_S("a body became two functions"));
  c->host->status->release(s);
  return NULL;
}

static tw_status* load(const tw_import_call* c) {
  tw_model_builder* to = c->to;
  const tw_graph_api* g = c->host->graph;
  const uint32_t type = TW_FLOAT;
  const tw_shape scalar = {NULL, 0, 0};
  float start = 3;
  for (uint32_t i = 0; i < c->n_options; ++i) start = (float)(c->options[i].value[0] - '0');
  if (says(c, "problems")) {
    to->problem(to, TW_NOT_FOUND, TW_S("op 'Foo' is missing"));
    to->problem(to, TW_UNIMPLEMENTED, TW_S("op 'Bar' is missing"));
    to->problem(to, TW_NOT_FOUND, TW_S("op 'Foo' is missing"));
    return to->has_op(to, TW_S("Foo")) ? tw_fail(c->host, TW_INTERNAL, TW_S("there is an op Foo")) : NULL;
  }
  if (says(c, "sticky")) g->emit(to->graph, TW_S("NoSuchOpAtAll"), NULL, 0, NULL, 0);

  const tw_attr variable[] = {{TW_S("dtype"), &type, TW_ATTR_TYPE, 1, 0, 0}, {TW_S("shape"), &scalar, TW_ATTR_SHAPE, 1, 0, 0}};
  to->name(to, to->graph, TW_S("/weights of: w"));
  const tw_edge handle = g->emit(to->graph, TW_S("VarHandleOp"), NULL, 0, variable, 2);
  tw_edge in[2] = {handle, to->input(to, to->graph, TW_S("initial"), TW_FLOAT, &scalar)};
  const tw_edge feed = in[1];
  const tw_edge assign = g->emit(to->graph, TW_S("AssignVariableOp"), in, 2, NULL, 0);
  tw_tensor *initial = number(c->host, start), *one = number(c->host, 1);
  const tw_import_step step = {TW_SIZED(tw_import_step), &feed, &initial, &assign, 1, 1};
  tw_status* added = to->step(to, &step);
  c->host->tensor->release(initial);
  TW_TRY(added);

  tw_string f;
  TW_TRY(add_function(c, &f));
  const tw_attr call[] = {{TW_S("f"), &f, TW_ATTR_FUNC, 1, 0, 0}, {TW_S("Tout"), &type, TW_ATTR_TYPE, 1, 1, 0}};
  in[0] = to->input(to, to->graph, TW_S("x"), TW_FLOAT, &scalar);
  const tw_edge x = in[0];
  in[1] = to->input(to, to->graph, TW_S("more"), TW_FLOAT, &scalar);
  const tw_edge more = in[1];
  const tw_edge sum = g->emit(to->graph, TW_S("Add"), in, 2, NULL, 0);
  const tw_edge twice = g->emit(to->graph, TW_S("PartitionedCall"), &sum, 1, call, 2);
  const tw_attr read_type = {TW_S("dtype"), &type, TW_ATTR_TYPE, 1, 0, 0};
  in[0] = twice;
  in[1] = g->emit(to->graph, TW_S("ReadVariableOp"), &handle, 1, &read_type, 1);
  const tw_edge y = g->emit(to->graph, TW_S("Mul"), in, 2, NULL, 0);
  in[0] = handle;
  in[1] = to->constant(to, to->graph, one);
  if (!to->value(to, to->graph, in[1]) || to->value(to, to->graph, y)) {
    return tw_fail(c->host, TW_INTERNAL, TW_S("a constant has no value, or a variable has one"));
  }
  const tw_edge grow = g->emit(to->graph, TW_S("AssignAddVariableOp"), in, 2, NULL, 0);
  const tw_import_value inputs[] = {{TW_SIZED(tw_import_value), TW_S("x"), x, NULL, 0, 0, NULL, NULL},
                                    {TW_SIZED(tw_import_value), TW_S("more"), more, NULL, 0, 0, NULL, one}};
  const tw_import_value output = {TW_SIZED(tw_import_value), TW_S("y"), y, NULL, 0, 0, NULL, NULL};
  const tw_import_value *list[] = {&inputs[0], &inputs[1]}, *outputs = &output;
  tw_import_signature s = {TW_SIZED(tw_import_signature), TW_S("grow"), TW_S("adds 1 to w"), NULL, NULL, &grow, 0, 0, 1, 0};
  tw_status* done = to->signature(to, &s);
  const tw_import_signature apply = {TW_SIZED(tw_import_signature), TW_S("apply"), TW_S(""), list, &outputs, NULL, 2, 1, 0, 1};
  if (!done) done = to->signature(to, &apply);
  if (!done && says(c, "twice")) done = to->signature(to, &apply);
  if (!done && says(c, "foreign")) {
    const tw_import_value wrong = {TW_SIZED(tw_import_value), TW_S("y"), 2ull << 48 | 1ull << 16, NULL, 0, 0, NULL, NULL};
    const tw_import_value* wrongs = &wrong;
    const tw_import_signature bad = {TW_SIZED(tw_import_signature), TW_S("bad"), TW_S(""), NULL, &wrongs, NULL, 0, 1, 0, 0};
    done = to->signature(to, &bad);
  }
  c->host->tensor->release(one);
  return done;
}

static tw_status* init(const tw_host* host, tw_registrar* r, void** out_instance) {
  const tw_importer_def def = {TW_SIZED(tw_importer_def),
                               TW_S("steps"),
                               TW_S("steps of the test"),
                               TW_S(".steps"),
                               TW_S("start: a digit, the first value of w\n"),
                               NULL,
                               recognise,
                               load};
  (void)host, (void)out_instance;
  return tw_add_importer(r, &def);
}
TW_PLUGIN("org.example.steps_importer", "1.0", init)
