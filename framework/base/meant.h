// Meant: suggests the known name that is nearest to a misspelt one, for error messages. Threads:
// one.
#pragma once
#include <string>
#include <string_view>

namespace thalweg {

class Meant {
 public:
  explicit Meant(std::string_view written);
  // Compares one known name. The text must outlive this object.
  void Consider(std::string_view name);
  // Returns "; did you mean 'x'?" for the first of the nearest names, or "" if none is within a
  // third of the written name's length in edits. Names longer than 200 bytes are not compared.
  std::string text() const;

 private:
  std::string_view written_, nearest_;
  size_t least_;  // a candidate must need fewer edits than this
};

}  // namespace thalweg
