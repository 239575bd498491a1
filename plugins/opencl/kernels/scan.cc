// Cumsum and Cumprod.
#include <numeric>

#include "kernels/layout.h"
#include "kernels/register.h"

namespace thalweg::opencl {
namespace {

class Scan {
 public:
  explicit Scan(const tw::Node& n) : exclusive_(n.b("exclusive")), reverse_(n.b("reverse")), kernel_(n, Text(n), "scan") {}
  void operator()(tw::Frame frame) const {
    const tw_view* x = frame.f->in[0];
    std::vector<int64_t> axes;
    tw::integers(frame.f->in[1], &axes);
    const int64_t axis = axes.at(0) < 0 ? axes[0] + x->rank : axes[0];
    if (axis < 0 || axis >= x->rank) Invalid("axis " + tw::text(axes[0]) + " is outside of x " + tw::text(x->dims, x->rank));
    const auto product = [&](int64_t begin, int64_t end) {
      return std::accumulate(x->dims + begin, x->dims + end, Size(1), std::multiplies<>());
    };
    const Size outer = product(0, axis), n = x->dims[axis], inner = product(axis + 1, x->rank);
    if (x->count)
      kernel_.RunTasks(frame.f, outer * inner, 2 * n, At(x), At(frame.f->out[0]), outer, n, inner, Size(exclusive_), Size(reverse_));
  }

 private:
  static std::string Text(const tw::Node& n) {
    const bool sum = std::string_view(n.node->op, n.node->op_len) == "Cumsum";
    return ProgramText(
        {{"T", tw::dtype_text(n.type_in(0))}, {"FIRST", sum ? "0" : "1"}, {"JOIN_TWO(a, b)", sum ? "((a) + (b))" : "((a) * (b))"}},
        {"scan.h"});
  }
  bool exclusive_, reverse_;
  Kernel kernel_;
};

}  // namespace

void register_scan(tw::Plugin& p) {
  for (const std::string t : {"float", "double", "half", "bfloat16", "int32", "int64"})
    for (const std::string i : {"int32", "int64"})
      for (const std::string op : {"Cumsum", "Cumprod"}) p.kernel<Scan>(op + "(" + t + ", " + i + " -> " + t + ") @OPENCL; host axis");
}

}  // namespace thalweg::opencl
