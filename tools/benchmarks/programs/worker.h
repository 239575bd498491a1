/* A worker is a process that answers commands: a line "NAME [ARGUMENT]" on standard input, a line "ok NUMBERS..." or "error WHY" on
 * standard output. It stays alive between commands, so that workers can be timed in turns without paying for their start each time.
 * Everything here runs on the main thread. */
#ifndef THALWEG_BENCHMARKS_WORKER_H
#define THALWEG_BENCHMARKS_WORKER_H

typedef struct worker_command {
  const char* name;
  void (*answer)(const char* argument); /* replies or fails, once; argument: "" if there is none */
} worker_command;

/* Says "ready", then answers commands until standard input ends; the list ends with a name of NULL. */
void worker_serve(const worker_command* commands);
void worker_reply(const char* format, ...) __attribute__((format(printf, 1, 2)));
/* Says why as the answer, and ends the process. */
void worker_fail(const char* format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* The argument as a number, at least 1. */
int worker_number(const char* argument);

double worker_now_ns(void);
/* Calls `once` three times to warm up, then takes `samples` times of `calls` calls each. Replies with the median and the 99th percentile
 * in nanoseconds a call, divided by `parts`, the number of equal things that one call does. */
void worker_reply_time(void (*once)(void* user), void* user, int samples, int calls, double parts);
/* How many calls take some 3 ms, at least one. */
int worker_calls(void (*once)(void* user), void* user);
/* Replies with the median and the 99th percentile of times that were taken otherwise; sorts them. */
void worker_reply_median(double* times, int samples);

#endif
