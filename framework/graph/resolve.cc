#include "framework/graph/resolve.h"

#include "framework/base/dtype.h"
#include "framework/base/shown.h"

namespace thalweg {
namespace {

class Resolver {
 public:
  Resolver(const OpSchema& op, std::span<const uint32_t> inputs) : op_(op), inputs_(inputs) {}

  StatusOr<ResolvedNode> Run(std::vector<AttrValue> given) {
    out_.attrs = std::move(given);
    RETURN_IF_ERROR(Split());
    RETURN_IF_ERROR(InferTypes());
    for (size_t i = 0; i < op_.attrs.size(); ++i) {
      const AttrSpec& spec = op_.attrs[i];
      if (out_.attrs[i].empty()) {
        if (!spec.has_default)
          return InvalidArgument("attribute '", spec.name, "' is missing and cannot be inferred from the inputs; set it");
        out_.attrs[i] = spec.default_value;
      }
      RETURN_IF_ERROR(CheckAttr(spec, out_.attrs[i]));
    }
    out_.types.reserve(inputs_.size() + op_.outputs.size());
    RETURN_IF_ERROR(CheckInputs());
    RETURN_IF_ERROR(Outputs());
    return std::move(out_);
  }

 private:
  AttrValue& attr(const std::string& name) { return out_.attrs[size_t(op_.FindAttr(name))]; }

  // Returns where the values of each argument begin.
  const std::vector<uint32_t>& in_at() const { return op_.in_at.empty() ? out_.in_at : op_.in_at; }

  // Returns the number of values of an argument; -1 if not known yet.
  StatusOr<int64_t> Count(const ArgSpec& arg) {
    if (!arg.number_attr.empty()) {
      const AttrValue& n = attr(arg.number_attr);
      if (n.empty()) return -1;
      if (n.kind() != TW_ATTR_INT || n.is_list())
        return InvalidArgument("attribute '", arg.number_attr, "' must be an int but is ", n.text());
      if (n.ints()[0] < 0) return InvalidArgument("attribute '", arg.number_attr, "' is negative: ", n.text());
      return n.ints()[0];
    }
    if (!arg.list_attr.empty()) {
      const AttrValue& l = attr(arg.list_attr);
      return l.empty() ? -1 : int64_t(l.count());
    }
    return 1;
  }

  // Distributes the flat inputs over the arguments. At most one number or list may be left to
  // infer.
  Status Split() {
    if (!op_.in_at.empty() && inputs_.size() == op_.inputs.size()) return Status();
    int64_t fixed = 0, sharers = 0;
    std::string open;
    for (const ArgSpec& arg : op_.inputs) {
      ASSIGN_OR_RETURN(int64_t n, Count(arg));
      if (n >= 0) {
        fixed = n > INT64_MAX - fixed ? INT64_MAX : fixed + n;  // saturates: more than any node has
        continue;
      }
      const std::string& name = arg.number_attr.empty() ? arg.list_attr : arg.number_attr;
      if (!open.empty() && open != name)
        return InvalidArgument("attributes '", open, "' and '", name, "' cannot both be inferred; set one");
      open = name;
      ++sharers;
    }
    int64_t total = int64_t(inputs_.size());
    if (open.empty() ? total != fixed : (total < fixed || (total - fixed) % sharers != 0)) {
      return InvalidArgument("takes ", open.empty() ? "" : "at least ", fixed, " inputs but got ", total);
    }
    int64_t each = open.empty() ? 0 : (total - fixed) / sharers;
    out_.in_at.push_back(0);
    for (const ArgSpec& arg : op_.inputs) {
      ASSIGN_OR_RETURN(int64_t n, Count(arg));
      out_.in_at.push_back(out_.in_at.back() + uint32_t(n < 0 ? each : n));
    }
    for (size_t a = 0; a < op_.inputs.size(); ++a) {
      const ArgSpec& arg = op_.inputs[a];
      ASSIGN_OR_RETURN(int64_t n, Count(arg));
      if (n >= 0) continue;
      if (!arg.number_attr.empty()) {
        attr(arg.number_attr) = AttrValue::Int(each);
      } else {
        std::vector<uint32_t> types;
        for (uint32_t i = out_.in_at[a]; i < out_.in_at[a + 1]; ++i) types.push_back(BaseType(inputs_[i]));
        attr(arg.list_attr) = AttrValue::Types(std::move(types));
      }
    }
    return Status();
  }

  Status InferTypes() {
    for (size_t a = 0; a < op_.inputs.size(); ++a) {
      const ArgSpec& arg = op_.inputs[a];
      if (arg.type_attr.empty()) continue;
      for (uint32_t i = in_at()[a]; i < in_at()[a + 1]; ++i) {
        AttrValue& t = attr(arg.type_attr);
        if (t.empty()) t = AttrValue::Type(BaseType(inputs_[i]));
      }
    }
    return Status();
  }

  StatusOr<uint32_t> TypeOf(const ArgSpec& arg, uint32_t k) {
    uint32_t t = arg.dtype;
    if (!arg.type_attr.empty()) t = attr(arg.type_attr).types()[0];
    if (!arg.list_attr.empty()) t = attr(arg.list_attr).types()[k];
    if (!IsRef(t)) return arg.ref ? t + TW_REF : t;
    return InvalidArgument("attribute '", arg.list_attr.empty() ? arg.type_attr : arg.list_attr, "' says ", DTypeName(t), "; write ",
                           DTypeName(BaseType(t)), ": what is a reference stands in the op's schema");
  }

  // Returns a remedy for a type mismatch. Handles, variants and strings cannot be cast.
  static std::string_view Remedy(uint32_t have, uint32_t want) {
    if (have == TW_RESOURCE) return "; it is the handle of a resource, which cannot be cast: read what it leads to, and give that";
    if (want == TW_RESOURCE) return "; give the handle of a resource, such as a variable's, and not a value";
    if (have == TW_VARIANT || want == TW_VARIANT)
      return "; a variant cannot be cast: give what an op on variants answers, or takes out of one";
    if (have == TW_STRING) return "; strings cannot be cast: parse it";
    if (want == TW_STRING) return "; numbers cannot be cast to strings: write it out";
    return "; cast it";
  }

  Status CheckInputs() {
    for (size_t a = 0; a < op_.inputs.size(); ++a) {
      const ArgSpec& arg = op_.inputs[a];
      for (uint32_t i = in_at()[a]; i < in_at()[a + 1]; ++i) {
        ASSIGN_OR_RETURN(const uint32_t want, TypeOf(arg, i - in_at()[a]));
        // If a value is expected, a reference is read when the node starts: see BuildWorkGraph.
        if (inputs_[i] != want && BaseType(inputs_[i]) != want) {
          if (BaseType(want) == inputs_[i]) {
            return InvalidArgument("input '", arg.name,
                                   "' is a value, but must be a reference; give a variable, or what an op on it answers");
          }
          return InvalidArgument("input '", arg.name, "' must be ", DTypeName(want), " but is ", DTypeName(inputs_[i]),
                                 arg.type_attr.empty() ? std::string() : StrCat(" (attribute '", arg.type_attr, "')"),
                                 Remedy(BaseType(inputs_[i]), BaseType(want)));
        }
        out_.types.push_back(want);
      }
    }
    return Status();
  }

  Status Outputs() {
    constexpr int64_t kMost = 65535;  // limit of an edge's port; no node has as many outputs
    if (!op_.out_at.empty()) {
      for (const ArgSpec& arg : op_.outputs) {
        ASSIGN_OR_RETURN(const uint32_t type, TypeOf(arg, 0));
        out_.types.push_back(type);
      }
      return Status();
    }
    out_.out_at.push_back(0);
    for (const ArgSpec& arg : op_.outputs) {
      ASSIGN_OR_RETURN(int64_t n, Count(arg));
      if (n < 0 || n > kMost - int64_t(out_.out_at.back())) return InvalidArgument("cannot have ", n, " outputs '", arg.name, "'");
      for (uint32_t k = 0; k < uint32_t(n); ++k) {
        ASSIGN_OR_RETURN(const uint32_t type, TypeOf(arg, k));
        out_.types.push_back(type);
      }
      out_.out_at.push_back(out_.out_at.back() + uint32_t(n));
    }
    return Status();
  }

  const OpSchema& op_;
  std::span<const uint32_t> inputs_;
  ResolvedNode out_;
};

}  // namespace

StatusOr<std::vector<AttrValue>> InSchemaOrder(const OpSchema& op, std::map<std::string, AttrValue> given) {
  std::vector<AttrValue> ordered(op.attrs.size());
  for (auto& [name, value] : given) {
    const int i = op.FindAttr(name);
    if (i < 0) return InvalidArgument("attribute '", name, "' with value ", Shown(value.text()), " is not one of op ", op.name);
    ordered[size_t(i)] = std::move(value);
  }
  return ordered;
}

StatusOr<ResolvedNode> ResolveNode(const OpSchema& op, std::span<const uint32_t> inputs, std::vector<AttrValue> given) {
  return Resolver(op, inputs).Run(std::move(given));
}

}  // namespace thalweg
