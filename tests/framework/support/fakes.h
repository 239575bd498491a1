// Substitutes for a runtime in the framework's tests: a host table that can only make statuses, and
// a device of plain host memory that counts its calls.
#pragma once
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include "framework/base/status.h"
#include "framework/registry/registry.h"
#include "thalweg/plugin/plugin.h"

namespace thalweg::testing_support {

inline std::string Text(const Status& s) { return std::string(Message(s)); }

// Returns the message of a status handle and releases the handle; "" for success.
inline std::string TakeText(tw_status* s) { return s ? Text(FromC(s)) : ""; }

inline tw_status* MakeStatus(const tw_host*, uint32_t code, const char* text, uint64_t len, tw_status* cause) {
  (void)FromC(cause);
  return ToC(Status(absl::StatusCode(code), absl::string_view(text, len)));
}

inline const tw_status_api& StatusApi() {
  static const tw_status_api api = {TW_SIZED(tw_status_api), MakeStatus,
                                    [](const tw_status* s) { return s ? uint32_t(s->status.code()) : uint32_t{TW_OK}; }, nullptr,
                                    [](tw_status* s) { (void)FromC(s); }};
  return api;
}

struct FakeHost {
  tw_host c{};
  FakeHost() {
    c.size = sizeof c;
    c.epoch = TW_EPOCH;
    c.minor = TW_MINOR;
    c.self = this;
    c.status = &StatusApi();
  }
};

// A device kind that uses malloc; a test chooses whether its memory is flagged as host memory.
struct FakeDeviceKind {
  FakeHost host;
  DeviceKind kind;
  std::atomic<int> allocated{0}, released{0}, copies{0};
  tw_copy last_copy{};
  bool fail_copies = false, answer_nothing = false;

  explicit FakeDeviceKind(std::string name = "FAKE") {
    kind.kind = std::move(name);
    kind.plugin = "org.test.fake";
    kind.host = &host.c;
    kind.def.size = sizeof kind.def;
    kind.def.allocate = [](const tw_host*, void* self, const tw_allocation* a, void** out) -> tw_status* {
      auto* k = static_cast<FakeDeviceKind*>(self);
      if (k->answer_nothing) return nullptr;
      ++k->allocated;
      *out = std::aligned_alloc(a->align, (a->bytes + a->align - 1) / a->align * a->align);
      return nullptr;
    };
    kind.def.release = [](const tw_host*, void* self, void* memory, uint64_t) {
      ++static_cast<FakeDeviceKind*>(self)->released;
      std::free(memory);
    };
    kind.def.copy = [](const tw_host* h, void* self, const tw_copy* c) -> tw_status* {
      auto* k = static_cast<FakeDeviceKind*>(self);
      if (k->fail_copies) return tw_fail(h, TW_UNAVAILABLE, TW_S("the cable is out"));
      ++k->copies;
      k->last_copy = *c;
      std::memcpy(static_cast<char*>(c->to) + c->to_offset, static_cast<const char*>(c->from) + c->from_offset, c->bytes);
      return nullptr;
    };
  }
  tw_device_info Info(bool host_memory = false) {
    tw_device_info d{};
    d.size = sizeof d;
    d.flags = host_memory ? uint32_t{TW_DEVICE_HOST_MEMORY} : 0u;
    d.uid = "fake-0";
    d.uid_len = 6;
    d.self = this;
    d.memory = 1 << 20;
    return d;
  }
};

}  // namespace thalweg::testing_support
