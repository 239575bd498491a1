// Transpose permutes axes. InvertPermutation inverts a permutation.
#include "ops/common/shape.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// Checks a permutation and makes negative axes, where allowed, count from the front.
enum class Negative { kRefused, kFromEnd };
void CheckPermutation(Dims* perm, const char* name, Negative negative) {
  const Dims given = *perm;
  const int64_t n = static_cast<int64_t>(perm->size());
  std::vector<bool> seen(perm->size(), false);
  for (int64_t& axis : *perm) {
    if (negative == Negative::kFromEnd && axis >= -n && axis < 0) axis += n;
    if (axis < 0 || axis >= n || seen[static_cast<size_t>(axis)]) {
      Fail("'" + std::string(name) + "' is " + Text(given) + "; it must hold each of 0 to " + tw::text(n - 1) + " once" +
           (negative == Negative::kFromEnd ? ", or less " + tw::text(n) + " to count from the end" : ""));
    }
    seen[static_cast<size_t>(axis)] = true;
  }
}

void TransposeRule(const tw::Shape& s) {
  WantVector(s, 1, "perm");
  const MaybeDims x = In(s, 0);
  const int64_t n = s.known(1) ? s.dim(1, 0) : -1;
  if (x && Known(n) && n != s.rank(0))
    Fail("'perm' has " + tw::text(n) + " entries but x is " + Text(x) + "; give one entry for each axis");
  const int64_t rank = x ? s.rank(0) : n;
  Dims perm;
  if (!s.value(1, &perm)) {
    if (Known(rank)) s.out(0, Dims(static_cast<size_t>(rank), -1));
    return;
  }
  CheckPermutation(&perm, "perm", Negative::kFromEnd);
  Dims out(perm.size(), -1);
  if (x)
    for (size_t k = 0; k < out.size(); ++k) out[k] = (*x)[static_cast<size_t>(perm[k])];
  s.out(0, out);
}

void TransposeGradient(const tw::Grad& g) {
  Dims perm;
  if (!g.value(1, &perm)) {
    const tw_edge from_front = g.op("FloorMod", {g.x(1), g.op("Size", {g.x(1)}, {tw::Attr::Type("out_type", g.type_in(1))})});
    g.dx(0, g.op("Transpose", {g.dy(), g.op("InvertPermutation", {from_front})}));
    return;
  }
  CheckPermutation(&perm, "perm", Negative::kFromEnd);
  Dims inverse(perm.size());
  for (size_t k = 0; k < perm.size(); ++k) inverse[static_cast<size_t>(perm[k])] = static_cast<int64_t>(k);
  g.dx(0, g.op("Transpose", {g.dy(), g.ints(inverse)}));
}

void InvertRule(const tw::Shape& s) {
  WantVector(s, 0, "x");
  Dims perm;
  if (s.value(0, &perm)) CheckPermutation(&perm, "x", Negative::kRefused);
  Set(s, 0, In(s, 0));
}

}  // namespace

void register_transpose(tw::Plugin& p) {
  p.op<TransposeGradient, TransposeRule>(
      "Transpose(x: T, perm: Tperm) -> (y: T); T: type; Tperm: " OPS_INDEX
      " = int32; role transpose; permutes x perm; ?data x; doc \"axis k of y is axis perm[k] of x; negative axes count from the end\"");
  p.op<nullptr, InvertRule>("InvertPermutation(x: T) -> (y: T[_]); T: " OPS_INDEX
                            " = int32; no_gradient \"whole numbers\"; doc \"y[x[k]] = k\"");
}

}  // namespace thalweg::ops
