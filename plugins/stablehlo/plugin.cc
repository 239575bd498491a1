// The importer of StableHLO modules and exports of JAX.
#include "thalweg/cpp/plugin.hpp"

#include "../common/importer/host_sink.h"
#include "import.h"

namespace {

using thalweg::importer::Check;
using thalweg::stablehlo::Error;
using thalweg::stablehlo::File;
using thalweg::stablehlo::Port;
using thalweg::stablehlo::Ports;

// The record of an input or output, with the texts that it points to.
struct Record {
  std::vector<tw_string> symbols;
  tw_import_value value;
};

Record RecordOf(const Port& port) {
  Record r;
  bool named = false;
  // Names are for sizes that the graph does not know, of values whose rank it knows.
  const bool fits = port.value.rank() == static_cast<int>(port.symbols.size());
  for (size_t i = 0; fits && i < port.symbols.size(); ++i) {
    const std::string& s = port.symbols[i];
    const bool open = port.value.dim(static_cast<int>(i)) < 0 && !s.empty();
    r.symbols.push_back({s.data(), open ? s.size() : 0});
    named |= open;
  }
  r.value = {TW_SIZED(tw_import_value), port.name.data(), port.name.size(), port.edge, nullptr, 0, 0, nullptr, nullptr};
  if (named) {
    r.value.symbols = r.symbols.data();
    r.value.n_symbols = static_cast<uint32_t>(r.symbols.size());
  }
  return r;
}

void AddSignature(const tw_host* h, tw_model_builder* to, const Ports& ports, const std::string& doc) {
  std::vector<Record> records;
  for (const Port& port : ports.inputs) records.push_back(RecordOf(port));
  for (const Port& port : ports.outputs) records.push_back(RecordOf(port));
  std::vector<const tw_import_value*> all;
  for (const Record& r : records) all.push_back(&r.value);
  const auto inputs = static_cast<uint32_t>(ports.inputs.size());
  const tw_import_signature signature = {TW_SIZED(tw_import_signature),
                                         TW_S("main"),
                                         doc.data(),
                                         doc.size(),
                                         all.data(),
                                         all.data() + inputs,
                                         ports.effects.data(),
                                         inputs,
                                         static_cast<uint32_t>(ports.outputs.size()),
                                         static_cast<uint32_t>(ports.effects.size()),
                                         1};
  Check(h, to->signature(to, &signature));
}

void AddProperty(const tw_host* h, tw_model_builder* to, std::string_view key, const std::string& text) {
  if (!text.empty()) Check(h, to->property(to, key.data(), key.size(), text.data(), text.size()));
}

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
      AddSignature(h, c->to, ports, file.exported.function);
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
