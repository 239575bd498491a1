// SegmentSum, SegmentMean, SegmentProd, SegmentMax, SegmentMin, UnsortedSegmentSum,
// UnsortedSegmentProd, UnsortedSegmentMax and UnsortedSegmentMin. Segment numbers are read and
// checked on the host.
#include "kernels/segment.h"

#include <algorithm>
#include <numeric>

#include "kernels/register.h"

namespace thalweg::opencl {
namespace {

// Returns the value as C text.
std::string AloneText(Alone alone, uint32_t type) {
  if (alone == kZero || alone == kOne) return alone == kZero ? "0" : "1";
  const std::string sign = alone == kLowest ? "-" : "";
  switch (type) {
    case TW_INT32: return alone == kLowest ? "INT_MIN" : "INT_MAX";
    case TW_INT64: return alone == kLowest ? "LONG_MIN" : "LONG_MAX";
    case TW_HALF: return sign + "65504.0f";
    case TW_BFLOAT16: return sign + "3.3895313892515355e38f";
    case TW_DOUBLE: return sign + "1.7976931348623157e308";
    default: return sign + "3.40282346638528860e38f";
  }
}

std::string Text(const tw::Node& n, const Reduction& r, Alone alone) {
  const std::string type = tw::dtype_text(n.type_out(0));
  return ProgramText({{"T", type},
                      {"LEAST", LeastText(type)},
                      {"MOST", MostText(type)},
                      {"FIRST", r.first},
                      {"JOIN_TWO(a, b)", r.join},
                      {"LAST(v)", r.last},
                      {"ALONE", AloneText(alone, n.type_out(0))}},
                     {"reduce.h", "segment.h"});
}

std::string Where(size_t k, int64_t id) { return "segment_ids[" + std::to_string(k) + "] = " + tw::text(id); }

}  // namespace

Members::Members(const std::vector<int64_t>& ids, int64_t segments) : starts(size_t(segments) + 1, 0) {
  for (int64_t id : ids)
    if (id >= 0) ++starts[size_t(id) + 1];
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  order.resize(size_t(starts.back()));
  std::vector<int64_t> next(starts.begin(), starts.end() - 1);
  for (size_t k = 0; k < ids.size(); ++k)
    if (ids[k] >= 0) order[size_t(next[size_t(ids[k])]++)] = int64_t(k);
}

std::vector<int64_t> Numbers(const tw_view* v) {
  std::vector<int64_t> list;
  tw::integers(v, &list);
  return list;
}

void CheckSorted(const std::vector<int64_t>& ids) {
  for (size_t k = 0; k < ids.size(); ++k) {
    if (ids[k] < 0) Invalid(Where(k, ids[k]) + " is negative");
    if (k && ids[k] < ids[k - 1]) Invalid(Where(k, ids[k]) + " comes after " + tw::text(ids[k - 1]) + "; the numbers must not decrease");
  }
  if (!ids.empty() && ids.back() == INT64_MAX) Invalid("segment " + tw::text(ids.back()) + " is out of any range");
}

void Allocate(const tw_frame* f, const Dims& dims) {
  if (f->out[0]->rank < 0) tw::check(f->host->tensor->allocate(f, 0, dims.data(), uint32_t(dims.size())));
  if (DimsOf(f->out[0]) != dims)
    throw tw::Error{TW_INTERNAL, "the output was planned as " + tw::text(f->out[0]->dims, f->out[0]->rank) + " but is " +
                                     tw::text(dims.data(), int32_t(dims.size()))};
}

SegmentKernel::SegmentKernel(const tw::Node& n, const Reduction& r, Alone alone) : kernel_(n, Text(n, r, alone), "segment") {}

void SegmentKernel::Run(const tw_frame* f, const Dims& dims, const Members& members) const {
  const Size segments = dims[0], inner = Count(dims) / std::max<Size>(1, segments);
  if (Count(dims) == 0) return;
  const Temporary order(kernel_.device(), members.order), starts(kernel_.device(), members.starts);
  const Size columns = kernel_.device().blocked() ? 64 : 1, blocks = (inner + columns - 1) / columns;
  kernel_.RunTasks(f, segments * blocks, (Size(members.order.size()) / segments + 1) * std::min(inner, columns), At(f->in[0]),
                   order.place(), starts.place(), At(f->out[0]), segments, inner);
}

namespace {

// Segment numbers do not decrease; the last one plus one is the number of segments.
template <const Reduction& kWhat, Alone kAlone>
class Sorted {
 public:
  explicit Sorted(const tw::Node& n) : kernel_(n, kWhat, kAlone) {}
  void operator()(tw::Frame frame) const {
    const tw_view *data = frame.f->in[0], *numbers = frame.f->in[1];
    if (data->rank < 1) Invalid("data is a scalar; it must have rows");
    if (numbers->rank != 1 || numbers->dims[0] != data->dims[0])
      Invalid("segment_ids is " + tw::text(numbers->dims, numbers->rank) + "; it must be a vector of " + tw::text(data->dims[0]) +
              " numbers, one per row");
    const std::vector<int64_t> ids = Numbers(numbers);
    CheckSorted(ids);
    Dims dims = DimsOf(data);
    dims[0] = ids.empty() ? 0 : ids.back() + 1;
    Allocate(frame.f, dims);
    kernel_.Run(frame.f, dims, Members(ids, dims[0]));
  }

 private:
  SegmentKernel kernel_;
};

// Rows with a negative number are skipped. The third input is the number of segments.
template <const Reduction& kWhat, Alone kAlone>
class Unsorted {
 public:
  explicit Unsorted(const tw::Node& n) : kernel_(n, kWhat, kAlone) {}
  void operator()(tw::Frame frame) const {
    const tw_view *data = frame.f->in[0], *numbers = frame.f->in[1];
    const std::vector<int64_t> ids = Numbers(numbers), count = Numbers(frame.f->in[2]);
    if (count.at(0) < 0) Invalid("num_segments is " + tw::text(count[0]) + "; it must not be negative");
    if (numbers->rank > data->rank || !std::equal(numbers->dims, numbers->dims + numbers->rank, data->dims))
      Invalid("segment_ids of shape " + tw::text(numbers->dims, numbers->rank) + " do not match the first axes of data of shape " +
              tw::text(data->dims, data->rank));
    for (size_t k = 0; k < ids.size(); ++k)
      if (ids[k] >= count[0]) Invalid(Where(k, ids[k]) + " is not below " + tw::text(count[0]) + ", the number of segments");
    Dims dims = {count[0]};
    dims.insert(dims.end(), data->dims + numbers->rank, data->dims + data->rank);
    Allocate(frame.f, dims);
    kernel_.Run(frame.f, dims, Members(ids, dims[0]));
  }

 private:
  SegmentKernel kernel_;
};

template <const Reduction& kWhat, Alone kAlone, Alone kAloneUnsorted>
void Add(tw::Plugin& p, const std::string& what, bool unsorted) {
  for (const std::string t : {"float", "double", "half", "bfloat16", "int32", "int64"})
    for (const std::string i : {"int32", "int64"}) {
      p.kernel<Sorted<kWhat, kAlone>>("Segment" + what + "(" + t + ", " + i + " -> " + t + ") @OPENCL; host segment_ids");
      for (const std::string n : {"int32", "int64"})
        if (unsorted)
          p.kernel<Unsorted<kWhat, kAloneUnsorted>>("UnsortedSegment" + what + "(" + t + ", " + i + ", " + n + " -> " + t +
                                                    ") @OPENCL; host segment_ids num_segments");
    }
}

}  // namespace

void register_segment(tw::Plugin& p) {
  Add<kSum, kZero, kZero>(p, "Sum", true);
  Add<kMean, kZero, kZero>(p, "Mean", false);
  Add<kProduct, kOne, kOne>(p, "Prod", true);
  Add<kLargest, kZero, kLowest>(p, "Max", true);
  Add<kSmallest, kZero, kHighest>(p, "Min", true);
}

}  // namespace thalweg::opencl
