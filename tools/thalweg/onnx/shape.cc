// Ops that arrange elements, and those that compute shapes.
#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "table.h"

namespace thalweg::cli::onnx {
namespace {

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

Name Reshaped(Op& o, const Name& x, const Name& shape) { return o.net.Add("Reshape", {x, shape}, {{"allowzero", int64_t{1}}}); }

void Reshape(Op& o, const char*) { o.out(0, Reshaped(o, o.in(0), o.vector(1))); }

// ONNX's Shape and Size give int64.
void Measure(Op& o, const char* twin) {
  const Name y = o.net.Add(twin, {o.in(0)});
  o.out(0, o.out_dtype(0) == TW_INT64 ? y : o.net.Cast(y, o.out_dtype(0)));
}

void Rank(Op& o, const char*) { o.out(0, o.net.Scalar(TW_INT32, o.known_rank(0))); }

void ExpandDims(Op& o, const char*) { o.out(0, o.net.Add("Unsqueeze", {o.in(0), o.vector(1)})); }

void Squeeze(Op& o, const char*) {
  const Sizes axes = o.list("squeeze_dims");
  o.out(0, axes.empty() ? o.net.Add("Squeeze", {o.in(0)}) : o.net.Add("Squeeze", {o.in(0), o.net.Ints(axes)}));
}

void Transpose(Op& o, const char*) { o.out(0, o.net.Transpose(o.in(0), o.known_ints(1, "the order of axes"))); }

void ConcatV2(Op& o, const char*) {
  const uint32_t n = o.inputs() - 1;
  int64_t axis = o.known_ints(n, "the axis").at(0);
  bool images = true;
  for (uint32_t i = 0; i < n; ++i) images = images && o.prefers_first(i);
  std::vector<Name> parts;
  for (uint32_t i = 0; i < n; ++i) parts.push_back(images ? o.first(i) : o.in(i));
  if (images) {
    const int32_t rank = o.known_rank(0);
    axis = ToLast(rank)[size_t(axis < 0 ? axis + rank : axis)];
  }
  const Name y = o.net.Add("Concat", parts, {{"axis", axis}});
  images ? o.out_first(0, y) : o.out(0, y);
}

void Pack(Op& o, const char*) {
  const Name axis = o.net.Ints({o.i("axis")});
  std::vector<Name> parts;
  for (uint32_t i = 0; i < o.inputs(); ++i) parts.push_back(o.net.Add("Unsqueeze", {o.in(i), axis}));
  o.out(0, o.net.Add("Concat", parts, {{"axis", o.i("axis")}}));
}

void Parted(Op& o, const std::vector<Name>& inputs, int64_t axis, int64_t n, bool squeeze) {
  std::vector<Attr> attrs = {{"axis", axis}};
  if (inputs.size() == 1) attrs.push_back({"num_outputs", n});
  const auto parts = o.net.AddMany("Split", inputs, size_t(n), attrs);
  for (uint32_t i = 0; i < parts.size(); ++i) o.out(i, squeeze ? o.net.Add("Squeeze", {parts[i], o.net.Ints({axis})}) : parts[i]);
}

void Unpack(Op& o, const char*) { Parted(o, {o.in(0)}, o.i("axis"), o.i("num"), true); }

void Split(Op& o, const char*) { Parted(o, {o.in(1)}, o.known_ints(0, "the axis").at(0), o.i("num_split"), false); }

void SplitV(Op& o, const char*) {
  Sizes sizes = o.known_ints(1, "the list of sizes");
  const int64_t axis = o.known_ints(2, "the axis").at(0);
  const auto rest = std::find(sizes.begin(), sizes.end(), -1);
  if (rest != sizes.end()) {
    const Sizes dims = o.dims(0);
    const int64_t whole = dims[size_t(axis < 0 ? axis + int64_t(dims.size()) : axis)];
    if (whole < 0) Op::Unsupported("one of the sizes is -1, and the size of the axis is unknown");
    *rest = whole - (std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) + 1);
  }
  Parted(o, {o.in(0), o.net.Ints(sizes)}, axis, int64_t(sizes.size()), false);
}

void Slice(Op& o, const char*) {
  const std::optional<Sizes> begins = o.ints(1), counts = o.ints(2);
  const auto rank = size_t(o.known_rank(0));
  Sizes axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (begins && counts) {
    Sizes ends(rank);
    for (size_t i = 0; i < rank; ++i) ends[i] = (*counts)[i] < 0 ? kEnd : (*begins)[i] + (*counts)[i];
    o.out(0, o.net.Add("Slice", {o.in(0), o.net.Ints(*begins), o.net.Ints(ends), o.net.Ints(axes)}));
    return;
  }
  const Name begin = o.longs(1), count = o.longs(2);
  const Name to_end = o.net.Add("Less", {count, o.net.Scalar(TW_INT64, 0)});
  const Name end = o.net.Add("Where", {to_end, o.net.Ints({kEnd}), o.net.Add("Add", {begin, count})});
  o.out(0, o.net.Add("Slice", {o.in(0), begin, end, o.net.Ints(axes)}));
}

// One entry of a StridedSlice that selects from an axis: numbers, or parts of a computed vector.
struct Entry {
  int64_t axis;
  size_t place;  // in the lists
  bool whole_begin, whole_end, one;
};

// The begins or ends of the entries as one vector. computed: the values that are not in `known`.
Name Bounds(Op& o, const std::vector<Entry>& entries, const std::optional<Sizes>& known, const Name& computed,
            const std::function<std::optional<int64_t>(const Entry&)>& fixed) {
  Sizes numbers;
  std::vector<Name> parts;
  bool all_known = true;
  for (const Entry& e : entries) {
    std::optional<int64_t> number = fixed(e);
    if (!number && known) number = (*known)[e.place];
    all_known = all_known && number;
    numbers.push_back(number.value_or(0));
    parts.push_back(number ? o.net.Ints({*number}) : o.net.Add("Gather", {computed, o.net.Ints({int64_t(e.place)})}));
  }
  return all_known ? o.net.Ints(numbers) : o.net.Add("Concat", parts, {{"axis", int64_t{0}}});
}

void StridedSlice(Op& o, const char*) {
  const auto bit = [&](const char* mask, size_t i) { return (o.i(mask) >> i & 1) != 0; };
  const Sizes strides = o.known_ints(3, "the list of strides");
  const std::optional<Sizes> begins = o.ints(1), ends = o.ints(2);
  const auto n = strides.size();
  int64_t named = 0;  // axes of the input that entries behind the ellipsis and before it select from
  for (size_t i = 0; i < n; ++i) named += !bit("ellipsis_mask", i) && !bit("new_axis_mask", i);
  std::vector<Entry> entries;
  Sizes steps, gone, added;
  int64_t axis = 0, place = 0;  // of the input, and of the result before axes are removed
  for (size_t i = 0; i < n; ++i) {
    if (bit("ellipsis_mask", i)) {
      const int64_t passed = o.known_rank(0) - named;
      axis += passed;
      place += passed;
    } else if (bit("new_axis_mask", i)) {
      added.push_back(place++);
    } else {
      const bool one = bit("shrink_axis_mask", i);
      entries.push_back({axis, i, !one && bit("begin_mask", i), !one && bit("end_mask", i), one});
      steps.push_back(one ? 1 : strides[i]);
      if (one)
        gone.push_back(axis);
      else
        ++place;
      ++axis;
    }
  }
  Name x = o.in(0);
  if (!entries.empty()) {
    Sizes axes;
    for (const Entry& e : entries) axes.push_back(e.axis);
    const auto step = [&](const Entry& e) { return e.one ? 1 : strides[e.place]; };
    const Name begin = begins ? Name() : o.longs(1);
    const Name first = Bounds(o, entries, begins, begin, [&](const Entry& e) -> std::optional<int64_t> {
      if (e.whole_begin) return step(e) > 0 ? 0 : kEnd;
      return std::nullopt;
    });
    // The entry behind a selected one ends one later; behind the last, -1, it ends with the axis.
    Name last;
    const bool computed_one = !begins && std::any_of(entries.begin(), entries.end(), [](const Entry& e) { return e.one; });
    Name behind;
    if (computed_one) {
      const Name next = o.net.Add("Add", {begin, o.net.Scalar(TW_INT64, 1)});
      behind = o.net.Add("Where", {o.net.Add("Equal", {next, o.net.Scalar(TW_INT64, 0)}), o.net.Ints({kEnd}), next});
    }
    const Name end = ends ? Name() : o.longs(2);
    std::vector<Name> parts;
    for (const Entry& e : entries) {
      const std::vector<Entry> alone = {e};
      if (e.one) {
        parts.push_back(Bounds(o, alone, std::nullopt, behind, [&](const Entry& at) -> std::optional<int64_t> {
          if (!begins) return std::nullopt;
          return (*begins)[at.place] == -1 ? kEnd : (*begins)[at.place] + 1;
        }));
      } else {
        parts.push_back(Bounds(o, alone, ends, end, [&](const Entry& at) -> std::optional<int64_t> {
          if (at.whole_end) return step(at) > 0 ? kEnd : -kEnd;
          return std::nullopt;
        }));
      }
    }
    last = parts.size() == 1 ? parts[0] : o.net.Add("Concat", parts, {{"axis", int64_t{0}}});
    x = o.net.Add("Slice", {x, first, last, o.net.Ints(axes), o.net.Ints(steps)});
  }
  if (!gone.empty()) x = o.net.Add("Squeeze", {x, o.net.Ints(gone)});
  if (!added.empty()) x = o.net.Add("Unsqueeze", {x, o.net.Ints(added)});
  o.out(0, x);
}

void GatherV2(Op& o, const char*) {
  if (o.has("batch_dims") && o.i("batch_dims") != 0) Op::Unsupported("batch_dims is not 0");
  const int64_t axis = o.inputs() > 2 ? o.known_ints(2, "the axis").at(0) : 0;
  o.out(0, o.net.Add("Gather", {o.in(0), o.in(1)}, {{"axis", axis}}));
}

void GatherNd(Op& o, const char*) { o.out(0, o.net.Add("GatherND", {o.in(0), o.longs(1)})); }

void OneHot(Op& o, const char*) {
  const Name values =
      o.net.Add("Concat", {Reshaped(o, o.in(3), o.net.Ints({1})), Reshaped(o, o.in(2), o.net.Ints({1}))}, {{"axis", int64_t{0}}});
  // ONNX counts negative indices from the end, ours give a row of `off`: they become the depth, which is outside.
  const Name indices = o.longs(0), depth = o.longs(1);
  const Name inside = o.net.Add("Less", {indices, o.net.Scalar(TW_INT64, 0)});
  o.out(0, o.net.Add("OneHot", {o.net.Add("Where", {inside, depth, indices}), depth, values}, {{"axis", o.i("axis")}}));
}

void Fill(Op& o, const char*) { o.out(0, o.net.Add("Expand", {o.in(1), o.vector(0)})); }

void BroadcastTo(Op& o, const char*) { o.out(0, o.net.Add("Expand", {o.in(0), o.vector(1)})); }

void Same(Op& o, double value) { o.out(0, o.net.Add("Expand", {o.net.Scalar(o.dtype(0), value), o.net.Add("Shape", {o.in(0)})})); }
void ZerosLike(Op& o, const char*) { Same(o, 0); }
void OnesLike(Op& o, const char*) { Same(o, 1); }

void Tile(Op& o, const char*) { o.out(0, o.net.Add("Tile", {o.in(0), o.vector(1)})); }

void Range(Op& o, const char*) { o.out(0, o.net.Add("Range", o.all())); }

// Our paddings are [axes, 2]; ONNX has all begins before all ends.
Name Pads(Op& o) {
  if (const std::optional<Sizes> known = o.ints(1)) {
    Sizes pads;
    for (const size_t side : {0, 1}) {
      for (size_t i = side; i < known->size(); i += 2) pads.push_back((*known)[i]);
    }
    return o.net.Ints(pads);
  }
  return Reshaped(o, o.net.Transpose(o.longs(1), {1, 0}), o.net.Ints({-1}));
}

void Pad(Op& o, const char*) {
  std::vector<Name> in = {o.in(0), Pads(o)};
  if (o.inputs() > 2) in.push_back(o.in(2));
  o.out(0, o.net.Add("Pad", in));
}

void MirrorPad(Op& o, const char*) {
  if (o.s("mode") != "REFLECT") Op::Unsupported("the mode is " + o.s("mode") + "; ONNX has REFLECT");
  o.out(0, o.net.Add("Pad", {o.in(0), Pads(o)}, {{"mode", std::string("reflect")}}));
}

void Where(Op& o, const char*) { o.out(0, o.net.Transpose(o.net.Add("NonZero", {o.in(0)}), {1, 0})); }

void ReverseV2(Op& o, const char*) {
  const Sizes axes = o.known_ints(1, "the list of axes");
  const auto all = [&](int64_t value) { return o.net.Ints(Sizes(axes.size(), value)); };
  o.out(0, axes.empty() ? o.in(0) : o.net.Add("Slice", {o.in(0), all(-1), all(-kEnd), o.net.Ints(axes), all(-1)}));
}

constexpr Translator kTable[] = {
    {"BroadcastTo", BroadcastTo},
    {"ConcatV2", ConcatV2},
    {"ExpandDims", ExpandDims},
    {"Fill", Fill},
    {"Gather", GatherV2},
    {"GatherNd", GatherNd},
    {"GatherV2", GatherV2},
    {"MirrorPad", MirrorPad},
    {"OneHot", OneHot},
    {"OnesLike", OnesLike},
    {"Pack", Pack},
    {"Pad", Pad},
    {"PadV2", Pad},
    {"Range", Range},
    {"Rank", Rank},
    {"Reshape", Reshape},
    {"ReverseV2", ReverseV2},
    {"Shape", Measure, "Shape"},
    {"Size", Measure, "Size"},
    {"Slice", Slice},
    {"Split", Split},
    {"SplitV", SplitV},
    {"Squeeze", Squeeze},
    {"StridedSlice", StridedSlice},
    {"Tile", Tile},
    {"Transpose", Transpose},
    {"Unpack", Unpack},
    {"Where", Where},
    {"ZerosLike", ZerosLike},
};

}  // namespace

std::span<const Translator> ShapeTranslators() { return kTable; }

}  // namespace thalweg::cli::onnx
