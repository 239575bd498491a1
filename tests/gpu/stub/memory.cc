// Memory of devices and pinned memory, and copies between them.
#include <cstdlib>
#include <cstring>

#include "state.h"

using namespace stub;

namespace {

constexpr size_t kGone = 256;

CUresult Copy(const char* function, CUstream stream, void* to, const void* from, size_t bytes, bool to_device, bool from_device) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter(function)) return error;
  Work w;
  w.what = to_device && from_device ? "a copy inside the device" : to_device ? "a copy in" : "a copy out";
  // The driver copies pageable memory at the call; with the option unstaged it reads the memory
  // when the copy runs, as on devices that access all of the host's memory.
  std::shared_ptr<std::string> staged;
  const auto pinned = Now().pinned.upper_bound(uintptr_t(from));
  const bool is_pinned = pinned != Now().pinned.begin() && std::prev(pinned)->first + std::prev(pinned)->second >= uintptr_t(from) + bytes;
  if (!from_device && !is_pinned) staged = std::make_shared<std::string>(static_cast<const char*>(from), bytes);
  const bool read_later = staged && Option("unstaged", 0);
  w.run = [=] {
    if (read_later && std::memcmp(from, staged->data(), bytes) != 0) {
      std::lock_guard inner(Now().mutex);
      Wrong("memory of the host is another when a copy reads it");
    }
    std::memcpy(to, staged ? staged->data() : from, bytes);
  };
  if (to_device) w.touches.push_back({uintptr_t(to), uintptr_t(to) + bytes, true});
  if (from_device) w.touches.push_back({uintptr_t(from), uintptr_t(from) + bytes, false});
  const bool moved = (Mutant("copy_in_on_another_stream") && !from_device) || (Mutant("copy_out_on_another_stream") && !to_device) ||
                     (Mutant("peer_copy_on_another_stream") && std::string(function) == "cuMemcpyPeerAsync");
  Enqueue(moved ? Another(stream) : stream, std::move(w));
  return CUDA_SUCCESS;
}

}  // namespace

EXPORT CUresult cuDeviceCanAccessPeer(int* can, CUdevice, CUdevice) {
  std::lock_guard lock(Now().mutex);
  *can = int(Option("peers", 1));
  return Enter("cuDeviceCanAccessPeer", false);
}
EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool, const CUmemAccessDesc* access, size_t) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuMemPoolSetAccess")) return error;
  if (access->location.type != CU_MEM_LOCATION_TYPE_DEVICE) Wrong("memory is opened to what is no device");
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes, CUstream stream) {
  return Copy("cuMemcpyPeerAsync", stream, reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes, true, true);
}

EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice) {
  static CUmemPoolHandle_st only;
  *pool = &only;
  return Answer("cuDeviceGetDefaultMemPool", false);
}
EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool, CUmemPool_attribute, void*) { return Answer("cuMemPoolSetAttribute"); }
EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool, size_t) { return Answer("cuMemPoolTrimTo"); }
EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool, CUstream stream) {
  State& s = Now();
  std::lock_guard lock(s.mutex);
  if (CUresult error = Enter("cuMemAllocFromPoolAsync")) return error;
  if (s.used + (long long)(bytes) > Option("memory", 1 << 30)) return CUDA_ERROR_OUT_OF_MEMORY;
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(memory, 0xEE, bytes);
  *address = CUdeviceptr(memory);
  s.memory[uintptr_t(memory)] = {bytes, current ? current->device : 0, false, {}};
  for (CUstream other : s.streams)
    if (other->recorded) s.taken_while_recorded.push_back(uintptr_t(memory));
  s.used += (long long)(bytes);
  Work w;
  w.what = "taking memory";
  w.harmless = true;
  w.touches.push_back({uintptr_t(memory), uintptr_t(memory) + bytes, true});
  Enqueue(Mutant("memory_from_another_stream") ? Another(stream) : stream, std::move(w));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  State& s = Now();
  std::lock_guard lock(s.mutex);
  Enter("cuMemFreeAsync");
  const auto found = s.memory.find(uintptr_t(address));
  if (found == s.memory.end() || found->second.gone) {
    Wrong("memory is given back that was not taken");
    return CUDA_ERROR_INVALID_VALUE;
  }
  Work w;
  w.what = "giving memory back";
  w.harmless = true;
  w.touches.push_back({uintptr_t(address), uintptr_t(address) + found->second.bytes, true});
  const auto end = [&s, found] {
    found->second.gone = true;
    s.gone.push_back(found->first);
    s.used -= (long long)(found->second.bytes);
    std::memset(reinterpret_cast<void*>(found->first), 0xEE, found->second.bytes);
    if (s.gone.size() <= kGone) return;
    const auto oldest = s.memory.find(s.gone.front());
    s.gone.pop_front();
    s.accesses.erase(s.accesses.lower_bound(oldest->first), s.accesses.lower_bound(oldest->first + oldest->second.bytes));
    std::free(reinterpret_cast<void*>(oldest->first));
    s.memory.erase(oldest);
  };
  if (Mutant("memory_back_at_once")) return end(), CUDA_SUCCESS;
  w.run = [&s, end] {
    std::lock_guard inner(s.mutex);
    end();
  };
  Enqueue(Mutant("memory_back_on_another_stream") ? Another(stream) : stream, std::move(w));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuPointerGetAttribute(void* data, CUpointer_attribute what, CUdeviceptr address) {
  State& s = Now();
  std::lock_guard lock(s.mutex);
  if (CUresult error = Enter("cuPointerGetAttribute")) return error;
  const auto holds = [&](const auto& places, auto bytes_of) {
    const auto next = places.upper_bound(uintptr_t(address));
    return next != places.begin() && uintptr_t(address) < std::prev(next)->first + bytes_of(std::prev(next)->second);
  };
  const bool pinned = holds(s.pinned, [](size_t bytes) { return bytes; });
  if (!pinned && !holds(s.memory, [](const Memory& m) { return m.gone ? 0 : m.bytes; })) return CUDA_ERROR_INVALID_VALUE;
  switch (what) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: *static_cast<CUmemorytype*>(data) = pinned ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(data) = pinned ? 0 : std::prev(s.memory.upper_bound(uintptr_t(address)))->second.device;
      break;
    default: return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemGetInfo(size_t* free, size_t* total) {
  std::lock_guard lock(Now().mutex);
  *total = size_t(Option("memory", 1 << 30));
  *free = *total - size_t(Now().used);
  return Enter("cuMemGetInfo");
}
EXPORT CUresult cuMemHostAlloc(void** address, size_t bytes, unsigned) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuMemHostAlloc")) return error;
  *address = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  Now().pinned[uintptr_t(*address)] = bytes;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemFreeHost(void* address) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuMemFreeHost")) return error;
  if (!Now().pinned.erase(uintptr_t(address))) {
    Wrong("pinned memory is given back that was not taken");
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::free(address);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemHostGetDevicePointer(CUdeviceptr* address, void* host, unsigned) {
  *address = CUdeviceptr(host);
  return Answer("cuMemHostGetDevicePointer");
}
EXPORT CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return Copy("cuMemcpyHtoDAsync", stream, reinterpret_cast<void*>(to), from, bytes, true, false);
}
EXPORT CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return Copy("cuMemcpyDtoHAsync", stream, to, reinterpret_cast<const void*>(from), bytes, false, true);
}
EXPORT CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return Copy("cuMemcpyDtoDAsync", stream, reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes, true, true);
}
