// Ops that make summaries: messages with numbers, distributions, pictures and sound for TensorBoard.
#include "ops/common/shape.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

const std::string kNoGradient = "no_gradient \"a message has no derivative\"; ";

void SameShapes(const tw::Shape& s) {
  if (!s.known(0) || !s.known(1)) return;
  bool same = s.rank(0) == s.rank(1);
  for (int32_t i = 0; same && i < s.rank(0); ++i) same = s.dim(0, i) < 0 || s.dim(1, i) < 0 || s.dim(0, i) == s.dim(1, i);
  if (!same) Fail("tags are " + Text(In(s, 0)) + ", values are " + Text(In(s, 1)) + "; each value needs a tag, so their shapes must agree");
}

void Images(const tw::Shape& s) {
  if (!s.known(1)) return;
  const int64_t channels = s.rank(1) == 4 ? s.dim(1, 3) : 0;
  if (channels == -1 || channels == 1 || channels == 3 || channels == 4) return;
  Fail("'tensor' is " + Text(In(s, 1)) + "; images are [n, height, width, channels], with 1, 3 or 4 channels");
}

void Sounds(const tw::Shape& s) {
  if (s.known(1) && s.rank(1) != 2 && s.rank(1) != 3)
    Fail("'tensor' is " + Text(In(s, 1)) + "; sounds are [n, frames] or [n, frames, channels]");
}

}  // namespace

void register_summary(tw::Plugin& p) {
  p.op<nullptr, SameShapes>("ScalarSummary(tags: string, values: T) -> (summary: string[]); T: " OPS_REALS "; " + kNoGradient +
                            "doc \"a summary with a number for each tag\"");
  p.op("HistogramSummary(tag: string[], values: T) -> (summary: string[]); T: " OPS_REALS " = float; " + kNoGradient +
       "doc \"a summary with the distribution of the values\"");
  p.op<nullptr, Images>(
      "ImageSummary(tag: string[], tensor: T) -> (summary: string[]); max_images: int >= 1 = 3; T: {uint8, float, half, double} = float; "
      "bad_color: tensor; " +
      kNoGradient + "doc \"a summary with pictures as PNG files\"");
  const std::string sound = "max_outputs: int >= 1 = 3; " + kNoGradient + "doc \"a summary with sounds as WAV files";
  p.op<nullptr, Sounds>("AudioSummary(tag: string[], tensor: float) -> (summary: string[]); sample_rate: float; " + sound + "\"");
  p.op<nullptr, Sounds>("AudioSummaryV2(tag: string[], tensor: float, sample_rate: float[]) -> (summary: string[]); " + sound + "\"");
  // Two of them with the same tensor have different results, so they are not merged.
  p.op(
      "TensorSummary(tensor: T) -> (summary: string[]); T: type; description: string = \"\"; labels: list(string) = []; "
      "display_name: string = \"\"; stateful; " +
      kNoGradient + "doc \"a summary with a tensor, whose tag is the name of the operation\"");
  p.op("TensorSummaryV2(tag: string[], tensor: T, serialized_summary_metadata: string[]) -> (summary: string[]); T: type; " + kNoGradient +
       "doc \"a summary with a tensor, and the message that says who shows it\"");
  p.op("MergeSummary(inputs: string * N) -> (summary: string[]); N: int >= 1; " + kNoGradient +
       "doc \"the values of several summaries in one\"");
}

}  // namespace thalweg::ops
