// StringJoin concatenates strings; AsString formats numbers.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// Scalar inputs combine with every element of the others.
void JoinRule(const tw::Shape& s) {
  MaybeDims out = Dims{};
  bool unknown = false;
  for (uint32_t i = 0; i < s.c->n_in; ++i) {
    if (!s.known(i))
      unknown = true;
    else if (s.rank(i) > 0)
      out = out->empty() ? In(s, i)
                         : Merge(s, out, In(s, i),
                                 "'inputs' must be scalars or have one shape: those before input " + tw::text(i) + ", and its own,");
  }
  // If some ranks are unknown and all others are scalars, the output shape is unknown. If one shape
  // is known, an input of unknown rank must have it or be a scalar.
  if (!unknown || !out->empty()) Set(s, 0, out);
}

bool IsReal(uint32_t type) { return type == TW_HALF || type == TW_BFLOAT16 || type == TW_FLOAT || type == TW_DOUBLE; }
bool IsComplex(uint32_t type) { return type == TW_COMPLEX64 || type == TW_COMPLEX128; }

void AsStringRule(const tw::Shape& s) {
  const uint32_t type = s.type_in(0);
  const bool scientific = s.b("scientific"), shortest = s.b("shortest"), broken = IsReal(type) || IsComplex(type);
  if (scientific && shortest) Fail("'scientific' and 'shortest' exclude each other; set one of them");
  if (!broken && (scientific || shortest))
    Fail(std::string("'") + (scientific ? "scientific" : "shortest") + "' is for floating-point numbers, the input is " + TypeName(type));
  if (!broken && s.i("precision") >= 0)
    Fail("'precision' is " + tw::text(s.i("precision")) + ", which is for floating-point numbers, the input is " + TypeName(type));
  const std::string_view fill = s.s("fill");
  if (fill.size() > 1 || (!fill.empty() && std::string_view(" +-0#").find(fill[0]) == std::string_view::npos))
    Fail("'fill' is \"" + std::string(fill) + "\"; it must be empty or one of: space + - 0 #");
  Set(s, 0, In(s, 0));
}

}  // namespace

void register_strings(tw::Plugin& p) {
  p.op<nullptr, JoinRule>(R"(
      StringJoin(inputs: string * N) -> (output: string); N: int >= 0; separator: string = ""; no_gradient "text has no derivative";
      doc "joins texts element by element, with a separator between them")");
  p.op<nullptr, AsStringRule>(
      "AsString(input: T) -> (output: string); T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32, "
      "uint64, "
      "complex64, complex128, bool, variant, string}; precision: int = -1; scientific: bool = false; shortest: bool = false; "
      "width: int = -1; fill: string = \"\"; no_gradient \"text has no derivative\"; doc \"numbers and truth values as text\"");
}

}  // namespace thalweg::ops
