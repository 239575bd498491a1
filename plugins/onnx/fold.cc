#include "fold.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

namespace thalweg::onnx {
namespace {

bool Computed(uint32_t dtype) {
  return dtype == TW_BOOL || dtype == TW_FLOAT || dtype == TW_DOUBLE || dtype == TW_INT32 || dtype == TW_INT64;
}
bool Real(uint32_t dtype) { return dtype == TW_FLOAT || dtype == TW_DOUBLE; }

Element Int(uint32_t dtype, int64_t v) {
  Element e{true, dtype == TW_INT32 ? static_cast<int32_t>(v) : v, 0};
  if (Real(dtype)) e = {true, 0, dtype == TW_FLOAT ? static_cast<float>(v) : static_cast<double>(v)};
  if (dtype == TW_BOOL) e.i = v != 0;
  return e;
}

Element Float(uint32_t dtype, double v) { return {true, 0, dtype == TW_FLOAT ? static_cast<float>(v) : v}; }

std::vector<int64_t> Strides(const Dims& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

const AttrValue* Find(const Attrs& attrs, std::string_view name) {
  for (const Attr& a : attrs) {
    if (a.name == name) return &a.value;
  }
  return nullptr;
}

template <class T>
T Get(const Attrs& attrs, std::string_view name, T otherwise) {
  const AttrValue* v = Find(attrs, name);
  const T* found = v ? std::get_if<T>(v) : nullptr;
  return found ? *found : otherwise;
}

// The inputs of a fold: all elements, or none.
struct Inputs {
  const std::vector<Value>& in;
  std::optional<Folded> known(size_t i) const { return i < in.size() ? KnownOf(in[i]) : std::nullopt; }
  // Whole integers of a complete input.
  std::optional<std::vector<int64_t>> ints(size_t i) const {
    const std::optional<Folded> k = known(i);
    if (!k || !k->complete() || Real(k->dtype)) return std::nullopt;
    std::vector<int64_t> all;
    for (const Element& e : k->elements) all.push_back(e.i);
    return all;
  }
};

using Result = std::optional<Folded>;

bool OneEach(std::initializer_list<const std::optional<std::vector<int64_t>>*> all) {
  return std::all_of(all.begin(), all.end(), [](const auto* v) { return *v && (*v)->size() == 1; });
}

bool Broadcast(const Dims& a, const Dims& b, Dims* out) {
  out->assign(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < out->size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return false;
    (*out)[out->size() - 1 - i] = x == 1 ? y : x;
  }
  return true;
}

// The element of `from` that broadcasts to flat position `at` of `dims`.
const Element& BroadcastAt(const Folded& from, const Dims& dims, int64_t at) {
  const std::vector<int64_t> strides = Strides(dims), own = Strides(from.dims);
  int64_t index = 0;
  const size_t lead = dims.size() - from.dims.size();
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t position = at / strides[i];
    at %= strides[i];
    if (i >= lead && from.dims[i - lead] != 1) index += position * own[i - lead];
  }
  return from.elements[static_cast<size_t>(index)];
}

// ---- Element by element ----

std::optional<double> RealBinary(std::string_view op, double x, double y) {
  if (op == "AddV2" || op == "Add") return x + y;
  if (op == "Sub") return x - y;
  if (op == "Mul") return x * y;
  if (op == "Div" || op == "RealDiv") return x / y;
  if (op == "Maximum") return std::max(x, y);
  if (op == "Minimum") return std::min(x, y);
  return std::nullopt;
}

std::optional<int64_t> IntBinary(std::string_view op, int64_t x, int64_t y) {
  const auto ux = static_cast<uint64_t>(x), uy = static_cast<uint64_t>(y);
  if (op == "AddV2" || op == "Add") return static_cast<int64_t>(ux + uy);
  if (op == "Sub") return static_cast<int64_t>(ux - uy);
  if (op == "Mul") return static_cast<int64_t>(ux * uy);
  if (op == "Maximum") return std::max(x, y);
  if (op == "Minimum") return std::min(x, y);
  if (y == 0 || y == -1) return std::nullopt;
  int64_t quotient = x / y, rest = x % y;
  if (op == "TruncateDiv" || op == "Div") return quotient;
  if (op == "TruncateMod" || op == "Mod") return rest;
  if (rest != 0 && (rest < 0) != (y < 0)) --quotient, rest += y;
  if (op == "FloorDiv") return quotient;
  if (op == "FloorMod") return rest;
  return std::nullopt;
}

template <class T>
std::optional<bool> Compare(std::string_view op, T x, T y) {
  if (op == "Equal") return x == y;
  if (op == "NotEqual") return x != y;
  if (op == "Less") return x < y;
  if (op == "LessEqual") return x <= y;
  if (op == "Greater") return x > y;
  if (op == "GreaterEqual") return x >= y;
  return std::nullopt;
}

Result Binary(std::string_view op, const Inputs& in) {
  const Result x = in.known(0), y = in.known(1);
  Folded out;
  if (!x || !y || x->dtype != y->dtype || !Broadcast(x->dims, y->dims, &out.dims)) return std::nullopt;
  const int64_t count = CountOf(out.dims);
  if (count > kMostFolded) return std::nullopt;
  const bool logical = op == "LogicalAnd" || op == "LogicalOr";
  const bool compare = Compare<int64_t>(op, 0, 0).has_value();
  out.dtype = compare || logical ? static_cast<uint32_t>(TW_BOOL) : x->dtype;
  for (int64_t i = 0; i < count; ++i) {
    const Element &a = BroadcastAt(*x, out.dims, i), &b = BroadcastAt(*y, out.dims, i);
    Element e;
    if (a.known && b.known) {
      if (logical) {
        e = Int(TW_BOOL, op == "LogicalAnd" ? a.i && b.i : a.i || b.i);
      } else if (compare) {
        e = Int(TW_BOOL, *(Real(x->dtype) ? Compare(op, a.f, b.f) : Compare(op, a.i, b.i)));
      } else if (Real(x->dtype)) {
        const std::optional<double> v = RealBinary(op, a.f, b.f);
        if (!v) return std::nullopt;
        e = Float(out.dtype, *v);
      } else {
        const std::optional<int64_t> v = IntBinary(op, a.i, b.i);
        if (!v) return std::nullopt;
        e = Int(out.dtype, *v);
      }
    }
    out.elements.push_back(e);
  }
  return out;
}

Result Unary(std::string_view op, const Inputs& in) {
  Result x = in.known(0);
  if (!x || (!Real(x->dtype) && (op == "Floor" || op == "Ceil" || op == "Sqrt"))) return std::nullopt;
  for (Element& e : x->elements) {
    if (!e.known) continue;
    if (op == "LogicalNot")
      e = Int(TW_BOOL, !e.i);
    else if (op == "Neg")
      e = Real(x->dtype) ? Float(x->dtype, -e.f) : Int(x->dtype, static_cast<int64_t>(-static_cast<uint64_t>(e.i)));
    else if (op == "Abs")
      e = Real(x->dtype) ? Float(x->dtype, std::fabs(e.f))
                         : Int(x->dtype, e.i < 0 ? static_cast<int64_t>(-static_cast<uint64_t>(e.i)) : e.i);
    else if (op == "Floor")
      e = Float(x->dtype, std::floor(e.f));
    else if (op == "Ceil")
      e = Float(x->dtype, std::ceil(e.f));
    else if (op == "Sqrt")
      e = Float(x->dtype, std::sqrt(e.f));
  }
  return x;
}

Result CastTo(const Inputs& in, const Attrs& attrs) {
  Result x = in.known(0);
  const uint32_t to = Get(attrs, "DstT", Type{0}).dtype;
  if (!x || !Computed(to)) return std::nullopt;
  for (Element& e : x->elements) {
    if (!e.known) continue;
    if (!Real(x->dtype)) {
      e = Int(to, e.i);
    } else if (Real(to)) {
      e = Float(to, e.f);
    } else if (to == TW_BOOL) {
      e = Int(to, e.f != 0);
    } else if (std::fabs(e.f) < (to == TW_INT32 ? 2147483648.0 : 9.2e18)) {
      e = Int(to, static_cast<int64_t>(e.f));
    } else {
      return std::nullopt;
    }
  }
  x->dtype = to;
  return x;
}

// ---- Structure ----

Result ShapeOf(const Inputs& in, const Attrs& attrs) {
  if (in.in[0].kind() != Value::Kind::kTensor || in.in[0].rank() < 0) return std::nullopt;
  Folded out{Get(attrs, "out_type", Type{TW_INT32}).dtype, {in.in[0].rank()}, {}};
  for (const int64_t d : in.in[0].dims()) out.elements.push_back(d < 0 ? Element{} : Int(out.dtype, d));
  return out;
}

Result Counted(std::string_view op, const Inputs& in, const Attrs& attrs) {
  const Value& v = in.in[0];
  const int64_t n = op == "Rank" ? v.rank() : v.count();
  const uint32_t dtype = op == "Rank" ? static_cast<uint32_t>(TW_INT32) : Get(attrs, "out_type", Type{TW_INT32}).dtype;
  if (n < 0) return std::nullopt;
  return Folded{dtype, {}, {Int(dtype, n)}};
}

Result Gather(const Inputs& in) {
  const Result x = in.known(0), index = in.known(1);
  const auto axes = in.ints(2);
  if (!x || !index || !index->complete() || Real(index->dtype) || !axes || axes->size() != 1 || x->dims.empty()) return std::nullopt;
  const auto rank = static_cast<int64_t>(x->dims.size());
  const int64_t axis = (*axes)[0] < 0 ? (*axes)[0] + rank : (*axes)[0];
  if (axis < 0 || axis >= rank) return std::nullopt;
  const auto at = static_cast<size_t>(axis);
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < at; ++i) outer *= x->dims[i];
  for (size_t i = at + 1; i < x->dims.size(); ++i) inner *= x->dims[i];
  Folded out{x->dtype, {}, {}};
  out.dims.assign(x->dims.begin(), x->dims.begin() + axis);
  out.dims.insert(out.dims.end(), index->dims.begin(), index->dims.end());
  out.dims.insert(out.dims.end(), x->dims.begin() + axis + 1, x->dims.end());
  if (outer * inner * static_cast<int64_t>(index->elements.size()) > kMostFolded) return std::nullopt;
  for (int64_t o = 0; o < outer; ++o) {
    for (const Element& e : index->elements) {
      if (e.i < 0 || e.i >= x->dims[at]) return std::nullopt;
      for (int64_t i = 0; i < inner; ++i) out.elements.push_back(x->elements[static_cast<size_t>((o * x->dims[at] + e.i) * inner + i)]);
    }
  }
  return out;
}

Result Join(std::string_view op, const Inputs& in, const Attrs& attrs) {
  const bool pack = op == "Pack";
  const size_t n = in.in.size() - (pack ? 0 : 1);
  int64_t axis = Get<int64_t>(attrs, "axis", 0);
  if (!pack) {
    const auto axes = in.ints(n);
    if (!axes || axes->size() != 1) return std::nullopt;
    axis = (*axes)[0];
  }
  std::vector<Folded> parts;
  bool any = false;
  for (size_t i = 0; i < n; ++i) {
    Result part = in.known(i);
    if (!part) {  // a part of which nothing is known, such as one symbolic size
      const Value& v = in.in[i];
      if (!Computed(v.dtype()) || v.count() < 0 || v.count() > kMostFolded) return std::nullopt;
      part = Folded{v.dtype(), v.dims(), std::vector<Element>(static_cast<size_t>(v.count()))};
    } else {
      any = true;
    }
    const auto rank = static_cast<int64_t>(part->dims.size());
    if (pack) part->dims.insert(part->dims.begin() + (axis < 0 ? axis + rank + 1 : axis), 1);
    parts.push_back(std::move(*part));
  }
  if (!any || parts.empty()) return std::nullopt;
  const auto rank = static_cast<int64_t>(parts[0].dims.size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return std::nullopt;
  const auto at = static_cast<size_t>(axis);
  Folded out{parts[0].dtype, parts[0].dims, {}};
  out.dims[at] = 0;
  int64_t outer = 1;
  for (size_t i = 0; i < at; ++i) outer *= out.dims[i];
  for (const Folded& p : parts) {
    if (p.dims.size() != out.dims.size() || p.dtype != out.dtype) return std::nullopt;
    out.dims[at] += p.dims[at];
  }
  if (CountOf(out.dims) > kMostFolded) return std::nullopt;
  for (int64_t o = 0; o < outer; ++o) {
    for (const Folded& p : parts) {
      const auto piece = static_cast<int64_t>(p.elements.size()) / (outer ? outer : 1);
      out.elements.insert(out.elements.end(), p.elements.begin() + o * piece, p.elements.begin() + (o + 1) * piece);
    }
  }
  return out;
}

Result Expand(const Inputs& in) {
  Result x = in.known(0);
  const auto axis = in.ints(1);
  if (!x || !axis || axis->size() != 1) return std::nullopt;
  const auto rank = static_cast<int64_t>(x->dims.size()) + 1;
  const int64_t at = (*axis)[0] < 0 ? (*axis)[0] + rank : (*axis)[0];
  if (at < 0 || at >= rank) return std::nullopt;
  x->dims.insert(x->dims.begin() + at, 1);
  return x;
}

Result Squeeze(const Inputs& in, const Attrs& attrs) {
  Result x = in.known(0);
  if (!x) return std::nullopt;
  const std::vector<int64_t> axes = Get(attrs, "squeeze_dims", std::vector<int64_t>{});
  const auto rank = static_cast<int64_t>(x->dims.size());
  Dims dims;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t size = x->dims[static_cast<size_t>(i)];
    const bool named =
        axes.empty() ? size == 1 : std::count(axes.begin(), axes.end(), i) + std::count(axes.begin(), axes.end(), i - rank) > 0;
    if (named && size != 1) return std::nullopt;
    if (!named) dims.push_back(size);
  }
  x->dims = dims;
  return x;
}

Result Reshape(const Inputs& in) {
  Result x = in.known(0);
  const auto to = in.ints(1);
  if (!x || !to) return std::nullopt;
  int64_t known = 1, free = 0;
  for (const int64_t d : *to) {
    free += d < 0;
    if (d >= 0 && __builtin_mul_overflow(known, d, &known)) return std::nullopt;
  }
  const auto count = static_cast<int64_t>(x->elements.size());
  if (free > 1 || (free && (known == 0 || count % known)) || (!free && known != count)) return std::nullopt;
  x->dims = *to;
  for (int64_t& d : x->dims) {
    if (d < 0) d = count / known;
  }
  return x;
}

Result StridedSlice(const Inputs& in, const Attrs& attrs) {
  const Result x = in.known(0);
  const auto begin = in.ints(1), end = in.ints(2), strides = in.ints(3);
  if (!x || x->dims.size() != 1 || !OneEach({&begin, &end, &strides}) || (*strides)[0] == 0) return std::nullopt;
  if (Get<int64_t>(attrs, "ellipsis_mask", 0) || Get<int64_t>(attrs, "new_axis_mask", 0)) return std::nullopt;
  const int64_t n = x->dims[0], step = (*strides)[0];
  const bool shrink = Get<int64_t>(attrs, "shrink_axis_mask", 0) & 1;
  auto clamp = [&](int64_t v) {
    if (v < 0) v += n;
    return step > 0 ? std::clamp<int64_t>(v, 0, n) : std::clamp<int64_t>(v, -1, n - 1);
  };
  if (shrink) {
    const int64_t at = (*begin)[0] < 0 ? (*begin)[0] + n : (*begin)[0];
    if (at < 0 || at >= n) return std::nullopt;
    return Folded{x->dtype, {}, {x->elements[static_cast<size_t>(at)]}};
  }
  const int64_t from = Get<int64_t>(attrs, "begin_mask", 0) & 1 ? (step > 0 ? 0 : n - 1) : clamp((*begin)[0]);
  const int64_t to = Get<int64_t>(attrs, "end_mask", 0) & 1 ? (step > 0 ? n : -1) : clamp((*end)[0]);
  Folded out{x->dtype, {0}, {}};
  for (int64_t i = from; step > 0 ? i < to : i > to;) {
    out.elements.push_back(x->elements[static_cast<size_t>(i)]);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  out.dims[0] = static_cast<int64_t>(out.elements.size());
  return out;
}

Result Slice(const Inputs& in) {
  const Result x = in.known(0);
  const auto begin = in.ints(1), size = in.ints(2);
  if (!x || x->dims.size() != 1 || !OneEach({&begin, &size})) return std::nullopt;
  const int64_t from = (*begin)[0], n = (*size)[0] < 0 ? x->dims[0] - from : (*size)[0];
  if (from < 0 || n < 0 || n > x->dims[0] - from) return std::nullopt;
  return Folded{x->dtype, {n}, {x->elements.begin() + from, x->elements.begin() + from + n}};
}

Result Range(const Inputs& in) {
  const auto first = in.ints(0), limit = in.ints(1), delta = in.ints(2);
  if (!OneEach({&first, &limit, &delta}) || (*delta)[0] == 0) return std::nullopt;
  Folded out{in.in[0].dtype(), {0}, {}};
  for (int64_t i = (*first)[0]; (*delta)[0] > 0 ? i < (*limit)[0] : i > (*limit)[0];) {
    out.elements.push_back(Int(out.dtype, i));
    if (out.elements.size() > kMostFolded || __builtin_add_overflow(i, (*delta)[0], &i)) return std::nullopt;
  }
  out.dims[0] = static_cast<int64_t>(out.elements.size());
  return out;
}

// A reduction over all axes of a vector.
Result Reduce(std::string_view op, const Inputs& in, const Attrs& attrs) {
  const Result x = in.known(0);
  const auto axes = in.ints(1);
  if (!x || !x->complete() || Real(x->dtype) || x->dims.size() != 1 || !axes || axes->size() != 1 || x->elements.empty())
    return std::nullopt;
  int64_t total = x->elements[0].i;
  for (size_t i = 1; i < x->elements.size(); ++i) {
    const std::optional<int64_t> next = IntBinary(op == "Prod"  ? "Mul"
                                                  : op == "Sum" ? "Add"
                                                  : op == "Max" ? "Maximum"
                                                                : "Minimum",
                                                  total, x->elements[i].i);
    total = *next;
  }
  return Folded{x->dtype, Get(attrs, "keep_dims", false) ? Dims{1} : Dims{}, {Int(x->dtype, total)}};
}

Result Select(const Inputs& in) {
  const Result c = in.known(0), x = in.known(1), y = in.known(2);
  Folded out;
  Dims half;
  if (!c || !c->complete() || !x || !y || x->dtype != y->dtype || !Broadcast(x->dims, y->dims, &half) ||
      !Broadcast(half, c->dims, &out.dims))
    return std::nullopt;
  out.dtype = x->dtype;
  const int64_t count = CountOf(out.dims);
  if (count > kMostFolded) return std::nullopt;
  for (int64_t i = 0; i < count; ++i) out.elements.push_back(BroadcastAt(BroadcastAt(*c, out.dims, i).i ? *x : *y, out.dims, i));
  return out;
}

Result Filled(std::string_view op, const Inputs& in) {
  const bool fill = op == "Fill";
  const auto dims = in.ints(fill ? 0 : 1);
  const Result x = in.known(fill ? 1 : 0);
  Folded out;
  if (!dims || !x) return std::nullopt;
  int64_t count = 1;
  for (const int64_t d : *dims) {
    if (d < 0 || d > kMostFolded) return std::nullopt;
    count *= d;
    if (count > kMostFolded) return std::nullopt;
  }
  if (!Broadcast(x->dims, *dims, &out.dims) || out.dims != *dims) return std::nullopt;
  out.dtype = x->dtype;
  for (int64_t i = 0; i < count; ++i) out.elements.push_back(BroadcastAt(*x, out.dims, i));
  return out;
}

}  // namespace

bool Folded::complete() const {
  return std::all_of(elements.begin(), elements.end(), [](const Element& e) { return e.known; });
}

Tensor Folded::tensor() const {
  if (Real(dtype)) {
    std::vector<double> all;
    for (const Element& e : elements) all.push_back(e.f);
    return Tensor::Vector(dtype, all).Reshaped(dims);
  }
  std::vector<int64_t> all;
  for (const Element& e : elements) all.push_back(e.i);
  return Tensor::Vector(dtype, all).Reshaped(dims);
}

std::optional<Folded> KnownOf(const Value& v) {
  if (!v || v.kind() != Value::Kind::kTensor || !v.known() || !v.static_shape() || !Computed(v.dtype())) return std::nullopt;
  for (const int64_t d : v.dims()) {
    if (d > kMostFolded) return std::nullopt;  // beside an axis of size 0
  }
  return Folded{v.dtype(), v.dims(), *v.known()};
}

std::optional<Folded> Fold(std::string_view op, const std::vector<Value>& in, const Attrs& attrs) {
  const Inputs inputs{in};
  using Handler = Result (*)(std::string_view, const Inputs&, const Attrs&);
  static const auto* handlers = [] {
    auto* made = new std::map<std::string_view, Handler>;
    const Handler binary = [](std::string_view o, const Inputs& i, const Attrs&) { return Binary(o, i); };
    for (const char* name :
         {"AddV2",   "Add",     "Sub",   "Mul",      "Div",  "RealDiv",   "TruncateDiv", "FloorDiv",     "TruncateMod", "FloorMod", "Mod",
          "Maximum", "Minimum", "Equal", "NotEqual", "Less", "LessEqual", "Greater",     "GreaterEqual", "LogicalAnd",  "LogicalOr"}) {
      (*made)[name] = binary;
    }
    const Handler unary = [](std::string_view o, const Inputs& i, const Attrs&) { return Unary(o, i); };
    for (const char* name : {"LogicalNot", "Neg", "Abs", "Floor", "Ceil", "Sqrt", "Identity"}) (*made)[name] = unary;
    const Handler reduce = [](std::string_view o, const Inputs& i, const Attrs& a) { return Reduce(o, i, a); };
    for (const char* name : {"Prod", "Sum", "Max", "Min"}) (*made)[name] = reduce;
    (*made)["Cast"] = [](std::string_view, const Inputs& i, const Attrs& a) { return CastTo(i, a); };
    (*made)["Shape"] = [](std::string_view, const Inputs& i, const Attrs& a) { return ShapeOf(i, a); };
    (*made)["Size"] = (*made)["Rank"] = [](std::string_view o, const Inputs& i, const Attrs& a) { return Counted(o, i, a); };
    (*made)["GatherV2"] = [](std::string_view, const Inputs& i, const Attrs&) { return Gather(i); };
    (*made)["ConcatV2"] = (*made)["Pack"] = [](std::string_view o, const Inputs& i, const Attrs& a) { return Join(o, i, a); };
    (*made)["ExpandDims"] = [](std::string_view, const Inputs& i, const Attrs&) { return Expand(i); };
    (*made)["Squeeze"] = [](std::string_view, const Inputs& i, const Attrs& a) { return Squeeze(i, a); };
    (*made)["Reshape"] = [](std::string_view, const Inputs& i, const Attrs&) { return Reshape(i); };
    (*made)["StridedSlice"] = [](std::string_view, const Inputs& i, const Attrs& a) { return StridedSlice(i, a); };
    (*made)["Slice"] = [](std::string_view, const Inputs& i, const Attrs&) { return Slice(i); };
    (*made)["Range"] = [](std::string_view, const Inputs& i, const Attrs&) { return Range(i); };
    (*made)["SelectV2"] = [](std::string_view, const Inputs& i, const Attrs&) { return Select(i); };
    (*made)["Fill"] = (*made)["BroadcastTo"] = [](std::string_view o, const Inputs& i, const Attrs&) { return Filled(o, i); };
    return made;
  }();
  if (in.empty()) return std::nullopt;
  const auto found = handlers->find(op);
  return found == handlers->end() ? std::nullopt : found->second(op, inputs, attrs);
}

}  // namespace thalweg::onnx
