// ReadFile, WriteFile and MatchingFiles work on whole files, in any file system that the host
// knows.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void MatchingRule(const tw::Shape& s) {
  if (s.known(0) && s.rank(0) > 1) Fail("'pattern' is " + Text(In(s, 0)) + "; it must be a scalar or a vector");
  Set(s, 0, Dims{-1});
}

}  // namespace

void register_files(tw::Plugin& p) {
  p.op(R"(
      ReadFile(filename: string []) -> (contents: string []); stateful; touches files; no_gradient "what it gives stands in a file";
      doc "the bytes of a file")");
  p.op(R"(
      WriteFile(filename: string [], contents: string []) -> (); stateful; touches files; no_gradient "it has no outputs";
      doc "makes or replaces a file, all at once, and the folders that it lies in")");
  p.op<nullptr, MatchingRule>(R"(
      MatchingFiles(pattern: string) -> (filenames: string [_]); stateful; touches files; no_gradient "text has no derivative";
      doc "the sorted paths of files and folders that match a pattern or one of several; * and ? and [a-z] and [^a-z] do not match /")");
}

}  // namespace thalweg::ops
