/* Conversions between values of R and of C. Wrong types are errors of R, raised before anything is called. R runs on one thread, which
 * alone may touch its values, so that handles need no locks. */
#ifndef THALWEG_R_SUPPORT_H
#define THALWEG_R_SUPPORT_H
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define R_NO_REMAP
#include <R.h>
#include <Rinternals.h>

#include <R_ext/Rdynload.h>
#include <thalweg/thalweg.h>

/* An object of C, which ends with its last user: the handle of R until it is closed or collected, calls, and handles that need it. */
typedef struct handle {
  void* address;
  void (*release)(void*);
  int users;
  struct handle* kept[2];
} handle;

/* Raises a condition with the classes thalweg_CODE, thalweg_error and error. */
#define RAISE(code, ...) raise_format(code, __VA_ARGS__)
_Noreturn void raise_format(uint32_t code, const char* format, ...);
/* Raises the failure of a status, which it releases; returns for NULL. */
void check(tw_status* status);

void handle_leave(handle* h);
SEXP handle_create(void* address, void (*release)(void*), const char* name, handle* first, handle* second);

/* The handle of a value of R; NULL if it is none. Raises an error if it is closed. */
handle* as_handle(SEXP value, const char* function, const char* parameter);
/* NULL, a handle, what of_pointer made, a vector or a record. *held: the handle, if it is one. */
void* as_pointer(SEXP value, handle** held, const char* function, const char* parameter);
const char* as_text(SEXP value, const char* function, const char* parameter);
double as_number(SEXP value, const char* function, const char* parameter);
double as_whole(SEXP value, double least, double most, const char* function, const char* parameter);
tw_output as_output(SEXP value, const char* function, const char* parameter);

SEXP of_pointer(void* address); /* NULL for NULL */
SEXP of_text(const char* text);
SEXP of_output(tw_output value);
static inline SEXP of_number(double number) { return Rf_ScalarReal(number); }

static inline void hold(handle** held, int n) {
  for (int i = 0; i < n; ++i)
    if (held[i]) ++held[i]->users;
}
static inline void leave(handle** held, int n) {
  for (int i = 0; i < n; ++i)
    if (held[i]) handle_leave(held[i]);
}

SEXP tensors_of(tw_tensor** tensors, int n); /* a list of handles, which own the tensors */
tw_tensor* tensor_of(SEXP value, const char* what);

extern const R_CallMethodDef low_functions[];
#endif
