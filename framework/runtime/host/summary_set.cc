#include "framework/runtime/host/summary_set.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/io/event_writer.h"
#include "framework/io/summary.h"
#include "framework/runtime/host/host_table.h"

struct tw_event_writer {
  std::unique_ptr<thalweg::EventWriter> writer;
};

namespace thalweg {
namespace {

// Writes to `to` what `append` appends to a string.
template <class F>
tw_status* Put(tw_sink* to, F&& append) {
  return Guard([&]() -> Status {
    std::string summary;
    RETURN_IF_ERROR(append(&summary));
    return FromC(to->put(to, summary.data(), summary.size()));
  });
}

std::string_view Bytes(const void* bytes, uint64_t n) { return {static_cast<const char*>(bytes), size_t(n)}; }

tw_status* Scalar(const char* tag, uint64_t len, const tw_view* value, tw_sink* to) {
  return Put(to, [&](std::string* s) -> Status {
    ASSIGN_OR_RETURN(const double number, NumberOf(*value));
    return AppendScalar({tag, len}, number, s);
  });
}
tw_status* HistogramOf(const char* tag, uint64_t len, const tw_view* values, tw_sink* to) {
  return Put(to, [&](std::string* s) { return AppendHistogram({tag, len}, *values, s); });
}
tw_status* Images(const char* tag, uint64_t len, const tw_view* images, uint32_t most, const void* bad_color, uint64_t n_bad, tw_sink* to) {
  return Put(to, [&](std::string* s) { return AppendImages({tag, len}, *images, most, Bytes(bad_color, n_bad), s); });
}
tw_status* Audio(const char* tag, uint64_t len, const tw_view* sounds, double rate, uint32_t most, tw_sink* to) {
  return Put(to, [&](std::string* s) { return AppendAudio({tag, len}, *sounds, rate, most, s); });
}
tw_status* TensorOf(const char* tag, uint64_t len, const tw_view* value, const void* metadata, uint64_t metadata_len, tw_sink* to) {
  return Put(to, [&](std::string* s) { return AppendTensor({tag, len}, *value, Bytes(metadata, metadata_len), s); });
}
tw_status* Merge(const tw_string* summaries, uint64_t n, tw_sink* to) {
  return Put(to, [&](std::string* s) {
    std::vector<std::string_view> all;
    for (uint64_t i = 0; i < n; ++i) all.emplace_back(summaries[i].data, summaries[i].size);
    return MergeSummaries(all, s);
  });
}

tw_status* OpenEvents(const tw_host* h, const char* folder, uint64_t len, const tw_event_writer_options* given, tw_event_writer** out) {
  return Guard([&]() -> Status {
    EventWriterOptions options;
    if (given) {
      options.queue_events = given->queue_events;
      options.flush_seconds = given->flush_seconds;
      options.suffix.assign(given->suffix, given->suffix_len);
    }
    // The file system may end before the writer, which uses it here only.
    const std::shared_ptr<FileSystem> files(std::shared_ptr<void>(), &FilesOf(h));
    ASSIGN_OR_RETURN(auto writer, EventWriter::Open(std::string(folder, len), options, files));
    *out = new tw_event_writer{std::move(writer)};
    return Status();
  });
}
tw_status* WriteEvent(tw_event_writer* w, uint32_t field, int64_t step, const void* bytes, uint64_t n) {
  return Guard([&]() -> Status {
    RETURN_IF_ERROR(CheckMessage("the message", Bytes(bytes, n)));
    return w->writer->Add(EventWriter::Now(), step, EventField(field), Bytes(bytes, n));
  });
}
tw_status* WholeEvent(tw_event_writer* w, const void* bytes, uint64_t n) {
  return Guard([&] { return w->writer->AddEvent(std::string(Bytes(bytes, n))); });
}
tw_status* FlushEvents(tw_event_writer* w) {
  return Guard([&] { return w->writer->Flush(); });
}
tw_status* CloseEvents(tw_event_writer* w) {
  const std::unique_ptr<tw_event_writer> spent(w);
  return Guard([&] { return w ? w->writer->Close() : Status(); });
}

constexpr tw_summary_api kApi = {TW_SIZED(tw_summary_api),
                                 Scalar,
                                 HistogramOf,
                                 Images,
                                 Audio,
                                 TensorOf,
                                 Merge,
                                 OpenEvents,
                                 WriteEvent,
                                 WholeEvent,
                                 FlushEvents,
                                 CloseEvents};

}  // namespace

const tw_summary_api* SummarySet() { return &kApi; }

}  // namespace thalweg
