#include "sink.h"

#include <utility>

namespace thalweg::savedmodel {
namespace {

struct TextSink {
  tw_sink c;
  std::string text;
  TextSink() : c{TW_SIZED(tw_sink), this, Put} {}
  static tw_status* Put(tw_sink* s, const void* bytes, uint64_t len) {
    static_cast<TextSink*>(s->user)->text.append(static_cast<const char*>(bytes), len);
    return nullptr;
  }
};

}  // namespace

std::string Sink::Option(std::string_view key) const {
  std::string value;
  for (uint32_t i = 0; i < call_.n_options; ++i) {
    const tw_import_option& o = call_.options[i];
    if (std::string_view(o.key, o.key_len) == key) value.assign(o.value, o.value_len);
  }
  return value;
}

FileBytes Sink::Open(const std::string& name) const {
  tw_model_bytes* bytes = nullptr;
  Check(source().open(&source(), name.data(), name.size(), &bytes));
  return {std::shared_ptr<tw_model_bytes>(bytes, [](tw_model_bytes* b) { b->release(b); })};
}

std::vector<std::string> Sink::List(const std::string& folder) const {
  TextSink names;
  Check(source().list(&source(), folder.data(), folder.size(), &names.c));
  std::vector<std::string> all;
  for (size_t at = 0; at < names.text.size(); at += all.back().size() + 1) all.emplace_back(names.text.c_str() + at);
  return all;
}

tw_edge Sink::Find(const std::string& name) const {
  tw_edge edge = 0;
  Check(to_->find(to_, name.data(), name.size(), &edge));
  return edge;
}

tw_edge Sink::Input(const std::string& name, uint32_t dtype, const tw_view& like) {
  const tw_shape shape = {like.dims, like.rank, 0};
  return to_->input(to_, b_, name.data(), name.size(), dtype, &shape);
}

tw_edge Sink::Emit(const std::string& op, const std::vector<tw_edge>& in, const std::string& name) {
  to_->name(to_, b_, name.data(), name.size());
  return host()->graph->emit(b_, op.data(), op.size(), in.data(), static_cast<uint32_t>(in.size()), nullptr, 0);
}

void Sink::Step(const std::vector<tw_edge>& feeds, const std::vector<TensorPtr>& values, const std::vector<tw_edge>& effects) {
  std::vector<tw_tensor*> tensors;
  for (const TensorPtr& t : values) tensors.push_back(t.get());
  const tw_import_step step = {TW_SIZED(tw_import_step),
                               feeds.data(),
                               tensors.data(),
                               effects.data(),
                               static_cast<uint32_t>(feeds.size()),
                               static_cast<uint32_t>(effects.size())};
  Check(to_->step(to_, &step));
}

std::string Sink::Asset(const std::string& name) {
  TextSink path;
  Check(to_->asset(to_, name.data(), name.size(), &path.c));
  return path.text;
}

TensorPtr Sink::String(const std::string& text) const {
  tw_tensor* t = nullptr;
  Check(tw_make_tensor(host(), TW_STRING, nullptr, 0, &t));
  TensorPtr made(t, TensorRelease{host()});
  Check(host()->tensor->set_string(t, 0, text.data(), text.size()));
  return made;
}

}  // namespace thalweg::savedmodel
