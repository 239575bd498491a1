// The interface of the stub driver for the stand-ins of NVIDIA's other libraries (blas.cc).
// Threads: any.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

// Memory that a library's work reads or writes.
struct LibraryTouch {
  const void* memory;
  size_t bytes;
  bool written;
};

// Counts the call as `what`, which a test may make fail, and enqueues `run`.
CUresult EnqueueOfLibrary(CUstream stream, const char* what, std::vector<LibraryTouch> touches, std::function<void()> run);
// Counts a call; returns the error if a test makes the call fail.
CUresult EnterLibrary(const char* function);
long long LibraryOption(const char* key, long long otherwise);
void WrongInLibrary(const std::string& text);

// Programs compiled at run time for the host (rtc.cc): kHostImage, eight bytes of length, and a
// shared library.
constexpr uint32_t kHostImage = 0x42555453;  // STUB
bool LoadHostImage(const char* image);
