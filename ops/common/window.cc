#include "ops/common/window.h"

namespace thalweg::ops {
namespace {

// Checks a list: one positive entry per axis, 1 for batch and channels.
void CheckPerAxis(const Dims& v, const char* name, const ImageAxes& axes) {
  const std::string is = "'" + std::string(name) + "' is " + Text(v);
  if (v.size() != axes.rank()) Fail(is + "; it needs " + std::to_string(axes.rank()) + " entries, one per axis");
  if (v[axes.batch] != 1 || v[axes.channels] != 1) Fail(is + "; the entries for batch and channels must be 1");
  for (int64_t entry : v)
    if (entry < 1 || entry > INT32_MAX) Fail(is + "; every entry must be at least 1 and fit in 31 bits");
}

ImageAxes AxesOf(std::string_view format) {
  if (format == "NHWC") return {0, 1, 3, 2};
  if (format == "NCHW") return {0, 2, 1, 2};
  if (format == "NDHWC") return {0, 1, 4, 3};
  if (format == "NCDHW") return {0, 2, 1, 3};
  throw tw::Error{TW_UNIMPLEMENTED, "'data_format' " + std::string(format) + " is not offered; use NHWC or NCHW"};
}

// Ops without the attribute have their channels last.
std::string_view FormatOf(const tw::Attrs& attrs) { return attrs.find("data_format") ? attrs.s("data_format") : "NHWC"; }

}  // namespace

Windows::Windows(const tw::Attrs& attrs, const Dims* given_strides) : axes_(AxesOf(FormatOf(attrs))) {
  const std::string_view padding = attrs.s("padding");
  const Dims strides = given_strides ? *given_strides : attrs.ints("strides");
  const Dims dilations = attrs.find("dilations") ? attrs.ints("dilations") : Dims(axes_.rank(), 1);
  CheckPerAxis(strides, "strides", axes_);
  CheckPerAxis(dilations, "dilations", axes_);
  // Quantised convolutions have `padding_list`, which replaces any `padding`.
  const bool replaces = attrs.find("padding_list") != nullptr;
  const std::string name = replaces ? "padding_list" : "explicit_paddings";
  const Dims paddings = attrs.find(name) ? attrs.ints(name) : Dims{};
  same_ = padding == "SAME" && !(replaces && !paddings.empty());
  if (padding == "EXPLICIT" || (replaces && !paddings.empty())) {
    const std::string is = "'" + name + "' is " + Text(paddings);
    if (paddings.size() != 2 * axes_.rank())
      Fail(is + (replaces ? "; it needs " : "; padding EXPLICIT needs ") + std::to_string(2 * axes_.rank()) +
           " entries, before and after each axis");
    for (size_t axis : {axes_.batch, axes_.channels})
      if (paddings[2 * axis] != 0 || paddings[2 * axis + 1] != 0) Fail(is + "; the entries for batch and channels must be 0");
    for (int64_t pad : paddings)
      if (pad < 0) Fail(is + "; no entry may be negative");
  } else if (!paddings.empty()) {
    Fail("'explicit_paddings' is " + Text(paddings) + " but 'padding' is " + std::string(padding) +
         "; set padding to EXPLICIT or leave them out");
  }
  for (size_t k = 0; k < axes_.spaces; ++k) {
    const size_t axis = axes_.space(k);
    lines_.push_back({strides[axis], dilations[axis], 0, 0});
    if (paddings.empty()) continue;
    lines_[k].before = paddings[2 * axis];
    lines_[k].after = paddings[2 * axis + 1];
  }
}

int64_t Windows::OutSize(const tw::Shape& s, size_t k, int64_t in, int64_t window) const {
  const Line& line = lines_[k];
  if (window == 0) Fail("the window has size 0 on axis " + std::to_string(axes_.space(k)) + " of the image; it must be at least 1");
  if (same_) return s.calc('/', s.calc('+', in, line.stride - 1), line.stride);
  const int64_t reach = s.calc('+', s.calc('*', s.calc('-', window, 1), line.dilation), 1);
  const int64_t padded = s.calc('+', in, s.calc('+', line.before, line.after));
  if (Known(reach) && Known(padded) && reach > padded) {
    if (reach - padded < 2 * line.stride) return 0;  // TensorFlow's limit: it rounds a negative result towards 0
    Fail("the window covers " + tw::text(reach) + " elements of axis " + std::to_string(axes_.space(k)) + " of the image, which has only " +
         tw::text(padded) + "; use a smaller window or padding SAME");
  }
  return s.calc('+', s.calc('/', s.calc('-', padded, reach), line.stride), 1);
}

WindowAttrs::WindowAttrs(const tw::Attrs& attrs)
    : ksize(attrs.find("ksize") ? attrs.ints("ksize") : Dims{}),
      strides(attrs.find("strides") ? attrs.ints("strides") : Dims{}),
      explicit_paddings(attrs.find("explicit_paddings") ? attrs.ints("explicit_paddings") : Dims{}),
      dilations(attrs.find("dilations") ? attrs.ints("dilations") : Dims{}),
      padding(attrs.s("padding")),
      data_format(FormatOf(attrs)) {}

}  // namespace thalweg::ops
