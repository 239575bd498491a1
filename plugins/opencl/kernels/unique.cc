// Unique and UniqueV2, by sorting positions. The number of results depends on the values, so the
// host waits for that number.
#include <utility>
#include <vector>

#include "kernels/order.h"
#include "kernels/register.h"

namespace thalweg::opencl {
namespace {

std::string Text(const tw::Node& n) {
  return ProgramText({{"T", tw::dtype_text(n.type_in(0))}, {"I", tw::dtype_text(n.type_out(1))}, GoesAhead()}, {"unique.h"});
}
std::string SlicesText(const tw::Node& n) { return ProgramText({{"T", tw::dtype_text(n.type_in(0))}, GoesAhead()}, {"unique_slices.h"}); }

// The common part of the kernels for elements and for slices.
class Found {
 public:
  explicit Found(const tw::Node& n) : add_(n, Text(n), "add_earlier"), most_(n.type_out(1) == TW_INT32 ? INT32_MAX : INT64_MAX) {}

 protected:
  static constexpr Size kSearch = 64;  // cost of a search for a place

  void CheckCount(Size n) const {
    if (n > most_) Invalid("x has " + tw::text(n) + " elements, which int32 cannot count; ask for out_idx int64");
  }
  static void Allocate(const tw_frame* f, uint32_t o, const Dims& dims) {
    if (f->out[o]->rank < 0) tw::check(f->host->tensor->allocate(f, o, dims.data(), uint32_t(dims.size())));
  }
  // Replaces *from, n marks, by its running sum, and returns the total. other: memory of the same
  // size.
  Size RunningSum(const tw_frame* f, Size n, const Temporary** from, const Temporary* other) const {
    for (Size step = 1; step < n; step *= 2) {
      add_.RunTasks(f, n, Size(2), (*from)->place(), other->place(), n, step);
      std::swap(*from, other);
    }
    return NumberAt(f, add_.device(), (*from)->place().After(n - 1));
  }
  Device& device() const { return add_.device(); }

 private:
  Kernel add_;
  Size most_;  // largest value of an index
};

class Unique : Found {
 public:
  explicit Unique(const tw::Node& n) : Found(n), order_(n, TW_INT64), first_(n, Text(n), "find_first"), take_(n, Text(n), "take_unique") {}

  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const tw_view* x = f->in[0];
    if (x->rank != 1) Invalid("x is " + tw::text(x->dims, x->rank) + "; it must be a vector");
    const Size n = Size(x->count);
    CheckCount(n);
    Allocate(f, 1, {n});
    if (n == 0) return Allocate(f, 0, {0});
    const uint64_t bytes = uint64_t(n) * sizeof(int64_t);
    const Temporary first(device(), bytes), one(device(), bytes), other(device(), n > 1 ? bytes : sizeof(int64_t));
    const Temporary* ranks = &one;
    order_.Run(f, At(x), 1, n, [&](Place order) { first_.RunTasks(f, n, kSearch, At(x), order, first.place(), ranks->place(), n); });
    Allocate(f, 0, {RunningSum(f, n, &ranks, &other)});
    take_.RunTasks(f, n, Size(4), At(x), first.place(), ranks->place(), At(f->out[0]), At(f->out[1]), n);
  }

 private:
  Order order_;
  Kernel first_, take_;
};

// Works on slices along an axis; without an axis, on the elements of a vector.
class UniqueAxis : Found {
 public:
  explicit UniqueAxis(const tw::Node& n)
      : Found(n),
        count_(n, SlicesText(n), "count_up"),
        merge_(n, SlicesText(n), "merge_slices"),
        first_(n, SlicesText(n), "find_first_slice"),
        take_(n, SlicesText(n), "take_slices"),
        number_(n, Text(n), "number_slices") {}

  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const tw_view* x = f->in[0];
    const size_t axis = AxisOf(f);
    Dims dims = DimsOf(x);
    const Size n = dims[axis], outer = Count(Dims(dims.begin(), dims.begin() + int64_t(axis)));
    const Size inner = Count(Dims(dims.begin() + int64_t(axis) + 1, dims.end()));
    CheckCount(n);
    Allocate(f, 1, {n});
    if (n == 0) return Allocate(f, 0, dims);
    const uint64_t bytes = uint64_t(n) * sizeof(int64_t);
    const Temporary first(device(), bytes), one(device(), bytes), other(device(), bytes);
    const Temporary *order = &one, *next = &other;
    count_.RunTasks(f, n, Size(1), order->place(), n);
    for (Size width = 1; width < n; width *= 2) {
      merge_.RunTasks(f, n, kSearch, At(x), order->place(), next->place(), outer, n, inner, width);
      std::swap(order, next);
    }
    first_.RunTasks(f, n, kSearch, At(x), order->place(), first.place(), next->place(), outer, n, inner);
    const Temporary* ranks = next;
    dims[axis] = RunningSum(f, n, &ranks, order);
    Allocate(f, 0, dims);
    take_.RunTasks(f, outer * n * inner, Size(4), At(x), first.place(), ranks->place(), At(f->out[0]), outer, n, inner, Size(dims[axis]));
    number_.RunTasks(f, n, Size(2), first.place(), ranks->place(), At(f->out[1]), n);
  }

 private:
  static size_t AxisOf(const tw_frame* f) {
    const tw_view* x = f->in[0];
    std::vector<int64_t> given;
    tw::integers(f->in[1], &given);
    if (given.size() > 1) Invalid("axis has " + tw::text(int64_t(given.size())) + " entries; give one, or none for a vector");
    if (given.empty() && x->rank != 1) Invalid("x is " + tw::text(x->dims, x->rank) + "; it must be a vector where no axis is given");
    const int64_t axis = given.empty() ? 0 : given[0];
    if (axis < -x->rank || axis >= x->rank)
      Invalid("axis " + tw::text(axis) + " is not in [" + tw::text(-int64_t(x->rank)) + ", " + tw::text(int64_t(x->rank)) + ")");
    return size_t(axis < 0 ? axis + x->rank : axis);
  }

  Kernel count_, merge_, first_, take_, number_;
};

}  // namespace

void register_unique(tw::Plugin& p) {
  for (const std::string t : {"float", "double", "half", "bfloat16", "int32", "int64"})
    for (const std::string i : {"int32", "int64"}) {
      p.kernel<Unique>("Unique(" + t + " -> " + t + ", " + i + ") @OPENCL; may_block");
      for (const std::string axis : {"int32", "int64"})
        p.kernel<UniqueAxis>("UniqueV2(" + t + ", " + axis + " -> " + t + ", " + i + ") @OPENCL; may_block; host axis");
    }
}

}  // namespace thalweg::opencl
