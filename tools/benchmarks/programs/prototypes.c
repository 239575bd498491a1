/* Lower bounds of the cost of a step, and its cost if each node is a closure: a chain of 10,000
 * nodes that do nothing, run by a minimal loop and by a pool of threads with one queue. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "machine_worker.h"

enum { kNodes = 10000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void lock_and_unlock(void* user) {
  (void)user;
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
}

void answer_mutex(const char* argument) { worker_reply_time(lock_and_unlock, NULL, worker_number(argument), 100, 1); }

/* ---- The loop: a kernel and its frame per node ---- */

typedef struct node {
  void* (*execute)(struct node* n); /* NULL: fine */
  void* frame[7];
} node;

static void* do_nothing(node* n) {
  __asm__ volatile("" : : "r"(n) : "memory");
  return NULL;
}

static void run_nodes(void* user) {
  node* nodes = user;
  for (int i = 0; i < kNodes; ++i) {
    if (nodes[i].execute(&nodes[i])) worker_fail("node %d failed", i);
  }
}

void answer_loop(const char* argument) {
  static node nodes[kNodes];
  for (int i = 0; i < kNodes; ++i) nodes[i].execute = do_nothing;
  worker_reply_time(run_nodes, nodes, worker_number(argument), 1, kNodes);
}

/* ---- The pool: for each node, allocates, enqueues, wakes, runs and frees a closure, and the
 * node enqueues its successor ---- */

typedef struct closure {
  struct closure* next;
  int node;
} closure;

static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, finished = PTHREAD_COND_INITIALIZER;
static closure *first, **last = &first;
static int nodes_left;

static void push(int index) {
  closure* c = malloc(sizeof *c);
  if (!c) worker_fail("out of memory");
  *c = (closure){.node = index};
  pthread_mutex_lock(&mutex);
  *last = c;
  last = &c->next;
  pthread_mutex_unlock(&mutex);
  pthread_cond_signal(&filled);
}

static void* serve_queue(void* user) {
  for (;;) {
    pthread_mutex_lock(&mutex);
    while (!first) pthread_cond_wait(&filled, &mutex);
    closure* c = first;
    first = c->next;
    if (!first) last = &first;
    pthread_mutex_unlock(&mutex);
    if (c->node + 1 < kNodes) push(c->node + 1);
    free(c);
    pthread_mutex_lock(&mutex);
    if (--nodes_left == 0) pthread_cond_signal(&finished);
    pthread_mutex_unlock(&mutex);
  }
  return user;
}

static void run_closures(void* user) {
  (void)user;
  nodes_left = kNodes;
  push(0);
  pthread_mutex_lock(&mutex);
  while (nodes_left > 0) pthread_cond_wait(&finished, &mutex);
  pthread_mutex_unlock(&mutex);
}

/* Starts one thread per processor, as pools do. */
void answer_closures(const char* argument) {
  static int started;
  pthread_t id;
  while (started < sysconf(_SC_NPROCESSORS_ONLN)) {
    if (pthread_create(&id, NULL, serve_queue, NULL) != 0) worker_fail("no thread %d", started);
    ++started;
  }
  worker_reply_time(run_closures, NULL, worker_number(argument), 1, kNodes);
}
