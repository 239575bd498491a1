// RandomUniform, RandomStandardNormal and TruncatedNormal: TensorFlow's streams for the same seeds. Every execute takes the next 256 blocks
// for each element of its output, whatever it uses of them.
#include <atomic>
#include <random>

#include "kernels/layout.h"
#include "kernels/register.h"

namespace thalweg::opencl {
namespace {

constexpr uint64_t kBlocksPerElement = 256;

// struct Stream of random.h in plugins/common/device.
struct Philox {
  uint64_t key, low, high;
};

class Random {
 public:
  explicit Random(const tw::Node& n)
      : group_(n.type_out(0) == TW_DOUBLE ? 2 : 4), truncated_(Is(n, "TruncatedNormal")), kernel_(n, Text(n), "random") {
    uint64_t seed = uint64_t(n.i("seed")), seed2 = uint64_t(n.i("seed2"));
    if (seed == 0 && seed2 == 0) {
      std::random_device device;
      seed = (uint64_t{device()} << 32) | device();
      seed2 = (uint64_t{device()} << 32) | device();
    }
    start_ = {seed, 0, seed2};
  }

  void operator()(tw::Frame frame) const {
    const tw_view* y = frame.f->out[0];
    Philox at = start_;
    at.low = taken_.fetch_add(y->count * kBlocksPerElement, std::memory_order_relaxed);
    const Size blocks = truncated_ ? group_ * Size(kBlocksPerElement) / 4 : 1;
    kernel_.RunTasks(frame.f, (Size(y->count) + group_ - 1) / group_, 64 * group_, At(y), Size(y->count), at, blocks);
  }

 private:
  static bool Is(const tw::Node& n, std::string_view op) { return op == std::string_view(n.node->op, n.node->op_len); }
  static std::string Text(const tw::Node& n) {
    const uint32_t type = n.type_out(0);
    const char* what = Is(n, "RandomUniform") ? "UNIFORM" : Is(n, "TruncatedNormal") ? "TRUNCATED" : "NORMAL";
    // Mantissa bits that a uniform number gets; the angle of a whole turn is rounded from double where there is double.
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

  Size group_;
  bool truncated_;
  Kernel kernel_;
  Philox start_;
  mutable std::atomic<uint64_t> taken_{0};
};

}  // namespace

void register_random(tw::Plugin& p) {
  for (const std::string op : {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"})
    for (const std::string shape : {"int32", "int64"})
      for (const std::string t : {"float", "double", "half", "bfloat16"})
        p.kernel<Random>(op + "(" + shape + " -> " + t + ") @OPENCL; host shape; nondeterministic");
}

}  // namespace thalweg::opencl
