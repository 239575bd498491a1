#define _GNU_SOURCE
#include "heap.h"

#include <errno.h>
#include <execinfo.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);

static atomic_int armed, all_later;
static atomic_long calls, chosen, live;
static void* where[40]; /* the call stack of the first failed call */
static int where_n;

static int fails(void) {
  if (!atomic_load_explicit(&armed, memory_order_relaxed)) return 0;
  const long n = atomic_fetch_add(&calls, 1) + 1, at = atomic_load(&chosen);
  if (n < at || (n > at && !atomic_load(&all_later))) return 0;
  if (n == at) {
    const int was = atomic_exchange(&armed, 0);
    where_n = backtrace(where, 40);
    atomic_store(&armed, was);
  }
  errno = ENOMEM;
  return 1;
}
static void* counted(void* p) {
  if (p) atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
  return p;
}

#define HEAP_CALL __attribute__((visibility("default")))
HEAP_CALL void* malloc(size_t n) { return fails() ? NULL : counted(__libc_malloc(n)); }
HEAP_CALL void* calloc(size_t n, size_t size) { return fails() ? NULL : counted(__libc_calloc(n, size)); }
HEAP_CALL void* memalign(size_t align, size_t n) { return fails() ? NULL : counted(__libc_memalign(align, n)); }
HEAP_CALL void* aligned_alloc(size_t align, size_t n) { return memalign(align, n); }
HEAP_CALL int posix_memalign(void** out, size_t align, size_t n) {
  *out = memalign(align, n);
  return *out || n == 0 ? 0 : ENOMEM;
}
HEAP_CALL void* realloc(void* p, size_t n) {
  if (fails()) return NULL;
  return p ? __libc_realloc(p, n) : counted(__libc_realloc(p, n));
}
HEAP_CALL void free(void* p) {
  if (p) atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
  __libc_free(p);
}

void heap_fail(long n, int lasting) {
  where_n = 0;
  atomic_store(&all_later, lasting);
  atomic_store(&calls, 0);
  atomic_store(&chosen, n);
  atomic_store(&armed, n > 0);
}

long heap_recover(void) {
  atomic_store(&armed, 0);
  return atomic_load(&calls);
}

long heap_live(void) { return atomic_load(&live); }

void heap_say_where(void) { backtrace_symbols_fd(where, where_n, STDERR_FILENO); }
