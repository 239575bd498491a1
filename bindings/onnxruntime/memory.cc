#include "memory.h"

#include <cstdlib>

#include "options.h"

namespace thalweg::ort {
namespace {

// Kernels are faster on memory of this alignment.
constexpr size_t kAlignment = 64;

void* AllocCpu(OrtAllocator*, size_t bytes) {
  if (bytes == 0) return nullptr;  // as ONNX Runtime's
  if (bytes > SIZE_MAX - kAlignment) return nullptr;
  return std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
}
void FreeCpu(OrtAllocator*, void* p) { std::free(p); }
const OrtMemoryInfo* InfoOfCpu(const OrtAllocator*) { return CpuMemory(); }
// The counts that ONNX Runtime's allocators keep are those of an arena, which this one is not.
OrtStatus* StatsOfCpu(const OrtAllocator*, OrtKeyValuePairs** out) {
  return Guard("AllocatorGetStats", [&] {
    auto& result = Result(out);
    result = new OrtKeyValuePairs;
  });
}
OrtStatus* ShrinkCpu(OrtAllocator*) { return nullptr; }  // it keeps no free memory

// An allocator of a session, which the client releases.
struct SessionAllocator : OrtAllocator {};

OrtAllocator CpuTable() {
  OrtAllocator table{};
  table.version = ORT_API_VERSION;
  table.Alloc = AllocCpu;
  table.Free = FreeCpu;
  table.Info = InfoOfCpu;
  table.Reserve = AllocCpu;
  table.GetStats = StatsOfCpu;
  table.Shrink = ShrinkCpu;
  return table;
}

}  // namespace

const OrtMemoryInfo* CpuMemory() {
  static const OrtMemoryInfo* const info = new OrtMemoryInfo;
  return info;
}

OrtAllocator* CpuAllocator() {
  static OrtAllocator* const allocator = new OrtAllocator(CpuTable());
  return allocator;
}

void* Allocate(OrtAllocator* allocator, size_t bytes) {
  void* data = Need(allocator, "allocator")->Alloc(allocator, bytes > 0 ? bytes : 1);
  if (!data) Fail(ORT_RUNTIME_EXCEPTION, "the allocator has no ", std::to_string(bytes), " bytes");
  return data;
}

char* CopyText(OrtAllocator* allocator, std::string_view text) {
  char* copy = static_cast<char*>(Allocate(allocator, text.size() + 1));
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = 0;
  return copy;
}

void CheckHost(const OrtMemoryInfo* info) {
  if (Need(info, "info")->device == OrtMemoryInfoDeviceType_CPU) return;
  Fail(ORT_INVALID_ARGUMENT, "memory '", info->name, "' is not the machine's; use CreateCpuMemoryInfo");
}

namespace api {

OrtStatus* CreateMemoryInfo(const char* name, OrtAllocatorType type, int id, OrtMemType mem_type, OrtMemoryInfo** out) {
  return Guard(__func__, [&] {
    OrtMemoryInfo*& made = Result(out);
    const std::string_view wanted = Need(name, "name");
    if (wanted != "Cpu") Fail(ORT_INVALID_ARGUMENT, "no device has memory '", wanted, "'; use 'Cpu'");
    made = new OrtMemoryInfo{std::string(wanted), type, id, mem_type};
  });
}
OrtStatus* CreateCpuMemoryInfo(OrtAllocatorType type, OrtMemType mem_type, OrtMemoryInfo** out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = new OrtMemoryInfo{"Cpu", type, 0, mem_type};
  });
}
OrtStatus* CreateMemoryInfo_V2(const char* name, OrtMemoryInfoDeviceType device, uint32_t vendor, int32_t id, OrtDeviceMemoryType memory,
                               size_t alignment, OrtAllocatorType type, OrtMemoryInfo** out) {
  return Guard(__func__, [&] {
    OrtMemoryInfo*& made = Result(out);
    if (alignment & (alignment - 1)) Fail(ORT_INVALID_ARGUMENT, "alignment ", std::to_string(alignment), " is no power of two");
    made = new OrtMemoryInfo{Need(name, "name"), type, id, OrtMemTypeDefault, device, memory, vendor};
  });
}
OrtStatus* CompareMemoryInfo(const OrtMemoryInfo* a, const OrtMemoryInfo* b, int* out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = *Need(a, "info1") == *Need(b, "info2") ? 0 : -1;
  });
}
OrtStatus* MemoryInfoGetName(const OrtMemoryInfo* info, const char** out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = Need(info, "ptr")->name.c_str();
  });
}
OrtStatus* MemoryInfoGetId(const OrtMemoryInfo* info, int* out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = Need(info, "ptr")->id;
  });
}
OrtStatus* MemoryInfoGetMemType(const OrtMemoryInfo* info, OrtMemType* out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = Need(info, "ptr")->mem_type;
  });
}
OrtStatus* MemoryInfoGetType(const OrtMemoryInfo* info, OrtAllocatorType* out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = Need(info, "ptr")->type;
  });
}
void MemoryInfoGetDeviceType(const OrtMemoryInfo* info, OrtMemoryInfoDeviceType* out) {
  if (out) *out = info ? info->device : OrtMemoryInfoDeviceType_CPU;
}
OrtDeviceMemoryType MemoryInfoGetDeviceMemType(const OrtMemoryInfo* info) {
  return info ? info->device_memory : OrtDeviceMemoryType_DEFAULT;
}
uint32_t MemoryInfoGetVendorId(const OrtMemoryInfo* info) { return info ? info->vendor : 0; }
void ReleaseMemoryInfo(OrtMemoryInfo* info) {
  if (info != CpuMemory()) delete info;
}

OrtStatus* GetAllocatorWithDefaultOptions(OrtAllocator** out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = CpuAllocator();
  });
}
OrtStatus* CreateAllocator(const OrtSession* session, const OrtMemoryInfo* info, OrtAllocator** out) {
  return Guard(__func__, [&] {
    OrtAllocator*& made = Result(out);
    Need(session, "session");
    CheckHost(info);
    made = new SessionAllocator{CpuTable()};
  });
}
void ReleaseAllocator(OrtAllocator* allocator) {
  if (allocator != CpuAllocator()) delete static_cast<SessionAllocator*>(allocator);
}
OrtStatus* AllocatorAlloc(OrtAllocator* allocator, size_t bytes, void** out) {
  return Guard(__func__, [&] {
    void*& made = Result(out);
    made = Need(allocator, "ort_allocator")->Alloc(allocator, bytes);
    if (!made && bytes > 0) Fail(ORT_RUNTIME_EXCEPTION, "the allocator has no ", std::to_string(bytes), " bytes");
  });
}
OrtStatus* AllocatorFree(OrtAllocator* allocator, void* p) {
  return Guard(__func__, [&] { Need(allocator, "ort_allocator")->Free(allocator, p); });
}
OrtStatus* AllocatorGetInfo(const OrtAllocator* allocator, const OrtMemoryInfo** out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = Need(allocator, "ort_allocator")->Info(allocator);
  });
}
OrtStatus* AllocatorGetStats(const OrtAllocator* allocator, OrtKeyValuePairs** out) {
  OrtStatus* inner = nullptr;
  OrtStatus* outer = Guard(__func__, [&] {
    Result(out);
    Need(allocator, "ort_allocator");
    if (allocator->version < 23 || !allocator->GetStats) Fail(ORT_NOT_IMPLEMENTED, "the allocator keeps no statistics");
    inner = allocator->GetStats(allocator, out);
  });
  return outer ? outer : inner;
}

}  // namespace api
}  // namespace thalweg::ort
