// The ops of the table plugins/common/device/functions.h, selection, casts, ones and sums of
// several tensors.
#include "kernels/elementwise.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "elementwise_text.h"
#include "kernels/register.h"

namespace thalweg::opencl {
namespace {

std::vector<std::string> Names(const std::vector<uint32_t>& types) {
  std::vector<std::string> names;
  for (uint32_t t : types) names.push_back(tw::dtype_text(t));
  return names;
}

// Returns true if the results are larger than the caches, so that a later reader does not find them
// there. Elements count as four bytes.
template <class D>
Size PastCaches(const D& device, Size n, size_t outputs) {
  if constexpr (requires { device.cache_bytes(); })
    return uint64_t(n) * outputs * 4 >= device.cache_bytes();
  else
    return 0;
}

struct Input {
  Place at;
  Steps steps;
  Size by;
  template <class F>
  void Each(F&& set) const {
    set(at), set(steps), set(by);
  }
};

}  // namespace

// Casts to integers work as on the CPU: they truncate towards zero and saturate. A cast to bool
// tests for nonzero.
static int MantissaBits(uint32_t dtype) {
  return dtype == TW_DOUBLE ? 52 : dtype == TW_FLOAT ? 23 : dtype == TW_HALF ? 10 : dtype == TW_BFLOAT16 ? 7 : 0;
}

std::string CastText(uint32_t from, uint32_t to, const std::string& value, bool truncate) {
  const int left = MantissaBits(to), cut = MantissaBits(from) - left;
  if (truncate && (from == TW_FLOAT || from == TW_DOUBLE) && left > 0 && cut > 0) {
    return CastText(from, to, "CUT_" + std::string(tw::dtype_text(from)) + "(" + value + ", " + std::to_string(cut) + ")", false);
  }
  const std::string name = tw::dtype_text(to);
  if (to == TW_BOOL) return value + " != 0";
  const bool whole = device::ClassOf(name) != "REAL", real = device::ClassOf(tw::dtype_text(from)) == "REAL";
  return real && whole ? "whole_" + name + "(" + value + ")" : "(COMPUTED(" + name + "))" + value;
}

Elementwise::Elementwise(const tw_host* host, Device& device, const std::vector<uint32_t>& in, const std::vector<uint32_t>& out,
                         const std::string& functions, const std::string& statements)
    : kernel_(host, device, ProgramText({}, {}) + functions + device::ElementwiseText("elementwise", Names(in), Names(out), statements),
              "elementwise") {}

void Elementwise::Run(const tw_frame* f, const Dims& dims, const std::vector<Operand>& in, const std::vector<Place>& out) const {
  std::vector<Dims> steps;
  for (const Operand& x : in) steps.push_back(x.steps);
  steps.push_back(DenseSteps(dims));
  Layout layout(dims, steps);
  if (std::any_of(layout.by.begin(), layout.by.end(), [](Size by) { return by != 0 && by != 1; })) layout.PushInner();
  std::vector<Input> inputs;
  for (size_t k = 0; k < in.size(); ++k) inputs.push_back({in[k].at, layout.steps[k], layout.by[k]});
  const Size n = Count(dims);
  kernel_.RunTasks(f, n, Size(1 + in.size()), inputs, out, n, layout.inner, layout.axes, PastCaches(kernel_.device(), n, out.size()));
}

namespace {

// Returns the text of the table's op, named `op`. P in it is the op's attribute.
double Parameter(const tw::Node& n) { return n.find("alpha") ? n.f("alpha") : 0; }

std::string TableText(const tw::Node& n) {
  const std::string type = tw::dtype_text(n.type_in(0));
  return device::FunctionText(*device::FindFunction({n.node->op, n.node->op_len}, type), type, "op", Parameter(n));
}

std::vector<uint32_t> InputTypes(const tw::Node& n) { return {n.node->types, n.node->types + n.node->n_in}; }

Dims OutDims(const tw_frame* f) { return DimsOf(f->out[0]); }

// Broadcasts all inputs to the output.
void RunBroadcast(const Elementwise& e, const tw_frame* f) {
  const Dims dims = OutDims(f);
  std::vector<Operand> in;
  for (uint32_t k = 0; k < f->n_in; ++k) in.push_back(Broadcast(f->in[k], dims));
  e.Run(f, dims, in, {At(f->out[0])});
}

class Table {
 public:
  explicit Table(const tw::Node& n)
      : comparison_(n.find("incompatible_shape_error") && !n.b("incompatible_shape_error")),
        elementwise_(n, InputTypes(n), {n.type_out(0)}, TableText(n), Statement(n)) {}
  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const Dims dims = OutDims(f);
    for (uint32_t k = 0; k < f->n_in; ++k)
      if (comparison_ && !Broadcasts(DimsOf(f->in[k]), dims)) return Differ(f);
    RunBroadcast(elementwise_, f);
  }

 private:
  // Handles shapes that do not broadcast, where the op accepts them. Such tensors are not equal, so
  // it compares two bytes that differ.
  void Differ(const tw_frame* f) const {
    const Temporary one(elementwise_.device(), std::vector<char>(16, 1)), zero(elementwise_.device(), std::vector<char>(16, 0));
    elementwise_.Run(f, {}, {{one.place(), {}}, {zero.place(), {}}}, {At(f->out[0])});
  }
  static std::string Statement(const tw::Node& n) {
    return n.node->n_in == 1 ? "y0 = op(x0);" : n.node->n_in == 2 ? "y0 = op(x0, x1);" : "y0 = op(x0, x1, x2);";
  }
  bool comparison_;  // accepts shapes that do not broadcast
  Elementwise elementwise_;
};

class Select {
 public:
  explicit Select(const tw::Node& n)
      : rows_(std::string_view(n.node->op, n.node->op_len) == "Select"),
        elementwise_(n, InputTypes(n), {n.type_out(0)}, "", "y0 = x0 ? x1 : x2;") {}

  // All three inputs broadcast. In the older op a condition of rank 1 selects rows.
  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const Dims dims = OutDims(f);
    Operand condition{At(f->in[0]), Dims(dims.size(), 0)};
    if (rows_ && f->in[0]->rank == 1 && !dims.empty())
      condition.steps[0] = 1;
    else
      condition = Broadcast(f->in[0], dims);
    elementwise_.Run(f, dims, {condition, Broadcast(f->in[1], dims), Broadcast(f->in[2], dims)}, {At(f->out[0])});
  }

 private:
  bool rows_;
  Elementwise elementwise_;
};

class Cast {
 public:
  explicit Cast(const tw::Node& n)
      : elementwise_(n, {n.type_in(0)}, {n.type_out(0)}, "", "y0 = " + CastText(n.type_in(0), n.type_out(0), "x0", n.b("Truncate")) + ";") {
  }
  void operator()(tw::Frame frame) const { RunBroadcast(elementwise_, frame.f); }

 private:
  Elementwise elementwise_;
};

class OnesLike {
 public:
  explicit OnesLike(const tw::Node& n) : elementwise_(n, {}, {n.type_out(0)}, "", "y0 = 1;") {}
  void operator()(tw::Frame frame) const { elementwise_.Run(frame.f, OutDims(frame.f), {}, {At(frame.f->out[0])}); }

 private:
  Elementwise elementwise_;
};

// Adds from left to right. A long list takes several calls, because a device accepts a limited
// number of arguments (1024 bytes at least) and each length needs its own program. 16-bit types
// keep the sum in float until the last call, which rounds it.
class AddN {
 public:
  explicit AddN(const tw::Node& n) : n_first_(FirstOf(n.node->n_in)), wide_(n.type_out(0) == TW_HALF || n.type_out(0) == TW_BFLOAT16) {
    const uint32_t type = n.type_out(0), sum = wide_ ? uint32_t(TW_FLOAT) : type;
    const bool several = n.node->n_in > n_first_;
    first_ = MakeSum(n, n_first_, type, several ? sum : type);
    if (several) more_ = MakeSum(n, kMostTerms, sum, sum), last_ = MakeSum(n, kMostTerms, sum, type);
  }
  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const Dims dims = OutDims(f);
    const Place y = At(f->out[0]);
    std::vector<Operand> terms;
    uint32_t k = 0;
    while (k < n_first_) terms.push_back(Broadcast(f->in[k++], dims));
    if (!last_) return first_->Run(f, dims, terms, {y});
    std::optional<Temporary> wide;
    if (wide_) wide.emplace(first_->device(), uint64_t(Count(dims)) * sizeof(float));
    const Place sum = wide ? wide->place() : y;
    first_->Run(f, dims, terms, {sum});
    while (k < f->n_in) {
      terms.assign(1, Operand{sum, DenseSteps(dims)});
      while (terms.size() < kMostTerms) terms.push_back(Broadcast(f->in[k++], dims));
      const bool ends = k == f->n_in;
      (ends ? last_ : more_)->Run(f, dims, terms, {ends ? y : sum});
    }
  }

 private:
  static constexpr uint32_t kMostTerms = 8;
  // The number of terms of the first call. It is chosen so that the others are full calls, each of
  // which takes the sum and kMostTerms - 1 more terms.
  static uint32_t FirstOf(uint32_t n) { return n <= kMostTerms ? n : (n - 2) % (kMostTerms - 1) + 2; }
  // Makes a sum whose terms have the node's type, except the first.
  static std::unique_ptr<Elementwise> MakeSum(const tw::Node& n, uint32_t terms, uint32_t first, uint32_t out) {
    std::string text = "y0 = x0;";
    for (uint32_t k = 1; k < terms; ++k) text += " y0 += x" + std::to_string(k) + ";";
    std::vector<uint32_t> types(terms, n.type_in(0));
    types[0] = first;
    return std::make_unique<Elementwise>(n, types, std::vector<uint32_t>{out}, "", text);
  }

  const uint32_t n_first_;
  const bool wide_;
  std::unique_ptr<Elementwise> first_, more_, last_;
};

// The bias applies to the last axis, or to axis 1 for NCHW.
class BiasAdd {
 public:
  explicit BiasAdd(const tw::Node& n)
      : channels_first_(n.s("data_format") == "NCHW"), elementwise_(n, InputTypes(n), {n.type_out(0)}, "", "y0 = x0 + x1;") {}
  void operator()(tw::Frame frame) const {
    const Dims dims = OutDims(frame.f);
    Operand bias{At(frame.f->in[1]), Dims(dims.size(), 0)};
    bias.steps[channels_first_ ? 1 : dims.size() - 1] = 1;
    if (DimsOf(frame.f->in[1])[0] == 1) bias.steps.assign(dims.size(), 0);
    elementwise_.Run(frame.f, dims, {Broadcast(frame.f->in[0], dims), bias}, {At(frame.f->out[0])});
  }

 private:
  bool channels_first_;
  Elementwise elementwise_;
};

const char* const kNumbers[] = {"float", "double", "half", "bfloat16", "int32", "int64"};
const char* const kAll[] = {"float", "double", "half", "bfloat16", "int32", "int64", "bool"};

// Adds a kernel for every type that the table has for the op. more: further clauses of the spec.
void AddTable(tw::Plugin& p, const std::string& op, const std::string& more) {
  for (const std::string type : kAll) {
    const device::Function* f = device::FindFunction(op, type);
    if (!f) continue;
    std::string in = type;
    for (int k = 1; k < f->inputs; ++k) in += ", " + type;
    p.kernel<Table>(op + "(" + in + " -> " + (f->result == "BOOL" ? "bool" : type) + ") @OPENCL" + more);
  }
}

}  // namespace

void register_elementwise(tw::Plugin& p) {
  for (const char* op : {"Abs", "Neg",  "Sign",  "Square", "Sqrt",  "Rsqrt", "Exp",  "Expm1",   "Log",        "Log1p", "Sin",
                         "Cos", "Tan",  "Sinh",  "Cosh",   "Tanh",  "Asin",  "Acos", "Atan",    "Asinh",      "Acosh", "Atanh",
                         "Erf", "Erfc", "Floor", "Ceil",   "Round", "Rint",  "Inv",  "Sigmoid", "Reciprocal", "Lgamma"})
    AddTable(p, op, "; inplace y=x");
  for (const char* op : {"IsNan", "IsInf", "IsFinite", "LogicalNot", "Invert"}) AddTable(p, op, "");
  for (const char* op : {"Relu", "Relu6", "Elu", "Selu", "Softplus", "Softsign", "LeakyRelu"})
    AddTable(p, op, "; inplace activations=features");
  for (const char* op : {"Add",       "AddV2",     "Sub",        "Mul",         "Div",         "RealDiv",    "DivNoNan",
                         "MulNoNan",  "FloorDiv",  "FloorMod",   "Pow",         "Maximum",     "Minimum",    "SquaredDifference",
                         "Xdivy",     "Xlogy",     "Xlog1py",    "BitwiseAnd",  "BitwiseOr",   "BitwiseXor", "LogicalAnd",
                         "LogicalOr", "LeftShift", "RightShift", "TruncateDiv", "TruncateMod", "Mod"})
    AddTable(p, op, "; inplace z=x");
  for (const char* op : {"SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad", "TanhGrad", "SigmoidGrad"})
    AddTable(p, op, "; inplace z=dy");
  for (const char* op : {"ReluGrad", "Relu6Grad", "EluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad", "LeakyReluGrad"})
    AddTable(p, op, "; inplace backprops=gradients");
  for (const char* op : {"Atan2", "Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"}) AddTable(p, op, "");
  AddTable(p, "ClipByValue", "; inplace output=t");
  for (const std::string t : kAll) {
    p.kernel<Select>("Select(bool, " + t + ", " + t + " -> " + t + ") @OPENCL");
    p.kernel<Select>("SelectV2(bool, " + t + ", " + t + " -> " + t + ") @OPENCL");
    p.kernel<OnesLike>("OnesLike(" + t + " -> " + t + ") @OPENCL");
    for (const std::string to : kAll)
      if (to != t) p.kernel<Cast>("Cast(" + t + " -> " + to + ") @OPENCL");
  }
  for (const std::string t : kNumbers) {
    p.kernel<AddN>("AddN(" + t + " -> " + t + ") @OPENCL");
    p.kernel<AddN>("AccumulateNV2(" + t + " -> " + t + ") @OPENCL");
    p.kernel<BiasAdd>("BiasAdd(" + t + ", " + t + " -> " + t + ") @OPENCL; inplace output=value");
  }
}

}  // namespace thalweg::opencl
