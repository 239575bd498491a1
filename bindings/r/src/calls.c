/* The functions for .Call that are written by hand: handles, memory, runs, and functions of R that the library calls. */
#include <pthread.h>

#include "support.h"

extern SEXP R_tensor_create(SEXP, SEXP, SEXP), R_tensor_values(SEXP), R_tensor_dims(SEXP), R_tensor_count(SEXP);

/* ---- Handles and memory ---- */

#define RELEASE(name) \
  static void release_##name(void* address) { name(address); }
RELEASE(tw_graph_destroy)
RELEASE(tw_session_destroy)
RELEASE(tw_callable_destroy)
RELEASE(tw_tensor_release)
RELEASE(tw_trainer_destroy)
RELEASE(tw_saver_destroy)
RELEASE(tw_checkpoint_close)
RELEASE(tw_model_destroy)
RELEASE(tw_server_destroy)
RELEASE(tw_iterator_destroy)

/* The C scope of a handle is replaced after a failure, so that the handle has a cell with it. */
static void release_scope(void* cell) {
  tw_scope** scope = cell;
  if (*scope) tw_status_release(tw_scope_finish(*scope));
  free(scope);
}

static const struct {
  const char* name;
  void (*release)(void*);
} kinds[] = {{"thalweg_graph", release_tw_graph_destroy},         {"thalweg_session", release_tw_session_destroy},
             {"thalweg_callable", release_tw_callable_destroy},   {"thalweg_tensor", release_tw_tensor_release},
             {"thalweg_trainer", release_tw_trainer_destroy},     {"thalweg_saver", release_tw_saver_destroy},
             {"thalweg_checkpoint", release_tw_checkpoint_close}, {"thalweg_model", release_tw_model_destroy},
             {"thalweg_server", release_tw_server_destroy},       {"thalweg_batches", release_tw_iterator_destroy}};

/* A handle that owns what an out parameter was set to. kept, kept2: handles that must outlive it, or NULL. */
static SEXP R_own(SEXP out, SEXP name, SEXP kept, SEXP kept2) {
  const char* kind = as_text(name, "own", "name");
  void* address = NULL;
  memcpy(&address, RAW(out), sizeof address);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i)
    if (!strcmp(kinds[i].name, kind))
      return handle_create(address, kinds[i].release, kinds[i].name, as_handle(kept, kind, "kept"), as_handle(kept2, kind, "kept"));
  RAISE(TW_INTERNAL, "no object is called %s", kind);
}

static SEXP R_scope_create(SEXP graph, SEXP prefix) {
  handle* g = as_handle(graph, "scope", "graph");
  const char* text = as_text(prefix, "scope", "prefix");
  if (!g) RAISE(TW_INVALID_ARGUMENT, "scope: graph must be a graph");
  tw_scope** cell = malloc(sizeof *cell);
  if (!cell) RAISE(TW_RESOURCE_EXHAUSTED, "there is no memory for a scope");
  *cell = tw_scope_create(g->address, text && *text ? text : NULL);
  return handle_create(cell, release_scope, "thalweg_scope_handle", g, NULL);
}
static SEXP R_scope_address(SEXP value) {
  handle* h = as_handle(value, "scope", "scope");
  return of_pointer(*(tw_scope**)h->address);
}
/* Finishes a scope that has failed and raises its failure; the handle goes on with a new one. */
static SEXP R_scope_fail(SEXP value, SEXP graph) {
  handle* h = as_handle(value, "scope", "scope");
  handle* g = as_handle(graph, "scope", "graph");
  tw_scope** cell = h->address;
  tw_scope* failed = *cell;
  const char *prefix = tw_scope_prefix(failed), *device = tw_scope_device(failed);
  char* text = NULL;
  if (prefix && *prefix) {
    text = strcpy(R_alloc(strlen(prefix) + 1, 1), prefix);
    text[strlen(text) - 1] = 0; /* the slash */
  }
  *cell = tw_scope_create(g->address, text);
  if (device && *device) tw_scope_set_device(*cell, device);
  check(tw_scope_finish(failed));
  return R_NilValue;
}

static SEXP R_close_handle(SEXP value) {
  if (TYPEOF(value) != EXTPTRSXP) RAISE(TW_INVALID_ARGUMENT, "only objects of the library can be closed");
  handle* h = R_ExternalPtrAddr(value);
  if (!h || !as_handle(value, "close", "con")) return R_NilValue; /* twice is fine */
  R_ClearExternalPtr(value);
  handle_leave(h);
  return R_NilValue;
}

static SEXP R_check(SEXP status) {
  if (status != R_NilValue) check(R_ExternalPtrAddr(status));
  return R_NilValue;
}

/* Reads a number, an output or a pointer at an offset of memory. */
static SEXP R_peek(SEXP memory, SEXP offset, SEXP type) {
  handle* held = NULL;
  const char* from = (const char*)as_pointer(memory, &held, "peek", "memory") + (R_xlen_t)as_number(offset, "peek", "offset");
  const char* kind = as_text(type, "peek", "type");
#define READ(name, c)                    \
  if (!strcmp(kind, name)) {             \
    c value;                             \
    memcpy(&value, from, sizeof value);  \
    return Rf_ScalarReal((double)value); \
  }
  READ("u32", uint32_t)
  READ("i32", int32_t)
  READ("u64", uint64_t)
  READ("i64", int64_t)
  READ("f64", double)
#undef READ
  if (!strcmp(kind, "o")) {
    tw_output value;
    memcpy(&value, from, sizeof value);
    return of_output(value);
  }
  void* value = NULL;
  memcpy(&value, from, sizeof value);
  return !strcmp(kind, "text") ? of_text(value) : of_pointer(value);
}

static SEXP R_poke(SEXP memory, SEXP offset, SEXP type, SEXP value) {
  handle* held = NULL;
  char* to = (char*)as_pointer(memory, &held, "poke", "memory") + (R_xlen_t)as_number(offset, "poke", "offset");
  const char* kind = as_text(type, "poke", "type");
#define WRITE(name, c, number) \
  if (!strcmp(kind, name)) {   \
    const c v = (c)number;     \
    memcpy(to, &v, sizeof v);  \
    return R_NilValue;         \
  }
  WRITE("u32", uint32_t, as_whole(value, 0, UINT32_MAX, "a record", "a field"))
  WRITE("i32", int32_t, as_whole(value, INT32_MIN, INT32_MAX, "a record", "a field"))
  WRITE("u64", uint64_t, as_whole(value, 0, 9007199254740992.0, "a record", "a field"))
  WRITE("i64", int64_t, as_whole(value, -9007199254740992.0, 9007199254740992.0, "a record", "a field"))
  WRITE("f64", double, as_number(value, "a record", "a field"))
  WRITE("o", tw_output, as_output(value, "a record", "a field"))
#undef WRITE
  void* address = as_pointer(value, &held, "a record", "a field");
  memcpy(to, &address, sizeof address);
  return R_NilValue;
}

/* Bytes of C. */
static SEXP R_bytes_at(SEXP address, SEXP n) {
  handle* held = NULL;
  const void* from = as_pointer(address, &held, "bytes", "address");
  SEXP bytes = Rf_allocVector(RAWSXP, (R_xlen_t)as_number(n, "bytes", "n"));
  if (XLENGTH(bytes)) memcpy(RAW(bytes), from, (size_t)XLENGTH(bytes));
  return bytes;
}

/* A list of texts in one vector: addresses, with lengths if `lengths`, then the bytes. */
static SEXP R_texts(SEXP texts, SEXP lengths) {
  const R_xlen_t n = XLENGTH(texts);
  const size_t width = Rf_asLogical(lengths) ? sizeof(tw_string) : sizeof(char*);
  size_t bytes = width * (size_t)n;
  if (TYPEOF(texts) != STRSXP) RAISE(TW_INVALID_ARGUMENT, "a list of texts must be a character vector");
  const char** all = (const char**)R_alloc((size_t)n + 1, sizeof *all);
  for (R_xlen_t i = 0; i < n; ++i) {
    if (STRING_ELT(texts, i) == NA_STRING) RAISE(TW_INVALID_ARGUMENT, "text %.0f is NA", (double)i + 1);
    all[i] = Rf_translateCharUTF8(STRING_ELT(texts, i));
    bytes += strlen(all[i]) + 1;
  }
  SEXP memory = Rf_allocVector(RAWSXP, (R_xlen_t)bytes);
  char *at = (char*)RAW(memory), *text = at + width * (size_t)n;
  for (R_xlen_t i = 0; i < n; ++i, at += width) {
    const uint64_t length = strlen(all[i]);
    memcpy(at, &text, sizeof text);
    if (width == sizeof(tw_string)) memcpy(at + sizeof text, &length, sizeof length);
    memcpy(text, all[i], length + 1);
    text += length + 1;
  }
  return memory;
}

/* The addresses of tensors, of which NULL is none if `none`. */
static SEXP R_tensor_addresses(SEXP tensors, SEXP none) {
  if (TYPEOF(tensors) != VECSXP) RAISE(TW_INVALID_ARGUMENT, "tensors must be given as a list");
  SEXP memory = PROTECT(Rf_allocVector(RAWSXP, (R_xlen_t)sizeof(void*) * XLENGTH(tensors)));
  for (R_xlen_t i = 0; i < XLENGTH(tensors); ++i) {
    SEXP one = VECTOR_ELT(tensors, i);
    void* address = one == R_NilValue && Rf_asLogical(none) ? NULL : tensor_of(one, "each of a list of tensors");
    memcpy((void**)RAW(memory) + i, &address, sizeof address);
  }
  UNPROTECT(1);
  return memory;
}
static SEXP R_own_tensors(SEXP memory) { return tensors_of((tw_tensor**)RAW(memory), (int)(XLENGTH(memory) / (R_xlen_t)sizeof(void*))); }

/* ---- Runs ---- */

/* step: the list that prepare() made; taking it apart here costs less than in R. */
static SEXP R_callable_run(SEXP step, SEXP tensors) {
  handle* callable = as_handle(VECTOR_ELT(step, 0), "run", "step");
  const int n_feeds = Rf_asInteger(VECTOR_ELT(step, 2)), n = Rf_asInteger(VECTOR_ELT(step, 3));
  as_handle(VECTOR_ELT(step, 1), "run", "session"); /* raises if it is closed */
  if (TYPEOF(tensors) != VECSXP || XLENGTH(tensors) != n_feeds) RAISE(TW_INVALID_ARGUMENT, "the callable takes %d tensors", n_feeds);
  tw_tensor** feeds = (tw_tensor**)R_alloc((size_t)XLENGTH(tensors) + 1, sizeof *feeds);
  tw_tensor** fetches = (tw_tensor**)R_alloc((size_t)n + 1, sizeof *fetches);
  for (R_xlen_t i = 0; i < XLENGTH(tensors); ++i) feeds[i] = tensor_of(VECTOR_ELT(tensors, i), "a feed");
  check(tw_callable_run(callable->address, feeds, NULL, fetches));
  return tensors_of(fetches, n);
}

/* ---- Functions of R that the library calls ---- */

static pthread_t main_thread;

typedef struct {
  SEXP call, result;
} protected_call;
static void evaluate(void* data) {
  protected_call* c = data;
  c->result = Rf_eval(c->call, R_GlobalEnv);
}
/* Calls a function that catches what its body raises; a text that it returns is a failure. Nothing may jump over frames of C. */
static tw_status* call_r(SEXP call, SEXP* result) {
  protected_call c = {call, R_NilValue};
  *result = R_NilValue;
  if (!R_ToplevelExec(evaluate, &c)) return tw_status_create(TW_UNKNOWN, "a function of R was left");
  *result = c.result;
  return TYPEOF(c.result) == STRSXP
             ? tw_status_create(TW_UNKNOWN, XLENGTH(c.result) ? R_CHAR(STRING_ELT(c.result, 0)) : "a function of R failed")
             : NULL;
}
static tw_status* wrong_thread(void) {
  return pthread_equal(pthread_self(), main_thread) ? NULL
                                                    : tw_status_create(TW_FAILED_PRECONDITION, "functions of R run on R's thread only");
}

typedef struct {
  tw_iterator iterator;
  SEXP next, reset;
} source;

static tw_status* source_next(void* user, tw_tensor** out_tensors, uint32_t* out_end) {
  source* s = user;
  SEXP batch;
  tw_status* status = wrong_thread();
  if (status) return status;
  SEXP call = PROTECT(Rf_lang1(s->next));
  status = call_r(call, &batch);
  UNPROTECT(1);
  if (status) return status;
  *out_end = batch == R_NilValue;
  for (uint32_t i = 0; !*out_end && i < s->iterator.n_tensors; ++i) { /* the function has checked what it returns */
    out_tensors[i] = ((handle*)R_ExternalPtrAddr(VECTOR_ELT(batch, i)))->address;
    tw_tensor_retain(out_tensors[i]);
  }
  return NULL;
}
static tw_status* source_reset(void* user, int64_t epoch) {
  source* s = user;
  SEXP unused;
  tw_status* status = wrong_thread();
  if (status) return status;
  SEXP call = PROTECT(Rf_lang2(s->reset, PROTECT(Rf_ScalarReal((double)epoch))));
  status = call_r(call, &unused);
  UNPROTECT(2);
  return status;
}
static void source_free(void* user) {
  source* s = user;
  R_ReleaseObject(s->next);
  R_ReleaseObject(s->reset);
  free(s);
}
static SEXP R_source(SEXP n, SEXP next, SEXP reset) {
  source* s = calloc(1, sizeof *s);
  if (!s) RAISE(TW_RESOURCE_EXHAUSTED, "there is no memory for a source");
  s->iterator.size = sizeof s->iterator, s->iterator.n_tensors = (uint32_t)Rf_asInteger(n), s->iterator.n_batches = -1;
  s->iterator.user = s, s->iterator.next = source_next, s->iterator.reset = source_reset;
  R_PreserveObject(s->next = next);
  R_PreserveObject(s->reset = reset);
  return handle_create(s, source_free, "thalweg_batches", NULL, NULL);
}

static SEXP named_values(const tw_fit_progress* at, const double* values) {
  const uint32_t n = values ? at->n_values : 0;
  SEXP result = PROTECT(Rf_allocVector(REALSXP, n)), names = PROTECT(Rf_allocVector(STRSXP, n));
  for (uint32_t i = 0; i < n; ++i) {
    REAL(result)[i] = values[i];
    SET_STRING_ELT(names, i, Rf_mkCharCE(at->names[i], CE_UTF8));
  }
  Rf_setAttrib(result, R_NamesSymbol, names);
  UNPROTECT(2);
  return result;
}
static tw_status* progress(SEXP function, const tw_fit_progress* at, uint32_t* out_stop) {
  static const char* names[] = {"epoch", "epochs", "step", "batch", "values", "validation", "improved", "seconds", ""};
  SEXP list = PROTECT(Rf_mkNamed(VECSXP, names)), stop;
  const double numbers[] = {(double)at->epoch, (double)at->epochs, (double)at->step, (double)at->batch};
  for (int i = 0; i < 4; ++i) SET_VECTOR_ELT(list, i, Rf_ScalarReal(numbers[i]));
  SET_VECTOR_ELT(list, 4, named_values(at, at->values));
  SET_VECTOR_ELT(list, 5, named_values(at, at->validation));
  SET_VECTOR_ELT(list, 6, Rf_ScalarLogical(at->improved != 0));
  SET_VECTOR_ELT(list, 7, Rf_ScalarReal(at->seconds));
  SEXP call = PROTECT(Rf_lang2(function, list));
  tw_status* status = call_r(call, &stop);
  UNPROTECT(2);
  if (!status) *out_stop = TYPEOF(stop) == LGLSXP && XLENGTH(stop) == 1 && LOGICAL(stop)[0] == 1;
  return status;
}
static tw_status* after_step(void* user, const tw_fit_progress* at, uint32_t* out_stop) { return progress(((SEXP*)user)[0], at, out_stop); }
static tw_status* epoch_end(void* user, const tw_fit_progress* at, uint32_t* out_stop) { return progress(((SEXP*)user)[1], at, out_stop); }

/* tw_trainer_fit with two functions of R, or NULL, in the record of its options. Returns the status. */
static SEXP R_fit(SEXP trainer, SEXP data, SEXP options, SEXP report, SEXP after, SEXP end) {
  handle* held[2] = {as_handle(trainer, "fit", "trainer"), as_handle(data, "fit", "data")};
  SEXP functions[2] = {after, end};
  tw_fit_options o;
  tw_fit_callback callback = {.size = sizeof callback, .user = functions};
  if (after != R_NilValue) callback.after_step = after_step;
  if (end != R_NilValue) callback.epoch_end = epoch_end;
  memcpy(&o, RAW(options), sizeof o);
  o.callbacks = &callback, o.n_callbacks = 1;
  hold(held, 2);
  tw_status* status = tw_trainer_fit(held[0]->address, held[1]->address, &o, (tw_fit_report*)RAW(report));
  leave(held, 2);
  return of_pointer(status);
}

static const R_CallMethodDef functions[] = {{"R_own", (DL_FUNC)R_own, 4},
                                            {"R_scope_create", (DL_FUNC)R_scope_create, 2},
                                            {"R_scope_address", (DL_FUNC)R_scope_address, 1},
                                            {"R_scope_fail", (DL_FUNC)R_scope_fail, 2},
                                            {"R_close_handle", (DL_FUNC)R_close_handle, 1},
                                            {"R_check", (DL_FUNC)R_check, 1},
                                            {"R_peek", (DL_FUNC)R_peek, 3},
                                            {"R_poke", (DL_FUNC)R_poke, 4},
                                            {"R_bytes_at", (DL_FUNC)R_bytes_at, 2},
                                            {"R_texts", (DL_FUNC)R_texts, 2},
                                            {"R_tensor_addresses", (DL_FUNC)R_tensor_addresses, 2},
                                            {"R_own_tensors", (DL_FUNC)R_own_tensors, 1},
                                            {"R_callable_run", (DL_FUNC)R_callable_run, 2},
                                            {"R_source", (DL_FUNC)R_source, 3},
                                            {"R_fit", (DL_FUNC)R_fit, 6},
                                            {"R_tensor_create", (DL_FUNC)R_tensor_create, 3},
                                            {"R_tensor_values", (DL_FUNC)R_tensor_values, 1},
                                            {"R_tensor_dims", (DL_FUNC)R_tensor_dims, 1},
                                            {"R_tensor_count", (DL_FUNC)R_tensor_count, 1},
                                            {NULL, NULL, 0}};

/* R keeps one table for a library, so that both go into it. */
void R_init_thalweg(DllInfo* info) {
  size_t n = 0, more = 0;
  while (low_functions[n].name) ++n;
  while (functions[more].name) ++more;
  R_CallMethodDef* all = calloc(n + more + 1, sizeof *all);
  main_thread = pthread_self();
  if (!all) return;
  memcpy(all, low_functions, n * sizeof *all);
  memcpy(all + n, functions, more * sizeof *all);
  R_registerRoutines(info, NULL, all, NULL, NULL);
  R_useDynamicSymbols(info, FALSE);
  free(all);
}
