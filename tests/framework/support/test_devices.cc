// The two devices of the tests' plugin.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tests/framework/support/test_kernels.h"
#include "tests/framework/support/test_ops.h"

namespace thalweg::testing_support {
namespace {

std::atomic<int> fake_copies{0};

char* Aligned(uint64_t bytes, uint64_t align) { return static_cast<char*>(std::aligned_alloc(align, (bytes + align) / align * align)); }

tw_status* Enumerate(tw_device_list* to, uint32_t flags, std::string_view uid, int n) {
  static int selves[4];
  for (int i = 0; i < n; ++i) {
    tw_device_info d{};
    d.size = sizeof d;
    d.flags = flags;
    d.uid = uid.data();
    d.uid_len = uid.size();
    d.self = &selves[i];
    TW_TRY(to->add(to, &d));
  }
  return nullptr;
}
tw_status* EnumerateCpu(const tw_host*, void*, tw_device_list* to) { return Enumerate(to, TW_DEVICE_HOST_MEMORY, "cpu", 1); }
tw_status* EnumerateFake(const tw_host*, void*, tw_device_list* to) { return Enumerate(to, 0, "fake", 2); }

tw_status* AllocateCpu(const tw_host*, void*, const tw_allocation* a, void** out) {
  *out = Aligned(a->bytes, a->align);
  return nullptr;
}
void ReleaseCpu(const tw_host*, void*, void* memory, uint64_t) { std::free(memory); }
tw_status* AllocateFake(const tw_host*, void*, const tw_allocation* a, void** out) {
  *out = new Block{Aligned(a->bytes, a->align)};
  return nullptr;
}
void ReleaseFake(const tw_host*, void*, void* memory, uint64_t) {
  std::free(static_cast<Block*>(memory)->bytes);
  delete static_cast<Block*>(memory);
}

tw_status* CopyCpu(const tw_host*, void*, const tw_copy* c) {
  std::memcpy(static_cast<char*>(c->to) + c->to_offset, static_cast<const char*>(c->from) + c->from_offset, c->bytes);
  return nullptr;
}
tw_status* CopyFake(const tw_host*, void*, const tw_copy* c) {
  auto at = [](void* p, uint64_t offset, bool host) { return (host ? static_cast<char*>(p) : static_cast<Block*>(p)->bytes) + offset; };
  std::memcpy(at(c->to, c->to_offset, c->to_host), at(c->from, c->from_offset, c->from_host), c->bytes);
  ++fake_copies;
  return nullptr;
}

}  // namespace

void RegisterDevices(tw::Plugin& p) {
  auto device = [&](std::string_view kind, auto enumerate, auto allocate, auto release, auto copy) {
    p.device({TW_SIZED(tw_device_def), kind.data(), kind.size(), nullptr, enumerate, allocate, release, copy, nullptr});
  };
  device("CPU", EnumerateCpu, AllocateCpu, ReleaseCpu, CopyCpu);
  device("FAKE", EnumerateFake, AllocateFake, ReleaseFake, CopyFake);
}

int FakeCopies() { return fake_copies; }

}  // namespace thalweg::testing_support
