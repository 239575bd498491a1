// JSON as etcd's gateway writes it, and bytes as base64. Values, no sharing.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace thalweg::etcd {

class Value {
 public:
  // Throws Failed (UNAVAILABLE) for what is no JSON.
  static Value Parse(std::string_view text);
  // The member of that name; an empty value where there is none: members that are 0, false or empty are left out.
  const Value& operator[](std::string_view key) const;
  const std::vector<Value>& items() const { return items_; }
  const std::string& text() const { return text_; }  // of texts and numbers; "true"
  uint64_t number() const;                           // 64-bit numbers are texts
  bool is() const { return text_ == "true"; }
  std::string bytes() const;  // of base64
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
