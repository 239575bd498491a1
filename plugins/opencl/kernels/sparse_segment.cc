// SparseSegmentSum, SparseSegmentMean and SparseSegmentSqrtN, with and without a number of
// segments, and their gradients. They reduce rows, chosen by index, by segment. Indices and segment
// numbers are read and checked on the host.
#include <algorithm>
#include <cmath>

#include "kernels/register.h"
#include "kernels/segment.h"
#include "kernels/segments.h"

namespace thalweg::opencl {
namespace {

const Reduction kOverRoot{"0", "(a) + (b)", "v", "(v) / sqrt((COMPUTED(T))count)"};

void CheckPairs(const std::vector<int64_t>& indices, const std::vector<int64_t>& ids, int64_t rows, int64_t segments) {
  if (indices.size() != ids.size())
    Invalid("there are " + std::to_string(indices.size()) + " indices and " + std::to_string(ids.size()) +
            " segment_ids; they must be as many");
  CheckIndices(indices, rows, "indices");
  CheckSorted(ids);
  if (!ids.empty() && ids.back() >= segments)
    Invalid("segment_ids[" + std::to_string(ids.size() - 1) + "] = " + tw::text(ids.back()) + " is not below " + tw::text(segments) +
            ", the number of segments");
}

template <const Reduction& kWhat>
class Sparse {
 public:
  explicit Sparse(const tw::Node& n) : kernel_(n, kWhat, kZero) {}
  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const tw_view* data = f->in[0];
    if (data->rank < 1) Invalid("data is a scalar; it must have rows");
    const std::vector<int64_t> indices = Numbers(f->in[1]), ids = Numbers(f->in[2]);
    Dims dims = DimsOf(data);
    dims[0] = f->n_in > 3 ? Numbers(f->in[3]).at(0) : ids.empty() ? 0 : std::max<int64_t>(ids.back(), 0) + 1;
    if (dims[0] < 0) Invalid("num_segments is " + tw::text(dims[0]) + "; it must not be negative");
    CheckPairs(indices, ids, data->dims[0], dims[0]);
    Allocate(f, dims);
    Members members(ids, dims[0]);
    for (int64_t& k : members.order) k = indices[size_t(k)];
    kernel_.Run(f, dims, members);
  }

 private:
  SegmentKernel kernel_;
};

// The divisor of a segment's sum: none, the number of rows, or its square root.
enum Divisor { kNone, kCount, kRoot };

template <Divisor kDivisor>
class Gradient {
 public:
  explicit Gradient(const tw::Node& n)
      : wide_(n.type_out(0) == TW_DOUBLE),
        kernel_(n, ProgramText({{"T", tw::dtype_text(n.type_out(0))}, {"W", wide_ ? "double" : "float"}}, {"weighted.h"}), "add_weighted") {
  }
  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const tw_view* grad = f->in[0];
    if (grad->rank < 1) Invalid("grad is a scalar; it must have rows");
    const std::vector<int64_t> indices = Numbers(f->in[1]), ids = Numbers(f->in[2]);
    Dims dims = DimsOf(grad);
    dims[0] = Numbers(f->in[3]).at(0);
    if (dims[0] < 0) Invalid("output_dim0 is " + tw::text(dims[0]) + "; it must not be negative");
    CheckPairs(indices, ids, dims[0], grad->dims[0]);
    Allocate(f, dims);
    const Size rows = dims[0], inner = Count(dims) / std::max<Size>(1, rows);
    if (Count(dims) == 0) return;
    std::vector<double> many(size_t(grad->dims[0]), 0);  // number of rows of each segment
    for (int64_t id : ids) ++many[size_t(id)];
    const Members members(indices, rows);
    std::vector<int64_t> order;
    std::vector<double> weights;
    for (int64_t k : members.order) {
      const int64_t segment = ids[size_t(k)];
      const double n = many[size_t(segment)];
      order.push_back(segment);
      weights.push_back(kDivisor == kNone ? 1 : 1 / (kDivisor == kCount ? n : std::sqrt(n)));
    }
    const Temporary from(kernel_.device(), order), starts(kernel_.device(), members.starts);
    const auto run = [&](const Temporary& by) {
      kernel_.RunTasks(f, rows * inner, Size(order.size()) / rows + 1, At(grad), from.place(), by.place(), starts.place(), At(f->out[0]),
                       rows, inner);
    };
    if (wide_) return run(Temporary(kernel_.device(), weights));
    run(Temporary(kernel_.device(), std::vector<float>(weights.begin(), weights.end())));
  }

 private:
  bool wide_;
  Kernel kernel_;
};

template <class F>
void ForIndexTypes(F&& add) {
  for (const std::string indices : {"int32", "int64"})
    for (const std::string ids : {"int32", "int64"}) add(indices, ids);
}

template <const Reduction& kWhat>
void AddForward(tw::Plugin& p, const std::string& op, const std::string& t) {
  ForIndexTypes([&](const std::string& indices, const std::string& ids) {
    const std::string in = "(" + t + ", " + indices + ", " + ids, out = " -> " + t + ") @OPENCL; host indices segment_ids";
    p.kernel<Sparse<kWhat>>(op + in + out);
    for (const std::string n : {"int32", "int64"}) p.kernel<Sparse<kWhat>>(op + "WithNumSegments" + in + ", " + n + out + " num_segments");
  });
}

template <const Reduction& kWhat, Divisor kDivisor>
void Add(tw::Plugin& p, const std::string& op, const std::string& t) {
  AddForward<kWhat>(p, op, t);
  ForIndexTypes([&](const std::string& indices, const std::string& ids) {
    p.kernel<Gradient<kDivisor>>(op + "Grad(" + t + ", " + indices + ", " + ids + ", int32 -> " + t +
                                 ") @OPENCL; host indices segment_ids output_dim0");
  });
}

}  // namespace

void register_sparse_segment(tw::Plugin& p) {
  for (const std::string t : {"float", "double", "half", "bfloat16"}) {
    Add<kSum, kNone>(p, "SparseSegmentSum", t);
    Add<kMean, kCount>(p, "SparseSegmentMean", t);
    Add<kOverRoot, kRoot>(p, "SparseSegmentSqrtN", t);
  }
  for (const std::string t : {"int32", "int64"}) AddForward<kSum>(p, "SparseSegmentSum", t);
}

}  // namespace thalweg::opencl
