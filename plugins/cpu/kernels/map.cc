#include "kernels/map.h"

#include "kernels/common/parallel.h"

namespace thalweg::cpu {
namespace {

constexpr int64_t kChunk = 512;  // 16-bit elements widened at a time; the buffer stays in the first-level cache

void RunWide(const UnaryKernel& k, const char* x, char* y, int64_t n) {
  alignas(64) float buffer[kChunk];
  for (int64_t i = 0; i < n; i += kChunk) {
    int64_t m = n - i < kChunk ? n - i : kChunk;
    k.load(reinterpret_cast<const uint16_t*>(x) + i, buffer, m);
    k.loop(buffer, k.store ? static_cast<void*>(buffer) : y + i * k.y_bytes, m);
    if (k.store) k.store(buffer, reinterpret_cast<uint16_t*>(y) + i, m);
  }
}

}  // namespace

void MapRun(const UnaryKernel& k, const char* x, char* y, int64_t n) { k.load ? RunWide(k, x, y, n) : k.loop(x, y, n); }

void RunUnary(const tw_frame* f, const UnaryKernel& k) {
  auto* x = static_cast<const char*>(f->in[0]->data) + f->in[0]->offset;
  auto* y = static_cast<char*>(f->out[0]->data) + f->out[0]->offset;
  ParallelFor(f, int64_t(f->in[0]->count), k.cost,
              [&](int64_t begin, int64_t end) { MapRun(k, x + begin * k.x_bytes, y + begin * k.y_bytes, end - begin); });
}

}  // namespace thalweg::cpu
