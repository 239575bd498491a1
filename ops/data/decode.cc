// DecodeCSV, and ops that decode and encode sound.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void CsvRule(const tw::Shape& s) {
  for (uint32_t o = 0; o < s.c->n_out; ++o) s.out(o, s.in(0));
}

void SoundRule(const tw::Shape& s) {
  const int64_t channels = s.i("desired_channels"), samples = s.i("desired_samples");
  if (channels == 0 || channels < -1)
    Fail("'desired_channels' is " + std::to_string(channels) + "; it must be at least 1, or -1 for those of the file");
  if (samples < -1) Fail("'desired_samples' is " + std::to_string(samples) + "; it must be at least 0, or -1 for those of the file");
  s.out(0, {samples, channels});
}

}  // namespace

void register_decode(tw::Plugin& p) {
  p.op<nullptr, CsvRule>(R"(
      DecodeCSV(records: string, record_defaults: OUT_TYPE) -> (output: OUT_TYPE); OUT_TYPE: list(type) >= 1; field_delim: string = ",";
      use_quote_delim: bool = true; na_value: string = ""; select_cols: list(int) = []; no_gradient "text has no derivative";
      doc "the fields of lines of CSV, one tensor for each column")");
  p.op<nullptr, SoundRule>(R"(
      DecodeWav(contents: string[]) -> (audio: float, sample_rate: int32[]); desired_channels: int = -1; desired_samples: int = -1;
      no_gradient "stored bytes have no derivative"; doc "the samples of a WAV file")");
  p.op<nullptr, SoundRule>(R"(
      DecodeFlac(contents: string[]) -> (audio: float, sample_rate: int32[]); desired_channels: int = -1; desired_samples: int = -1;
      no_gradient "stored bytes have no derivative"; doc "the samples of a FLAC file")");
  p.op(R"(
      EncodeWav(audio: float, sample_rate: int32[]) -> (contents: string[]); no_gradient "stored bytes have no derivative";
      doc "a WAV file of the samples")");
}

}  // namespace thalweg::ops
