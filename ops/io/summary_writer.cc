// Summary writers: resources that write event files, and the ops that write summaries to them.
#include "ops/common/shape.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {

void register_summary_writer(tw::Plugin& p) {
  const std::string of = "; stateful; resource writer org.thalweg.summary_writer; no_gradient \"it has no outputs\"; doc \"";
  // An op on a writer. inputs, attrs: those after the writer.
  const auto add = [&](const std::string& name, const std::string& inputs, const std::string& attrs, const std::string& doc) {
    p.op(name + "(writer: resource" + inputs + ") -> ()" + attrs + of + doc + "\"");
  };
  p.op(
      "SummaryWriter() -> (writer: resource[]); shared_name: string = \"\"; container: string = \"\"; stateful; once; "
      "resource writer org.thalweg.summary_writer; no_gradient \"it has no inputs\"; doc \"the summary writer of that name\"");
  add("CreateSummaryFileWriter", ", logdir: string[], max_queue: int32[], flush_millis: int32[], filename_suffix: string[]",
      "; touches files", "begins an event file, unless the writer has one");
  add("CloseSummaryWriter", "", "", "writes everything and closes the event file");
  add("FlushSummaryWriter", "", "", "waits until everything is in the event file");
  const std::string at = ", step: int64[], tag: string[]";
  add("WriteScalarSummary", at + ", value: T[]", "; T: " OPS_REALS, "writes a number");
  add("WriteHistogramSummary", at + ", values: T", "; T: " OPS_REALS " = float", "writes the distribution of the values");
  add("WriteImageSummary", at + ", tensor: T, bad_color: uint8", "; max_images: int >= 1 = 3; T: {uint8, float, half} = float",
      "writes pictures as PNG files");
  add("WriteAudioSummary", at + ", tensor: float, sample_rate: float[]", "; max_outputs: int >= 1 = 3", "writes sounds as WAV files");
  add("WriteSummary", ", step: int64[], tensor: T, tag: string[], summary_metadata: string[]", "; T: type",
      "writes a tensor, and the message that says who shows it");
  add("WriteGraphSummary", ", step: int64[], tensor: string[]", "", "writes a GraphDef message");
  add("WriteRawProtoSummary", ", step: int64[], tensor: string", "", "writes Summary messages");
  add("ImportEvent", ", event: string[]", "", "writes a whole Event message");
}

}  // namespace thalweg::ops
