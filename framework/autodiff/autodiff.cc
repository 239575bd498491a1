#include "framework/autodiff/autodiff.h"

#include "framework/autodiff/differentiator.h"
#include "framework/autodiff/functional_form.h"
#include "framework/base/dtype.h"
#include "framework/base/shown.h"

namespace thalweg {

bool HasGradients(uint32_t dtype) {
  switch (BaseType(dtype)) {
    case TW_FLOAT:
    case TW_DOUBLE:
    case TW_HALF:
    case TW_BFLOAT16:
    case TW_COMPLEX64:
    case TW_COMPLEX128:
    case TW_RESOURCE:  // of the variable behind the handle
    case TW_VARIANT: return true;
    default: return false;
  }
}

Status AddGradients(Graph* graph, const std::vector<Edge>& ys, const std::vector<Edge>& dys, const std::vector<Edge>& xs,
                    std::vector<Gradient>* out, const std::vector<Edge>& stop, const Keeping& keeping, const std::string& prefix) {
  std::vector<Gradient> arriving;
  for (const Edge& dy : dys) arriving.push_back({dy, {}});
  return AddGradientsGiven(graph, ys, arriving, xs, out, stop, keeping, prefix);
}

Status AddGradientsGiven(Graph* graph, const std::vector<Edge>& ys, const std::vector<Gradient>& dys, const std::vector<Edge>& xs,
                         std::vector<Gradient>* out, const std::vector<Edge>& stop, const Keeping& keeping, const std::string& prefix) {
  out->clear();
  if (!dys.empty() && dys.size() != ys.size()) return InvalidArgument(ys.size(), " values but ", dys.size(), " gradients for them");
  for (const auto& list : {ys, xs}) {
    for (const Edge& e : list) {
      if (!e) return InvalidArgument("a value to differentiate is missing");
      if (!HasGradients(e.node->out_type(e.port))) {
        return InvalidArgument("'", Shown(e.text()), "' is ", DTypeName(e.node->out_type(e.port)),
                               "; only floating-point and complex values have gradients");
      }
    }
  }
  RETURN_IF_ERROR(AddFunctionalForms(graph, ys, xs));
  const auto forms = [graph](std::vector<Edge> values) {
    for (Edge& e : values) e = FormOf(*graph, e);
    return values;
  };
  std::string scope = (prefix.empty() ? graph->UniqueName("gradients") : prefix) + "/";
  return Differentiator(graph, scope, !prefix.empty(), keeping).Run(forms(ys), dys, forms(xs), forms(stop), out);
}

}  // namespace thalweg
