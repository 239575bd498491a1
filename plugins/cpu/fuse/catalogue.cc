#include "fuse/catalogue.h"

#include <algorithm>
#include <iterator>

#include "kernels/common/kernel.h"
#include "kernels/map.h"
#include "kernels/reduce.h"
#include "kernels/register_all.h"
#include "kernels/slots.h"
#include "kernels/zip.h"

namespace thalweg::cpu {
namespace {

// The functions that register the kernels with usable loops.
constexpr void (*kFamilies[])(tw::Plugin&) = {
    register_unary,       register_binary, register_compare, register_bitwise, register_trigonometry,  register_truncate,
    register_no_nan,      register_atan2,  register_gamma,   register_relu,    register_activations,   register_select,
    register_inverse_erf, register_cast,   register_bias,    register_softmax, register_clip_by_value, register_reduce,
};

constexpr std::string_view kReductions[] = {"Sum", "Mean", "Prod", "Max", "Min"};

struct Called {
  std::string_view op;
  Pattern pattern;
  int64_t cost;
};
constexpr Called kCalled[] = {
    {"Relu", Pattern::kAlike, 1},      {"Relu6", Pattern::kAlike, 1},        {"ReluGrad", Pattern::kAlike, 1},
    {"Relu6Grad", Pattern::kAlike, 1}, {"LeakyRelu", Pattern::kAlike, 1},    {"LeakyReluGrad", Pattern::kAlike, 1},
    {"Elu", Pattern::kAlike, 20},      {"EluGrad", Pattern::kAlike, 1},      {"Selu", Pattern::kAlike, 20},
    {"SeluGrad", Pattern::kAlike, 1},  {"Softplus", Pattern::kAlike, 20},    {"SoftplusGrad", Pattern::kAlike, 10},
    {"Softsign", Pattern::kAlike, 2},  {"SoftsignGrad", Pattern::kAlike, 3}, {"Cast", Pattern::kAlike, 2},
    {"SelectV2", Pattern::kChoice, 1}, {"Select", Pattern::kAlike, 1},       {"ClipByValue", Pattern::kClip, 2},
    {"BiasAdd", Pattern::kBias, 1},    {"Softmax", Pattern::kRows, 16},      {"LogSoftmax", Pattern::kRows, 16},
};

constexpr LinkRule Unary(std::string_view op, Link link) { return {op, link, link}; }
constexpr LinkRule kLinks[] = {
    Unary("Neg", Link::kNeg),
    Unary("Abs", Link::kAbs),
    Unary("Square", Link::kSquare),
    Unary("Sqrt", Link::kSqrt),
    Unary("Rsqrt", Link::kRsqrt),
    Unary("Reciprocal", Link::kReciprocal),
    Unary("Inv", Link::kReciprocal),
    Unary("Relu", Link::kRelu),
    Unary("Relu6", Link::kRelu6),
    {"Add", Link::kAdd, Link::kAdd},
    {"AddV2", Link::kAdd, Link::kAdd},
    {"BiasAdd", Link::kAdd, Link::kAdd},
    {"Mul", Link::kMul, Link::kMul},
    {"SquaredDifference", Link::kSquaredDifference, Link::kSquaredDifference},
    {"Sub", Link::kSub, Link::kSubFrom},
    {"Div", Link::kDiv, Link::kDivInto},
    {"RealDiv", Link::kDiv, Link::kDivInto},
    {"Maximum", Link::kMaximum, Link::kMaximumOf},
    {"Minimum", Link::kMinimum, Link::kMinimumOf},
};

// Some integers have no quotient, remainder or power, and the error message names elements of whole
// tensors, not of tiles.
constexpr std::string_view kPartial[] = {"Div", "RealDiv", "FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod", "Pow"};

bool IsWhole(uint32_t dtype) {
  constexpr uint32_t kOthers[] = {TW_FLOAT, TW_DOUBLE, TW_HALF, TW_BFLOAT16, TW_COMPLEX64, TW_COMPLEX128};
  return std::find(std::begin(kOthers), std::end(kOthers), dtype) == std::end(kOthers);
}

// Returns the input types of a spec such as "Op(float, _ -> float) @CPU".
std::vector<uint32_t> InputTypes(std::string_view spec) {
  std::vector<uint32_t> types;
  size_t at = spec.find('(');
  if (at == spec.npos) return types;
  const size_t end = std::min(spec.find(" ->", at), spec.find(')', at));
  while (at < end) {
    const size_t next = std::min(spec.find(',', at + 1), end), first = spec.find_first_not_of(' ', at + 1);
    types.push_back(tw::dtype_number(spec.substr(first, next - first)));
    at = next;
  }
  return types;
}

template <class T, size_t n>
const T* Named(const T (&all)[n], std::string_view op) {
  const T* found = std::find_if(all, all + n, [&](const T& t) {
    if constexpr (std::is_same_v<T, std::string_view>)
      return t == op;
    else
      return t.op == op;
  });
  return found == all + n ? nullptr : found;
}

}  // namespace

// Stands in for the host's registrar. `map` and `zip` are the execute functions that all kernels of
// map.h and of zip.h share; Note recognises these kernels by them.
struct Catalogue::Notes {
  tw_registrar r{};
  const tw_host* h = nullptr;
  Catalogue* to = nullptr;
  tw_status* (*map)(const tw_frame*) = nullptr;
  tw_status* (*zip)(const tw_frame*) = nullptr;
};

Catalogue::Catalogue(const tw_host* h) : chains_(TW_CPU_FOR_ISA(DetectIsa(h), Chains)), slots_(WorkerSlots()) {
  Notes notes;
  notes.r.size = sizeof notes.r;
  tw::Plugin p{h, &notes.r};
  // Registers one kernel of each kind to learn its execute function.
  static constexpr UnaryKernel kAnyMap{};
  static constexpr BinaryKernel kAnyZip{};
  notes.r.role = [](tw_registrar* r, const tw_role* role) -> tw_status* {
    const auto* d = static_cast<const tw_kernel_def*>(role->definition);
    (d->spec[0] == 'm' ? reinterpret_cast<Notes*>(r)->map : reinterpret_cast<Notes*>(r)->zip) = d->execute;
    return nullptr;
  };
  AddKernel<RunUnary>(p, "map", kAnyMap);
  AddKernel<RunBinary>(p, "zip", kAnyZip);
  notes.h = h;
  notes.to = this;
  notes.r.role = [](tw_registrar* r, const tw_role* role) {
    const auto* own = reinterpret_cast<const Notes*>(r);
    return tw::guard(own->h, [&] { own->to->Note(*static_cast<const tw_kernel_def*>(role->definition), *own); });
  };
  for (auto family : kFamilies) family(p);
}

void Catalogue::Note(const tw_kernel_def& d, const Notes& notes) {
  const std::string_view spec(d.spec, d.spec_len), op = spec.substr(0, spec.find_first_of("( "));
  Operation o;
  if (d.execute == notes.map) {
    const auto* k = static_cast<const UnaryKernel*>(d.user);
    o.body = Operation::kMap;
    o.cost = k->cost;
    o.loops = k;
  } else if (d.execute == notes.zip) {
    const auto* k = static_cast<const BinaryKernel*>(d.user);
    o.body = Operation::kZip;
    o.cost = k->cost;
    o.loops = k;
  } else if (Named(kReductions, op)) {
    o.body = Operation::kReduce;
    o.loops = d.user;
  } else if (const Called* c = Named(kCalled, op)) {
    o.body = Operation::kCall;
    o.pattern = c->pattern;
    o.cost = c->cost;
    o.def = d;
    o.def.spec = nullptr;
    o.def.spec_len = 0;
  } else {
    return;
  }
  o.types = InputTypes(spec);
  o.link = Named(kLinks, op);
  o.inplace = spec.find("inplace") != spec.npos;
  if (o.types.empty() || (o.body == Operation::kZip && IsWhole(o.types[0]) && Named(kPartial, op))) return;
  operations_[std::string(op)].push_back(std::move(o));
}

const std::vector<Operation>* Catalogue::OfOp(std::string_view op) const {
  auto it = operations_.find(std::string(op));
  return it == operations_.end() ? nullptr : &it->second;
}

const Operation* Catalogue::ForTypes(const std::vector<Operation>& all, const uint32_t* types, uint32_t n) {
  for (const Operation& o : all) {
    if (o.types.size() != n) continue;
    bool fits = true;
    for (uint32_t i = 0; i < n; ++i) fits = fits && (o.types[i] == 0 || o.types[i] == types[i]);
    if (fits) return &o;
  }
  return nullptr;
}

}  // namespace thalweg::cpu
