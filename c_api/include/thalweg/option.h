/* Options of runtimes, sessions and servers, as texts "key=value". tw_runtime_option,
 * tw_session_option and tw_server_option list them in these records, for help texts, completion and
 * early checks. Everything here: since 0.1. */
#ifndef THALWEG_OPTION_H
#define THALWEG_OPTION_H
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

enum {
  TW_OPTION_TEXT = 0,   /* any text */
  TW_OPTION_BOOL = 1,   /* true or false; 1 and 0 mean the same */
  TW_OPTION_INT = 2,    /* a decimal number from `min` to `max` */
  TW_OPTION_BYTES = 3,  /* a number of bytes from `min` to `max`, with K, M, G or T for powers of 1024: 1000000, 512M */
  TW_OPTION_CHOICE = 4, /* one of `choices` */
  TW_OPTION_LIST = 5    /* texts with `separator` between them */
};

/* One option. Static: all of it lives as long as the process. */
typedef struct tw_option {
  uint32_t size;             /* of the record in this library; later versions add fields at the end */
  uint32_t kind;             /* TW_OPTION_... */
  const char* name;          /* the key; a part in <> is a placeholder for the user's text: memory_limit.<KIND> */
  const char* default_value; /* "": none */
  const char* doc;           /* its effect, one line */
  int64_t min, max;          /* for INT and BYTES */
  const char* const* choices;
  uint32_t n_choices;
  uint32_t repeats; /* 1: may be given several times, and each counts; 0: the last one counts */
  uint32_t separator;
  uint32_t reserved;
} tw_option;

#ifdef __cplusplus
}
#endif
#endif
