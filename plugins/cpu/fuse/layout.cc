#include "fuse/layout.h"

#include <string>

namespace thalweg::cpu {
namespace {

[[noreturn]] void Refuse(const tw_part_node& n, const char* why) {
  throw tw::Error{TW_UNIMPLEMENTED, "'" + std::string(n.name, n.name_len) + "' cannot be fused: " + why};
}

const Operation& OperationOf(const tw_part_node& n, const Catalogue& catalogue) {
  const auto* all = catalogue.OfOp(OpOf(n));
  const Operation* op = all ? Catalogue::ForTypes(*all, n.types, n.n_in) : nullptr;
  if (!op) Refuse(n, "nothing computes it on pieces of tensors");
  return *op;
}

}  // namespace

SetLayout LayOutSet(const tw_part& part, const Catalogue& catalogue) {
  SetLayout l;
  int64_t most = -1;
  for (uint32_t i = 0; i < part.n_nodes; ++i) {
    const tw_part_node& n = *part.nodes[i];
    if (const char* why = Unfit(n)) Refuse(n, why);
    l.operations.push_back(&OperationOf(n, catalogue));
    const tw_shape shape = DomainOf(n, *l.operations[i]);
    if (CountOf(shape) <= most) continue;
    most = CountOf(shape);
    l.domain.shape = shape;
  }
  // The first node that needs rows defines them; the other nodes have to agree.
  for (uint32_t i = 0; i < part.n_nodes && l.domain.inner == 0; ++i) {
    const Fit fit = FitInto(*part.nodes[i], *l.operations[i], l.domain);
    if (!fit.why) l.domain.inner = fit.inner;
  }
  for (uint32_t i = 0; i < part.n_nodes; ++i) {
    const tw_part_node& n = *part.nodes[i];
    l.fits.push_back(FitInto(n, *l.operations[i], l.domain));
    const Fit& fit = l.fits.back();
    if (fit.why) Refuse(n, fit.why);
    l.whole_rows |= fit.whole_rows;
    for (uint32_t k = 0; k < n.n_in; ++k) {
      const bool agrees = n.in[k].node < 0 || fit.in[k] == l.fits[size_t(n.in[k].node)].out;
      if (!agrees) Refuse(n, "an input lies otherwise than it was made");
    }
  }
  return l;
}

}  // namespace thalweg::cpu
