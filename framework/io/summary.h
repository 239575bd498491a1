// Summaries: the messages in event files that TensorBoard draws. A Summary message is a list of
// values, so summaries are joined by appending one to another. The functions append values to `to`,
// in the layout of TensorFlow's summary ops. Tensors lie in host memory and are dense.
// Errors: INVALID_ARGUMENT, naming the tag and the value; `to` is then unchanged. After the Check
// function of a kind, Append does not fail.
// Threads: any.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "thalweg/plugin/tensor.h"

namespace thalweg {

Status AppendScalar(std::string_view tag, double value, std::string* to);

// A scalar of any type of real numbers.
StatusOr<double> NumberOf(const tw_view& scalar);

// The distribution of the elements, real numbers of any type: minimum, maximum, count, sum, sum of
// squares, and counts in 1,549 buckets whose limits grow by a tenth; runs of empty buckets are
// joined. Elements that are not finite are refused.
Status CheckHistogram(std::string_view tag, const tw_view& values);
Status AppendHistogram(std::string_view tag, const tw_view& values, std::string* to);

// Pictures as PNG files. images: [n, height, width, channels] or [height, width, channels], with 1,
// 3 or 4 channels. The first `most` of them get the tags "`tag`/image/0", ..., or "`tag`/image" if
// `most` is 1. uint8 is written as it is. float, half, bfloat16 and double are scaled, image by
// image: to [0, 255] if no number is negative, else so that 0 becomes 128. Pixels that are not finite get
// bad_color, which has as many bytes as there are channels; empty: red, or white if there is 1
// channel.
Status CheckImages(std::string_view tag, const tw_view& images, uint32_t most, std::string_view bad_color);
Status AppendImages(std::string_view tag, const tw_view& images, uint32_t most, std::string_view bad_color, std::string* to);

// Sound as WAV files of 16-bit samples. sounds: float [n, frames, channels] or [n, frames], in
// [-1, 1]; others are cut off. rate: Hz. Tags as AppendImages, with "audio".
Status CheckAudio(std::string_view tag, const tw_view& sounds, double rate, uint32_t most);
Status AppendAudio(std::string_view tag, const tw_view& sounds, double rate, uint32_t most, std::string* to);

// Texts, which are shown as Markdown. texts: string of any shape.
Status AppendText(std::string_view tag, const tw_view& texts, std::string* to);
Status AppendText(std::string_view tag, std::string_view text, std::string* to);

// A tensor. metadata: a SummaryMetadata message, which names the plugin that shows it, or "".
Status CheckTensor(std::string_view tag, const tw_view& value, std::string_view metadata);
Status AppendTensor(std::string_view tag, const tw_view& value, std::string_view metadata, std::string* to);

// The parameters of a training run, for TensorBoard's page "hparams": which there are, with the
// metrics that tell how good the run is, and their values.
struct HyperParameter {
  enum Kind { kNumber = 1, kBool = 2, kText = 3 };
  std::string_view name;
  Kind kind;
  double number;          // of kNumber and kBool
  std::string_view text;  // of kText
};
Status AppendHyperParameters(std::span<const HyperParameter> parameters, std::span<const std::string_view> metrics, std::string_view group,
                             double wall_time, std::string* to);
// The end of such a run.
void AppendRunEnd(bool succeeded, double wall_time, std::string* to);

// Joins messages. Errors: INVALID_ARGUMENT if one is no Summary, or a tag is in two of them.
Status MergeSummaries(std::span<const std::string_view> summaries, std::string* to);

// The fields of an Event message.
enum class EventField : uint32_t { kFileVersion = 3, kGraph = 4, kSummary = 5, kRunMetadata = 8, kMetaGraph = 9 };
// wall_time: seconds since 1970. bytes: the message, or text, of the field.
std::string EncodeEvent(double wall_time, int64_t step, EventField field, std::string_view bytes);
// Errors: INVALID_ARGUMENT if the bytes are no message.
Status CheckMessage(std::string_view what, std::string_view bytes);

// A TaggedRunMetadata message.
std::string TaggedRunMetadata(std::string_view tag, std::string_view run_metadata);

}  // namespace thalweg
