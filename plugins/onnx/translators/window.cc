#include "window.h"

#include <algorithm>

namespace thalweg::onnx {

bool Window::padded() const {
  const auto some = [](int64_t p) { return p != 0; };
  return std::any_of(before.begin(), before.end(), some) || std::any_of(after.begin(), after.end(), some);
}

bool Window::dilated() const {
  return std::any_of(dilations.begin(), dilations.end(), [](int64_t d) { return d != 1; });
}

Window ReadWindow(Node& n, const Value& x, std::vector<int64_t> kernel) {
  Window w;
  w.kernel = std::move(kernel);
  const size_t axes = w.kernel.size();
  if (axes < 1 || axes > 3) n.unsupported(std::to_string(axes) + " spatial axes; 1 to 3 are supported");
  if (x.rank() >= 0 && static_cast<size_t>(x.rank()) != axes + 2) {
    n.fail("the input has rank " + std::to_string(x.rank()) + ", but the kernel has " + std::to_string(axes) + " axes");
  }
  w.strides = n.ints("strides", std::vector<int64_t>(axes, 1));
  w.dilations = n.ints("dilations", std::vector<int64_t>(axes, 1));
  if (w.strides.size() != axes || w.dilations.size() != axes) n.fail("'strides' and 'dilations' need " + std::to_string(axes) + " entries");
  for (size_t i = 0; i < axes; ++i) {
    // The products of a few of these stay within 64 bits.
    for (const int64_t v : {w.kernel[i], w.strides[i], w.dilations[i]}) {
      if (v < 1 || v > (1 << 20)) n.fail("sizes, strides and dilations must lie between 1 and 2^20, not " + std::to_string(v));
    }
  }
  const std::string automatic = n.s("auto_pad", "NOTSET");
  w.before.assign(axes, 0);
  w.after.assign(axes, 0);
  if (automatic == "NOTSET" || automatic.empty()) {
    const std::vector<int64_t> pads = n.ints("pads", std::vector<int64_t>(2 * axes, 0));
    if (pads.size() != 2 * axes) n.fail("'pads' needs " + std::to_string(2 * axes) + " entries, not " + std::to_string(pads.size()));
    for (size_t i = 0; i < axes; ++i) {
      w.before[i] = pads[i];
      w.after[i] = pads[axes + i];
      if (std::min(pads[i], pads[axes + i]) < -(1 << 20) || std::max(pads[i], pads[axes + i]) > (1 << 20)) n.fail("'pads' is out of range");
    }
    return w;
  }
  if (automatic == "VALID") return w;
  if (automatic != "SAME_UPPER" && automatic != "SAME_LOWER") n.fail("'auto_pad' is '" + automatic + "'");
  for (size_t i = 0; i < axes; ++i) {
    const int64_t size = x.dim(static_cast<int>(i) + 2);
    int64_t total = w.reach(i) - 1;
    if (w.strides[i] != 1) {
      if (size < 0)
        n.unsupported("auto_pad with strides needs a known size of axis " + std::to_string(i + 2) +
                      "; export the model with it, or with 'pads'");
      total = std::max<int64_t>(0, ((size + w.strides[i] - 1) / w.strides[i] - 1) * w.strides[i] + w.reach(i) - size);
    }
    const int64_t less = total / 2;
    w.before[i] = automatic == "SAME_UPPER" ? less : total - less;
    w.after[i] = total - w.before[i];
  }
  return w;
}

std::vector<int64_t> Full(const std::vector<int64_t>& spatial, int64_t others) {
  std::vector<int64_t> full = {others, others};
  full.insert(full.end(), spatial.begin(), spatial.end());
  return full;
}

Value PadSpatial(Builder& b, const Value& x, const std::vector<int64_t>& before, const std::vector<int64_t>& after, const Value& value) {
  std::vector<int64_t> pads = {0, 0, 0, 0}, cut_begin = {0, 0}, cut_end = {0, 0};
  bool padded = false, cut = false;
  for (size_t i = 0; i < before.size(); ++i) {
    pads.push_back(std::max<int64_t>(before[i], 0));
    pads.push_back(std::max<int64_t>(after[i], 0));
    cut_begin.push_back(std::max<int64_t>(-before[i], 0));
    cut_end.push_back(std::min<int64_t>(after[i], 0));
    padded |= before[i] > 0 || after[i] > 0;
    cut |= before[i] < 0 || after[i] < 0;
  }
  Value out = x;
  if (cut) {  // negative paddings crop
    int64_t end_mask = 0;
    for (size_t i = 0; i < cut_end.size(); ++i) {
      if (cut_end[i] == 0) end_mask |= int64_t{1} << i;
    }
    out = b.op("StridedSlice", {out, b.ints(cut_begin), b.ints(cut_end), b.ints(std::vector<int64_t>(cut_end.size(), 1))},
               {{"end_mask", end_mask}});
  }
  if (!padded) return out;
  const Value table = b.reshape(b.ints(pads), Dims{static_cast<int64_t>(before.size()) + 2, 2});
  return b.op("PadV2", {out, table, value});
}

}  // namespace thalweg::onnx
