// ShownPart: a part of a plan that a plugin sees, and the optional set "limits" of the host table,
// which answers questions about it (plugin/limits.h).
// Threads: any for the set; a part is made and destroyed by one thread.
#pragma once
#include "framework/tensor/shape.h"
#include "thalweg/plugin/limits.h"

namespace thalweg {

class ShownPart {
 public:
  ShownPart() = default;
  ShownPart(const ShownPart&) = delete;
  // Returns the limits of a value's sizes, -1 for those that are not known; a shape without rank for
  // a value that does not exist.
  virtual Shape LimitOf(int32_t node, uint32_t port) const = 0;

 protected:
  virtual ~ShownPart();
  // Lets the set find the part by its record, until the part is destroyed.
  void Show(const tw_part* record);

 private:
  const tw_part* record_ = nullptr;
};

const tw_limits_api* LimitsSet();

}  // namespace thalweg
