// RandomUniform, RandomStandardNormal, TruncatedNormal and RandomUniformInt use TensorFlow's
// streams for the same seeds. Every execution advances the stream by 256 blocks per output element,
// however many of them it uses. StatelessRandomUniformV2, StatelessRandomNormalV2 and
// StatelessTruncatedNormalV2 use the stream from a key and a counter.
#include <atomic>
#include <random>

#include "kernels/layout.h"
#include "kernels/register.h"

namespace thalweg::opencl {
namespace {

constexpr uint64_t kBlocksPerElement = 256;

// The same layout as struct Stream of random.h in plugins/common/device.
struct Philox {
  uint64_t key, low, high;
};

bool Is(const tw::Node& n, std::string_view what) {
  return std::string_view(n.node->op, n.node->op_len).find(what) != std::string_view::npos;
}

std::string FloatsText(const tw::Node& n) {
  const uint32_t type = n.type_out(0);
  const char* what = Is(n, "RandomUniform") ? "UNIFORM" : Is(n, "TruncatedNormal") ? "TRUNCATED" : "NORMAL";
  // UNIT_BITS: mantissa bits of a uniform number. TURN: the angle of a fraction of a turn, rounded
  // from double if the device has double.
  const char* bits = type == TW_HALF ? "10" : type == TW_BFLOAT16 ? "7" : "23";
  const bool has_double = static_cast<Device*>(n.node->device)->has_double();
  return ProgramText({{"T", tw::dtype_text(type)},
                      {what, ""},
                      {type == TW_DOUBLE ? "WIDE" : "NARROW", ""},
                      {"UNIT_BITS", bits},
                      {"TURN(v)", has_double ? "(float)(6.283185307179586476925286766559 * (double)(v))" : "(6.2831855f * (v))"},
                      {"GROUP_SIZE", type == TW_DOUBLE ? "2" : "4"}},
                     {"random.h"});
}

// Generates numbers of the node's distribution from a place in a stream.
class Floats {
 public:
  explicit Floats(const tw::Node& n)
      : group_(n.type_out(0) == TW_DOUBLE ? 2 : 4), truncated_(Is(n, "TruncatedNormal")), kernel_(n, FloatsText(n), "random") {}
  void Run(const tw_frame* f, const Philox& from) const {
    const tw_view* y = f->out[0];
    const Size blocks = truncated_ ? group_ * Size(kBlocksPerElement) / 4 : 1;
    kernel_.RunTasks(f, (Size(y->count) + group_ - 1) / group_, 64 * group_, At(y), Size(y->count), from, blocks);
  }

 private:
  Size group_;
  bool truncated_;
  Kernel kernel_;
};

// The stream of a node with seeds. Every execution takes the next part.
class Seeded {
 public:
  explicit Seeded(const tw::Node& n) {
    uint64_t seed = uint64_t(n.i("seed")), seed2 = uint64_t(n.i("seed2"));
    if (seed == 0 && seed2 == 0) {
      std::random_device device;
      seed = (uint64_t{device()} << 32) | device();
      seed2 = (uint64_t{device()} << 32) | device();
    }
    start_ = {seed, 0, seed2};
  }
  Philox Take(const tw_frame* f) const {
    Philox at = start_;
    at.low = taken_.fetch_add(f->out[0]->count * kBlocksPerElement, std::memory_order_relaxed);
    return at;
  }

 private:
  Philox start_;
  mutable std::atomic<uint64_t> taken_{0};
};

class Random {
 public:
  explicit Random(const tw::Node& n) : stream_(n), floats_(n) {}
  void operator()(tw::Frame frame) const { floats_.Run(frame.f, stream_.Take(frame.f)); }

 private:
  Seeded stream_;
  Floats floats_;
};

template <class T>
T Element(const tw_view* v, size_t k) {
  return reinterpret_cast<const T*>(static_cast<const char*>(v->data) + v->offset)[k];
}

// Inputs: shape, minval, maxval.
template <class T>
class RandomInt {
 public:
  explicit RandomInt(const tw::Node& n)
      : stream_(n),
        kernel_(
            n,
            ProgramText({{"T", tw::dtype_text(n.type_out(0))}, {"INTEGERS", ""}, {"GROUP_SIZE", sizeof(T) == 8 ? "2" : "4"}}, {"random.h"}),
            "random_integers") {}
  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const tw_view *min = f->in[1], *max = f->in[2], *y = f->out[0];
    if (min->count != 1 || max->count != 1)
      throw tw::Error{TW_INTERNAL,
                      "minval " + tw::text(min->dims, min->rank) + " and maxval " + tw::text(max->dims, max->rank) + " must be scalars"};
    const T low = Element<T>(min, 0), end = Element<T>(max, 0);
    if (low >= end) {
      throw tw::Error{TW_INVALID_ARGUMENT, "'minval' is " + tw::text(int64_t(low)) + " and 'maxval' " + tw::text(int64_t(end)) +
                                               "; minval must be below maxval"};
    }
    constexpr Size kGroup = sizeof(T) == 8 ? 2 : 4;
    kernel_.RunTasks(f, (Size(y->count) + kGroup - 1) / kGroup, 24 * kGroup, At(y), Size(y->count), stream_.Take(f), uint64_t(low),
                     uint64_t(end) - uint64_t(low));
  }

 private:
  Seeded stream_;
  Kernel kernel_;
};

// Inputs: shape, key, counter, alg. The same inputs give the same numbers.
class Stateless {
 public:
  explicit Stateless(const tw::Node& n) : floats_(n) {}
  void operator()(tw::Frame frame) const {
    const tw_view *key = frame.f->in[1], *counter = frame.f->in[2], *alg = frame.f->in[3];
    if (key->rank != 1 || key->count != 1)
      throw tw::Error{TW_INTERNAL, "key " + tw::text(key->dims, key->rank) + " must be a vector of one number"};
    if (counter->rank != 1 || counter->count < 2)
      throw tw::Error{TW_INTERNAL, "counter " + tw::text(counter->dims, counter->rank) + " must be a vector of two numbers at least"};
    if (alg->count != 1) throw tw::Error{TW_INTERNAL, "alg " + tw::text(alg->dims, alg->rank) + " must be a scalar"};
    const int32_t which = Element<int32_t>(alg, 0);
    if (which == kThreefry) throw tw::Error{TW_UNIMPLEMENTED, "alg 2 (Threefry) is not offered; use 1 (Philox) or 3 (any)"};
    if (which != kPhilox && which != kAny) Invalid("alg is " + tw::text(which) + "; known: 1 (Philox), 3 (any)");
    floats_.Run(frame.f, {Element<uint64_t>(key, 0), Element<uint64_t>(counter, 0), Element<uint64_t>(counter, 1)});
  }

 private:
  enum { kPhilox = 1, kThreefry = 2, kAny = 3 };
  Floats floats_;
};

}  // namespace

void register_random(tw::Plugin& p) {
  for (const std::string shape : {"int32", "int64"}) {
    for (const std::string t : {"float", "double", "half", "bfloat16"}) {
      for (const std::string op : {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"})
        p.kernel<Random>(op + "(" + shape + " -> " + t + ") @OPENCL; host shape; nondeterministic");
      for (const std::string op : {"StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2"})
        p.kernel<Stateless>(op + "(" + shape + ", uint64, uint64, int32 -> " + t + ") @OPENCL; host shape key counter alg");
    }
    p.kernel<RandomInt<int32_t>>("RandomUniformInt(" + shape +
                                 ", int32, int32 -> int32) @OPENCL; host shape minval maxval; nondeterministic");
    p.kernel<RandomInt<int64_t>>("RandomUniformInt(" + shape +
                                 ", int64, int64 -> int64) @OPENCL; host shape minval maxval; nondeterministic");
  }
}

}  // namespace thalweg::opencl
