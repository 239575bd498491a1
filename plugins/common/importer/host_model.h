// An importer passes the signature and the properties of a model to the host by these functions.
// Threads: those of the load.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "host_sink.h"

namespace thalweg::importer {

// The record of an input or output, with the texts that it points to.
struct PortRecord {
  std::vector<tw_string> symbols;
  tw_import_value value;
};

// Port: a struct with a name, a value that knows its rank and dims, its edge, and a symbol for each
// axis, "" for a size that is known or has no name. It must outlive the record.
template <class Port>
PortRecord RecordOf(const Port& port) {
  PortRecord r;
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

// Adds a signature. effects: nodes that run with the outputs. Throws a failure of the host.
template <class Port>
void AddSignature(const tw_host* h, tw_model_builder* to, const std::string& name, bool is_default, const std::vector<Port>& inputs,
                  const std::vector<Port>& outputs, const std::vector<Edge>& effects, const std::string& doc) {
  std::vector<PortRecord> records;
  for (const Port& port : inputs) records.push_back(RecordOf(port));
  for (const Port& port : outputs) records.push_back(RecordOf(port));
  std::vector<const tw_import_value*> all;
  for (const PortRecord& r : records) all.push_back(&r.value);
  const auto n_inputs = static_cast<uint32_t>(inputs.size());
  const tw_import_signature signature = {TW_SIZED(tw_import_signature),
                                         name.data(),
                                         name.size(),
                                         doc.data(),
                                         doc.size(),
                                         all.data(),
                                         all.data() + n_inputs,
                                         effects.data(),
                                         n_inputs,
                                         static_cast<uint32_t>(outputs.size()),
                                         static_cast<uint32_t>(effects.size()),
                                         is_default};
  Check(h, to->signature(to, &signature));
}

// Adds a property unless its text is empty. Throws a failure of the host.
inline void AddProperty(const tw_host* h, tw_model_builder* to, std::string_view key, const std::string& text) {
  if (!text.empty()) Check(h, to->property(to, key.data(), key.size(), text.data(), text.size()));
}

}  // namespace thalweg::importer
