// The plugin: TensorFlow's SavedModels and frozen GraphDefs as an importer.
#include <algorithm>
#include <exception>
#include <new>
#include <string>

#include "load.h"
#include "recognise.h"
#include "sink.h"

namespace {

using namespace thalweg::savedmodel;

// Runs the body and converts what it throws.
template <class F>
tw_status* Guarded(const tw_host* h, F&& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const HostError& e) {
    return e.status;
  } catch (const Error& e) {
    return tw_fail(h, e.code, e.text.data(), e.text.size());
  } catch (const std::bad_alloc&) {
    return tw_fail(h, TW_RESOURCE_EXHAUSTED, TW_S("out of memory"));
  } catch (const std::exception& e) {
    return tw_fail(h, TW_INTERNAL, e.what(), std::char_traits<char>::length(e.what()));
  }
}

struct Names {
  tw_sink c;
  bool plain = false, chunked = false;
  Names() : c{TW_SIZED(tw_sink), this, Put} {}
  static tw_status* Put(tw_sink* s, const void* bytes, uint64_t len) {
    auto* names = static_cast<Names*>(s->user);
    const std::string_view name(static_cast<const char*>(bytes), len > 0 ? len - 1 : 0);
    names->plain |= name == "saved_model.pb";
    names->chunked |= name == "saved_model.cpb";
    return nullptr;
  }
};

tw_status* Look(const tw_model_source* s, Names* names) { return s->list(s, nullptr, 0, &names->c); }

tw_status* Recognise(const tw_host*, void*, const tw_model_source* s, uint32_t* out_confidence) {
  *out_confidence = 0;
  if (s->is_folder) {
    Names names;
    TW_TRY(Look(s, &names));
    *out_confidence = names.plain || names.chunked ? 100 : 0;
    return nullptr;
  }
  const Kind kind = KindOf({static_cast<const char*>(s->head), s->head_bytes}, s->bytes);
  *out_confidence = kind == Kind::kSavedModel ? 90 : kind == Kind::kGraphDef ? 80 : 0;
  return nullptr;
}

void LoadFolder(Sink* sink) {
  Names names;
  Check(Look(&sink->source(), &names));
  if (!names.plain && names.chunked) {
    throw Error{TW_UNIMPLEMENTED, "the model is in saved_model.cpb, a file in chunks, which is not read yet; export it below 2 GiB"};
  }
  LoadSavedModel(sink->Open("saved_model.pb"), sink);
}

tw_status* Load(const tw_import_call* call) {
  return Guarded(call->host, [&] {
    Sink sink(call);
    if (call->source->is_folder) return LoadFolder(&sink);
    const FileBytes file = sink.Open("");
    const std::string_view head(static_cast<const char*>(file.data()), std::min<uint64_t>(file.size(), 4096));
    switch (KindOf(head, file.size())) {
      case Kind::kSavedModel: return LoadSavedModel(file, &sink);
      case Kind::kGraphDef: return LoadFrozenGraph(file, &sink);
      case Kind::kOther: throw Error{TW_INVALID_ARGUMENT, "the file is neither a SavedModel nor a GraphDef"};
    }
  });
}

tw_status* Init(const tw_host*, tw_registrar* r, void**) {
  tw_importer_def def = {};
  def.size = sizeof def;
  def.name = "savedmodel";
  def.name_len = 10;
  constexpr std::string_view kDoc = "TensorFlow SavedModels and frozen GraphDefs", kFiles = "/ saved_model.pb .pb";
  constexpr std::string_view kOptions =
      "tags: tags of the meta graph, separated by ','; without it the only one, or the one tagged serve\n"
      "whole: true keeps operations that no wanted signature needs, such as those that save\n"
      "inputs: of a frozen GraphDef, names of values separated by ','; without it its placeholders\n"
      "outputs: of a frozen GraphDef, names of values separated by ','; without it the operations that nobody reads\n";
  def.doc = kDoc.data();
  def.doc_len = kDoc.size();
  def.files = kFiles.data();
  def.files_len = kFiles.size();
  def.options = kOptions.data();
  def.options_len = kOptions.size();
  def.recognise = Recognise;
  def.load = Load;
  return tw_add_importer(r, &def);
}

}  // namespace

TW_PLUGIN("org.thalweg.savedmodel", "0.1", Init)
