// Sum, Mean, Prod, Max, Min, EuclideanNorm, All, Any, L2Loss, BiasAddGrad, ArgMax and ArgMin.
#include "kernels/reduce.h"

#include <algorithm>

#include "elementwise_text.h"
#include "kernels/register.h"

namespace thalweg::opencl {

const Reduction kSum{"0", "(a) + (b)", "v", "v"}, kMean{"0", "(a) + (b)", "v", "(v) / (COMPUTED(T))count"},
    kProduct{"1", "(a) * (b)", "v", "v"}, kLargest{"LEAST", "larger(a, b)", "v", "v"}, kSmallest{"MOST", "smaller_of(a, b)", "v", "v"},
    kAll{"1", "(a) && (b)", "v", "v"}, kAny{"0", "(a) || (b)", "v", "v"}, kHalfSquares{"0", "(a) + (b)", "(v) * (v)", "(v) / 2"},
    // hypot avoids the overflow that squares would cause; the test keeps NaN, which hypot loses
    // beside an infinity.
    kNorm{"0", "((a) + (b) != (a) + (b) ? (a) + (b) : hypot(a, b))", "fabs(v)", "v"};

std::string LeastText(const std::string& type) { return type == "int32" ? "INT_MIN" : type == "int64" ? "LONG_MIN" : "-INFINITY"; }
std::string MostText(const std::string& type) { return type == "int32" ? "INT_MAX" : type == "int64" ? "LONG_MAX" : "INFINITY"; }

namespace {

constexpr Size kPartWork = 16384;  // elements that are worth a separate part
constexpr Size kMostParts = 256;

// Returns the type in which an element type is computed.
uint32_t Wide(uint32_t type) { return type == TW_HALF || type == TW_BFLOAT16 ? uint32_t(TW_FLOAT) : type; }

std::string ReduceText(const Reduction& r, uint32_t from, uint32_t to, bool rows, bool take, bool last) {
  const std::string type = tw::dtype_text(from);
  return ProgramText({{"T", type},
                      {"R", tw::dtype_text(to)},
                      {rows ? "REDUCE_ROWS" : "REDUCE_COLUMNS", ""},
                      {"LEAST", LeastText(type)},
                      {"MOST", MostText(type)},
                      {"FIRST", r.first},
                      {"JOIN_TWO(a, b)", r.join},
                      {"TAKE(v)", take ? r.take : "v"},
                      {"LAST(v)", last ? r.last : "v"}},
                     {"reduce.h"});
}

}  // namespace

Reduce::Reduce(const tw::Node& n, const Reduction& r, uint32_t from, uint32_t to)
    : rows_(n, ReduceText(r, from, to, true, true, true), "reduce_rows"),
      columns_(n, ReduceText(r, from, to, false, true, true), "reduce_columns"),
      part_rows_(n, ReduceText(r, from, Wide(from), true, true, false), "reduce_rows"),
      part_columns_(n, ReduceText(r, from, Wide(from), false, true, false), "reduce_columns"),
      join_(n, ReduceText(r, Wide(from), to, false, false, true), "reduce_columns"),
      part_bytes_(ElementBytes(Wide(from))) {}

void Reduce::Start(const tw_frame* f, const Kernel& kernel, bool rows, Layout kept, Layout taken, Size outputs, Size parts, Size count,
                   Place x, Place y) const {
  const Size work = std::max<Size>(1, count / parts);
  if (rows) {
    kept.PushInner();
    const Size outer = count / std::max<Size>(1, taken.inner);
    return kernel.RunTasks(f, outputs * parts, work, x, y, outputs, parts, outer, taken.inner, kept.axes, kept.steps, taken.axes,
                           taken.steps, count);
  }
  taken.PushInner();
  const Size columns = kernel.device().blocked() ? 64 : 1, blocks = (kept.inner + columns - 1) / columns;
  kernel.RunTasks(f, outputs / kept.inner * blocks * parts, work * std::min(columns, kept.inner), x, y, outputs, parts, kept.inner, count,
                  kept.axes, kept.steps, taken.axes, taken.steps, count);
}

void Reduce::Run(const tw_frame* f, const Dims& dims, const std::vector<bool>& reduced, Place x, Place y) const {
  const Dims dense = DenseSteps(dims);
  Dims kept_dims, kept_steps, taken_dims, taken_steps;
  for (size_t k = 0; k < dims.size(); ++k) {
    (reduced[k] ? taken_dims : kept_dims).push_back(dims[k]);
    (reduced[k] ? taken_steps : kept_steps).push_back(dense[k]);
  }
  const Size outputs = Count(kept_dims), count = Count(taken_dims);
  if (outputs == 0) return;
  const Layout kept(kept_dims, {kept_steps}), taken(taken_dims, {taken_steps});
  const bool rows = !(kept.by[0] == 1 && outputs > 1);
  const Size parts =
      outputs >= 64 ? 1 : std::clamp<Size>(outputs * count / kPartWork, 1, std::min<Size>(kMostParts, std::max<Size>(count, 1)));
  if (parts == 1) return Start(f, rows ? *rows_ : *columns_, rows, kept, taken, outputs, 1, count, x, y);
  Temporary results((*join_).device(), uint64_t(outputs * parts) * part_bytes_);
  Start(f, rows ? *part_rows_ : *part_columns_, rows, kept, taken, outputs, parts, count, x, results.place());
  Axes axes{1, {parts}}, none{};
  Steps steps{{outputs}}, zero{};
  join_->RunTasks(f, (outputs + 63) / 64, parts * outputs, results.place(), y, outputs, Size(1), outputs, parts, none, zero, axes, steps,
                  count);
}

namespace {

// Marks the axes that a host tensor lists.
std::vector<bool> Named(const tw_view* axes, int32_t rank) {
  std::vector<int64_t> list;
  tw::integers(axes, &list);
  std::vector<bool> named(size_t(rank), false);
  for (int64_t a : list) {
    const int64_t axis = a < 0 ? a + rank : a;
    if (axis < 0 || axis >= rank) Invalid("axis " + tw::text(a) + " is outside of a tensor of rank " + tw::text(rank));
    named[size_t(axis)] = true;
  }
  return named;
}

template <const Reduction& kWhat>
class OverAxes {
 public:
  explicit OverAxes(const tw::Node& n) : reduce_(n, kWhat, n.type_in(0), n.type_out(0)) {}
  void operator()(tw::Frame frame) const {
    const tw_view* x = frame.f->in[0];
    reduce_.Run(frame.f, DimsOf(x), Named(frame.f->in[1], x->rank), At(x), At(frame.f->out[0]));
  }

 private:
  Reduce reduce_;
};

class L2Loss {
 public:
  explicit L2Loss(const tw::Node& n) : reduce_(n, kHalfSquares, n.type_in(0), n.type_in(0)) {}
  void operator()(tw::Frame frame) const {
    const tw_view* x = frame.f->in[0];
    reduce_.Run(frame.f, DimsOf(x), std::vector<bool>(size_t(x->rank), true), At(x), At(frame.f->out[0]));
  }

 private:
  Reduce reduce_;
};

class BiasAddGrad {
 public:
  explicit BiasAddGrad(const tw::Node& n) : channels_first_(n.s("data_format") == "NCHW"), reduce_(n, kSum, n.type_in(0), n.type_in(0)) {}
  void operator()(tw::Frame frame) const {
    const tw_view* x = frame.f->in[0];
    std::vector<bool> reduced(size_t(x->rank), true);
    reduced[channels_first_ ? 1 : reduced.size() - 1] = false;
    reduce_.Run(frame.f, DimsOf(x), reduced, At(x), At(frame.f->out[0]));
  }

 private:
  bool channels_first_;
  Reduce reduce_;
};

class ArgExtreme {
 public:
  explicit ArgExtreme(const tw::Node& n)
      : kernel_(n,
                ProgramText({{"T", tw::dtype_text(n.type_in(0))},
                             {"R", tw::dtype_text(n.type_out(0))},
                             {"BEATS(a, b)", std::string_view(n.node->op, n.node->op_len) == "ArgMax" ? "((a) > (b))" : "((a) < (b))"}},
                            {"extremes.h"}),
                "arg_extreme") {}
  void operator()(tw::Frame frame) const {
    const tw_view *x = frame.f->in[0], *y = frame.f->out[0];
    const std::vector<bool> axis = Named(frame.f->in[1], x->rank);
    Size outer = 1, n = 1, inner = 1;
    for (int32_t k = 0; k < x->rank; ++k) {
      if (axis[size_t(k)])
        outer *= inner, n = x->dims[k], inner = 1;
      else
        inner *= x->dims[k];
    }
    if (y->count && n == 0) Invalid("the axis has no elements, so none is extreme; give it some");
    if (y->dtype == TW_INT32 && n > Size(1) << 31)
      Invalid("positions along an axis of " + tw::text(n) + " do not fit in int32; ask for int64");
    kernel_.RunTasks(frame.f, outer * inner, n, At(x), At(y), outer, n, inner);
  }

 private:
  Kernel kernel_;
};

template <const Reduction& kWhat>
void Add(tw::Plugin& p, const std::string& op, const std::vector<std::string>& types) {
  for (const std::string& t : types)
    for (const char* index : {"int32", "int64"})
      p.kernel<OverAxes<kWhat>>(op + "(" + t + ", " + index + " -> " + t + ") @OPENCL; host reduction_indices");
}

}  // namespace

void register_reduce(tw::Plugin& p) {
  const std::vector<std::string> reals = {"float", "double", "half", "bfloat16"},
                                 numbers = {"float", "double", "half", "bfloat16", "int32", "int64"};
  Add<kSum>(p, "Sum", numbers);
  Add<kMean>(p, "Mean", reals);
  Add<kProduct>(p, "Prod", numbers);
  Add<kLargest>(p, "Max", numbers);
  Add<kSmallest>(p, "Min", numbers);
  Add<kNorm>(p, "EuclideanNorm", reals);
  Add<kAll>(p, "All", {"bool"});
  Add<kAny>(p, "Any", {"bool"});
  for (const std::string& t : reals) p.kernel<L2Loss>("L2Loss(" + t + " -> " + t + ") @OPENCL");
  for (const std::string& t : numbers) {
    p.kernel<BiasAddGrad>("BiasAddGrad(" + t + " -> " + t + ") @OPENCL");
    for (const char* index : {"int32", "int64"})
      for (const char* to : {"int32", "int64"})
        for (const char* op : {"ArgMax", "ArgMin"})
          p.kernel<ArgExtreme>(std::string(op) + "(" + t + ", " + index + " -> " + to + ") @OPENCL; host dimension");
  }
}

}  // namespace thalweg::opencl
