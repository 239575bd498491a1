// tw_sink and tw_source over bytes in memory, for plugins to write to and read from. Threads: one
// at a time per object.
#pragma once
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "thalweg/plugin/abi.h"

namespace thalweg {

// After a failed write the sink refuses further bytes. A plugin that ignores the error must not end
// with bytes that look complete.
struct BytesSink {
  tw_sink c{TW_SIZED(tw_sink), nullptr, &Put};
  std::string bytes;
  bool failed = false;
  // RESOURCE_EXHAUSTED if bytes are missing. Callers check this because the plugin may have dropped
  // the error.
  Status Whole() const {
    return failed ? ResourceExhausted("no memory for what a plugin writes, after ", bytes.size(), " bytes") : Status();
  }

 private:
  static tw_status* Put(tw_sink* s, const void* from, uint64_t n) {
    auto* self = reinterpret_cast<BytesSink*>(s);
    return Guard([&] {
      RETURN_IF_ERROR(self->Whole());
      self->failed = true;
      self->bytes.append(static_cast<const char*>(from), n);
      self->failed = false;
      return Status();
    });
  }
};

// text: borrowed for the life of the source.
struct BytesSource {
  explicit BytesSource(std::string_view text) : rest(text) {}
  tw_source c{TW_SIZED(tw_source), nullptr, &Get};
  std::string_view rest;

 private:
  static tw_status* Get(tw_source* s, void* p, uint64_t n, uint64_t* out_n) {
    std::string_view& rest = reinterpret_cast<BytesSource*>(s)->rest;
    *out_n = rest.copy(static_cast<char*>(p), n);
    rest.remove_prefix(*out_n);
    return nullptr;
  }
};

}  // namespace thalweg
