// The resource `org.thalweg.summary_writer`, and the ops that write to it.
#include <memory>

#include "api.h"
#include "register.h"

namespace thalweg::summary {
namespace {

constexpr char kType[] = "org.thalweg.summary_writer";

// The object of the resource. The host's lock guards it.
struct Writer {
  tw_event_writer* events = nullptr;  // NULL before CreateSummaryFileWriter and after CloseSummaryWriter
};

Writer& Opened(tw::Var<tw::Any> writer) { return *static_cast<Writer*>(writer.handle()); }

tw_event_writer* EventsOf(tw::Var<tw::Any> writer) {
  tw_event_writer* events = Opened(writer).events;
  if (!events) throw tw::Error{TW_FAILED_PRECONDITION, "the summary writer has no file; run CreateSummaryFileWriter first"};
  return events;
}

void Destroy(const tw_host* h, void* object) {
  const std::unique_ptr<Writer> writer(static_cast<Writer*>(object));
  if (!writer->events) return;
  tw_status* failed = Api(h).close(writer->events);
  if (!failed) return;
  Message text;
  h->status->release(h->status->text(failed, &text));
  const std::string line = "a summary writer lost events when it ended: " + text.bytes;
  h->run->log(h, 2, line.data(), line.size());
  h->status->release(failed);
}

class MakeHandle {
 public:
  explicit MakeHandle(const tw::Node& n)
      : container_(n.s("container")), name_(n.s("shared_name").empty() ? n.name() : n.s("shared_name")) {}
  void operator()(tw::Frame f) const {
    const tw_resource_key key = {TW_SIZED(tw_resource_key), TW_S(kType), container_.data(), container_.size(), name_.data(), name_.size()};
    const auto make = [](const tw_host* h, void*, void** out) { return tw::guard(h, [&] { *out = new Writer; }); };
    tw::check(f.f->host->resource->open(f.f, &key, make, nullptr, 0));
  }

 private:
  const std::string container_, name_;
};

void Create(tw::Frame f, tw::Var<tw::Any> writer, tw::In<tw_string> logdir, tw::In<int32_t> max_queue, tw::In<int32_t> flush_millis,
            tw::In<tw_string> filename_suffix) {
  Writer& w = Opened(writer);
  if (w.events) return;
  const std::string_view folder = TextOf(One(logdir, "logdir")), suffix = TextOf(One(filename_suffix, "filename_suffix"));
  const int32_t queue = One(max_queue, "max_queue"), millis = One(flush_millis, "flush_millis");
  if (queue < 0 || millis < 0) {
    Invalid("'max_queue' is " + tw::text(queue) + " and 'flush_millis' is " + tw::text(millis) + "; both must be at least 0");
  }
  const tw_event_writer_options options = {TW_SIZED(tw_event_writer_options), uint64_t(queue), millis / 1000.0, suffix.data(),
                                           suffix.size()};
  tw::check(Api(f.f->host).open(f.f->host, folder.data(), folder.size(), &options, &w.events));
}

void Close(tw::Frame f, tw::Var<tw::Any> writer) {
  tw_event_writer* events = std::exchange(Opened(writer).events, nullptr);
  tw::check(Api(f.f->host).close(events));
}

void Flush(tw::Frame f, tw::Var<tw::Any> writer) { tw::check(Api(f.f->host).flush(EventsOf(writer))); }

void Write(tw::Frame f, tw::Var<tw::Any> writer, tw::In<int64_t> step, std::string_view bytes, uint32_t field = TW_EVENT_SUMMARY) {
  tw::check(Api(f.f->host).write(EventsOf(writer), field, One(step, "step"), bytes.data(), bytes.size()));
}

void WriteScalar(tw::Frame f, tw::Var<tw::Any> writer, tw::In<int64_t> step, tw::In<tw_string> tag, tw::In<tw::Any> value) {
  Message m;
  const std::string_view name = Tag(tag);
  tw::check(Api(f.f->host).scalar(name.data(), name.size(), value.v, &m));
  Write(f, writer, step, m.bytes);
}

void WriteHistogram(tw::Frame f, tw::Var<tw::Any> writer, tw::In<int64_t> step, tw::In<tw_string> tag, tw::In<tw::Any> values) {
  Message m;
  const std::string_view name = Tag(tag);
  tw::check(Api(f.f->host).histogram(name.data(), name.size(), values.v, &m));
  Write(f, writer, step, m.bytes);
}

class WriteImages {
 public:
  explicit WriteImages(const tw::Node& n) : most_(uint32_t(n.i("max_images"))) {}
  void operator()(tw::Frame f, tw::Var<tw::Any> writer, tw::In<int64_t> step, tw::In<tw_string> tag, tw::In<tw::Any> images,
                  tw::In<uint8_t> bad_color) const {
    if (images.rank() != 4)
      Invalid("'tensor' is " + tw::text(images.v->dims, images.v->rank) + "; images are [n, height, width, channels]");
    Message m;
    const std::string_view name = Tag(tag);
    tw::check(Api(f.f->host).images(name.data(), name.size(), images.v, most_, bad_color.data(), bad_color.size(), &m));
    Write(f, writer, step, m.bytes);
  }

 private:
  const uint32_t most_;
};

class WriteAudio {
 public:
  explicit WriteAudio(const tw::Node& n) : most_(uint32_t(n.i("max_outputs"))) {}
  void operator()(tw::Frame f, tw::Var<tw::Any> writer, tw::In<int64_t> step, tw::In<tw_string> tag, tw::In<float> sounds,
                  tw::In<float> rate) const {
    Message m;
    const std::string_view name = Tag(tag);
    tw::check(Api(f.f->host).audio(name.data(), name.size(), sounds.v, One(rate, "sample_rate"), most_, &m));
    Write(f, writer, step, m.bytes);
  }

 private:
  const uint32_t most_;
};

void WriteTensor(tw::Frame f, tw::Var<tw::Any> writer, tw::In<int64_t> step, tw::In<tw::Any> tensor, tw::In<tw_string> tag,
                 tw::In<tw_string> metadata) {
  Message m;
  const std::string_view name = Tag(tag), about = TextOf(One(metadata, "summary_metadata"));
  tw::check(Api(f.f->host).tensor(name.data(), name.size(), tensor.v, about.data(), about.size(), &m));
  Write(f, writer, step, m.bytes);
}

void WriteGraph(tw::Frame f, tw::Var<tw::Any> writer, tw::In<int64_t> step, tw::In<tw_string> graph) {
  Write(f, writer, step, TextOf(One(graph, "tensor")), TW_EVENT_GRAPH);
}

void WriteRaw(tw::Frame f, tw::Var<tw::Any> writer, tw::In<int64_t> step, tw::In<tw_string> summaries) {
  for (uint64_t i = 0; i < summaries.size(); ++i) Write(f, writer, step, TextOf(summaries[i]));
}

void Import(tw::Frame f, tw::Var<tw::Any> writer, tw::In<tw_string> event) {
  const std::string_view bytes = TextOf(One(event, "event"));
  tw::check(Api(f.f->host).event(EventsOf(writer), bytes.data(), bytes.size()));
}

}  // namespace

void register_writer(tw::Plugin& p) {
  p.resource({TW_SIZED(tw_resource_def), TW_S(kType), 1, nullptr, Destroy, nullptr, nullptr});
  const std::string_view on = " @CPU; may_block; update writer";
  const auto spec = [&](const char* op) { return op + std::string(on); };
  p.kernel<MakeHandle>("SummaryWriter @CPU");
  p.kernel<Create>(spec("CreateSummaryFileWriter"));
  p.kernel<Close>(spec("CloseSummaryWriter"));
  p.kernel<Flush>(spec("FlushSummaryWriter"));
  p.kernel<WriteScalar>(spec("WriteScalarSummary"));
  p.kernel<WriteHistogram>(spec("WriteHistogramSummary"));
  p.kernel<WriteImages>(spec("WriteImageSummary"));
  p.kernel<WriteAudio>(spec("WriteAudioSummary"));
  p.kernel<WriteTensor>(spec("WriteSummary"));
  p.kernel<WriteGraph>(spec("WriteGraphSummary"));
  p.kernel<WriteRaw>(spec("WriteRawProtoSummary"));
  p.kernel<Import>(spec("ImportEvent"));
}

}  // namespace thalweg::summary
