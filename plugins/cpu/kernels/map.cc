#include "kernels/map.h"

#include "kernels/common/parallel.h"
#include "kernels/common/stream.h"

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

void MapStreamed(const UnaryKernel& k, const char* x, char* y, int64_t n) {
  Stream(y, n, k.y_bytes, [&](int64_t i, int64_t m, char* to) {
    MapRun(k, x + i * k.x_bytes, to, m);
    return m;
  });
}

}  // namespace

void MapRun(const UnaryKernel& k, const char* x, char* y, int64_t n) { k.load ? RunWide(k, x, y, n) : k.loop(x, y, n); }

void RunUnary(const tw_frame* f, const UnaryKernel& k) {
  const char* x = Bytes(f->in[0]);
  char* y = Bytes(f->out[0]);
  const auto run = IsStreamed(f->out[0], {f->in[0]}) ? MapStreamed : MapRun;
  ParallelFor(f, int64_t(f->in[0]->count), k.cost,
              [&](int64_t begin, int64_t end) { run(k, x + begin * k.x_bytes, y + begin * k.y_bytes, end - begin); });
}

}  // namespace thalweg::cpu
