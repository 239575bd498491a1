/* A correct importer of a toy format, which the mutants change: "toy model" and a digit, the
 * constant that the model adds. */
#ifndef TOY_IMPORTER_H
#define TOY_IMPORTER_H
#include <string.h>

#include "toy.h"

static const char toy_head[] = "toy model ";
enum { TOY_HEAD = sizeof toy_head - 1 };

static int toy_is_model(const tw_model_source* s) {
  const char* head = s->head;
  return s->bytes == TOY_HEAD + 1 && memcmp(head, toy_head, TOY_HEAD) == 0 && head[TOY_HEAD] >= '0' && head[TOY_HEAD] <= '9';
}
static tw_status* toy_recognise(const tw_host* h, void* user, const tw_model_source* s, uint32_t* out_confidence) {
  (void)h, (void)user;
  *out_confidence = toy_is_model(s) ? 100 : 0;
  return NULL;
}
static tw_status* toy_build(const tw_import_call* c, double added) {
  const tw_graph_api* g = c->host->graph;
  const tw_shape scalar = {NULL, 0, 0};
  tw_edge in[2];
  in[0] = c->to->input(c->to, c->to->graph, TW_S("x"), TW_FLOAT, &scalar);
  in[1] = g->scalar(c->to->graph, TW_FLOAT, added);
  const tw_edge y = g->emit(c->to->graph, TW_S("AddV2"), in, 2, NULL, 0);
  const tw_import_value input = {TW_SIZED(tw_import_value), TW_S("x"), in[0], NULL, 0, 0, NULL, NULL};
  const tw_import_value output = {TW_SIZED(tw_import_value), TW_S("y"), y, NULL, 0, 0, NULL, NULL};
  const tw_import_value *inputs = &input, *outputs = &output;
  const tw_import_signature s = {TW_SIZED(tw_import_signature), TW_S("add"), TW_S(""), &inputs, &outputs, NULL, 1, 1, 0, 1};
  return c->to->signature(c->to, &s);
}
static tw_status* toy_load(const tw_import_call* c) {
  if (!toy_is_model(c->source)) return tw_fail(c->host, TW_INVALID_ARGUMENT, TW_S("no toy model"));
  return toy_build(c, ((const char*)c->source->head)[TOY_HEAD] - '0');
}
static inline tw_importer_def toy_importer(void) {
  const tw_importer_def d = {
      TW_SIZED(tw_importer_def), TW_S("toy"), TW_S("toy models"), TW_S(".toy"), TW_S(""), NULL, toy_recognise, toy_load};
  return d;
}
#endif
