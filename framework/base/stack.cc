#include "framework/base/stack.h"

#include <pthread.h>

#include <cstdint>

namespace thalweg {
namespace {

// Returns the lowest address of this thread's stack; 0 if the system does not report it.
uintptr_t StackEnd() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  void* lowest = nullptr;
  size_t size = 0;
  if (pthread_attr_getstack(&attributes, &lowest, &size) != 0) lowest = nullptr;
  pthread_attr_destroy(&attributes);
  return reinterpret_cast<uintptr_t>(lowest);
}

}  // namespace

size_t StackLeft() {
  thread_local const uintptr_t end = StackEnd();
  return reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) - end;
}

}  // namespace thalweg
