// Variant: the object behind an element of type variant; a plugin made it. VariantSet: the
// functions with which plugins make and read variants. Threads: as thalweg/plugin/variant.h.
#pragma once
#include <memory>

#include "framework/tensor/tensor.h"
#include "thalweg/plugin/variant.h"

namespace thalweg {

class MemoryBudget;

class Variant final : public Handle {
 public:
  // budget: the account that was charged for the bytes, or NULL; shared. plugin: keeps the type's
  // plugin loaded; may be empty.
  Variant(const tw_variant_type* type, void* object, const tw_host* host, std::shared_ptr<const void> plugin, MemoryBudget* budget,
          uint64_t bytes);
  ~Variant() override;
  const tw_variant_type* type() const { return type_; }
  const void* object() const { return object_; }
  // Passes ownership of the object to the caller.
  void* Take() { return std::exchange(object_, nullptr); }

 private:
  const tw_variant_type* type_;
  void* object_;
  const tw_host* host_;  // the plugin's
  const std::shared_ptr<const void> plugin_;
  MemoryBudget* budget_;
  const uint64_t bytes_;
};

const tw_variant_api* VariantSet();

}  // namespace thalweg
