/* The parts of the machine's worker: what the machine gives without any runtime. */
#ifndef THALWEG_BENCHMARKS_MACHINE_WORKER_H
#define THALWEG_BENCHMARKS_MACHINE_WORKER_H
#include "worker.h"

void answer_fma(const char* argument);       /* probe.c: GFLOP/s of independent multiply-adds, on `argument` threads */
void answer_triad(const char* argument);     /* GB/s of a[i] = b[i] + s * c[i], on `argument` threads */
void answer_stream(const char* argument);    /* "THREADS BYTES": the nanoseconds that so many bytes take at that rate */
void answer_mutex(const char* argument);     /* prototypes.c: ns of a lock and an unlock */
void answer_loop(const char* argument);      /* ns per node of a loop over prepared calls */
void answer_closures(const char* argument);  /* ns per node where each is a closure in a pool's queue */
void answer_spawn(const char* argument);     /* spawn.c: ns from the start of a program to its end */
void answer_raw_write(const char* argument); /* raw_files.c: ns of writing and syncing the bytes of a checkpoint */
void answer_raw_read(const char* argument);  /* ns of reading them again */
void answer_dlopen(const char* argument);    /* ns of opening and closing a shared library */
void answer_tcp(const char* argument);       /* tcp.c: ns of asking several processes over TCP */

#endif
