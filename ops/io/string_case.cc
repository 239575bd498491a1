// StringLower and StringUpper convert the case of strings; StringStrip trims white space.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void CaseRule(const tw::Shape& s) {
  const std::string_view encoding = s.s("encoding");
  if (!encoding.empty() && encoding != "utf-8")
    Fail("'encoding' is \"" + std::string(encoding) + "\"; it must be \"utf-8\" or empty: ASCII");
  Set(s, 0, In(s, 0));
}

}  // namespace

void register_string_case(tw::Plugin& p) {
  p.op<nullptr, CaseRule>(R"(
      StringLower(input: string [*s]) -> (output: string [*s]); encoding: string = ""; no_gradient "text has no derivative";
      doc "each text in lower case: the letters of ASCII, or with encoding utf-8 those of Unicode")");
  p.op<nullptr, CaseRule>(R"(
      StringUpper(input: string [*s]) -> (output: string [*s]); encoding: string = ""; no_gradient "text has no derivative";
      doc "each text in upper case: the letters of ASCII, or with encoding utf-8 those of Unicode")");
  p.op(R"(
      StringStrip(input: string [*s]) -> (output: string [*s]); no_gradient "text has no derivative";
      doc "each text without the white space of ASCII at its ends")");
}

}  // namespace thalweg::ops
