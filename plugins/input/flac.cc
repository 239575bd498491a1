// DecodeFlac: sound files of FLAC, by libFLAC. Its callbacks are called from C and therefore throw nothing.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include <FLAC/stream_decoder.h>

#include "image.h"
#include "register.h"

namespace thalweg::input {
namespace {

constexpr int64_t kMostSamples = int64_t{1} << 29;  // of all channels together: a frame of 30 bytes can hold 8 * 65,535
// A frame has at most 65,535 samples of each channel and at least 10 bytes.
constexpr uint64_t kFrameSamples = 65535, kFrameBytes = 10;
// Bytes that libFLAC holds for a sample of a frame: the sample and its residual.
constexpr uint64_t kSampleBytes = 12;

// Decodes a stream from its begin, once.
class Stream {
 public:
  explicit Stream(std::string_view bytes) : bytes_(bytes), decoder_(FLAC__stream_decoder_new(), &FLAC__stream_decoder_delete) {
    if (!bytes.starts_with("fLaC") && !bytes.starts_with("ID3")) Invalid(Of("FLAC", bytes) + "it does not begin with fLaC");
    if (!decoder_) throw tw::Error{TW_RESOURCE_EXHAUSTED, Of("FLAC", bytes) + "not enough memory to decode it"};
    FLAC__stream_decoder_set_md5_checking(decoder_.get(), true);
    const auto started =
        FLAC__stream_decoder_init_stream(decoder_.get(), &Read, nullptr, &Tell, nullptr, nullptr, &Write, &Metadata, &Failed, this);
    if (started != FLAC__STREAM_DECODER_INIT_STATUS_OK) throw tw::Error{TW_INTERNAL, "libFLAC cannot start a decoder"};
    const FLAC__bool went_well = FLAC__stream_decoder_process_until_end_of_metadata(decoder_.get());
    if (ended_) Invalid(Of("FLAC", bytes) + "the file ends inside of its head; it is damaged");
    Check(went_well);
    if (info_.channels == 0) Invalid(Of("FLAC", bytes) + "its head does not describe the stream (STREAMINFO); it is damaged");
    FLAC__stream_decoder_get_decode_position(decoder_.get(), &frame_end_);
  }

  int64_t channels() const { return info_.channels; }
  int32_t rate() const { return int32_t(info_.sample_rate); }
  uint64_t longest_frame() const { return info_.max_blocksize; }
  uint64_t told() const { return info_.total_samples; }  // 0: the head does not tell

  // Decodes at most `most` samples of each channel and returns their number. to: rows of `width` channels, where missing ones repeat the
  // last; NULL: the samples are only counted.
  uint64_t Decode(float* to, int64_t width, uint64_t most) {
    to_ = to, width_ = width, most_ = most;
    while (done_ < most_) {
      Check(FLAC__stream_decoder_process_single(decoder_.get()));
      if (FLAC__stream_decoder_get_state(decoder_.get()) != FLAC__STREAM_DECODER_END_OF_STREAM) continue;
      if (frame_end_ != bytes_.size()) EndedInside();
      break;
    }
    if (told() != 0 && done_ < std::min(most_, told()))
      Invalid(Of("FLAC", bytes_) + "it ends after " + std::to_string(done_) + " of " + std::to_string(told()) + " samples");
    const bool whole = told() != 0 ? done_ >= told() : done_ < most_;
    if (!FLAC__stream_decoder_finish(decoder_.get()) && whole)
      Invalid(Of("FLAC", bytes_) + "its samples have another MD5 sum than its head says; it is damaged");
    return std::min(done_, most_);
  }

 private:
  using Decoder = FLAC__StreamDecoder;
  static Stream& Self(void* self) { return *static_cast<Stream*>(self); }

  static FLAC__StreamDecoderReadStatus Read(const Decoder*, FLAC__byte to[], size_t* n, void* self) {
    Stream& s = Self(self);
    *n = std::min(*n, s.bytes_.size() - s.at_);
    s.ended_ |= *n == 0;
    if (s.ended_) return FLAC__STREAM_DECODER_READ_STATUS_END_OF_STREAM;
    std::memcpy(to, s.bytes_.data() + s.at_, *n);
    s.at_ += *n;
    return FLAC__STREAM_DECODER_READ_STATUS_CONTINUE;
  }
  static FLAC__StreamDecoderTellStatus Tell(const Decoder*, FLAC__uint64* at, void* self) {
    *at = Self(self).at_;
    return FLAC__STREAM_DECODER_TELL_STATUS_OK;
  }
  static void Metadata(const Decoder*, const FLAC__StreamMetadata* m, void* self) {
    if (m->type == FLAC__METADATA_TYPE_STREAMINFO) Self(self).info_ = m->data.stream_info;
  }
  static void Failed(const Decoder* d, FLAC__StreamDecoderErrorStatus status, void* self) {
    Stream& s = Self(self);
    if (s.failure_) return;
    FLAC__uint64 at = 0;
    s.failed_at_ = FLAC__stream_decoder_get_decode_position(d, &at) ? at : s.at_;
    switch (status) {
      case FLAC__STREAM_DECODER_ERROR_STATUS_LOST_SYNC: s.failure_ = "no frame begins where one must"; break;
      case FLAC__STREAM_DECODER_ERROR_STATUS_BAD_HEADER: s.failure_ = "the head of a frame is damaged"; break;
      case FLAC__STREAM_DECODER_ERROR_STATUS_FRAME_CRC_MISMATCH: s.failure_ = "a frame has another checksum than it says"; break;
      default: s.failure_ = "libFLAC cannot read a part"; break;
    }
  }
  static FLAC__StreamDecoderWriteStatus Write(const Decoder* d, const FLAC__Frame* frame, const FLAC__int32* const samples[], void* self) {
    Stream& s = Self(self);
    const FLAC__FrameHeader& head = frame->header;
    FLAC__stream_decoder_get_decode_position(d, &s.frame_end_);
    if (head.channels != s.info_.channels || head.bits_per_sample != s.info_.bits_per_sample) {
      s.failed_at_ = s.frame_end_;
      s.failure_ = "a frame has other channels or bits than the head of the file";
      return FLAC__STREAM_DECODER_WRITE_STATUS_ABORT;
    }
    if (s.to_) s.Store(samples, head.blocksize);
    s.done_ += head.blocksize;
    return FLAC__STREAM_DECODER_WRITE_STATUS_CONTINUE;
  }

  void Store(const FLAC__int32* const samples[], uint64_t n) const {
    const float scale = std::ldexp(1.0f, 1 - int(info_.bits_per_sample));
    float* to = to_ + done_ * uint64_t(width_);
    n = std::min(n, most_ - done_);
    for (int64_t k = 0; k < width_; ++k) {
      const FLAC__int32* from = samples[std::min(k, channels() - 1)];
      for (uint64_t i = 0; i < n; ++i) to[i * uint64_t(width_) + uint64_t(k)] = float(from[i]) * scale;
    }
  }

  void Check(FLAC__bool went_well) const {
    if (failure_ && ended_) EndedInside();
    if (failure_) Invalid(Place(failed_at_) + failure_ + "; it is damaged or no FLAC");
    if (went_well) return;
    if (FLAC__stream_decoder_get_state(decoder_.get()) == FLAC__STREAM_DECODER_MEMORY_ALLOCATION_ERROR)
      throw tw::Error{TW_RESOURCE_EXHAUSTED, Of("FLAC", bytes_) + "not enough memory to decode it"};
    Invalid(Of("FLAC", bytes_) + FLAC__stream_decoder_get_resolved_state_string(decoder_.get()));
  }
  [[noreturn]] void EndedInside() const { Invalid(Place(frame_end_) + "a frame begins and the file ends inside of it; it is damaged"); }
  std::string Place(uint64_t at) const { return Of("FLAC", bytes_) + "at byte " + std::to_string(at) + " "; }

  const std::string_view bytes_;
  size_t at_ = 0;
  FLAC__StreamMetadata_StreamInfo info_{};
  float* to_ = nullptr;
  int64_t width_ = 0;
  uint64_t most_ = 0, done_ = 0, failed_at_ = 0;
  FLAC__uint64 frame_end_ = 0;  // of the last frame that was read
  const char* failure_ = nullptr;
  bool ended_ = false;                                                              // more bytes were wanted than there are
  const std::unique_ptr<Decoder, decltype(&FLAC__stream_decoder_delete)> decoder_;  // last: its end calls back
};

class DecodeFlac {
 public:
  explicit DecodeFlac(const tw::Node& n) : channels_(n.i("desired_channels")), samples_(n.i("desired_samples")) {}
  void operator()(tw::Frame f, tw::In<tw_string> contents, tw::Out<float> audio, tw::Out<int32_t> sample_rate) const {
    const std::string_view bytes = Contents(contents);
    Stream stream(bytes);
    const tw::Charge charge(f, stream.longest_frame() * uint64_t(stream.channels()) * kSampleBytes);
    const uint64_t n = samples_ < 0 ? Samples(bytes, stream) : uint64_t(samples_);
    const int64_t channels = channels_ < 0 ? stream.channels() : channels_;
    if (audio.rank() < 0) audio.allocate({int64_t(n), channels});
    if (audio.dim(0) != int64_t(n) || audio.dim(1) != channels) throw tw::Error{TW_INTERNAL, "the output has another shape"};
    const uint64_t have = stream.told() != 0 ? std::min(n, stream.told()) : n;
    const uint64_t done = stream.Decode(audio.data(), channels, have);
    std::fill(audio.data() + done * uint64_t(channels), audio.data() + n * uint64_t(channels), 0.0f);  // missing samples are silent
    sample_rate[0] = stream.rate();
  }

 private:
  // Returns the number of samples of each channel. A head may leave it out, and may lie.
  static uint64_t Samples(std::string_view bytes, const Stream& stream) {
    const uint64_t most = uint64_t(kMostSamples / stream.channels());
    uint64_t n = stream.told();
    if (n == 0) n = Stream(bytes).Decode(nullptr, 0, most + 1);
    if (n > most) {
      Invalid(Of("FLAC", bytes) + "it has more than " + std::to_string(most) + " samples of " + tw::text(stream.channels()) +
              " channels; the limit is " + tw::text(kMostSamples) + " in all; set 'desired_samples'");
    }
    if (n > (bytes.size() / kFrameBytes + 1) * kFrameSamples)
      Invalid(Of("FLAC", bytes) + "its head claims " + std::to_string(n) + " samples, which so few bytes cannot hold");
    return n;
  }

  const int64_t channels_, samples_;
};

}  // namespace

void register_flac(tw::Plugin& p) { p.kernel<DecodeFlac>("DecodeFlac @CPU"); }

}  // namespace thalweg::input
