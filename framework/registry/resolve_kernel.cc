#include "framework/registry/resolve_kernel.h"

#include <algorithm>
#include <type_traits>

#include "framework/base/dtype.h"
#include "thalweg/plugin/host.h"

namespace thalweg {
namespace {

Status Mark(const std::vector<std::string>& names, const OpSchema& op, std::string_view clause, bool outputs, std::vector<uint8_t>* in,
            std::vector<uint8_t>* out) {
  for (const std::string& name : names) {
    int i = op.FindInput(name), o = outputs ? op.FindOutput(name) : -1;
    if (i < 0 && o < 0) {
      return NotFound("clause '", clause, "' names '", name, "', which is no ", outputs ? "argument" : "input", " of op '", op.name, "'");
    }
    (i >= 0 ? *in : *out)[size_t(i >= 0 ? i : o)] = 1;
  }
  return Status();
}

// to: per output argument its input, or its inputs in order of preference.
template <class To>
Status Pair(const std::vector<std::pair<std::string, std::string>>& pairs, const OpSchema& op, std::string_view clause, To* to) {
  constexpr bool kMany = !std::is_same_v<typename To::value_type, int32_t>;
  for (const auto& [y, x] : pairs) {
    int o = op.FindOutput(y), i = op.FindInput(x);
    if (o < 0) return NotFound("clause '", clause, "' names '", y, "', which is no output of op '", op.name, "'");
    if (i < 0) return NotFound("clause '", clause, "' names '", x, "', which is no input of op '", op.name, "'");
    if constexpr (kMany) {
      (*to)[size_t(o)].push_back(i);
    } else {
      if ((*to)[size_t(o)] >= 0) return InvalidArgument("clause '", clause, "' names output '", y, "' twice");
      (*to)[size_t(o)] = i;
    }
  }
  return Status();
}

Status CheckTypes(const std::vector<uint32_t>& types, const std::vector<ArgSpec>& args, const OpSchema& op, std::string_view what) {
  if (types.size() != args.size()) {
    return InvalidArgument("the spec has ", types.size(), " ", what, " types but op '", op.name, "' has ", args.size(), " ", what, "s");
  }
  for (size_t a = 0; a < args.size(); ++a) {
    if (types[a] == 0) continue;
    if (!args[a].list_attr.empty()) {
      return InvalidArgument("the type of '", args[a].name, "' must be _, because it takes a list of mixed types");
    }
    if (args[a].dtype && args[a].dtype != types[a]) {
      return InvalidArgument("the type of '", args[a].name, "' is ", DTypeName(types[a]), " in the spec but ", DTypeName(args[a].dtype),
                             " in op '", op.name, "'");
    }
    // A type that the op's attribute does not allow is not an error. Such a kernel is never chosen,
    // and a plugin must not be refused because the host's op accepts fewer types than the op it was
    // written for.
  }
  return Status();
}

// A node with `gives` has no memory before it runs. The kernel thus provides the memory of every
// output that is not an input's by `view`.
Status MarkGiven(const OpSchema& op, KernelDef* k) {
  if (k->spec.gives.empty()) return Status();
  std::vector<uint8_t> no_input(op.inputs.size(), 0);
  k->gives.assign(op.outputs.size(), 0);
  RETURN_IF_ERROR(Mark(k->spec.gives, op, "gives", true, &no_input, &k->gives));
  if (std::count(no_input.begin(), no_input.end(), 1)) {
    return InvalidArgument("clause 'gives' names an input of op '", op.name, "'; it is for outputs");
  }
  for (size_t o = 0; o < op.outputs.size(); ++o) {
    if (k->gives[o] || k->view[o] >= 0) continue;
    return InvalidArgument("clause 'gives' leaves out output '", op.outputs[o].name, "' of op '", op.name,
                           "'; name it, too, and give its memory: a kernel brings that of all outputs or of none");
  }
  return Status();
}

// An input accepted in any memory must only be kept; an output given in any memory must be a tensor
// that the kernel provides.
Status MarkAnywhere(const OpSchema& op, KernelDef* k) {
  if (k->spec.anywhere.empty()) return Status();
  k->anywhere_in.assign(op.inputs.size(), 0);
  k->anywhere_out.assign(op.outputs.size(), 0);
  RETURN_IF_ERROR(Mark(k->spec.anywhere, op, "anywhere", true, &k->anywhere_in, &k->anywhere_out));
  for (size_t a = 0; a < op.inputs.size(); ++a) {
    if (k->anywhere_in[a] && !k->keep[a])
      return InvalidArgument("clause 'anywhere' names input '", op.inputs[a].name, "', which 'keep' does not");
  }
  for (size_t o = 0; o < op.outputs.size(); ++o) {
    if (k->anywhere_out[o] && (k->gives.empty() || !k->gives[o])) {
      return InvalidArgument("clause 'anywhere' names output '", op.outputs[o].name, "', which 'gives' does not");
    }
  }
  return Status();
}

// Inputs that the kernel opens must be able to hold a handle. Inputs that it replaces are open for
// update.
Status CheckOpened(KernelDef* k) {
  for (size_t a = 0; a < k->op->inputs.size(); ++a) {
    const ArgSpec& arg = k->op->inputs[a];
    if (!k->read[a] && !k->update[a] && !k->replace[a]) continue;
    if (k->read[a] && k->update[a]) return InvalidArgument("'", arg.name, "' stands in read and in update; update is enough");
    if (k->replace[a] && (k->read[a] || k->update[a])) {
      return InvalidArgument("'", arg.name, "' stands in replace and in ", k->read[a] ? "read" : "update",
                             "; replace is for kernels that write no element of it");
    }
    k->update[a] |= k->replace[a];
    if (k->op->unopened[a]) return InvalidArgument("'", arg.name, "' is unopened by the op's schema; no kernel may open it");
    if (arg.dtype && arg.dtype != TW_RESOURCE && !arg.ref) {
      return InvalidArgument("'", arg.name, "' is ", DTypeName(arg.dtype), "; only resources can be opened with read or update");
    }
  }
  return Status();
}

}  // namespace

Status ResolveKernel(const OpSchema& op, KernelDef* k) {
  k->op = &op;
  size_t n_in = op.inputs.size(), n_out = op.outputs.size();
  for (uint32_t a = 0; a < op.attrs.size(); ++a) {
    if (k->host && op.attrs[a].since > k->host->minor) k->newer_attrs.push_back(a);
  }
  for (auto* v : {&k->host_in, &k->keep, &k->read, &k->update, &k->replace}) v->assign(n_in, 0);
  k->host_out.assign(n_out, 0);
  k->inplace.assign(n_out, {});
  k->view.assign(n_out, -1);
  RETURN_IF_ERROR(Mark(k->spec.host, op, "host", true, &k->host_in, &k->host_out));
  RETURN_IF_ERROR(Mark(k->spec.keep, op, "keep", false, &k->keep, nullptr));
  RETURN_IF_ERROR(Pair(k->spec.view, op, "view", &k->view));
  RETURN_IF_ERROR(MarkGiven(op, k));
  RETURN_IF_ERROR(MarkAnywhere(op, k));
  RETURN_IF_ERROR(Mark(k->spec.read, op, "read", false, &k->read, nullptr));
  RETURN_IF_ERROR(Mark(k->spec.update, op, "update", false, &k->update, nullptr));
  RETURN_IF_ERROR(Mark(k->spec.replace, op, "replace", false, &k->replace, nullptr));
  RETURN_IF_ERROR(Pair(k->spec.inplace, op, "inplace", &k->inplace));
  RETURN_IF_ERROR(CheckOpened(k));
  if (!k->spec.has_types) return Status();
  RETURN_IF_ERROR(CheckTypes(k->spec.in_types, op.inputs, op, "input"));
  return k->spec.out_types.empty() ? Status() : CheckTypes(k->spec.out_types, op.outputs, op, "output");
}

}  // namespace thalweg
