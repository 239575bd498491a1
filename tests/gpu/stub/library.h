// What the stand-ins for NVIDIA's other libraries (blas.cc) use of the stub driver. Threads: any.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

// Memory that work of a library reads or writes.
struct LibraryTouch {
  const void* memory;
  size_t bytes;
  bool written;
};

// Counts the call as one of `what`, which may be told to fail, and enqueues `run`.
CUresult EnqueueOfLibrary(CUstream stream, const char* what, std::vector<LibraryTouch> touches, std::function<void()> run);
// Counts a call; what it is to fail with, if it is.
CUresult EnterLibrary(const char* function);
long long LibraryOption(const char* key, long long otherwise);
void WrongInLibrary(const std::string& text);

// Programs that were compiled while running, for the host (rtc.cc): kHostImage, eight bytes of length, and a shared library.
constexpr uint32_t kHostImage = 0x42555453;  // STUB
bool LoadHostImage(const char* image);
