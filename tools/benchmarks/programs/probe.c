/* The machine's current speed: arithmetic in registers and streaming memory, on one thread or
 * several. If other programs use a second processor, the speed-up is below the number of
 * threads. */
#define _GNU_SOURCE /* for affinities */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "machine_worker.h"

enum { kMostThreads = 64, kBlocks = 20000, kTriad = 4 << 20 /* elements of each array, together well beyond any cache of a core */ };

typedef struct part {             /* one thread's part */
  double (*work)(struct part* p); /* returns the amount of work done */
  pthread_barrier_t* start;
  float *a, *b, *c;
  double done, begin_ns, end_ns;
} part;

/* Sixteen chains hide the latency of any processor's multiply-add. REQUIRES: -ffp-contract=fast. */
#define FMA_LOOP(name, isa, width)                                                        \
  __attribute__((target(isa))) static double name(part* p) {                              \
    typedef float vector __attribute__((vector_size(4 * (width))));                       \
    vector x[16], scale, shift;                                                           \
    for (int k = 0; k < (width); ++k) scale[k] = 0.999f + p->a[0], shift[k] = 0.001f;     \
    for (int j = 0; j < 16; ++j) x[j] = scale * (float)(j + 1);                           \
    for (int i = 0; i < kBlocks; ++i) {                                                   \
      _Pragma("GCC unroll 16") for (int j = 0; j < 16; ++j) x[j] = x[j] * scale + shift;  \
    }                                                                                     \
    for (int j = 1; j < 16; ++j) x[0] += x[j];                                            \
    for (int k = 0; k < (width); ++k) p->b[k] = x[0][k]; /* so that it is not left out */ \
    return 2.0 * 16 * (width) * kBlocks;                                                  \
  }
#if defined(__x86_64__)
FMA_LOOP(fma_avx512, "avx512f", 16)
FMA_LOOP(fma_avx2, "avx2,fma", 8)
FMA_LOOP(fma_plain, "sse2", 4)
static double (*fma_loop(void))(part*) {
  return __builtin_cpu_supports("avx512f") ? fma_avx512 : __builtin_cpu_supports("fma") ? fma_avx2 : fma_plain;
}
#else
#error "the probe knows x86-64 only; add a loop for this processor"
#endif

static double triad(part* p) {
  const float s = 0.5f;
  for (int i = 0; i < kTriad; ++i) p->a[i] = p->b[i] + s * p->c[i];
  return 3.0 * sizeof(float) * kTriad;
}

static void* run_part(void* user) {
  part* p = user;
  p->work(p);
  pthread_barrier_wait(p->start);
  p->begin_ns = worker_now_ns();
  while ((p->end_ns = worker_now_ns()) - p->begin_ns < 20e6) p->done += p->work(p);
  return NULL;
}

/* Starts a part on the i-th of the processors that this process may use, so that no two parts
 * share one. */
static pthread_t start_part(part* p, int i) {
  cpu_set_t ours, one;
  pthread_attr_t attributes;
  pthread_t id;
  int cpu = 0;
  sched_getaffinity(0, sizeof ours, &ours);
  if (i >= CPU_COUNT(&ours)) worker_fail("thread %d has no processor of its own", i + 1);
  for (int left = i; !CPU_ISSET(cpu, &ours) || left-- > 0;) ++cpu;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  pthread_attr_init(&attributes);
  pthread_attr_setaffinity_np(&attributes, sizeof one, &one);
  if (pthread_create(&id, &attributes, run_part, p) != 0) worker_fail("no thread %d", i + 1);
  pthread_attr_destroy(&attributes);
  return id;
}

/* Returns the units of work per nanosecond of all threads together. */
static double rate(double (*work)(part*), int threads) {
  if (threads > kMostThreads) worker_fail("at most %d threads, not %d", kMostThreads, threads);
  part parts[kMostThreads] = {0};
  pthread_t ids[kMostThreads];
  pthread_barrier_t start;
  pthread_barrier_init(&start, NULL, (unsigned)threads);
  for (int i = 0; i < threads; ++i) {
    parts[i] = (part){.work = work, .start = &start, .a = calloc(3 * kTriad, sizeof(float))};
    if (!parts[i].a) worker_fail("out of memory");
    parts[i].b = parts[i].a + kTriad;
    parts[i].c = parts[i].b + kTriad;
    ids[i] = start_part(&parts[i], i);
  }
  double sum = 0;
  for (int i = 0; i < threads; ++i) {
    pthread_join(ids[i], NULL);
    sum += parts[i].done / (parts[i].end_ns - parts[i].begin_ns);
    free(parts[i].a);
  }
  pthread_barrier_destroy(&start);
  return sum;
}

void answer_fma(const char* argument) { worker_reply("%.6g", rate(fma_loop(), worker_number(argument))); }
void answer_triad(const char* argument) { worker_reply("%.6g", rate(triad, worker_number(argument))); }
void answer_stream(const char* argument) {
  int threads;
  double bytes;
  if (sscanf(argument, "%d %lf", &threads, &bytes) != 2 || threads < 1) worker_fail("not 'THREADS BYTES': %s", argument);
  double times[] = {bytes / rate(triad, threads), bytes / rate(triad, threads), bytes / rate(triad, threads)};
  worker_reply_median(times, 3);
}
