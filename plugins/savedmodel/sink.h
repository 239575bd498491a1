// The host's importer interface with exceptions in place of statuses. Threads: one thread at a time.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "thalweg/plugin/plugin.h"

namespace thalweg::savedmodel {

// A failure of ours; `code` as in thalweg/types.h.
struct Error {
  uint32_t code;
  std::string text;
};
// A failure of the host, owned.
struct HostError {
  tw_status* status;
};
inline void Check(tw_status* s) {
  if (s) throw HostError{s};
}

// Bytes of a file, and the reference that keeps them.
struct FileBytes {
  std::shared_ptr<tw_model_bytes> file;
  const void* data() const { return file->data; }
  uint64_t size() const { return file->bytes; }
};

struct TensorRelease {
  const tw_host* host;
  void operator()(tw_tensor* t) const { host->tensor->release(t); }
};
using TensorPtr = std::unique_ptr<tw_tensor, TensorRelease>;

class Sink {
 public:
  explicit Sink(const tw_import_call* call) : call_(*call), to_(call->to), b_(call->to->graph) {}

  const tw_host* host() const { return call_.host; }
  tw_model_builder* builder() const { return to_; }
  const tw_model_source& source() const { return *call_.source; }
  // Returns the value of an option; "" if it was not given.
  std::string Option(std::string_view key) const;

  // ---- Files beneath the model's folder ----
  FileBytes Open(const std::string& name) const;  // "": the file itself
  std::vector<std::string> List(const std::string& folder) const;

  // ---- The model ----
  bool HasOp(const std::string& op) const { return to_->has_op(to_, op.data(), op.size()) != 0; }
  bool Wants(const std::string& signature) const { return to_->wants(to_, signature.data(), signature.size()) != 0; }
  void GraphDef(const std::string& bytes) { Check(to_->graph_def(to_, bytes.data(), bytes.size())); }
  tw_edge Find(const std::string& name) const;
  tw_edge Input(const std::string& name, uint32_t dtype, const tw_view& like);
  // Adds a node without attributes of its own.
  tw_edge Emit(const std::string& op, const std::vector<tw_edge>& in, const std::string& name);
  void Signature(const tw_import_signature& s) { Check(to_->signature(to_, &s)); }
  void Step(const std::vector<tw_edge>& feeds, const std::vector<TensorPtr>& values, const std::vector<tw_edge>& effects);
  std::string Asset(const std::string& name);
  void Property(std::string_view key, std::string_view text) {
    Check(to_->property(to_, key.data(), key.size(), text.data(), text.size()));
  }
  void Problem(uint32_t code, const std::string& text) { to_->problem(to_, code, text.data(), text.size()); }
  TensorPtr String(const std::string& text) const;

 private:
  const tw_import_call& call_;
  tw_model_builder* const to_;
  tw_builder* const b_;
};

}  // namespace thalweg::savedmodel
