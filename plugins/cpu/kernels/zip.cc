#include "kernels/zip.h"

#include <atomic>

#include "kernels/common/broadcast.h"
#include "kernels/common/parallel.h"
#include "kernels/common/stream.h"

namespace thalweg::cpu {
namespace {

constexpr int64_t kChunk = 512;  // elements widened at a time: three buffers of 2 KiB stay in the first-level cache

// Widens up to kChunk elements; a repeated element is widened once.
const float* Widen(const BinaryKernel& k, const char* from, int64_t step, float* buffer, int64_t n) {
  k.load(reinterpret_cast<const uint16_t*>(from), buffer, step ? n : 1);
  return buffer;
}

std::string NumberAt(const tw_view* v, int64_t i) {
  switch (v->dtype) {
    case TW_UINT64: return std::to_string(reinterpret_cast<const uint64_t*>(Bytes(v))[i]);
    case TW_UINT32: return std::to_string(reinterpret_cast<const uint32_t*>(Bytes(v))[i]);
    case TW_UINT16: return std::to_string(reinterpret_cast<const uint16_t*>(Bytes(v))[i]);
    default: return std::to_string(IndexAt(v, uint64_t(i)));
  }
}

// Throws the error that explains why integers have no quotient, remainder or power.
[[noreturn]] void Refuse(const tw_view* x, int64_t x_at, const tw_view* y, int64_t y_at, int64_t z_at) {
  std::string a = NumberAt(x, x_at), b = NumberAt(y, y_at), where = "element " + std::to_string(z_at) + " of the result: ";
  if (b == "0") Invalid(where + "division of " + a + " by zero");
  if (b == "-1" && a[0] == '-') Invalid(where + a + " / -1 does not fit " + TypeText(x->dtype));
  Invalid(where + "the power " + b + " of " + a + " is not a whole number; use exponents >= 0 or a floating-point type");
}

// Writes the comparison's result for two unequal elements: they differ in every type, and are false
// and true as bool.
void CompareUnequal(const BinaryKernel& k, const tw_view* z) {
  const uint64_t x[2] = {}, y[2] = {0x0101010101010101, 0x0101010101010101};
  ZipRun(k, reinterpret_cast<const char*>(x), 1, reinterpret_cast<const char*>(y), 1, Bytes(z), 1);
}

int64_t ZipStreamed(const BinaryKernel& k, const char* x, int64_t x_step, const char* y, int64_t y_step, char* z, int64_t n) {
  return Stream(z, n, k.z_bytes, [&](int64_t i, int64_t m, char* to) {
    return ZipRun(k, x + i * x_step * k.xy_bytes, x_step, y + i * y_step * k.xy_bytes, y_step, to, m);
  });
}

}  // namespace

int64_t ZipRun(const BinaryKernel& k, const char* x, int64_t x_step, const char* y, int64_t y_step, char* z, int64_t n) {
  if (!k.load) return k.loop(x, x_step, y, y_step, z, n);
  alignas(64) float a[kChunk], b[kChunk], c[kChunk];
  for (int64_t i = 0; i < n; i += kChunk) {
    int64_t m = std::min(kChunk, n - i);
    Widen(k, x + i * x_step * 2, x_step, a, m);
    Widen(k, y + i * y_step * 2, y_step, b, m);
    void* to = k.store ? static_cast<void*>(c) : z + i * k.z_bytes;
    k.loop(a, x_step, b, y_step, to, m);
    if (k.store) k.store(c, reinterpret_cast<uint16_t*>(z) + i, m);
  }
  return n;
}

void RunBinary(const tw_frame* f, const BinaryKernel& k) { Zip(f, k, f->in[0], f->in[1], f->out[0]); }

void Zip(const tw_frame* f, const BinaryKernel& k, const tw_view* x, const tw_view* y, const tw_view* z) {
  if (z->count == 0) return;
  if (Unlike(x, y, z)) return CompareUnequal(k, z);
  const int64_t count = int64_t(z->count), x_count = int64_t(x->count), y_count = int64_t(y->count);
  // The shortest path, for work that takes less time than a look at the axes.
  if (count * k.cost <= kGrain && (x_count == count || x_count == 1) && (y_count == count || y_count == 1)) {
    const int64_t x_step = x_count == count, y_step = y_count == count;
    const int64_t done = ZipRun(k, Bytes(x), x_step, Bytes(y), y_step, Bytes(z), count);
    if (done < count) Refuse(x, done * x_step, y, done * y_step, done);
    return;
  }
  const Broadcast<2> walk(z, {x, y});
  const int last = walk.rank - 1;
  const auto run = IsStreamed(z, {x, y}) ? ZipStreamed : ZipRun;
  std::atomic<int64_t> bad{count};  // the first element without a result, in index order
  ParallelFor(f, count, k.cost, [&](int64_t begin, int64_t end) {
    walk.ForSegments(begin, end, [&](const int64_t* from, int64_t to, int64_t n) {
      int64_t done = run(k, Bytes(x) + from[0] * k.xy_bytes, walk.step[0][last], Bytes(y) + from[1] * k.xy_bytes, walk.step[1][last],
                         Bytes(z) + to * k.z_bytes, n);
      if (done == n) return;
      int64_t now = bad.load(), first = to + done;
      while (first < now && !bad.compare_exchange_weak(now, first)) {
      }
    });
  });
  if (bad == count) return;
  walk.ForSegments(bad, bad + 1, [&](const int64_t* from, int64_t to, int64_t) { Refuse(x, from[0], y, from[1], to); });
}

}  // namespace thalweg::cpu
