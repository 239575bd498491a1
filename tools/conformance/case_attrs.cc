#include "tools/conformance/case_attrs.h"

#include <algorithm>
#include <utility>

#include "tools/conformance/numbers.h"

namespace thalweg::conformance {
namespace {

double Data(uint64_t i) { return double((i * 7 + 3) % 11) / 4 - 1; }

// Returns the types to try for a type attribute, most informative first. An attribute without a list of
// types allows any.
std::vector<uint32_t> TypesOf(const AttrSpec& spec, uint32_t preferred) {
  if (spec.has_default && preferred == 0) return {spec.default_value.types()[0]};
  static const uint32_t kTelling[] = {TW_FLOAT, TW_INT32, TW_INT64, TW_BOOL, TW_DOUBLE, TW_UINT8, TW_COMPLEX64, TW_STRING, TW_HALF};
  std::vector<uint32_t> out;
  auto allowed = [&](uint32_t t) { return spec.types.empty() || std::find(spec.types.begin(), spec.types.end(), t) != spec.types.end(); };
  if (preferred && allowed(preferred)) out.push_back(preferred);
  for (uint32_t t : kTelling) {
    if (allowed(t) && t != preferred) out.push_back(t);
  }
  if (out.empty()) out.push_back(spec.types.empty() ? uint32_t{TW_FLOAT} : spec.types[0]);
  return out;
}

// Returns values to try for an attribute without a default; most sets use the first one.
std::vector<AttrValue> Choices(const AttrSpec& a, uint32_t preferred) {
  if (a.list) {
    switch (a.kind) {
      case TW_ATTR_INT: return {AttrValue::Ints({1, 1, 1, 1}), AttrValue::Ints({1, 2, 2, 1}), AttrValue::Ints({0})};
      case TW_ATTR_FLOAT: return {AttrValue::Floats({0.5, 1})};
      case TW_ATTR_BOOL: return {AttrValue::Bools({1, 0})};
      case TW_ATTR_STRING: return {AttrValue::Strings({"a", "b"})};
      case TW_ATTR_TYPE: return {AttrValue::Types({TW_FLOAT, TW_INT32})};
      case TW_ATTR_SHAPE: return {AttrValue::Shapes({Shape{2, 3}, Shape{4}})};
      default: return {};
    }
  }
  switch (a.kind) {
    case TW_ATTR_INT: return {AttrValue::Int(a.has_min ? std::max<int64_t>(a.min, 1) : 1)};
    case TW_ATTR_FLOAT: return {AttrValue::Float(0.5)};
    case TW_ATTR_BOOL: return {AttrValue::Bool(false), AttrValue::Bool(true)};
    case TW_ATTR_SHAPE: return {AttrValue::OfShape(Shape{2, 3})};
    case TW_ATTR_STRING: {
      std::vector<AttrValue> all;
      for (const std::string& s : a.strings) all.push_back(AttrValue::String(s));
      if (all.empty()) all.push_back(AttrValue::String("text"));
      return all;
    }
    case TW_ATTR_TYPE: {
      std::vector<AttrValue> all;
      for (uint32_t t : TypesOf(a, preferred)) all.push_back(AttrValue::Type(t));
      return all;
    }
    case TW_ATTR_TENSOR: {
      auto t = TensorOf(TW_FLOAT, Shape{2, 3}, Data);
      if (!t.ok()) return {};
      return {AttrValue::OfTensor(*std::move(t))};
    }
    default: return {};
  }
}

bool IsCount(const OpSchema& op, const std::string& attr) {
  auto counts = [&](const ArgSpec& a) { return a.number_attr == attr || a.list_attr == attr; };
  return std::any_of(op.inputs.begin(), op.inputs.end(), counts);
}

// Returns the attribute that sets the order of the axes, such as NHWC; -1: none.
int LayoutOf(const OpSchema& op) {
  if (op.axes.format >= 0) return op.axes.format;
  const int named = op.FindAttr("data_format");
  return named >= 0 && op.attrs[size_t(named)].kind == TW_ATTR_STRING && !op.attrs[size_t(named)].list ? named : -1;
}

// Puts the lists with an entry for each axis into the order `to`, with values that distinguish the axes.
void ReorderAxes(const OpSchema& op, const std::string& from, const std::string& to, Attrs* attrs) {
  if (from.size() != to.size() || !std::is_permutation(from.begin(), from.end(), to.begin())) return;
  for (int32_t l : op.axes.lists) {
    const AttrSpec& spec = op.attrs[size_t(l)];
    const auto at = attrs->find(spec.name);
    if (spec.kind != TW_ATTR_INT || (at == attrs->end() && !spec.has_default)) continue;
    const AttrValue& value = at != attrs->end() ? at->second : spec.default_value;
    std::vector<int64_t> old(value.ints().begin(), value.ints().end()), now;
    if (old.size() != from.size()) continue;
    if (at != attrs->end() && old.size() == 4) old = {1, 2, 2, 1};  // for NHWC; 1 on all axes would not distinguish them
    for (const char axis : to) now.push_back(old[from.find(axis)]);
    (*attrs)[spec.name] = AttrValue::Ints(std::move(now));
  }
}

std::string LayoutIn(const OpSchema& op, const Attrs& attrs) {
  const int layout = LayoutOf(op);
  if (layout < 0) return "";
  const AttrSpec& spec = op.attrs[size_t(layout)];
  const auto at = attrs.find(spec.name);
  if (at != attrs.end()) return at->second.strings()[0];
  return spec.has_default ? spec.default_value.strings()[0] : "";
}

}  // namespace

bool BindTypes(const OpSchema& op, const KernelSpec& k, Attrs* attrs) {
  auto bind = [&](const std::vector<ArgSpec>& args, const std::vector<uint32_t>& types) {
    for (size_t a = 0; a < args.size() && a < types.size(); ++a) {
      if (types[a] == 0 || args[a].type_attr.empty()) continue;
      auto [at, fresh] = attrs->emplace(args[a].type_attr, AttrValue::Type(types[a]));
      if (!fresh && at->second.types()[0] != types[a]) return false;
    }
    return true;
  };
  return bind(op.inputs, k.in_types) && bind(op.outputs, k.out_types);
}

std::vector<Attrs> AttrSets(const OpSchema& op, const Attrs& bound, uint32_t preferred, std::string* why) {
  Attrs base = bound;
  std::vector<std::pair<std::string, AttrValue>> others;
  for (const AttrSpec& a : op.attrs) {
    if (base.count(a.name)) continue;
    if (IsCount(op, a.name)) {
      base[a.name] =
          a.list ? AttrValue::Types({preferred ? preferred : uint32_t{TW_FLOAT}, TW_INT32}) : AttrValue::Int(std::max<int64_t>(2, a.min));
      continue;
    }
    const bool is_type = a.kind == TW_ATTR_TYPE && !a.list;
    std::vector<AttrValue> choices = Choices(a, is_type ? preferred : 0);
    if (a.has_default && !is_type) {  // the base set leaves it out; others have the alternatives
      if (a.kind == TW_ATTR_BOOL && !a.list) others.emplace_back(a.name, AttrValue::Bool(!a.default_value.bools()[0]));
      for (const std::string& s : a.strings) others.emplace_back(a.name, AttrValue::String(s));
      continue;
    }
    if (choices.empty()) {
      if (why) *why = StrCat("attribute '", a.name, "' is required, and nothing can be made up for its kind");
      return {};
    }
    base[a.name] = choices[0];
    for (size_t i = 1; i < std::min<size_t>(choices.size(), 4); ++i) others.emplace_back(a.name, choices[i]);
  }
  std::vector<Attrs> sets = {base};
  for (const auto& [name, value] : others) {
    sets.push_back(base);
    sets.back()[name] = value;
    if (const std::string from = LayoutIn(op, base), to = LayoutIn(op, sets.back()); from != to) ReorderAxes(op, from, to, &sets.back());
  }
  return sets;
}

bool HasOtherLayout(const OpSchema& op, const Attrs& attrs) { return LayoutIn(op, attrs) != LayoutIn(op, {}); }

}  // namespace thalweg::conformance
