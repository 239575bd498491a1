// What one thread gives to gRPC and another gets from it. ThreadSanitizer does not see into gRPC's library, so here it is told that the
// first comes before the second.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define THALWEG_SEES_THREADS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THALWEG_SEES_THREADS 1
#endif
#endif

#ifdef THALWEG_SEES_THREADS
#include <sanitizer/tsan_interface.h>
#endif

namespace thalweg::grpc_transport {

// `what`: the tag of an event, the argument of a callback.
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

}  // namespace thalweg::grpc_transport
