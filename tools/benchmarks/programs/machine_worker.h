/* The parts of the machine's worker: measurements of the machine without any runtime. */
#ifndef THALWEG_BENCHMARKS_MACHINE_WORKER_H
#define THALWEG_BENCHMARKS_MACHINE_WORKER_H
#include "worker.h"

void answer_fma(const char* argument);       /* probe.c: GFLOP/s of independent multiply-adds, on `argument` threads */
void answer_triad(const char* argument);     /* GB/s of a[i] = b[i] + s * c[i], on `argument` threads */
void answer_stream(const char* argument);    /* "THREADS BYTES": the nanoseconds that the triad takes for BYTES */
void answer_mutex(const char* argument);     /* prototypes.c: ns per lock and unlock */
void answer_loop(const char* argument);      /* ns per node of a loop over prepared calls */
void answer_closures(const char* argument);  /* ns per node if each node is a closure in a pool's queue */
void answer_spawn(const char* argument);     /* spawn.c: ns from the start of a program to its end */
void answer_raw_write(const char* argument); /* raw_files.c: ns of writing and syncing the bytes of a checkpoint */
void answer_raw_read(const char* argument);  /* ns of reading them back */
void answer_dlopen(const char* argument);    /* ns of opening and closing a shared library */
void answer_tcp(const char* argument);       /* tcp.c: ns of requests to several processes over TCP */

#endif
