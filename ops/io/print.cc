// PrintV2 prints a line of text.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  WantScalar(s, 0, "input");
  const std::string_view stream = s.s("output_stream");
  for (std::string_view known : {"stdout", "stderr", "log(info)", "log(warning)", "log(error)"})
    if (stream == known) return;
  if (stream.size() > 7 && stream.substr(0, 7) == "file://") return;
  Fail("'output_stream' is \"" + std::string(stream) + "\"; it must be stdout, stderr, log(info), log(warning), log(error) or file://PATH");
}

}  // namespace

void register_print(tw::Plugin& p) {
  p.op<nullptr, Rule>(R"(
      PrintV2(input: string) -> (); output_stream: string = "stderr"; end: string = "
"; stateful; touches files; no_gradient "it has no outputs";
      doc "writes a text and `end` to stdout, stderr, the log or, behind what is there, a file; each line to a file writes the file anew")");
}

}  // namespace thalweg::ops
