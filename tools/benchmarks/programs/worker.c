/* The loop, the clock and the medians of a worker. */
#define _POSIX_C_SOURCE 200809L
#include "worker.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void print_line(const char* word, const char* format, va_list args) {
  fputs(word, stdout);
  vprintf(format, args);
  putchar('\n');
  fflush(stdout);
}

void worker_reply(const char* format, ...) {
  va_list args;
  va_start(args, format);
  print_line("ok ", format, args);
  va_end(args);
}

void worker_fail(const char* format, ...) {
  va_list args;
  va_start(args, format);
  print_line("error ", format, args);
  va_end(args);
  exit(1);
}

int worker_number(const char* argument) {
  char* end;
  const long value = strtol(argument, &end, 10);
  if (end == argument || *end || value < 1 || value > 1000000000) worker_fail("expected a number, got '%s'", argument);
  return (int)value;
}

double worker_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static int compare_doubles(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

void worker_reply_median(double* times, int samples) {
  qsort(times, (size_t)samples, sizeof *times, compare_doubles);
  worker_reply("%.9g %.9g", times[samples / 2], times[samples * 99 / 100]);
}

void worker_reply_time(void (*once)(void* user), void* user, int samples, int calls, double parts) {
  double* times = malloc((size_t)samples * sizeof *times);
  if (!times) worker_fail("out of memory for %d samples", samples);
  for (int i = 0; i < 3; ++i) once(user);
  for (int i = 0; i < samples; ++i) {
    const double begin = worker_now_ns();
    for (int k = 0; k < calls; ++k) once(user);
    times[i] = (worker_now_ns() - begin) / calls / parts;
  }
  worker_reply_median(times, samples);
  free(times);
}

int worker_calls(void (*once)(void* user), void* user) {
  once(user);
  const double begin = worker_now_ns();
  once(user);
  const double calls = 3e6 / (worker_now_ns() - begin);
  return calls < 1 ? 1 : calls > 10000 ? 10000 : (int)calls;
}

static const worker_command* find(const worker_command* commands, const char* name) {
  while (commands->name && strcmp(commands->name, name) != 0) ++commands;
  if (!commands->name) worker_fail("no command '%s'", name);
  return commands;
}

void worker_serve(const worker_command* commands) {
  puts("ready");
  fflush(stdout);
  char line[4096];
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = '\0';
    char* argument = strchr(line, ' ');
    if (argument) *argument++ = '\0';
    find(commands, line)->answer(argument ? argument : "");
  }
}
