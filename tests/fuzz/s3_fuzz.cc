// What plugins/s3 reads from others. The first byte of an input says what the rest is: an answer of a
// store (p: a page, e: an error, u: the id of an upload, c: a copy), of a container's endpoint (k), a
// file of credentials (f), an endpoint (a), a path (s).
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "plugins/s3/address.h"
#include "plugins/s3/answers.h"
#include "plugins/s3/credentials.h"
#include "plugins/s3/fail.h"
#include "plugins/s3/profile.h"
#include "plugins/s3/refusal.h"
#include "tests/fuzz/broken.h"

namespace {

using namespace thalweg::s3;

void Read(char what, std::string_view rest) {
  const std::string text(rest);
  if (what == 'p') ParsePage(rest);
  if (what == 'u') ParseUploadId(rest);
  if (what == 'c') CompletionXml({ParseCopiedTag(rest)});
  if (what == 'k') ParseContainerAnswer(text);
  if (what == 'f') ParseProfile(text, "default");
  if (what == 'a') TargetOf(ParseEndpoint(rest, "endpoint"), {"bucket", "key"}, false);
  if (what == 's') {
    const std::string again = ParseAddress(rest).text();
    if (ParseAddress(again).text() != again) thalweg::fuzz::Broken("a path reads differently when it is written again: " + again);
  }
  if (what == 'e') {
    const ErrorText error = ParseError(rest);
    const Refusal refusal = Explain(400, error, {"bucket", "key"}, "", "");
    if (refusal.text.size() > 1000 || refusal.text.find('\n') != refusal.text.npos)
      thalweg::fuzz::Broken("an error has a long text: " + refusal.text);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  try {
    Read(input.front(), input.substr(1));
  } catch (const tw::Error& e) {
    if (e.text.empty()) thalweg::fuzz::Broken("an error has no text");
  }
  return 0;
}
