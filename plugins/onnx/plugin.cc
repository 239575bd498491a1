// The importer of ONNX files.
#include "thalweg/cpp/plugin.hpp"

#include <map>

#include "../common/importer/host_model.h"
#include "model.h"
#include "recognise.h"

namespace {

using thalweg::importer::AddProperty;
using thalweg::importer::AddSignature;
using thalweg::onnx::Bytes;
using thalweg::onnx::Error;

// Opens a file of the model; its memory lives as long as a tensor needs it.
Bytes Open(const tw_host* h, const tw_model_source* source, const std::string& name) {
  tw_model_bytes* bytes = nullptr;
  thalweg::importer::Check(h, source->open(source, name.data(), name.size(), &bytes));
  Bytes opened;
  opened.data = static_cast<const char*>(bytes->data);
  opened.size = bytes->bytes;
  opened.keep = std::shared_ptr<const void>(bytes->data, [bytes](const void*) { bytes->release(bytes); });
  return opened;
}

void AddProperties(const tw_host* h, tw_model_builder* to, const thalweg::onnx::proto::ModelProto& file) {
  AddProperty(h, to, "producer", file.producer_name() + (file.producer_version().empty() ? "" : " " + file.producer_version()));
  AddProperty(h, to, "ir_version", std::to_string(file.ir_version()));
  std::string opsets;
  for (const auto& o : file.opset_import())
    opsets += (opsets.empty() ? "" : ", ") + (o.domain().empty() ? "ai.onnx" : o.domain()) + " " + std::to_string(o.version());
  AddProperty(h, to, "opsets", opsets);
}

tw_status* Load(const tw_import_call* c) {
  const tw_host* h = c->host;
  return tw::guard(h, [&] {
    try {
      const Bytes bytes = Open(h, c->source, "");
      const auto file = thalweg::onnx::ParseModel({bytes.data, bytes.size}, true);
      std::map<std::string, Bytes> opened = {{"", bytes}};
      const thalweg::onnx::OpenExternal external = [&](const std::string& location) {
        auto found = opened.find(location);
        if (found == opened.end()) found = opened.emplace(location, Open(h, c->source, location)).first;
        return found->second;
      };
      thalweg::importer::HostSink sink(h, c->to, c->to->graph);
      const thalweg::onnx::Ports ports = thalweg::onnx::Import(file, external, sink);
      AddSignature(h, c->to, "main", true, ports.inputs, ports.outputs, {}, file->graph().name());
      AddProperties(h, c->to, *file);
    } catch (const Error& e) {
      if (e.code != TW_OK) throw tw::Error{e.code, e.text};  // else the host has the failure
    }
  });
}

tw_status* RecogniseSource(const tw_host* h, void* user, const tw_model_source* source, uint32_t* out_confidence) {
  (void)h;
  (void)user;
  *out_confidence = source->is_folder ? 0
                                      : thalweg::onnx::Recognise({static_cast<const char*>(source->head), source->head_bytes},
                                                                 source->head_bytes == source->bytes);
  return nullptr;
}

const tw_importer_def kImporter = {
    TW_SIZED(tw_importer_def), TW_S("onnx"), TW_S("ONNX models, opsets 1 to 28"), TW_S(".onnx"), TW_S(""), nullptr,
    &RecogniseSource,          &Load};

tw_status* Init(const tw_host* h, tw_registrar* r, void** out_instance) {
  (void)h;
  (void)out_instance;
  return tw_add_importer(r, &kImporter);
}

}  // namespace

TW_PLUGIN("org.thalweg.onnx", "0.1", Init)
