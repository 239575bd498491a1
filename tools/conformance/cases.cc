#include "tools/conformance/cases.h"

#include <algorithm>
#include <set>

#include "framework/base/dtype.h"
#include "framework/graph/shape_inference.h"
#include "tools/conformance/numbers.h"
#include "tools/conformance/run.h"

namespace thalweg::conformance {
namespace {

using Attrs = std::map<std::string, AttrValue>;
using Dims = std::vector<int64_t>;

// ---- values ----

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

// ---- types ----

// The types that a kernel lets an attribute have, the most telling first; 0 entries of the spec are any.
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

// Binds the type attributes that the kernel's spec says. False: the spec cannot be met.
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

// ---- attributes ----

// Values to try for an attribute without a default, the first one in most cases.
std::vector<AttrValue> Choices(const AttrSpec& a, uint32_t preferred) {
  if (a.list) {
    switch (a.kind) {
      case TW_ATTR_INT: return {AttrValue::Ints({1, 1, 1, 1}), AttrValue::Ints({1, 2, 2, 1}), AttrValue::Ints({0})};
      case TW_ATTR_FLOAT: return {AttrValue::Floats({0.5, 1})};
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

// Sets of attributes to try: all at their first choice, then each alternative of one alone.
std::vector<Attrs> AttrSets(const OpSchema& op, const Attrs& bound, uint32_t preferred) {
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
    if (a.has_default && !is_type) {  // left out; then the alternatives
      if (a.kind == TW_ATTR_BOOL && !a.list) others.emplace_back(a.name, AttrValue::Bool(!a.default_value.bools()[0]));
      for (const std::string& s : a.strings) others.emplace_back(a.name, AttrValue::String(s));
      continue;
    }
    if (choices.empty()) return {};
    base[a.name] = choices[0];
    for (size_t i = 1; i < std::min<size_t>(choices.size(), 4); ++i) others.emplace_back(a.name, choices[i]);
  }
  std::vector<Attrs> sets = {base};
  for (const auto& [name, value] : others) {
    sets.push_back(base);
    sets.back()[name] = value;
  }
  return sets;
}

// ---- inputs ----

struct Input {
  const ArgSpec* arg;
  uint32_t dtype;
  bool index;  // numbers that mean places or sizes rather than data
  bool handle() const { return dtype == TW_RESOURCE; }
  bool free() const { return !handle() && !arg->has_dims; }  // nothing says its shape
};

// An attribute that allows nothing but int32 and int64 counts or points.
bool IsIndex(const std::vector<uint32_t>& allowed) {
  return !allowed.empty() && std::all_of(allowed.begin(), allowed.end(), [](uint32_t t) { return t == TW_INT32 || t == TW_INT64; });
}

// The flat inputs under these attributes; empty optional on a type that nothing can be made up for.
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
    // An attribute that allows nothing but int32 and int64 counts or points.
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

// Shapes for the data inputs, tried in this order: one for all, or one for each.
std::vector<std::vector<Dims>> DataShapes(size_t n) {
  std::vector<std::vector<Dims>> all;
  for (const Dims& d : std::vector<Dims>{{2, 3}, {}, {7}, {0, 3}, {2, 5, 5, 3}, {2, 3, 4}, {33, 17}, {1, 1}})
    all.push_back(std::vector<Dims>(n, d));
  if (n < 2) return all;
  const std::vector<std::vector<Dims>> pairs = {{{2, 3}, {3}},
                                                {{2, 3}, {}},
                                                {{3, 4}, {4, 5}},
                                                {{2, 1}, {1, 3}},
                                                {{}, {2, 3}},
                                                {{0, 3}, {3}},
                                                {{2, 5, 5, 3}, {3, 3, 3, 4}},
                                                {{4, 3}, {4}},
                                                {{2, 3, 4}, {2, 4, 5}},
                                                {{7}, {}},
                                                {{5, 3}, {2, 3}},
                                                {{2, 4, 4, 3}, {2, 2, 3, 5}},
                                                {{1, 7}, {7, 1}},
                                                {{4, 2}, {2}}};
  for (const auto& p : pairs) {
    std::vector<Dims> shapes(n, p[1]);
    shapes[0] = p[0];
    all.push_back(shapes);
    if (n > 2) {  // the last as the first
      shapes.back() = p[0];
      all.push_back(shapes);
    }
  }
  return all;
}
// The same for ops on resources: one of the data inputs is as the variables are, or has some of their rows; the others are scalars, as
// the factors of optimizers. The last entry is the variables'.
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
const std::vector<Dims> kIndexShapes = {{}, {1}, {2}, {3}, {4}, {2, 2}, {4, 2}, {2, 1}, {0}};

// Names and stars of the schema's dims, as sizes.
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

// What the handles of a proposal lead to: what an op makes, or variables of a type.
struct Lead {
  std::string maker;
  uint32_t dtype = TW_FLOAT;
  uint32_t last = 0;  // of the last variable, such as a count of steps; 0: as the others
};

// One proposal: shapes by data tuple d, index shape i, index values v.
Status Propose(const std::vector<Input>& inputs, const Lead& lead, const std::vector<Dims>& data, size_t d, size_t i, size_t v, Case* c) {
  Sizes sizes;
  size_t free_data = 0;
  for (const Input& in : inputs) {
    Dims dims;
    if (in.handle()) {
      Held& held = c->held[uint32_t(c->inputs.size())];
      held.maker = lead.maker;
      if (lead.maker.empty()) {
        const bool last = &in == &inputs.back() || !(&in + 1)->handle();
        const uint32_t dtype = last && lead.last ? lead.last : lead.dtype;
        ASSIGN_OR_RETURN(held.value, TensorOf(dtype, Shape(data.back()), IsWhole(dtype) ? Whole : Data));
      }
      ASSIGN_OR_RETURN(Tensor handle, Tensor::Make(TW_RESOURCE, nullptr, 0));
      c->inputs.push_back(std::move(handle));
      continue;
    }
    if (in.arg->has_dims) {
      dims = FromPattern(*in.arg, d, &sizes);
    } else {
      dims = in.index ? kIndexShapes[i] : data[std::min(free_data++, data.size() - 1)];
    }
    const Fill fill = in.index ? kIndexFills[v] : IsWhole(in.dtype) ? Whole : Data;
    ASSIGN_OR_RETURN(Tensor t, TensorOf(in.dtype, Shape(dims), fill));
    c->inputs.push_back(std::move(t));
  }
  return Status();
}

// What the handles of an op may lead to: resources that its plugin makes, if it is not one of the standard ops; variables of the type that
// an attribute says.
std::vector<Lead> LeadsOf(const World& world, const OpSchema& op, const Attrs& attrs, const std::vector<Input>& inputs) {
  const auto first = std::find_if(inputs.begin(), inputs.end(), [](const Input& in) { return in.handle(); });
  if (first == inputs.end()) return {Lead()};
  std::vector<Lead> leads;
  for (const OpSchema* maker : world.Ops()) {
    if (op.plugin != world.id() || !maker->inputs.empty() || maker->outputs.size() != 1 || maker->outputs[0].dtype != TW_RESOURCE) continue;
    const std::string &makes = maker->outputs[0].resource, &takes = first->arg->resource;
    if (makes.empty() || takes.empty() || makes == takes) leads.push_back({maker->name, 0, 0});
  }
  if (!first->arg->resource.empty()) return leads;
  Lead variable;
  for (size_t a = op.attrs.size(); a-- > 0;) {
    const AttrSpec& spec = op.attrs[a];
    const auto at = attrs.find(spec.name);
    if (spec.kind != TW_ATTR_TYPE || spec.list || IsIndex(spec.types)) continue;
    if (at != attrs.end() || spec.has_default) variable.dtype = (at != attrs.end() ? at->second : spec.default_value).types()[0];
  }
  leads.push_back(variable);
  variable.last = TW_INT64;
  if (op.plugin == world.id()) leads.push_back(variable);
  return leads;
}

}  // namespace

std::string Case::text() const {
  std::string text;
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    const auto h = held.find(i);
    const Tensor& t = h != held.end() && h->second.value ? h->second.value : inputs[i];
    text += text.empty() ? "" : ", ";
    if (h != held.end()) text += h->second.maker.empty() ? t.dtype() == TW_RESOURCE ? "an empty variable" : "a variable " : h->second.maker;
    if (t.dtype() != TW_RESOURCE) text += StrCat(DTypeName(t.dtype()), " ", t.shape().text());
  }
  for (const auto& [name, value] : attrs) {
    if (value.kind() != TW_ATTR_TYPE && value.kind() != TW_ATTR_TENSOR) text += StrCat(text.empty() ? "" : ", ", name, "=", value.text());
  }
  return StrCat(op, "(", text, ")");
}

std::vector<Tensor> ValuesOf(const Case& c) {
  std::vector<Tensor> values = c.inputs;
  for (const auto& [i, held] : c.held) values[i] = Tensor();
  return values;
}

StatusOr<const Node*> AddCase(Graph* graph, const Case& c, bool known) {
  NodeSpec spec;
  spec.op = c.op;
  spec.attrs = c.attrs;
  for (const Tensor& t : c.inputs) {
    NodeSpec feed;
    feed.op = "Placeholder";
    feed.attrs["dtype"] = AttrValue::Type(t.dtype());
    feed.attrs["shape"] = AttrValue::OfShape(known ? t.shape() : Shape());
    ASSIGN_OR_RETURN(const Node* node, graph->AddNode(std::move(feed)));
    spec.inputs.push_back({node, 0});
  }
  return graph->AddNode(std::move(spec));
}

CallResult CallKernel(World* world, const Node* node, const KernelDef* kernel, Device* device, const Case& c) {
  return CallKernel(world, node, kernel, device, c.inputs, c.held);
}

StatusOr<std::vector<Tensor>> AskOracle(World* oracle, const Case& c) {
  Graph graph(oracle->runtime_ptr());
  ASSIGN_OR_RETURN(const Node* node, AddCase(&graph, c));
  const KernelDef* kernel = oracle->registry().FindKernel(node->op(), "CPU", node->types(), node->in_at(), node->out_at(), node->attrs());
  if (!kernel) return NotFound("the CPU has no kernel for it");
  CallResult r = CallKernel(oracle, node, kernel, oracle->DeviceOf("CPU"), c);
  RETURN_IF_ERROR(r.status);
  return r.outputs;
}

namespace {

// Whether the kernel takes what the case's handles lead to.
Status Takes(World* world, const KernelDef& k, const Case& c) {
  Device* device = world->DeviceOf(k.spec.kind);
  if (!device) return NotFound("there is no such device");
  Graph graph(world->runtime_ptr());
  ASSIGN_OR_RETURN(const Node* node, AddCase(&graph, c));
  At(c.text());
  return CallKernel(world, node, &k, device, c).status;
}

// Whether the shape rule lets the case pass with all values known.
Status PassesRule(World* world, const Case& c) {
  Graph graph(world->runtime_ptr());
  ASSIGN_OR_RETURN(const Node* node, AddCase(&graph, c));
  std::vector<tw_shape> shapes;
  for (const Tensor& t : c.inputs) shapes.push_back({t.view().dims, t.rank(), 0});
  ShapeAnswer answer;
  std::vector<HandleInfo> infos;
  return InferShapes(*node, shapes, ValuesOf(c), InfosOf(c.held, c.inputs.size(), &infos), &answer);
}

struct Wanted {
  size_t cases;      // at most
  size_t proposals;  // at most
};

// Where cases come from: the oracle and the kernel may be NULL.
struct Sources {
  World *world, *oracle;
  const KernelDef* kernel;
};

// Fills `out` with cases of the op under these attributes, whose handles lead there.
void AddCases(const Sources& from, const OpSchema& op, const Attrs& attrs, const std::vector<Input>& inputs, const Lead& lead,
              const Wanted& wanted, std::vector<Case>* out) {
  const auto count = [&](auto&& is) { return size_t(std::count_if(inputs.begin(), inputs.end(), is)); };
  const size_t free_data = count([](const Input& in) { return !in.index && in.free(); });
  const bool any_handle = count([](const Input& in) { return in.handle(); }) > 0;
  const bool any_index = count([](const Input& in) { return in.index; }) > 0;
  const bool free_index = count([](const Input& in) { return in.index && in.free(); }) > 0;
  const bool patterns = count([](const Input& in) { return !in.handle() && in.arg->has_dims; }) > 0;
  const bool variables = any_handle && lead.maker.empty();
  std::vector<std::vector<Dims>> data = variables ? StateShapes(free_data) : DataShapes(std::max<size_t>(free_data, 1));
  if (free_data == 0 && !variables) data.resize(patterns ? 4 : 1);
  const size_t most = variables ? wanted.proposals * 20 : wanted.proposals;
  size_t made = 0, tried = 0;
  for (size_t d = 0; d < data.size() && made < wanted.cases; ++d) {
    size_t here = 0;  // so that no shape of the data takes all places
    for (size_t i = 0; i < (free_index ? kIndexShapes.size() : 1) && here < 2; ++i) {
      for (size_t v = 0; v < (any_index ? std::size(kIndexFills) : 1) && here < 2 && made < wanted.cases; ++v) {
        if (++tried > most) return;
        Case c{op.name, attrs, {}, {}, {}};
        if (!Propose(inputs, lead, data[d], d, i, v, &c).ok()) return;
        if (!PassesRule(from.world, c).ok()) continue;
        if (from.oracle) {
          auto results = AskOracle(from.oracle, c);
          if (!results.ok()) continue;
          c.results = *std::move(results);
        } else if (any_handle && from.kernel && !Takes(from.world, *from.kernel, c).ok()) {
          continue;
        }
        out->push_back(std::move(c));
        ++made;
        ++here;
      }
    }
  }
}

// It finds what it works on by name alone, here or in another process, and may keep what it is given where nobody can take it out again.
bool KeepsByName(const OpSchema& op) {
  const auto handle = [](const ArgSpec& a) { return a.dtype == TW_RESOURCE; };
  if (op.FindAttr("send_device") >= 0) return true;
  return op.FindAttr("shared_name") >= 0 && std::none_of(op.inputs.begin(), op.inputs.end(), handle) &&
         std::none_of(op.outputs.begin(), op.outputs.end(), handle);
}

void AddCases(const Sources& from, const OpSchema& op, const Attrs& attrs, const Wanted& wanted, std::vector<Case>* out) {
  std::vector<Input> inputs;
  if (KeepsByName(op) || !FlatInputs(op, attrs, &inputs)) return;
  const size_t before = out->size();
  for (const Lead& lead : LeadsOf(*from.world, op, attrs, inputs)) {
    if (out->size() == before) AddCases(from, op, attrs, inputs, lead, wanted, out);
  }
}

std::string KeyOf(const OpSchema& op, const Attrs& bound, bool with_results) {
  std::string key = StrCat(op.name, with_results ? "!" : "?");
  for (const auto& [name, value] : bound) key += StrCat(";", name, "=", value.text());
  return key;
}

}  // namespace

const std::vector<Case>& CaseBook::For(const KernelDef& kernel, bool with_results) {
  const OpSchema& op = *kernel.op;
  Attrs bound;
  const bool possible = BindTypes(op, kernel.spec, &bound);
  auto [at, fresh] = made_.try_emplace(KeyOf(op, bound, with_results));
  constexpr int kEnough = 2;
  int& barren = barren_[op.name];
  if (!fresh || !possible || (barren == kEnough && effort_ != Effort::kFull)) return at->second;
  static constexpr Wanted kFirst[] = {{1, 120}, {6, 300}, {20, 1500}}, kOther[] = {{0, 0}, {1, 120}, {4, 600}};
  const auto effort = size_t(!with_results && effort_ == Effort::kUsual ? Effort::kBrief : effort_);  // one is enough to be called
  const Wanted &first = kFirst[effort], &other = kOther[effort];
  const Sources from = {with_results ? oracle_ : world_, with_results ? oracle_ : nullptr, &kernel};
  bool is_first = true;
  for (const Attrs& attrs : AttrSets(op, bound, 0)) {
    AddCases(from, op, attrs, is_first || at->second.empty() ? first : other, &at->second);
    is_first = false;
    if (effort == size_t(Effort::kBrief) && !at->second.empty()) break;
  }
  barren += at->second.empty();
  return at->second;
}

std::vector<Case> CaseBook::ForOp(const OpSchema& op, uint32_t preferred_dtype) {
  std::vector<Case> out;
  bool first = true;
  for (const Attrs& attrs : AttrSets(op, {}, preferred_dtype)) {
    AddCases({world_, nullptr, nullptr}, op, attrs, first ? Wanted{6, 300} : Wanted{1, 120}, &out);
    first = false;
  }
  return out;
}

}  // namespace thalweg::conformance
