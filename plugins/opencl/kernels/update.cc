// One step of an optimizer, dense or for the rows of a sparse gradient. The rules are in updates.h.
// The factors are read on the host.
#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <map>

#include "kernels/register.h"
#include "kernels/segments.h"
#include "update_text.h"

namespace thalweg::opencl {
namespace {

using Factors = std::map<std::string, double, std::less<>>;
using Numbers = std::vector<double>;

double Need(const Factors& f, const char* name, bool fits, const char* must) {
  if (fits) return f.at(name);
  throw tw::Error{TW_INVALID_ARGUMENT, std::string(name) + " is " + std::to_string(f.at(name)) + "; it must " + must};
}

// An op: its inputs in order (variables first), the rule for a node's attributes, and the rule's
// factors.
struct Op {
  const char *op, *sparse_op;
  std::string_view variables, inputs, sparse_inputs;
  std::string (*rule)(const tw::Node&);
  Numbers (*factors)(const Factors&, bool scaled);
};

std::string IfSet(const tw::Node& n, const char* attribute, const char* rule, const char* otherwise) {
  return n.b(attribute) ? rule : otherwise;
}

// The learning rate, corrected for the bias of the averages, which both start at 0.
double AdamRate(const Factors& f) { return f.at("lr") * std::sqrt(1 - f.at("beta2_power")) / (1 - f.at("beta1_power")); }

Numbers FtrlFactors(const Factors& f, bool scaled) {
  const auto not_below_0 = [&](const char* name) { return Need(f, name, f.at(name) >= 0, "not be below 0"); };
  return {Need(f, "lr", f.at("lr") > 0 || (scaled && f.at("lr") == 0), "be above 0"), not_below_0("l1"), not_below_0("l2"),
          f.count("l2_shrinkage") ? not_below_0("l2_shrinkage") : 0, Need(f, "lr_power", f.at("lr_power") <= 0, "not be above 0")};
}
std::string FtrlRule(const tw::Node& n) { return IfSet(n, "multiply_linear_by_lr", "ftrl_scaled", "ftrl"); }
std::string AdagradRule(const tw::Node& n) { return IfSet(n, "update_slots", "adagrad", "adagrad_kept"); }
Numbers RmsFactors(const Factors& f, bool) { return {f.at("lr"), f.at("rho"), f.at("momentum"), f.at("epsilon")}; }
Numbers MomentumFactors(const Factors& f, bool) { return {f.at("lr"), f.at("momentum")}; }
Numbers AdamFactors(const Factors& f, bool) { return {AdamRate(f), f.at("beta1"), f.at("beta2"), f.at("epsilon")}; }

const Op kOps[] = {
    {"ResourceApplyGradientDescent", nullptr, "var", "alpha grad", "", [](const tw::Node&) -> std::string { return "gradient_descent"; },
     [](const Factors& f, bool) -> Numbers { return {f.at("alpha")}; }},
    {"ResourceApplyMomentum", "ResourceSparseApplyMomentum", "var accum", "lr grad momentum", "lr grad indices momentum",
     [](const tw::Node& n) { return IfSet(n, "use_nesterov", "momentum_nesterov", "momentum"); }, MomentumFactors},
    {"ResourceApplyKerasMomentum", "ResourceSparseApplyKerasMomentum", "var accum", "lr grad momentum", "lr grad indices momentum",
     [](const tw::Node& n) { return IfSet(n, "use_nesterov", "keras_momentum_nesterov", "keras_momentum"); }, MomentumFactors},
    {"ResourceApplyAdam", nullptr, "var m v", "beta1_power beta2_power lr beta1 beta2 epsilon grad", "",
     [](const tw::Node& n) { return IfSet(n, "use_nesterov", "adam_nesterov", "adam"); }, AdamFactors},
    {"ResourceApplyAdamWithAmsgrad", nullptr, "var m v vhat", "beta1_power beta2_power lr beta1 beta2 epsilon grad", "",
     [](const tw::Node&) -> std::string { return "amsgrad"; }, AdamFactors},
    {"ResourceApplyAdaMax", nullptr, "var m v", "beta1_power lr beta1 beta2 epsilon grad", "",
     [](const tw::Node&) -> std::string { return "ada_max"; },
     [](const Factors& f, bool) -> Numbers {
       return {f.at("lr") / (1 - f.at("beta1_power")), f.at("beta1"), f.at("beta2"), f.at("epsilon")};
     }},
    {"ResourceApplyAdagrad", "ResourceSparseApplyAdagrad", "var accum", "lr grad", "lr grad indices", AdagradRule,
     [](const Factors& f, bool) -> Numbers { return {f.at("lr"), 0}; }},
    {"ResourceApplyAdagradV2", "ResourceSparseApplyAdagradV2", "var accum", "lr epsilon grad", "lr epsilon grad indices", AdagradRule,
     [](const Factors& f, bool) -> Numbers { return {f.at("lr"), f.at("epsilon")}; }},
    {"ResourceApplyAdadelta", "ResourceSparseApplyAdadelta", "var accum accum_update", "lr rho epsilon grad", "lr rho epsilon grad indices",
     [](const tw::Node&) -> std::string { return "adadelta"; },
     [](const Factors& f, bool) -> Numbers { return {f.at("lr"), f.at("rho"), f.at("epsilon")}; }},
    {"ResourceApplyRMSProp", "ResourceSparseApplyRMSProp", "var ms mom", "lr rho momentum epsilon grad",
     "lr rho momentum epsilon grad indices", [](const tw::Node&) -> std::string { return "rmsprop"; }, RmsFactors},
    {"ResourceApplyCenteredRMSProp", "ResourceSparseApplyCenteredRMSProp", "var mg ms mom", "lr rho momentum epsilon grad",
     "lr rho momentum epsilon grad indices", [](const tw::Node&) -> std::string { return "centered_rmsprop"; }, RmsFactors},
    {"ResourceApplyFtrl", "ResourceSparseApplyFtrl", "var accum linear", "grad lr l1 l2 lr_power", "grad indices lr l1 l2 lr_power",
     FtrlRule, FtrlFactors},
    {"ResourceApplyFtrlV2", "ResourceSparseApplyFtrlV2", "var accum linear", "grad lr l1 l2 l2_shrinkage lr_power",
     "grad indices lr l1 l2 l2_shrinkage lr_power", FtrlRule, FtrlFactors},
};

std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// Returns the gradient's name in the op's schema.
const char* GradName(const Op& op) { return op.sparse_op || op.inputs.find("alpha") == op.inputs.npos ? "grad" : "delta"; }

double Number(const tw_view* v) {
  const char* at = static_cast<const char*>(v->data) + v->offset;
  switch (v->dtype) {
    case TW_FLOAT: return *reinterpret_cast<const float*>(at);
    case TW_DOUBLE: return *reinterpret_cast<const double*>(at);
    case TW_BFLOAT16: return std::bit_cast<float>(uint32_t(*reinterpret_cast<const uint16_t*>(at)) << 16);
    default: break;
  }
  const uint16_t h = *reinterpret_cast<const uint16_t*>(at);  // half
  const int exponent = h >> 10 & 31, mantissa = h & 1023;
  const double size = exponent == 31 ? (mantissa ? NAN : INFINITY)
                      : exponent     ? std::ldexp(1024 + mantissa, exponent - 25)
                                     : std::ldexp(mantissa, -24);
  return h >> 15 ? -size : size;
}

bool SameDims(const tw_view* a, const tw_view* b) { return DimsOf(a) == DimsOf(b) && a->rank == b->rank; }

void CheckLike(const tw_view* v, const std::string& name, const std::string& like_name, const tw_view* like) {
  if (v->dtype != like->dtype)
    Invalid(name + " and " + like_name + " have different element types: " + tw::dtype_text(v->dtype) + " and " +
            tw::dtype_text(like->dtype));
  if (!SameDims(v, like))
    Invalid(name + " has shape " + tw::text(v->dims, v->rank) + ", " + like_name + " " + tw::text(like->dims, like->rank) +
            "; they must be equal");
}

// Returns the op of that name; *sparse tells whether the name is that of its sparse form.
const Op& FindOp(std::string_view name, bool* sparse) {
  const Op* op =
      std::find_if(std::begin(kOps), std::end(kOps), [&](const Op& o) { return name == o.op || (o.sparse_op && name == o.sparse_op); });
  *sparse = name != op->op;
  return *op;
}

void CheckRows(const tw_view* var, const tw_view* grad, const tw_view* indices) {
  if (var->dtype != grad->dtype)
    Invalid("var and grad have different element types: " + tw::dtype_text(var->dtype) + " and " + tw::dtype_text(grad->dtype));
  if (indices->rank != 1 || var->rank < 1 || grad->rank != var->rank || grad->dims[0] != indices->dims[0] ||
      !std::equal(grad->dims + 1, grad->dims + grad->rank, var->dims + 1))
    Invalid("grad " + tw::text(grad->dims, grad->rank) + " must have a row of var " + tw::text(var->dims, var->rank) +
            " for each of indices " + tw::text(indices->dims, indices->rank));
}

class Apply {
 public:
  explicit Apply(const tw::Node& n)
      : op_(FindOp({n.node->op, n.node->op_len}, &sparse_)),
        variables_(Words(op_.variables)),
        inputs_(Words(sparse_ ? op_.sparse_inputs : op_.inputs)),
        double_(n.type_in(uint32_t(variables_.size())) == TW_DOUBLE),
        scaled_(n.find("multiply_linear_by_lr") && n.b("multiply_linear_by_lr")),
        kernel_(n,
                ProgramText({{"T", tw::dtype_text(n.type_in(uint32_t(variables_.size())))}}, {}) +
                    device::UpdateText(device::FindUpdate(op_.rule(n)), sparse_),
                sparse_ ? "update_rows" : "update") {}

  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const tw_view *grad = nullptr, *indices = nullptr;
    const Numbers factors = op_.factors(Read(f, &grad, &indices), scaled_);
    std::vector<Place> slots;
    for (uint32_t k = 0; k < variables_.size(); ++k) slots.push_back(At(f->in[k]));
    if (sparse_) return Rows(f, slots, factors, grad, indices);
    for (uint32_t k = 0; k < variables_.size(); ++k) CheckLike(f->in[k], variables_[k], GradName(op_), grad);
    const cl_long n = cl_long(grad->count), cost = cl_long(4 * slots.size());
    if (double_)
      kernel_.RunTasks(f, n, cost, slots, At(grad), factors, n);
    else
      kernel_.RunTasks(f, n, cost, slots, At(grad), std::vector<float>(factors.begin(), factors.end()), n);
  }

 private:
  // Reads the scalar inputs, by name.
  Factors Read(const tw_frame* f, const tw_view** grad, const tw_view** indices) const {
    Factors factors;
    for (uint32_t k = 0; k < inputs_.size(); ++k) {
      const tw_view* v = f->in[variables_.size() + k];
      if (inputs_[k] == "grad") {
        *grad = v;
      } else if (inputs_[k] == "indices") {
        *indices = v;
      } else {
        if (v->count != 1) Invalid(inputs_[k] + " must be a scalar, but its shape is " + tw::text(v->dims, v->rank));
        factors[inputs_[k]] = Number(v);
      }
    }
    return factors;
  }

  void Rows(const tw_frame* f, const std::vector<Place>& slots, const Numbers& factors, const tw_view* grad, const tw_view* indices) const {
    const tw_view* var = f->in[0];
    for (uint32_t k = 1; k < variables_.size(); ++k) CheckLike(f->in[k], variables_[k], variables_[0], var);
    CheckRows(var, grad, indices);
    std::vector<int64_t> targets;
    tw::integers(indices, &targets);
    CheckIndices(targets, var->dims[0], "indices");
    const Segments s(targets);
    const cl_long inner = var->dims[0] ? cl_long(var->count) / var->dims[0] : 0, cost = cl_long(4 * slots.size()) * inner;
    if (s.count() == 0 || inner == 0) return;
    const Temporary order(kernel_.device(), s.order), rows(kernel_.device(), s.rows), starts(kernel_.device(), s.starts);
    const std::vector<Place> lists = {order.place(), rows.place(), starts.place()};
    if (double_)
      kernel_.RunTasks(f, s.count(), cost, slots, At(grad), lists, factors, s.count(), inner);
    else
      kernel_.RunTasks(f, s.count(), cost, slots, At(grad), lists, std::vector<float>(factors.begin(), factors.end()), s.count(), inner);
  }

  bool sparse_ = false;  // declared first, because it is set together with op_
  const Op& op_;
  std::vector<std::string> variables_, inputs_;
  bool double_, scaled_;
  Kernel kernel_;
};

// The spec: variables, then scalars on the host, the gradient on the device and the indices on the
// host.
void AddOp(tw::Plugin& p, const Op& op, bool sparse, const std::string& type, const std::string& index) {
  std::string types, host, update;
  for (const std::string& v : Words(op.variables)) {
    types += types.empty() ? "resource" : ", resource";
    update += " " + v;
  }
  for (const std::string& v : Words(sparse ? op.sparse_inputs : op.inputs)) {
    types += ", " + (v == "indices" ? index : type);
    if (v != "grad") host += " " + v;
  }
  p.kernel<Apply>(std::string(sparse ? op.sparse_op : op.op) + "(" + types + ") @OPENCL; host" + host + "; update" + update);
}

}  // namespace

void register_update(tw::Plugin& p) {
  for (const Op& op : kOps)
    for (const char* type : {"float", "double", "half", "bfloat16"}) {
      AddOp(p, op, false, type, "");
      for (const char* index : {"int32", "int64"})
        if (op.sparse_op) AddOp(p, op, true, type, index);
    }
}

}  // namespace thalweg::opencl
