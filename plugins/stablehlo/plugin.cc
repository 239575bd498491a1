// The importer of StableHLO modules and exports of JAX.
#include "thalweg/cpp/plugin.hpp"

#include "../common/importer/host_model.h"
#include "import.h"

namespace {

using thalweg::importer::AddProperty;
using thalweg::importer::AddSignature;
using thalweg::importer::Check;
using thalweg::stablehlo::Error;
using thalweg::stablehlo::File;
using thalweg::stablehlo::Ports;

void AddProperties(const tw_host* h, tw_model_builder* to, const File& file) {
  AddProperty(h, to, "producer", file.exported.present ? "jax.export" : file.module->producer);
  AddProperty(h, to, "stablehlo", file.module->version);
  AddProperty(h, to, "function", file.exported.function);
  std::string platforms;
  for (const std::string& p : file.exported.platforms) platforms += (platforms.empty() ? "" : ", ") + p;
  AddProperty(h, to, "platforms", platforms);
}

tw_status* Load(const tw_import_call* c) {
  const tw_host* h = c->host;
  return tw::guard(h, [&] {
    try {
      tw_model_bytes* bytes = nullptr;
      Check(h, c->source->open(c->source, "", 0, &bytes));
      const std::shared_ptr<const void> keep(bytes->data, [bytes](const void*) { bytes->release(bytes); });
      const File file = thalweg::stablehlo::ReadFile({static_cast<const char*>(bytes->data), bytes->bytes}, keep);
      thalweg::importer::HostSink sink(h, c->to, c->to->graph);
      const Ports ports = thalweg::stablehlo::ImportFile(file, sink);
      AddSignature(h, c->to, "main", true, ports.inputs, ports.outputs, ports.effects, file.exported.function);
      AddProperties(h, c->to, file);
    } catch (const Error& e) {
      if (e.code != TW_OK) throw tw::Error{e.code, thalweg::stablehlo::Printable(e.text)};  // else the host has the failure
    }
  });
}

tw_status* RecogniseSource(const tw_host* h, void* user, const tw_model_source* source, uint32_t* out_confidence) {
  (void)h;
  (void)user;
  *out_confidence =
      source->is_folder ? 0 : thalweg::stablehlo::Recognise({static_cast<const char*>(source->head), source->head_bytes}, source->bytes);
  return nullptr;
}

const tw_importer_def kImporter = {TW_SIZED(tw_importer_def),
                                   TW_S("stablehlo"),
                                   TW_S("StableHLO modules, versions 0.9 to 1.20, and exports of JAX"),
                                   TW_S(".stablehlo .mlirbc .jaxexport"),
                                   TW_S(""),
                                   nullptr,
                                   &RecogniseSource,
                                   &Load};

tw_status* Init(const tw_host* h, tw_registrar* r, void** out_instance) {
  (void)h;
  (void)out_instance;
  return tw_add_importer(r, &kImporter);
}

}  // namespace

TW_PLUGIN("org.thalweg.stablehlo", "0.1", Init)
