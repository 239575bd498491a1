#include "thalweg/buffer.h"

#include "c_api/handles.h"
#include "c_api/shim.h"

namespace thalweg {
tw_buffer* MakeBuffer(std::string bytes) {
  auto* b = new tw_buffer;
  b->bytes = std::move(bytes);
  return b;
}
}  // namespace thalweg

tw_status* tw_buffer_create(const void* data, uint64_t bytes, tw_buffer** out_buffer) {
  NEED(out_buffer);
  NEED_ARRAY(data, bytes);
  return thalweg::Enter([&] {
    *out_buffer = thalweg::MakeBuffer(std::string(static_cast<const char*>(data), bytes));
    return thalweg::Status();
  });
}

const char* tw_buffer_data(const tw_buffer* buffer) { return buffer ? buffer->bytes.c_str() : ""; }

uint64_t tw_buffer_bytes(const tw_buffer* buffer) { return buffer ? buffer->bytes.size() : 0; }

void tw_buffer_retain(tw_buffer* buffer) {
  if (buffer) buffer->refs.fetch_add(1, std::memory_order_relaxed);
}

void tw_buffer_release(tw_buffer* buffer) {
  if (buffer && buffer->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete buffer;
}
