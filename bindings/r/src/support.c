/* Errors, handles, and the conversions of support.h. */
#include "support.h"

#include <stdarg.h>
#include <stdio.h>

static _Noreturn void raise(uint32_t code, const char* message, const char* operation, const char* place) {
  static const char* names[] = {"message", "call", "code", "operation", "place", ""};
  const char* name = tw_status_code_name(code);
  char kind[64] = "thalweg_";
  size_t n = strlen(kind);
  for (; *name && n + 1 < sizeof kind; ++name) kind[n++] = (char)(*name >= 'A' && *name <= 'Z' ? *name - 'A' + 'a' : *name);
  kind[n] = 0;
  SEXP condition = PROTECT(Rf_mkNamed(VECSXP, names)), classes = PROTECT(Rf_allocVector(STRSXP, 4));
  SET_VECTOR_ELT(condition, 0, of_text(message));
  SET_VECTOR_ELT(condition, 2, of_text(tw_status_code_name(code)));
  SET_VECTOR_ELT(condition, 3, of_text(operation));
  SET_VECTOR_ELT(condition, 4, of_text(place));
  SET_STRING_ELT(classes, 0, Rf_mkChar(kind));
  SET_STRING_ELT(classes, 1, Rf_mkChar("thalweg_error"));
  SET_STRING_ELT(classes, 2, Rf_mkChar("error"));
  SET_STRING_ELT(classes, 3, Rf_mkChar("condition"));
  Rf_setAttrib(condition, R_ClassSymbol, classes);
  SEXP call = PROTECT(Rf_lang2(Rf_install("stop"), condition));
  Rf_eval(call, R_BaseEnv);
  Rf_error("%s", message); /* stop has not returned */
}

_Noreturn void raise_format(uint32_t code, const char* format, ...) {
  char message[500];
  va_list list;
  va_start(list, format);
  vsnprintf(message, sizeof message, format, list);
  va_end(list);
  raise(code, message, NULL, NULL);
}

void check(tw_status* status) {
  if (!status) return;
  const uint32_t code = tw_status_code(status);
  const char* texts[] = {tw_status_message(status), tw_status_operation(status), tw_status_place(status)};
  for (int i = 0; i < 3; ++i) /* memory of R, because raising does not return */
    if (texts[i]) texts[i] = strcpy(R_alloc(strlen(texts[i]) + 1, 1), texts[i]);
  tw_status_release(status);
  raise(code, texts[0], texts[1], texts[2]);
}

static SEXP handle_tag(void) {
  static SEXP tag;
  if (!tag) tag = Rf_install("thalweg_handle");
  return tag;
}

void handle_leave(handle* h) {
  if (--h->users) return;
  h->release(h->address);
  for (int i = 0; i < 2; ++i)
    if (h->kept[i]) handle_leave(h->kept[i]);
  free(h);
}

static void finalize(SEXP value) {
  handle* h = R_ExternalPtrAddr(value);
  R_ClearExternalPtr(value);
  if (h) handle_leave(h);
}

/* The class of a handle, made once for each name, which is a constant. */
static SEXP class_of(const char* name) {
  static struct {
    const char* name;
    SEXP value;
  } made[16];
  int i = 0;
  while (i < 15 && made[i].name && made[i].name != name) ++i;
  if (made[i].name == name) return made[i].value;
  made[i].name = NULL;
  SEXP value = Rf_mkString(name);
  R_PreserveObject(value);
  MARK_NOT_MUTABLE(value);
  made[i].name = name, made[i].value = value;
  return value;
}

SEXP handle_create(void* address, void (*release)(void*), const char* name, handle* first, handle* second) {
  SEXP value = PROTECT(R_MakeExternalPtr(NULL, handle_tag(), R_NilValue));
  handle* h = calloc(1, sizeof *h);
  if (!h) {
    release(address);
    RAISE(TW_RESOURCE_EXHAUSTED, "there is no memory for a handle");
  }
  h->address = address, h->release = release, h->users = 1, h->kept[0] = first, h->kept[1] = second;
  hold(h->kept, 2);
  R_SetExternalPtrAddr(value, h);
  R_RegisterCFinalizerEx(value, finalize, TRUE);
  Rf_setAttrib(value, R_ClassSymbol, class_of(name));
  UNPROTECT(1);
  return value;
}

handle* as_handle(SEXP value, const char* function, const char* parameter) {
  if (TYPEOF(value) != EXTPTRSXP || R_ExternalPtrTag(value) != handle_tag()) return NULL;
  handle* h = R_ExternalPtrAddr(value);
  if (!h) RAISE(TW_FAILED_PRECONDITION, "%s: the object for %s is closed", function, parameter);
  return h;
}

static _Noreturn void refuse(const char* function, const char* parameter, const char* want) {
  RAISE(TW_INVALID_ARGUMENT, "%s: %s must be %s", function, parameter, want);
}

void* as_pointer(SEXP value, handle** held, const char* function, const char* parameter) {
  switch (TYPEOF(value)) {
    case NILSXP: return NULL;
    case EXTPTRSXP: *held = as_handle(value, function, parameter); return *held ? (*held)->address : R_ExternalPtrAddr(value);
    case RAWSXP: return RAW(value);
    case INTSXP: return INTEGER(value);
    case REALSXP: return REAL(value);
    case ENVSXP: {
      SEXP bytes = Rf_findVarInFrame(value, Rf_install("bytes"));
      if (TYPEOF(bytes) == RAWSXP) return RAW(bytes);
      break;
    }
    default: break;
  }
  refuse(function, parameter, "an object of its kind, a vector or NULL");
  return NULL;
}

const char* as_text(SEXP value, const char* function, const char* parameter) {
  if (value == R_NilValue) return NULL;
  if (TYPEOF(value) == RAWSXP) return (const char*)RAW(value);
  if (TYPEOF(value) != STRSXP || XLENGTH(value) != 1 || STRING_ELT(value, 0) == NA_STRING) refuse(function, parameter, "one text");
  return Rf_translateCharUTF8(STRING_ELT(value, 0));
}

double as_number(SEXP value, const char* function, const char* parameter) {
  if ((TYPEOF(value) != REALSXP && TYPEOF(value) != INTSXP && TYPEOF(value) != LGLSXP) || XLENGTH(value) != 1)
    refuse(function, parameter, "one number");
  if (TYPEOF(value) != REALSXP && Rf_asInteger(value) == NA_INTEGER) refuse(function, parameter, "a number, not NA");
  return Rf_asReal(value);
}

double as_whole(SEXP value, double least, double most, const char* function, const char* parameter) {
  const double number = as_number(value, function, parameter);
  if (!(number >= least && number <= most) || number != (double)(int64_t)number) refuse(function, parameter, "a whole number that fits");
  return number;
}

tw_output as_output(SEXP value, const char* function, const char* parameter) {
  tw_output id = 0;
  if (value == R_NilValue) return 0;
  if (TYPEOF(value) == VECSXP && Rf_inherits(value, "thalweg_output") && XLENGTH(value)) value = VECTOR_ELT(value, 0);
  if (TYPEOF(value) != RAWSXP || XLENGTH(value) != sizeof id) refuse(function, parameter, "a value of a graph");
  memcpy(&id, RAW(value), sizeof id);
  return id;
}

SEXP of_pointer(void* address) { return address ? R_MakeExternalPtr(address, R_NilValue, R_NilValue) : R_NilValue; }
SEXP of_text(const char* text) {
  if (!text) return R_NilValue;
  SEXP one = PROTECT(Rf_mkCharCE(text, CE_UTF8)), value = Rf_ScalarString(one);
  UNPROTECT(1);
  return value;
}
SEXP of_output(tw_output output) {
  SEXP value = Rf_allocVector(RAWSXP, sizeof output);
  memcpy(RAW(value), &output, sizeof output);
  return value;
}
