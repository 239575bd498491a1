// JSON as etcd's gateway writes it, and base64. Threads: values, no sharing.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace thalweg::etcd {

class Value {
 public:
  // Throws Failed (UNAVAILABLE) if the text is no JSON.
  static Value Parse(std::string_view text);
  // Returns the member of that name, or an empty value if there is none: etcd omits members that
  // are 0, false or empty.
  const Value& operator[](std::string_view key) const;
  const std::vector<Value>& items() const { return items_; }
  const std::string& text() const { return text_; }  // of texts and numbers; "true"
  uint64_t number() const;                           // 64-bit numbers are written as texts
  bool is() const { return text_ == "true"; }
  std::string bytes() const;  // decoded from base64
  bool there() const { return there_; }

 private:
  friend class JsonReader;
  bool there_ = false;
  std::string text_;
  std::vector<std::string> keys_;
  std::vector<Value> items_;
};

std::string Base64(std::string_view bytes);

}  // namespace thalweg::etcd
