/* A profiler that writes a file in the Trace Event Format, which Perfetto and chrome://tracing open:
 * the session option profiler=trace:FILE starts it. Build it like twice.c. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "thalweg/plugin/plugin.h"
#include "thalweg/plugin/profiler.h"

typedef struct profile {
  FILE* file;
  const char* separator; /* between events; none before the first one */
  uint64_t step;         /* of the latest step */
  uint64_t pairs;        /* number of events that were written as begin and end */
} profile;

/* Returns the failure to open a file, with the reason that errno has. */
static tw_status* not_opened(const tw_host* h, const char* path) {
  char text[512];
  const uint32_t code = errno == EACCES || errno == EPERM ? TW_PERMISSION_DENIED : errno == ENOENT ? TW_NOT_FOUND : TW_INTERNAL;
  const int n = snprintf(text, sizeof text, "%s: %s", path, strerror(errno));
  return tw_fail(h, code, text, n < (int)sizeof text ? (uint64_t)n : sizeof text - 1);
}

static tw_status* not_written(const tw_host* h) { return tw_fail(h, TW_DATA_LOSS, TW_S("cannot write the trace; is there room for it?")); }

/* Writes a JSON string. */
static void put_text(FILE* f, const char* text, uint64_t len) {
  fputc('"', f);
  for (uint64_t i = 0; i < len; ++i) {
    const unsigned char c = (unsigned char)text[i];
    if (c == '"' || c == '\\') fputc('\\', f);
    if (c < 0x20)
      fprintf(f, "\\u%04x", (unsigned)c);
    else
      fputc(c, f);
  }
  fputc('"', f);
}

static void put_pair(FILE* f, const char* key, const char* text, uint64_t len) {
  if (len == 0) return;
  fprintf(f, ", \"%s\": ", key);
  put_text(f, text, len);
}

/* Writes a time in microseconds with all digits. */
static void put_time(FILE* f, const char* key, int64_t ns) { fprintf(f, ", \"%s\": %" PRId64 ".%03d", key, ns / 1000, (int)(ns % 1000)); }

/* Writes the begin of an event and leaves it open. */
static void begin_event(profile* p, const char* name, uint64_t len, char phase, int64_t at, uint32_t thread) {
  fprintf(p->file, "%s{\"name\": ", p->separator);
  p->separator = ",\n";
  put_text(p->file, name, len);
  fprintf(p->file, ", \"ph\": \"%c\", \"pid\": %ld, \"tid\": %" PRIu32, phase, (long)getpid(), thread);
  put_time(p->file, "ts", at);
}

static tw_status* start(const tw_host* h, void* user, const char* argument, uint64_t len, void** out_self) {
  (void)user;
  if (len == 0) return tw_fail(h, TW_INVALID_ARGUMENT, TW_S("there is no file; say profiler=trace:FILE"));
  profile* p = calloc(1, sizeof *p);
  char* path = p ? malloc(len + 1) : NULL;
  if (!path) {
    free(p);
    return tw_fail(h, TW_RESOURCE_EXHAUSTED, TW_S("out of memory"));
  }
  memcpy(path, argument, len);
  path[len] = 0;
  p->file = fopen(path, "we");
  tw_status* s = p->file ? NULL : not_opened(h, path);
  free(path);
  if (s) {
    free(p);
    return s;
  }
  fputs("[", p->file);
  (void)fflush(p->file); /* else a forked child would write it again; `done` reports a failure */
  p->separator = "\n";
  *out_self = p;
  return NULL;
}

static tw_status* step(const tw_host* h, void* self, const tw_profiled_step* s) {
  (void)h;
  profile* p = self;
  p->step = s->step;
  begin_event(p, TW_S("step"), 'X', s->begin, 0);
  put_time(p->file, "dur", s->end - s->begin);
  fprintf(p->file,
          ", \"cat\": \"step\", \"args\": {\"step\": %" PRIu64 ", \"trace\": %" PRIu64 ", \"failed\": %s, \"left_out\": %" PRIu64 "}}",
          s->step, s->trace, s->failed ? "true" : "false", s->left_out);
  return NULL;
}

static const char* const categories[] = {"", "node", "copy", "queue", "kernel", "function", "wait"};

static void put_arguments(profile* p, const tw_profiled_span* s) {
  fprintf(p->file, ", \"cat\": \"%s\", \"args\": {\"step\": %" PRIu64 ", \"bytes\": %" PRIu64, categories[s->kind], p->step, s->bytes);
  put_pair(p->file, "node", s->node, s->node_len);
  put_pair(p->file, "device", s->device, s->device_len);
  put_pair(p->file, "row", s->row, s->row_len);
  fputs("}}", p->file);
}

/* Writes a bar. Bars of one thread must be disjoint or nested. */
static void put_bar(profile* p, const tw_profiled_span* s) {
  begin_event(p, s->name, s->name_len, 'X', s->begin, s->thread);
  put_time(p->file, "dur", s->left - s->begin);
  put_arguments(p, s);
}

/* Writes begin and end, which may overlap anything. */
static void put_ends(profile* p, const tw_profiled_span* s, int64_t begin) {
  ++p->pairs;
  begin_event(p, s->name, s->name_len, 'b', begin, 0);
  fprintf(p->file, ", \"id\": %" PRIu64, p->pairs);
  put_arguments(p, s);
  begin_event(p, s->name, s->name_len, 'e', s->end, 0);
  fprintf(p->file, ", \"id\": %" PRIu64 ", \"cat\": \"%s\"}", p->pairs, categories[s->kind]);
}

static tw_status* span(const tw_host* h, void* self, const tw_profiled_span* s) {
  (void)h;
  profile* p = self;
  if (s->kind == 0 || s->kind >= sizeof categories / sizeof categories[0]) return NULL; /* of a later minor of the role */
  const int runs = s->kind == TW_PROFILED_NODE || s->kind == TW_PROFILED_COPY || s->kind == TW_PROFILED_KERNEL;
  const int bar = runs && s->thread != UINT32_MAX && s->row_len == 0;
  if (bar) put_bar(p, s);
  if (!bar || s->end > s->left) put_ends(p, s, bar ? s->left : s->begin);
  return NULL;
}

static tw_status* count(const tw_host* h, void* self, const tw_profiled_count* c) {
  (void)h;
  profile* p = self;
  begin_event(p, c->name, c->name_len, 'C', c->at, c->thread);
  fprintf(p->file, ", \"args\": {\"value\": %" PRId64 "}}", c->value);
  return NULL;
}

/* After each step the file has all of it, also if the program dies in the next one. The format does
 * not need the end of the list. */
static tw_status* done(const tw_host* h, void* self) {
  profile* p = self;
  return fflush(p->file) || ferror(p->file) ? not_written(h) : NULL;
}

static tw_status* stop(const tw_host* h, void* self) {
  profile* p = self;
  fputs("\n]\n", p->file);
  const int failed = ferror(p->file);
  const int not_closed = fclose(p->file);
  free(p);
  return failed || not_closed ? not_written(h) : NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  (void)h, (void)out_instance;
  const tw_profiler_def d = {TW_SIZED(tw_profiler_def), TW_S("trace"), NULL, start, step, span, count, done, stop};
  return tw_add_profiler(r, &d);
}

TW_PLUGIN("org.example.trace_profiler", "1.0", init)
