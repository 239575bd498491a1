// The name that somebody meant who wrote another, for messages.
#pragma once
#include <string>
#include <string_view>

namespace thalweg {

class Meant {
 public:
  explicit Meant(std::string_view written);
  // One of the names that there are. Must live as long as this.
  void Consider(std::string_view name);
  // "; did you mean 'x'?" of the first that is nearest; "" where none is nearer than a third of what was written. Long names are not
  // compared.
  std::string text() const;

 private:
  std::string_view written_, nearest_;
  size_t least_;  // edits less than which it has to be
};

}  // namespace thalweg
