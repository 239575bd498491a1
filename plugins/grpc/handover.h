// Tells ThreadSanitizer that Give happens before Get: for data that one thread gives to another
// through gRPC or shared memory. ThreadSanitizer does not see into gRPC's library, nor that two
// addresses are the same memory.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define THALWEG_SEES_THREADS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THALWEG_SEES_THREADS 1
#endif
#endif

#include <cstdint>

#ifdef THALWEG_SEES_THREADS
#include <sanitizer/tsan_interface.h>
#endif

namespace thalweg::grpc_transport {

// `what`: the tag of an event, or the argument of a callback.
inline void Give([[maybe_unused]] void* what) {
#ifdef THALWEG_SEES_THREADS
  __tsan_release(what);
#endif
}
inline void Get([[maybe_unused]] void* what) {
#ifdef THALWEG_SEES_THREADS
  __tsan_acquire(what);
#endif
}

// Stands for memory with several addresses, such as that between two endpoints of one process; key:
// identifies the memory.
inline void* Common(uint64_t key) {
  static char all[1024];
  return &all[key % sizeof all];
}

}  // namespace thalweg::grpc_transport
