// The types of a function whose scalars have any shape: for bodies whose scalars stand for many elements. Translators then do not compare
// shapes with declared ones. Threads: values.
#pragma once
#include <deque>

#include "module.h"

namespace thalweg::stablehlo {

class Loose {
 public:
  // The values that `block`, a body in `function`, takes and makes lose their shapes.
  Loose(const Function& function, const Block& block);
  Loose(const Loose&) = delete;
  const Function& function() const { return function_; }

 private:
  Function function_;
  std::deque<Type> types_;
};

}  // namespace thalweg::stablehlo
