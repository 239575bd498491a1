// Unique, by sorting places. How many there are only the values tell, so the host waits for that number.
#include "kernels/order.h"
#include "kernels/register.h"

namespace thalweg::opencl {
namespace {

class Unique {
 public:
  explicit Unique(const tw::Node& n)
      : order_(n, TW_INT64),
        first_(n, Text(n), "find_first"),
        add_(n, Text(n), "add_earlier"),
        take_(n, Text(n), "take_unique"),
        most_(n.type_out(1) == TW_INT32 ? INT32_MAX : INT64_MAX) {}

  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const tw_view* x = f->in[0];
    if (x->rank != 1) Invalid("x is " + tw::text(x->dims, x->rank) + "; it must be a vector");
    const Size n = Size(x->count);
    if (n > most_) Invalid("x has " + tw::text(n) + " elements, which int32 cannot count; ask for out_idx int64");
    Allocate(f, 1, n);
    if (n == 0) return Allocate(f, 0, 0);
    Device& device = order_.device();
    const uint64_t bytes = uint64_t(n) * sizeof(int64_t);
    const Temporary first(device, bytes), one(device, bytes), other(device, n > 1 ? bytes : sizeof(int64_t));
    const Temporary *ranks = &one, *next = &other;
    order_.Run(f, At(x), 1, n, [&](Place order) { first_.RunTasks(f, n, kSearch, At(x), order, first.place(), ranks->place(), n); });
    for (Size step = 1; step < n; step *= 2) {
      add_.RunTasks(f, n, Size(2), ranks->place(), next->place(), n, step);
      std::swap(ranks, next);
    }
    Allocate(f, 0, NumberAt(f, device, ranks->place().After(n - 1)));
    take_.RunTasks(f, n, Size(4), At(x), first.place(), ranks->place(), At(f->out[0]), At(f->out[1]), n);
  }

 private:
  static constexpr Size kSearch = 64;  // what finding a place costs
  static std::string Text(const tw::Node& n) {
    return ProgramText({{"T", tw::dtype_text(n.type_in(0))}, {"I", tw::dtype_text(n.type_out(1))}, GoesAhead()}, {"unique.h"});
  }
  static void Allocate(const tw_frame* f, uint32_t o, int64_t size) {
    if (f->out[o]->rank < 0) tw::check(f->host->tensor->allocate(f, o, &size, 1));
  }

  Order order_;
  Kernel first_, add_, take_;
  Size most_;  // that an index can say
};

}  // namespace

void register_unique(tw::Plugin& p) {
  for (const std::string t : {"float", "double", "half", "bfloat16", "int32", "int64"})
    for (const std::string i : {"int32", "int64"}) p.kernel<Unique>("Unique(" + t + " -> " + t + ", " + i + ") @OPENCL; may_block");
}

}  // namespace thalweg::opencl
