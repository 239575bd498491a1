// DynamicPartition sends parts of a tensor to several outputs. DynamicStitch and
// ParallelDynamicStitch put parts in their places.
#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "ops/common/grad.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// Returns the axes of `data` after its first ones, which must equal those of `places`. The names
// are for the error message.
MaybeDims Behind(const MaybeDims& places, const MaybeDims& data, const std::string& places_name, const std::string& data_name) {
  if (!places || !data) return std::nullopt;
  bool fits = places->size() <= data->size();
  for (size_t k = 0; fits && k < places->size(); ++k) fits = !Known((*places)[k]) || !Known((*data)[k]) || (*places)[k] == (*data)[k];
  if (!fits) Fail(places_name + " is " + Text(places) + ", but " + data_name + " is " + Text(data) + "; it must begin with these axes");
  return Sub(*data, places->size(), data->size());
}

// Returns a view of the values of input i if they are known. The schema says that they are int32.
// They are not copied, since there may be as many as memory holds.
std::optional<std::span<const int32_t>> Values(const tw::Shape& s, uint32_t i) {
  const tw_view* v = s.c->value[i];
  if (!v) return std::nullopt;
  return std::span(static_cast<const int32_t*>(v->data), size_t(v->count));
}

// The number of parts per output depends on the values. If these are unknown, the kernel allocates
// the outputs.
void PartitionRule(const tw::Shape& s) {
  const MaybeDims part = Behind(In(s, 1), In(s, 0), "'partitions'", "'data'");
  const int64_t n = s.i("num_partitions");
  const auto to = Values(s, 1);
  std::vector<int64_t> counts(s.c->n_out, to ? 0 : -1);
  if (to) {
    for (int64_t at : *to) {
      if (at < 0 || at >= n) Fail("'partitions' holds " + tw::text(at) + ", which is not in [0, " + tw::text(n) + ")");
      ++counts[size_t(at)];
    }
  }
  for (uint32_t o = 0; o < s.c->n_out; ++o) {
    if (part)
      s.out(o, Join(Dims{counts[o]}, *part));
    else
      s.unknown(o);
  }
}

// Partitions the positions of the parts the same way; the results are the indices for stitching the
// gradients.
void PartitionGradient(const tw::Grad& g) {
  const uint32_t n = static_cast<uint32_t>(g.i("num_partitions"));
  const tw_edge count = g.op("Prod", {g.shape(1), Int(g, 0)});
  const tw_edge places = g.op("Reshape", {g.op("Range", {Int(g, 0), count, Int(g, 1)}), g.shape(1)});
  const tw_edge sent = g.op("DynamicPartition", {places, g.x(1)}, {{"num_partitions", g.i("num_partitions")}});
  std::vector<tw_edge> in;
  for (uint32_t o = 0; o < n; ++o) in.push_back(g.out(sent, o));
  for (uint32_t o = 0; o < n; ++o) in.push_back(g.dy(o));
  g.dx(0, g.op("Reshape", {g.op("ParallelDynamicStitch", in), g.shape(0)}));
}

// Returns the number of places: one more than the largest index if all indices are known, else -1.
int64_t Places(const tw::Shape& s, uint32_t n) {
  int64_t places = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const auto at = Values(s, i);
    for (int64_t place : at.value_or(std::span<const int32_t>())) {
      if (place < 0) Fail("'indices' of input " + tw::text(i) + " hold " + tw::text(place) + "; places must not be negative");
      if (places >= 0) places = std::max(places, place + 1);
    }
    if (!at) places = -1;
  }
  return places;
}

void StitchRule(const tw::Shape& s) {
  const uint32_t n = s.c->n_in / 2;
  MaybeDims part;
  for (uint32_t i = 0; i < n; ++i) {
    const std::string of = " of input " + tw::text(i);
    part = Merge(s, part, Behind(In(s, i), In(s, n + i), "'indices'" + of, "'data'" + of),
                 "behind the axes of 'indices' the shapes of 'data' must agree: those before input " + tw::text(i) + ", and its own,");
  }
  const int64_t places = Places(s, n);
  if (part)
    s.out(0, Join(Dims{places}, *part));
  else
    s.unknown(0);
}

void PickedGradient(const tw::Grad& g) {
  const uint32_t n = g.inputs() / 2;
  for (uint32_t i = 0; i < n; ++i) g.dx(n + i, g.op("GatherV2", {g.dy(), g.x(i), Int(g, 0)}));
}

// Among parts for one place only the last one counts. Stitching the numbers of the parts finds it.
void StitchGradient(const tw::Grad& g) {
  const uint32_t n = g.inputs() / 2;
  std::vector<tw_edge> in, numbers;
  for (uint32_t i = 0; i < n; ++i) in.push_back(g.x(i));
  tw_edge begin = Int(g, 0);
  for (uint32_t i = 0; i < n; ++i) {
    const tw_edge end = g.op("AddV2", {begin, g.op("Prod", {g.shape(i), Int(g, 0)})});
    numbers.push_back(g.op("Reshape", {g.op("Range", {begin, end, Int(g, 1)}), g.shape(i)}));
    in.push_back(numbers.back());
    begin = end;
  }
  const tw_edge sent = g.op("DynamicStitch", in), axis = Int(g, 0);
  for (uint32_t i = 0; i < n; ++i) {
    const tw_edge last = g.op("Equal", {g.op("GatherV2", {sent, g.x(i), axis}), numbers[i]});
    const tw_edge part_rank = g.op("Sub", {g.op("Size", {g.shape(n + i)}), g.op("Size", {g.shape(i)})});
    const tw_edge counts = g.op("Reshape", {last, Concat(g, {g.shape(i), Ones(g, part_rank)})});
    g.dx(n + i, g.op("SelectV2", {counts, g.op("GatherV2", {g.dy(), g.x(i), axis}), Number(g, 0, g.dy())}));
  }
}

}  // namespace

void register_dynamic_partition(tw::Plugin& p) {
  p.op<PartitionGradient, PartitionRule>(R"(
      DynamicPartition(data: T, partitions: int32) -> (outputs: T * num_partitions); num_partitions: int >= 1; T: type;
      doc "output k holds data[i] for each i with partitions[i] = k, in order; partitions may have several axes")");
  p.op<StitchGradient, StitchRule>(R"(
      DynamicStitch(indices: int32 * N, data: T * N) -> (merged: T); N: int >= 1; T: type;
      doc "merged[indices[n][i]] = data[n][i]; of several for one place the last one stays, a place for which there is none is 0")");
  p.op<PickedGradient, StitchRule>(R"(
      ParallelDynamicStitch(indices: int32 * N, data: T * N) -> (merged: T); N: int >= 1; T: type;
      doc "DynamicStitch for indices that are all different")");
}

}  // namespace thalweg::ops
