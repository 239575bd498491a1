// Sequences and optionals, which Thalweg keeps as lists in a scalar variant. Ops on lists, called eagerly, make and read them.
// Threads: any number may use one Lists.
#pragma once
#include <mutex>

#include "value.h"

namespace thalweg::ort {

class Lists {
 public:
  explicit Lists(tw_runtime* runtime) : runtime_(runtime) {}
  // type: what the model declares. Throws if the value has another type.
  TensorRef ToThalweg(const OrtValue& value, const OrtTypeInfo& type);
  ValueRef FromThalweg(TensorRef tensor, const OrtTypeInfo& type);

 private:
  tw_eager* Context();
  TensorRef Call(const char* op, const std::vector<tw_tensor*>& inputs, uint32_t element_dtype);

  tw_runtime* const runtime_;  // the session's
  std::mutex mu_;
  EagerRef eager_;  // guarded by mu_; made at the first use
};

}  // namespace thalweg::ort
