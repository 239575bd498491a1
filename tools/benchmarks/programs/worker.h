/* A worker is a process that answers commands. It reads a line "NAME [ARGUMENT]" from standard
 * input, and writes a line "ok NUMBERS..." or "error WHY" to standard output. It stays alive
 * between commands, so that workers can be timed in turns without repeated start-up costs. All
 * functions run on the main thread. */
#ifndef THALWEG_BENCHMARKS_WORKER_H
#define THALWEG_BENCHMARKS_WORKER_H

typedef struct worker_command {
  const char* name;
  void (*answer)(const char* argument); /* replies or fails, exactly once; argument: "" if there is none */
} worker_command;

/* Prints "ready", then answers commands until standard input ends. The list ends with a name of
 * NULL. */
void worker_serve(const worker_command* commands);
void worker_reply(const char* format, ...) __attribute__((format(printf, 1, 2)));
/* Replies with the error, and ends the process. */
void worker_fail(const char* format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Returns the argument as a number; at least 1. */
int worker_number(const char* argument);

double worker_now_ns(void);
/* Calls `once` three times to warm up, then takes `samples` times of `calls` calls each. Replies
 * with the median and the 99th percentile in nanoseconds per call, divided by `parts`, the
 * number of equal units of work in one call. */
void worker_reply_time(void (*once)(void* user), void* user, int samples, int calls, double parts);
/* Returns the number of calls that take about 3 ms; at least one. */
int worker_calls(void (*once)(void* user), void* user);
/* Replies with the median and the 99th percentile of times measured elsewhere; sorts `times`. */
void worker_reply_median(double* times, int samples);

#endif
