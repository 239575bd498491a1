// The CPU device is host memory and nothing more. It has no streams, so a kernel's work is complete
// when the kernel returns.
#include "device.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include <sys/mman.h>

namespace thalweg::cpu {
namespace {

constexpr uint64_t kMinAlign = 64;          // a cache line, and a whole AVX-512 vector
constexpr uint64_t kHugePage = 2ull << 20;  // the huge-page size of x86-64 and of the usual arm64 kernels
constexpr uint64_t kHugeFrom = 2 * kHugePage;

std::string ModelName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    size_t colon = line.find(": ");
    if (colon != line.npos) return line.substr(colon + 2);
  }
  return "CPU";
}

tw_status* Enumerate(const tw_host* host, void*, tw_device_list* to) {
  return tw::guard(host, [&] {
    std::string model = ModelName();
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    tw_device_info d{};
    d.size = sizeof d;
    d.flags = TW_DEVICE_HOST_MEMORY;
    d.uid = "cpu";
    d.uid_len = 3;
    d.description = model.data();
    d.description_len = model.size();
    d.memory = pages > 0 && page > 0 ? uint64_t(pages) * uint64_t(page) : 0;
    tw::check(to->add(to, &d));
  });
}

// Large blocks start on a huge page and request huge pages. A matrix product that walks 4 KiB pages
// spends its time on TLB misses.
tw_status* Allocate(const tw_host* host, void*, const tw_allocation* wanted, void** out_memory) {
  return tw::guard(host, [&] {
    const uint64_t bytes = wanted->bytes;
    uint64_t align = std::max<uint64_t>(wanted->align, kMinAlign);
    bool huge = bytes >= kHugeFrom;
    if (huge && align < kHugePage) align = kHugePage;
    void* p = nullptr;
    if (int error = posix_memalign(&p, size_t(align), size_t(bytes ? bytes : 1)); error != 0)
      throw tw::Error{error == ENOMEM ? TW_RESOURCE_EXHAUSTED : TW_INVALID_ARGUMENT,
                      "the host has no " + std::to_string(bytes) + " bytes aligned to " + std::to_string(align)};
    if (huge) madvise(p, size_t(bytes), MADV_HUGEPAGE);  // a hint: the kernel may refuse it, and then nothing is lost
    *out_memory = p;
  });
}

void Release(const tw_host*, void*, void* memory, uint64_t) { std::free(memory); }

tw_status* Copy(const tw_host*, void*, const tw_copy* c) {
  if (c->bytes) std::memcpy(static_cast<char*>(c->to) + c->to_offset, static_cast<const char*>(c->from) + c->from_offset, c->bytes);
  return nullptr;
}

}  // namespace

void register_device(tw::Plugin& p) {
  tw_device_def d{TW_SIZED(tw_device_def), TW_S("CPU"), nullptr, Enumerate, Allocate, Release, Copy, nullptr};
  tw::check(tw_add_device(p.r, &d));
}

}  // namespace thalweg::cpu
