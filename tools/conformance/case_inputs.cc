#include "tools/conformance/case_inputs.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "framework/base/dtype.h"
#include "tools/conformance/numbers.h"

namespace thalweg::conformance {
namespace {

double Data(uint64_t i) { return double((i * 7 + 3) % 11) / 4 - 1; }
double Whole(uint64_t i) { return double((i * 5 + 1) % 4); }
double Zero(uint64_t) { return 0; }
double Index(uint64_t i) { return double(i % 2); }
double One(uint64_t) { return 1; }
double Up(uint64_t i) { return double(i); }
double Two(uint64_t) { return 2; }
using Fill = double (*)(uint64_t);
constexpr Fill kIndexFills[] = {Zero, Index, One, Up, Two};

bool IsWhole(uint32_t dtype) {
  switch (dtype) {
    case TW_FLOAT:
    case TW_DOUBLE:
    case TW_HALF:
    case TW_BFLOAT16:
    case TW_COMPLEX64:
    case TW_COMPLEX128: return false;
    default: return true;
  }
}

const std::vector<Dims> kIndexShapes = {{}, {1}, {2}, {3}, {4}, {2, 2}, {4, 2}, {2, 1}, {0}};

// Returns true if an attribute allows only int32 and int64; its inputs are then counts or indices.
bool IsIndex(const std::vector<uint32_t>& allowed) {
  return !allowed.empty() && std::all_of(allowed.begin(), allowed.end(), [](uint32_t t) { return t == TW_INT32 || t == TW_INT64; });
}

// The sizes of the names and stars in the schema's dims.
struct Sizes {
  std::map<std::string, int64_t> names;
  std::map<std::string, Dims> stars;
};
Dims FromPattern(const ArgSpec& arg, size_t variant, Sizes* sizes) {
  static const int64_t kNamed[][4] = {{3, 4, 5, 2}, {1, 7, 1, 3}, {0, 2, 3, 1}, {17, 9, 33, 5}};
  static const Dims kStars[] = {{2, 3}, {}, {0, 3}, {5}};
  Dims out;
  for (const DimPattern& d : arg.dims) {
    switch (d.kind) {
      case DimPattern::kSize: out.push_back(d.size); break;
      case DimPattern::kAny: out.push_back(2); break;
      case DimPattern::kName:
        out.push_back(sizes->names.emplace(d.name, kNamed[variant % 4][sizes->names.size() % 4]).first->second);
        break;
      case DimPattern::kStar: {
        const Dims& star = sizes->stars.emplace(d.name, kStars[variant % 4]).first->second;
        out.insert(out.end(), star.begin(), star.end());
      }
    }
  }
  return out;
}

}  // namespace

size_t IndexShapes() { return kIndexShapes.size(); }
size_t IndexValues() { return std::size(kIndexFills); }

bool FlatInputs(const OpSchema& op, const Attrs& attrs, std::vector<Input>* out) {
  for (const ArgSpec& arg : op.inputs) {
    auto type_of = [&](const std::string& attr) -> uint32_t {
      auto at = attrs.find(attr);
      if (at != attrs.end()) return at->second.types()[0];
      const int a = op.FindAttr(attr);
      return a >= 0 && op.attrs[size_t(a)].has_default ? op.attrs[size_t(a)].default_value.types()[0] : 0;
    };
    if (arg.ref) return false;
    std::vector<uint32_t> types;
    if (!arg.list_attr.empty()) {
      auto at = attrs.find(arg.list_attr);
      if (at == attrs.end()) return false;
      types.assign(at->second.types().begin(), at->second.types().end());
    } else {
      int64_t n = 1;
      if (!arg.number_attr.empty()) {
        auto at = attrs.find(arg.number_attr);
        if (at == attrs.end()) return false;
        n = at->second.ints()[0];
      }
      types.assign(size_t(n), arg.type_attr.empty() ? arg.dtype : type_of(arg.type_attr));
    }
    bool index = arg.type_attr.empty() && (arg.dtype == TW_INT32 || arg.dtype == TW_INT64);
    if (const int a = op.FindAttr(arg.type_attr); a >= 0 && !op.attrs[size_t(a)].types.empty()) {
      index = IsIndex(op.attrs[size_t(a)].types);
    }
    for (uint32_t t : types) {
      const DTypeInfo* info = FindDType(t);
      if (!info || (!info->plain && t != TW_STRING && t != TW_RESOURCE)) return false;
      out->push_back({&arg, t, index});
    }
  }
  return true;
}

std::vector<std::vector<Dims>> DataShapes(size_t n) {
  std::vector<std::vector<Dims>> all;
  const auto same = [&](std::vector<Dims> dims) {
    for (Dims& d : dims) all.push_back(std::vector<Dims>(n, std::move(d)));
  };
  if (n < 2) {
    same({{2, 3}, {}, {7}, {0, 3}, {2, 5, 5, 3}, {2, 3, 4}, {33, 17}, {1, 1}});
    return all;
  }
  // Shapes that broadcast are among the first, so that every effort tries them.
  const auto pairs = [&](const std::vector<std::pair<Dims, Dims>>& some) {
    for (const auto& [first, others] : some) {
      all.push_back(std::vector<Dims>(n, others));
      all.back()[0] = first;
      if (n == 2) continue;
      all.push_back(all.back());  // the last input has the shape of the first
      all.back().back() = first;
    }
  };
  same({{2, 3}});
  pairs({{{2, 3}, {3}}, {{2, 1}, {1, 3}}});
  same({{}, {0, 3}});
  pairs({{{2, 3}, {}}, {{3, 4}, {4, 5}}, {{}, {2, 3}}, {{0, 3}, {3}}});
  same({{7}, {2, 5, 5, 3}, {2, 3, 4}});
  pairs({{{2, 5, 5, 3}, {3, 3, 3, 4}},
         {{4, 3}, {4}},
         {{2, 3, 4}, {2, 4, 5}},
         {{7}, {}},
         {{5, 3}, {2, 3}},
         {{2, 4, 4, 3}, {2, 2, 3, 5}},
         {{1, 7}, {7, 1}},
         {{4, 2}, {2}},
         {{2, 4, 5, 3}, {3}},
         {{2, 3, 4, 5}, {3}},
         {{2, 3, 5, 5}, {3, 3, 3, 4}}});
  same({{33, 17}, {1, 1}});
  return all;
}

std::vector<std::vector<Dims>> StateShapes(size_t n) {
  const std::pair<Dims, Dims> pairs[] = {{{2, 3}, {2, 3}}, {{5, 3}, {2, 3}}, {{}, {}}, {{7}, {7}}, {{0, 3}, {0, 3}}, {{33, 17}, {33, 17}}};
  std::vector<std::vector<Dims>> all;
  for (const auto& [variable, data] : pairs) {
    if (n != 1) all.push_back(std::vector<Dims>(n, data));
    for (size_t i = n; i-- > 0;) {
      all.push_back(std::vector<Dims>(n));
      all.back()[i] = data;
    }
    for (std::vector<Dims>& shapes : all) {
      if (shapes.size() == n) shapes.push_back(variable);
    }
  }
  return all;
}

Status Propose(const std::vector<Input>& inputs, const Lead& lead, const std::vector<Dims>& data, size_t d, size_t i, size_t v, Case* c) {
  Sizes sizes;
  size_t free_data = 0;
  std::vector<Dims> shapes;
  for (const Input& in : inputs) {
    if (in.handle()) {
      shapes.emplace_back();
    } else if (in.arg->has_dims) {
      shapes.push_back(FromPattern(*in.arg, d, &sizes));
    } else {
      shapes.push_back(in.index ? kIndexShapes[i] : data[std::min(free_data++, data.size() - 1)]);
    }
  }
  const Dims& of_variables = lead.like >= 0 ? shapes[size_t(lead.like)] : data.back();
  for (size_t n = 0; n < inputs.size(); ++n) {
    const Input& in = inputs[n];
    if (in.handle()) {
      Held& held = c->held[uint32_t(n)];
      if (lead.variable(in)) {
        const bool last = n + 1 == inputs.size() || !inputs[n + 1].handle();
        const uint32_t dtype = last && lead.last ? lead.last : lead.dtype;
        ASSIGN_OR_RETURN(held.value, TensorOf(dtype, Shape(of_variables), IsWhole(dtype) ? Whole : Data));
      } else {
        held.maker = in.arg->resource.empty() ? lead.maker : lead.makers.at(in.arg->resource);
      }
      ASSIGN_OR_RETURN(Tensor handle, Tensor::Make(TW_RESOURCE, nullptr, 0));
      c->inputs.push_back(std::move(handle));
      continue;
    }
    const Fill fill = in.index ? kIndexFills[v] : IsWhole(in.dtype) ? Whole : Data;
    ASSIGN_OR_RETURN(Tensor t, TensorOf(in.dtype, Shape(shapes[n]), fill));
    c->inputs.push_back(std::move(t));
  }
  return Status();
}

namespace {

// Returns element types to try for variables, the likeliest first. The schema has types of inputs only.
std::vector<uint32_t> VariableTypes(const World& world, const OpSchema& op, const Attrs& attrs, const std::vector<Input>& inputs) {
  for (const AttrSpec& spec : op.attrs) {
    const auto at = attrs.find(spec.name);
    if (spec.kind != TW_ATTR_TYPE || spec.list || IsIndex(spec.types)) continue;
    if (at != attrs.end() || spec.has_default) return {(at != attrs.end() ? at->second : spec.default_value).types()[0]};
  }
  const auto data = std::find_if(inputs.begin(), inputs.end(), [](const Input& in) { return !in.handle() && !in.index; });
  std::vector<uint32_t> types = {data != inputs.end() ? data->dtype : uint32_t{TW_FLOAT}};
  if (op.plugin != world.id()) return types;
  for (uint32_t t : {TW_FLOAT, TW_DOUBLE, TW_INT64, TW_INT32}) {
    if (std::find(types.begin(), types.end(), t) == types.end()) types.push_back(t);
  }
  return types;
}

}  // namespace

std::vector<Lead> LeadsOf(const World& world, const OpSchema& op, const Attrs& attrs, const std::vector<Input>& inputs, std::string* why) {
  const bool own = op.plugin == world.id();
  Lead marked;
  bool any_handle = false, any_free = false, any_variable = false;
  for (const Input& in : inputs) {
    if (!in.handle()) continue;
    any_handle = true;
    any_free = any_free || in.arg->resource.empty();
    any_variable = any_variable || in.arg->resource == TW_VARIABLE_TYPE;
    if (!in.arg->resource.empty() && in.arg->resource != TW_VARIABLE_TYPE) marked.makers[in.arg->resource];
  }
  if (!any_handle) return {marked};
  std::vector<std::string> others;  // ops that make possible targets of unmarked handles
  for (const bool exact : {true, false}) {
    for (const OpSchema* maker : world.Ops()) {
      if (!maker->inputs.empty() || maker->outputs.size() != 1 || maker->outputs[0].dtype != TW_RESOURCE) continue;
      const std::string& makes = maker->outputs[0].resource;
      if (makes == TW_VARIABLE_TYPE) continue;
      if (exact) others.push_back(maker->name);
      for (auto& [type, by] : marked.makers) {
        if (by.empty() && (exact ? makes == type : makes.empty())) by = maker->name;
      }
    }
  }
  for (const auto& [type, maker] : marked.makers) {
    if (!maker.empty()) continue;
    *why = StrCat("no op without inputs makes the resource '", type, "' that it takes");
    return {};
  }
  std::vector<Lead> leads;
  for (const std::string& maker : others) {
    if (!own || !any_free) break;
    leads.push_back(marked);
    leads.back().maker = maker;
  }
  if (!any_free && !any_variable) return {marked};
  Lead variable = marked;
  for (uint32_t dtype : VariableTypes(world, op, attrs, inputs)) {
    variable.dtype = dtype;
    for (uint32_t last : {0u, uint32_t{TW_INT64}, uint32_t{TW_INT32}}) {
      variable.last = last;
      if (last && !own) break;
      for (size_t i = 0; i < inputs.size(); ++i) {  // data inputs with dims in the schema may give the variables their shape
        const Input& in = inputs[i];
        if (in.handle() || in.index || in.arg->dims.empty()) continue;
        variable.like = int32_t(i);
        leads.push_back(variable);
      }
      variable.like = -1;
      leads.push_back(variable);
    }
  }
  return leads;
}

}  // namespace thalweg::conformance
