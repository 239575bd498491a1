// The importer of TensorFlow Lite files.
#include "thalweg/cpp/plugin.hpp"

#include "../common/importer/host_model.h"
#include "import.h"

namespace {

using thalweg::importer::AddProperty;
using thalweg::importer::AddSignature;
using thalweg::importer::Check;
using thalweg::tflite::Error;
using thalweg::tflite::File;
using thalweg::tflite::Ports;

tw_status* Load(const tw_import_call* c) {
  const tw_host* h = c->host;
  return tw::guard(h, [&] {
    try {
      tw_model_bytes* bytes = nullptr;
      Check(h, c->source->open(c->source, "", 0, &bytes));
      const std::shared_ptr<const void> keep(bytes->data, [bytes](const void*) { bytes->release(bytes); });
      const File file = thalweg::tflite::ReadFile({static_cast<const char*>(bytes->data), bytes->bytes}, keep);
      thalweg::importer::HostSink sink(h, c->to, c->to->graph);
      bool first = true;
      const auto wants = [c](const std::string& name) { return c->to->wants(c->to, name.data(), name.size()) != 0; };
      for (const Ports& ports : thalweg::tflite::ImportFile(file, sink, wants)) {
        AddSignature(h, c->to, ports.name, first, ports.inputs, ports.outputs, {}, "");
        first = false;
      }
      AddProperty(h, c->to, "description", thalweg::tflite::Printable(file.description));
      AddProperty(h, c->to, "min_runtime_version", thalweg::tflite::Printable(file.runtime));
    } catch (const Error& e) {
      if (e.code != TW_OK) throw tw::Error{e.code, e.text};  // else the host has the failure
    }
  });
}

tw_status* RecogniseSource(const tw_host* h, void* user, const tw_model_source* source, uint32_t* out_confidence) {
  (void)h;
  (void)user;
  *out_confidence = source->is_folder ? 0 : thalweg::tflite::Recognise({static_cast<const char*>(source->head), source->head_bytes});
  return nullptr;
}

const tw_importer_def kImporter = {
    TW_SIZED(tw_importer_def), TW_S("tflite"), TW_S("TensorFlow Lite models"), TW_S(".tflite"), TW_S(""), nullptr, &RecogniseSource, &Load};

tw_status* Init(const tw_host* h, tw_registrar* r, void** out_instance) {
  (void)h;
  (void)out_instance;
  return tw_add_importer(r, &kImporter);
}

}  // namespace

TW_PLUGIN("org.thalweg.tflite", "0.1", Init)
