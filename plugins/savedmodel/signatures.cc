#include "signatures.h"

namespace thalweg::savedmodel {

const tw_import_value* SignatureRecords::Add(const std::string& name, const std::string& value) {
  const std::string& kept = names_.emplace_back(name);
  tw_import_value& v = values_.emplace_back();
  v = {};
  v.size = sizeof v;
  v.name = kept.data();
  v.name_len = kept.size();
  v.edge = sink_->Find(value);
  return &v;
}

void SignatureRecords::SetShape(std::vector<int64_t> dims) {
  const auto& kept = dims_.emplace_back(std::move(dims));
  values_.back().shape = &shapes_.emplace_back(tw_shape{kept.data(), static_cast<int32_t>(kept.size()), 0});
}

void SignatureRecords::Finish(const std::string& name, const std::string& doc, bool is_default) {
  tw_import_signature s = {};
  s.size = sizeof s;
  s.name = name.data();
  s.name_len = name.size();
  s.doc = doc.data();
  s.doc_len = doc.size();
  s.inputs = inputs_.data();
  s.n_inputs = static_cast<uint32_t>(inputs_.size());
  s.outputs = outputs_.data();
  s.n_outputs = static_cast<uint32_t>(outputs_.size());
  s.is_default = is_default;
  sink_->Signature(s);
}

}  // namespace thalweg::savedmodel
