#include "framework/io/summary.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <set>
#include <vector>

#include "framework/base/checked.h"
#include "framework/base/shown.h"
#include "framework/io/summary_parts.h"
#include "framework/json/utf8.h"

namespace thalweg {

namespace {

// Fields of Summary.Value, HistogramProto and TensorProto.
enum : uint32_t { kSimpleValue = 2, kHistogram = 5, kTensor = 8 };

constexpr uint64_t kLargestMessage = (uint64_t{1} << 31) - (1 << 16);  // protobuf's limit, less what surrounds a tensor

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t n = Utf8Length(text);
    if (n == 0) return false;
    text.remove_prefix(n);
  }
  return true;
}

// The limits of the buckets: 0, and both signs of the powers of 1.1 from 1e-12 to 1e20, and the
// largest number.
const std::vector<double>& BucketLimits() {
  static const std::vector<double> limits = [] {
    std::vector<double> positive, all;
    for (double v = 1.0e-12; v < 1.0e20; v *= 1.1) positive.push_back(v);
    positive.push_back(DBL_MAX);
    for (size_t i = positive.size(); i-- > 0;) all.push_back(-positive[i]);
    all.push_back(0);
    all.insert(all.end(), positive.begin(), positive.end());
    return all;
  }();
  return limits;
}

struct Histogram {
  std::vector<double> counts = std::vector<double>(BucketLimits().size());
  double min = DBL_MAX, max = -DBL_MAX, count = 0, sum = 0, squares = 0;

  void Add(double v) {
    const std::vector<double>& limits = BucketLimits();
    const size_t bucket = size_t(std::upper_bound(limits.begin(), limits.end(), v) - limits.begin());
    counts[std::min(bucket, counts.size() - 1)] += 1;
    min = std::min(min, v);
    max = std::max(max, v);
    count += 1;
    sum += v;
    squares += v * v;
  }

  std::string Message() const {
    const std::vector<double>& limits = BucketLimits();
    std::string of_limits, of_counts, out;
    const auto add = [](double v, std::string* to) {
      for (size_t i = 0; i < 8; ++i) *to += char(std::bit_cast<uint64_t>(v) >> 8 * i);
    };
    for (size_t i = 0; i < counts.size(); ++i) {
      while (counts[i] == 0 && i + 1 < counts.size() && counts[i + 1] == 0) ++i;  // empty neighbours become one bucket
      add(limits[i], &of_limits);
      add(counts[i], &of_counts);
    }
    PutDoubleField(1, count > 0 ? min : 0, &out);
    PutDoubleField(2, count > 0 ? max : 0, &out);
    PutDoubleField(3, count, &out);
    PutDoubleField(4, sum, &out);
    PutDoubleField(5, squares, &out);
    PutBytesField(6, of_limits, &out);
    PutBytesField(7, of_counts, &out);
    return out;
  }
};

std::string DimsMessage(const tw_view& v) {
  std::string shape;
  for (int32_t i = 0; i < v.rank; ++i) {
    std::string dim;
    PutVarintField(1, uint64_t(v.dims[i]), &dim);
    PutBytesField(2, dim, &shape);
  }
  return shape;
}

}  // namespace

std::string OfTag(std::string_view tag) { return StrCat("summary '", Shown(OneLine(tag)), "': "); }

Status CheckTag(std::string_view tag) {
  if (tag.empty()) return InvalidArgument("the tag of a summary is empty; give it a name such as 'loss'");
  if (!IsUtf8(tag)) return InvalidArgument(OfTag(tag), "its tag is no UTF-8");
  return Status();
}

Status CheckDense(std::string_view tag, const tw_view& v) {
  if (v.strides) return InvalidArgument(OfTag(tag), "the tensor is not dense; give a copy");
  if (v.count > 0 && !v.data) return InvalidArgument(OfTag(tag), "the tensor has no data");
  return Status();
}

void AppendValue(std::string_view tag, uint32_t number, std::string_view bytes, std::string_view metadata, std::string* to) {
  std::string value;
  PutBytesField(1, tag, &value);
  if (!metadata.empty()) PutBytesField(9, metadata, &value);
  if (number == kSimpleValue) {
    value += bytes;  // a field already
  } else {
    PutBytesField(number, bytes, &value);
  }
  PutBytesField(1, value, to);
}

std::string MetadataOf(std::string_view plugin, std::string_view content) {
  std::string data, metadata;
  PutBytesField(1, plugin, &data);
  if (!content.empty()) PutBytesField(2, content, &data);
  PutBytesField(1, data, &metadata);
  return metadata;
}

Status AppendScalar(std::string_view tag, double value, std::string* to) {
  RETURN_IF_ERROR(CheckTag(tag));
  std::string field;
  PutFloatField(kSimpleValue, float(value), &field);
  AppendValue(tag, kSimpleValue, field, {}, to);
  return Status();
}

StatusOr<double> NumberOf(const tw_view& scalar) {
  double number = 0;
  if (scalar.count != 1)
    return InvalidArgument("a scalar summary needs a tensor of one element, not ", ShapeText(scalar.dims, scalar.rank));
  if (!EachNumber(scalar, [&](double v) { number = v; })) {
    return InvalidArgument("a scalar summary needs a real number, not ", DTypeName(scalar.dtype));
  }
  return number;
}

Status CheckHistogram(std::string_view tag, const tw_view& values) {
  RETURN_IF_ERROR(CheckTag(tag));
  RETURN_IF_ERROR(CheckDense(tag, values));
  double odd = 0;  // an element that is not finite
  if (!EachNumber(values, [&](double v) { odd = std::isfinite(v) ? odd : v; })) {
    return InvalidArgument(OfTag(tag), "a histogram is of real numbers, not of ", DTypeName(values.dtype));
  }
  if (std::isfinite(odd)) return Status();
  return InvalidArgument(OfTag(tag), "an element is ", std::isnan(odd) ? "NaN" : "infinite",
                         "; a histogram is of finite numbers, so find out where it comes from, or leave such elements out");
}

Status AppendHistogram(std::string_view tag, const tw_view& values, std::string* to) {
  RETURN_IF_ERROR(CheckHistogram(tag, values));
  Histogram h;
  EachNumber(values, [&](double v) { h.Add(v); });
  AppendValue(tag, kHistogram, h.Message(), {}, to);
  return Status();
}

Status CheckTensor(std::string_view tag, const tw_view& v, std::string_view metadata) {
  RETURN_IF_ERROR(CheckTag(tag));
  RETURN_IF_ERROR(CheckDense(tag, v));
  RETURN_IF_ERROR(CheckMessage(OfTag(tag) + "the metadata", metadata));
  const DTypeInfo* type = FindDType(v.dtype);
  if (!type || (!type->plain && v.dtype != TW_STRING)) {
    return InvalidArgument(OfTag(tag), "a tensor of ", DTypeName(v.dtype), " cannot be written");
  }
  const auto* texts = static_cast<const tw_string*>(v.data);
  uint64_t bytes = v.bytes;
  for (uint64_t i = 0; !type->plain && i < v.count; ++i) bytes += texts[i].size;
  if (bytes <= kLargestMessage) return Status();
  return InvalidArgument(OfTag(tag), "the tensor has ", bytes, " bytes; an event holds less than 2 GiB");
}

Status AppendTensor(std::string_view tag, const tw_view& v, std::string_view metadata, std::string* to) {
  RETURN_IF_ERROR(CheckTensor(tag, v, metadata));
  const bool plain = v.dtype != TW_STRING;
  const auto* texts = static_cast<const tw_string*>(v.data);
  std::string message;
  PutVarintField(1, v.dtype, &message);
  PutBytesField(2, DimsMessage(v), &message);
  for (uint64_t i = 0; !plain && i < v.count; ++i) PutBytesField(8, {texts[i].data, size_t(texts[i].size)}, &message);
  if (plain && v.bytes > 0) PutBytesField(4, {static_cast<const char*>(v.data) + v.offset, size_t(v.bytes)}, &message);
  AppendValue(tag, kTensor, message, metadata, to);
  return Status();
}

Status AppendText(std::string_view tag, const tw_view& texts, std::string* to) {
  if (texts.dtype != TW_STRING) return InvalidArgument(OfTag(tag), "texts are strings, not ", DTypeName(texts.dtype));
  return AppendTensor(tag, texts, MetadataOf("text", {}), to);
}

Status AppendText(std::string_view tag, std::string_view text, std::string* to) {
  const tw_string element = {text.data(), text.size()};
  tw_view v = {};
  v.dtype = TW_STRING;
  v.data = const_cast<tw_string*>(&element);
  v.count = 1;
  v.bytes = sizeof element;
  return AppendText(tag, v, to);
}

namespace {

// Fields of the messages of TensorBoard's plugin "hparams" (its file plugin_data.proto and
// api.proto).
enum : uint32_t { kExperiment = 2, kSessionStart = 3, kSessionEnd = 4 };
constexpr std::string_view kHparams = "hparams";

// A value of the plugin "hparams". Its tensor has no meaning; readers want one.
void AppendHparams(std::string_view tag, uint32_t number, std::string_view message, std::string* to) {
  std::string content, dim, shape, tensor;
  PutBytesField(number, message, &content);
  PutVarintField(1, 1, &dim);
  PutBytesField(2, dim, &shape);
  PutVarintField(1, TW_FLOAT, &tensor);
  PutBytesField(2, shape, &tensor);
  PutBytesField(4, std::string(4, '\0'), &tensor);
  AppendValue(tag, kTensor, tensor, MetadataOf(kHparams, content), to);
}

// A google.protobuf.Value.
std::string ValueOf(const HyperParameter& p) {
  std::string value;
  if (p.kind == HyperParameter::kNumber) PutDoubleField(2, p.number, &value);
  if (p.kind == HyperParameter::kText) PutBytesField(3, p.text, &value);
  if (p.kind == HyperParameter::kBool) PutVarintField(4, p.number != 0, &value);
  return value;
}

// A HParamInfo: the type by which the page sorts and filters.
std::string InfoOf(const HyperParameter& p) {
  std::string info;
  PutBytesField(1, p.name, &info);
  PutVarintField(4, p.kind == HyperParameter::kText ? 1 : p.kind == HyperParameter::kBool ? 2 : 3, &info);
  return info;
}

}  // namespace

Status AppendHyperParameters(std::span<const HyperParameter> parameters, std::span<const std::string_view> metrics, std::string_view group,
                             double wall_time, std::string* to) {
  std::string experiment, start;
  PutDoubleField(3, wall_time, &experiment);
  std::set<std::string_view> names;
  for (const HyperParameter& p : parameters) {
    if (p.name.empty() || !IsUtf8(p.name) || !names.insert(p.name).second) {
      return InvalidArgument("the name '", Shown(OneLine(p.name)), "' of a hyper-parameter is empty, no UTF-8 or taken by another one");
    }
    if (p.kind == HyperParameter::kText && !IsUtf8(p.text)) {
      return InvalidArgument("the hyper-parameter '", Shown(OneLine(p.name)), "' is a text that is no UTF-8");
    }
    std::string entry;
    PutBytesField(1, p.name, &entry);
    PutBytesField(2, ValueOf(p), &entry);
    PutBytesField(1, entry, &start);
    PutBytesField(4, InfoOf(p), &experiment);
  }
  for (const std::string_view tag : metrics) {
    RETURN_IF_ERROR(CheckTag(tag));
    std::string name, info;
    PutBytesField(2, tag, &name);
    PutBytesField(1, name, &info);
    PutBytesField(5, info, &experiment);
  }
  if (!IsUtf8(group)) return InvalidArgument("the name '", Shown(OneLine(group)), "' of a group of runs is no UTF-8");
  if (!group.empty()) PutBytesField(4, group, &start);
  PutDoubleField(5, wall_time, &start);
  AppendHparams("_hparams_/experiment", kExperiment, experiment, to);
  AppendHparams("_hparams_/session_start_info", kSessionStart, start, to);
  return Status();
}

void AppendRunEnd(bool succeeded, double wall_time, std::string* to) {
  std::string end;
  PutVarintField(1, succeeded ? 1 : 2, &end);
  PutDoubleField(2, wall_time, &end);
  AppendHparams("_hparams_/session_end_info", kSessionEnd, end, to);
}

Status MergeSummaries(std::span<const std::string_view> summaries, std::string* to) {
  std::set<std::string_view> tags;
  std::string merged;
  for (size_t i = 0; i < summaries.size(); ++i) {
    RETURN_IF_ERROR(CheckMessage(StrCat("input ", i), summaries[i]));
    WireField value, part;
    for (WireReader reader(summaries[i]); reader.Next(&value);) {
      if (value.number != 1) continue;
      RETURN_IF_ERROR(CheckMessage(StrCat("a value of input ", i), value.bytes));
      std::string_view tag;
      for (WireReader parts(value.bytes); parts.Next(&part);) {
        if (part.number == 1) tag = part.bytes;
      }
      if (!tags.insert(tag).second) {
        return InvalidArgument("the tag '", Shown(OneLine(tag)), "' is in more than one summary; give each a tag of its own");
      }
      PutBytesField(1, value.bytes, &merged);
    }
  }
  *to += merged;
  return Status();
}

std::string EncodeEvent(double wall_time, int64_t step, EventField field, std::string_view bytes) {
  std::string event;
  event.reserve(bytes.size() + 32);
  PutDoubleField(1, wall_time, &event);
  if (step != 0) PutVarintField(2, uint64_t(step), &event);
  PutBytesField(uint32_t(field), bytes, &event);
  return event;
}

Status CheckMessage(std::string_view what, std::string_view bytes) {
  WireField field;
  WireReader reader(bytes);
  while (reader.Next(&field)) {
  }
  if (reader.ok()) return Status();
  return InvalidArgument(what, " of ", bytes.size(), " bytes is no message: byte ", reader.offset(), " begins no field");
}

std::string TaggedRunMetadata(std::string_view tag, std::string_view run_metadata) {
  std::string message;
  PutBytesField(1, tag, &message);
  PutBytesField(2, run_metadata, &message);
  return message;
}

}  // namespace thalweg
