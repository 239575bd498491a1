#include "thalweg/summary.h"

#include <cstring>
#include <memory>
#include <vector>

#include "c_api/handles.h"
#include "c_api/shim.h"
#include "framework/io/event_writer.h"
#include "framework/io/summary.h"
#include "framework/io/summary_parts.h"
#include "framework/runtime/devices/device.h"
#include "framework/runtime/trace/run_metadata.h"
#include "framework/tensor/tensor.h"
#include "thalweg/status.h"

using thalweg::EventField;
using thalweg::EventWriter;
using thalweg::InvalidArgument;
using thalweg::Status;
using thalweg::Tensor;

struct tw_summary_writer {
  std::unique_ptr<EventWriter> writer;
  std::mutex mu;
  bool has_hparams = false, ended = false;  // guarded by mu
};

namespace {

// Queues a Summary that `append` makes now.
template <class F>
Status AddNow(tw_summary_writer* w, int64_t step, F&& append) {
  std::string summary;
  RETURN_IF_ERROR(append(&summary));
  return w->writer->Add(EventWriter::Now(), step, EventField::kSummary, summary);
}

// Queues a Summary of a tensor: `check` refuses it now, `append` makes it on the writer's thread.
template <class Check, class F>
Status AddOfTensor(tw_summary_writer* w, const char* tag, int64_t step, tw_tensor* tensor, Check&& check, F append) {
  RETURN_IF_ERROR(thalweg::CheckTag(tag));
  if (!thalweg::LiesOnHost(*tensor)) {
    return InvalidArgument(thalweg::OfTag(tag), "the tensor lies on a device; copy it with tw_tensor_to_host first");
  }
  RETURN_IF_ERROR(check(std::string_view(tag), tensor->view));
  const uint64_t bytes = tensor->view.bytes + std::strlen(tag);
  return w->writer->AddLater(EventWriter::Now(), step, bytes,
                             [kept = Tensor::Share(tensor), tag = std::string(tag), append = std::move(append)](std::string* to) {
                               return append(tag, kept.view(), to);
                             });
}

thalweg::StatusOr<std::shared_ptr<thalweg::FileSystem>> FilesOfRuntime(tw_runtime* runtime, std::string_view path) {
  if (thalweg::SchemeOf(path).empty()) return std::shared_ptr<thalweg::FileSystem>(std::shared_ptr<void>(), &thalweg::LocalFiles());
  ASSIGN_OR_RETURN(const std::shared_ptr<thalweg::Runtime> r, thalweg::RuntimeOf(runtime));
  return std::shared_ptr<thalweg::FileSystem>(r, &r->files());
}

Status End(tw_summary_writer* w, bool succeeded) {
  return AddNow(w, 0, [&](std::string* to) {
    thalweg::AppendRunEnd(succeeded, EventWriter::Now(), to);
    return Status();
  });
}

}  // namespace

void tw_summary_writer_options_init(tw_summary_writer_options* options) {
  if (!options) return;
  *options = {};
  options->size = sizeof(*options);
  options->flush_seconds = thalweg::EventWriterOptions().flush_seconds;
  options->queue_bytes = thalweg::EventWriterOptions().queue_bytes;
}

tw_status* tw_summary_writer_create(const char* folder, const tw_summary_writer_options* given, tw_summary_writer** out_writer) {
  NEED(folder);
  NEED(out_writer);
  *out_writer = nullptr;
  return thalweg::Enter([&]() -> Status {
    tw_summary_writer_options o;
    tw_summary_writer_options_init(&o);
    if (given) {
      RETURN_IF_ERROR(thalweg::CheckRecord("tw_summary_writer_options", given->size, given->flags, sizeof(o)));
      std::memcpy(&o, given, sizeof(o));
    }
    thalweg::EventWriterOptions options;
    options.flush_seconds = o.flush_seconds;
    if (o.queue_bytes > 0) options.queue_bytes = o.queue_bytes;
    options.most_bytes = o.file_bytes;
    options.suffix = thalweg::TextOrEmpty(o.suffix);
    ASSIGN_OR_RETURN(auto files, FilesOfRuntime(o.runtime, folder));
    auto made = std::make_unique<tw_summary_writer>();
    ASSIGN_OR_RETURN(made->writer, EventWriter::Open(folder, options, std::move(files)));
    *out_writer = made.release();
    return Status();
  });
}

void tw_summary_writer_destroy(tw_summary_writer* writer) {
  if (!writer) return;
  tw_status_release(tw_summary_writer_close(writer));
  delete writer;
}

tw_status* tw_summary_writer_scalar(tw_summary_writer* writer, const char* tag, int64_t step, double value) {
  NEED(writer);
  NEED(tag);
  return thalweg::Enter([&] { return AddNow(writer, step, [&](std::string* to) { return thalweg::AppendScalar(tag, value, to); }); });
}

tw_status* tw_summary_writer_histogram(tw_summary_writer* writer, const char* tag, int64_t step, tw_tensor* values) {
  NEED(writer);
  NEED(tag);
  NEED(values);
  return thalweg::Enter([&] { return AddOfTensor(writer, tag, step, values, thalweg::CheckHistogram, thalweg::AppendHistogram); });
}

tw_status* tw_summary_writer_images(tw_summary_writer* writer, const char* tag, int64_t step, tw_tensor* images, uint32_t most) {
  NEED(writer);
  NEED(tag);
  NEED(images);
  return thalweg::Enter([&] {
    return AddOfTensor(
        writer, tag, step, images, [most](auto of, const tw_view& v) { return thalweg::CheckImages(of, v, most, {}); },
        [most](auto of, const tw_view& v, std::string* to) { return thalweg::AppendImages(of, v, most, {}, to); });
  });
}

tw_status* tw_summary_writer_audio(tw_summary_writer* writer, const char* tag, int64_t step, tw_tensor* sounds, double rate,
                                   uint32_t most) {
  NEED(writer);
  NEED(tag);
  NEED(sounds);
  return thalweg::Enter([&] {
    return AddOfTensor(
        writer, tag, step, sounds, [=](auto of, const tw_view& v) { return thalweg::CheckAudio(of, v, rate, most); },
        [=](auto of, const tw_view& v, std::string* to) { return thalweg::AppendAudio(of, v, rate, most, to); });
  });
}

tw_status* tw_summary_writer_text(tw_summary_writer* writer, const char* tag, int64_t step, const char* text) {
  NEED(writer);
  NEED(tag);
  NEED(text);
  return thalweg::Enter(
      [&] { return AddNow(writer, step, [&](std::string* to) { return thalweg::AppendText(tag, std::string_view(text), to); }); });
}

tw_status* tw_summary_writer_tensor(tw_summary_writer* writer, const char* tag, int64_t step, tw_tensor* value, const char* plugin,
                                    const void* content, uint64_t n) {
  NEED(writer);
  NEED(tag);
  NEED(value);
  NEED_ARRAY(content, n);
  return thalweg::Enter([&]() -> Status {
    const std::string metadata = plugin ? thalweg::MetadataOf(plugin, {n ? static_cast<const char*>(content) : "", size_t(n)}) : "";
    return AddOfTensor(
        writer, tag, step, value, [&](auto of, const tw_view& v) { return thalweg::CheckTensor(of, v, metadata); },
        [metadata](auto of, const tw_view& v, std::string* to) { return thalweg::AppendTensor(of, v, metadata, to); });
  });
}

tw_status* tw_summary_writer_graph(tw_summary_writer* writer, const tw_graph* graph) {
  NEED(writer);
  NEED(graph);
  tw_buffer* bytes = nullptr;
  if (tw_status* failed = tw_graph_export(graph, &bytes)) return failed;
  tw_status* failed = thalweg::Enter([&] { return writer->writer->Add(EventWriter::Now(), 0, EventField::kGraph, bytes->bytes); });
  tw_buffer_release(bytes);
  return failed;
}

tw_status* tw_summary_writer_step_stats(tw_summary_writer* writer, const char* tag, int64_t step, const tw_step_stats* stats) {
  NEED(writer);
  NEED(tag);
  NEED(stats);
  return thalweg::Enter([&]() -> Status {
    RETURN_IF_ERROR(thalweg::CheckTag(tag));
    const std::string message = thalweg::TaggedRunMetadata(tag, thalweg::RunMetadataOf(stats->stats));
    return writer->writer->Add(EventWriter::Now(), step, EventField::kRunMetadata, message);
  });
}

tw_status* tw_summary_writer_hparams(tw_summary_writer* writer, const tw_hparam* hparams, uint32_t n_hparams, const char* const* metrics,
                                     uint32_t n_metrics) {
  NEED(writer);
  NEED_ARRAY(hparams, n_hparams);
  NEED_ARRAY(metrics, n_metrics);
  return thalweg::Enter([&]() -> Status {
    std::vector<thalweg::HyperParameter> parameters;
    std::vector<std::string_view> tags;
    for (uint32_t i = 0; i < n_hparams; ++i) {
      const tw_hparam& h = hparams[i];
      const bool text = h.kind == TW_HPARAM_TEXT;
      if (!h.name || (text && !h.text))
        return InvalidArgument("tw_summary_writer_hparams: hparams[", i, "] has no ", h.name ? "text" : "name");
      if (h.kind < TW_HPARAM_NUMBER || h.kind > TW_HPARAM_TEXT) {
        return InvalidArgument("tw_summary_writer_hparams: hparams[", i, "], '", h.name, "', is of kind ", h.kind,
                               "; kinds are 1, 2 and 3");
      }
      parameters.push_back({h.name, thalweg::HyperParameter::Kind(h.kind), h.number, text ? h.text : ""});
    }
    for (uint32_t i = 0; i < n_metrics; ++i) {
      if (!metrics[i]) return InvalidArgument("tw_summary_writer_hparams: metrics[", i, "] is NULL");
      tags.emplace_back(metrics[i]);
    }
    std::lock_guard lock(writer->mu);
    if (writer->has_hparams) return thalweg::FailedPrecondition("tw_summary_writer_hparams: this run has hyper-parameters already");
    RETURN_IF_ERROR(
        AddNow(writer, 0, [&](std::string* to) { return thalweg::AppendHyperParameters(parameters, tags, {}, EventWriter::Now(), to); }));
    writer->has_hparams = true;
    return Status();
  });
}

tw_status* tw_summary_writer_end(tw_summary_writer* writer, uint32_t succeeded) {
  NEED(writer);
  return thalweg::Enter([&]() -> Status {
    std::lock_guard lock(writer->mu);
    RETURN_IF_ERROR(End(writer, succeeded != 0));
    writer->ended = true;
    return Status();
  });
}

tw_status* tw_summary_writer_summary(tw_summary_writer* writer, int64_t step, const void* summary, uint64_t n) {
  NEED(writer);
  NEED_ARRAY(summary, n);
  return thalweg::Enter([&] {
    const std::string_view bytes(n ? static_cast<const char*>(summary) : "", size_t(n));
    return AddNow(writer, step, [&](std::string* to) -> Status {
      RETURN_IF_ERROR(thalweg::CheckMessage("a summary", bytes));
      *to = bytes;
      return Status();
    });
  });
}

tw_status* tw_summary_writer_event(tw_summary_writer* writer, const void* event, uint64_t n) {
  NEED(writer);
  NEED_ARRAY(event, n);
  return thalweg::Enter([&] { return writer->writer->AddEvent({n ? static_cast<const char*>(event) : "", size_t(n)}); });
}

tw_status* tw_summary_writer_flush(tw_summary_writer* writer) {
  NEED(writer);
  return thalweg::Enter([&] { return writer->writer->Flush(); });
}

tw_status* tw_summary_writer_close(tw_summary_writer* writer) {
  NEED(writer);
  return thalweg::Enter([&] {
    Status ended;
    {
      std::lock_guard lock(writer->mu);
      if (writer->has_hparams && !writer->ended) ended = End(writer, true);
      writer->ended = true;
    }
    const Status closed = writer->writer->Close();
    return closed.ok() ? ended : closed;
  });
}

tw_status* tw_summary_writer_path(const tw_summary_writer* writer, tw_buffer** out_path) {
  NEED(writer);
  NEED(out_path);
  *out_path = nullptr;
  return thalweg::Enter([&] {
    *out_path = thalweg::MakeBuffer(writer->writer->path());
    return Status();
  });
}
