/* A profiler that counts the nodes of each step and writes a line for each to the file that its
 * argument names. */
#ifndef MUTANTS_TOY_PROFILER_H
#define MUTANTS_TOY_PROFILER_H
#include <stdio.h>

#include "thalweg/plugin/profiler.h"
#include "toy.h"

typedef struct toy_profile {
  FILE* file;
  uint64_t step, nodes;
  char name[16]; /* of the latest span */
} toy_profile;

static UNUSED tw_status* toy_start(const tw_host* h, void* user, const char* argument, uint64_t len, void** out_self) {
  (void)user;
  char path[4096];
  if (len >= sizeof path) return tw_fail(h, TW_INVALID_ARGUMENT, TW_S("the name of the file is too long"));
  memcpy(path, argument, len);
  path[len] = 0;
  toy_profile* p = calloc(1, sizeof *p);
  if (!p) return tw_fail(h, TW_RESOURCE_EXHAUSTED, TW_S("out of memory"));
  p->file = fopen(path, "w");
  if (!p->file) {
    free(p);
    return tw_fail(h, TW_NOT_FOUND, TW_S("cannot open the file"));
  }
  *out_self = p;
  return NULL;
}

static UNUSED tw_status* toy_step(const tw_host* h, void* self, const tw_profiled_step* s) {
  (void)h;
  toy_profile* p = self;
  p->step = s->step;
  p->nodes = 0;
  return NULL;
}

static UNUSED tw_status* toy_span(const tw_host* h, void* self, const tw_profiled_span* s) {
  (void)h;
  toy_profile* p = self;
  p->nodes += s->kind == TW_PROFILED_NODE;
  snprintf(p->name, sizeof p->name, "%.*s", (int)s->name_len, s->name);
  return NULL;
}

static UNUSED tw_status* toy_done(const tw_host* h, void* self) {
  toy_profile* p = self;
  if (fprintf(p->file, "%llu %llu %s\n", (unsigned long long)p->step, (unsigned long long)p->nodes, p->name) < 0) {
    return tw_fail(h, TW_DATA_LOSS, TW_S("cannot write"));
  }
  return NULL;
}

static UNUSED tw_status* toy_stop(const tw_host* h, void* self) {
  toy_profile* p = self;
  const int failed = fclose(p->file);
  free(p);
  return failed ? tw_fail(h, TW_DATA_LOSS, TW_S("cannot write")) : NULL;
}

static UNUSED tw_profiler_def toy_profiler(void) {
  const tw_profiler_def d = {TW_SIZED(tw_profiler_def), TW_S("lines"), NULL, toy_start, toy_step, toy_span, NULL, toy_done, toy_stop};
  return d;
}
#endif
