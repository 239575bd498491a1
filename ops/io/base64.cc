// EncodeBase64 and DecodeBase64 use the alphabet that is safe in URLs and file names.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {

void register_base64(tw::Plugin& p) {
  p.op(R"(
      EncodeBase64(input: string [*s]) -> (output: string [*s]); pad: bool = false; no_gradient "text has no derivative";
      doc "each text in base64url (RFC 4648, section 5), with = at the end where `pad` says so")");
  p.op(R"(
      DecodeBase64(input: string [*s]) -> (output: string [*s]); no_gradient "text has no derivative";
      doc "what each text in base64url says, with = at its end or without")");
}

}  // namespace thalweg::ops
