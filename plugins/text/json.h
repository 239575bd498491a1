// JSON (RFC 8259) as a tree of values. The text may be damaged, or made to take much memory: the
// tree is charged while it grows. Threads: values, no sharing.
#ifndef THALWEG_PLUGINS_TEXT_JSON_H_
#define THALWEG_PLUGINS_TEXT_JSON_H_

#include <string>
#include <string_view>
#include <vector>

#include "thalweg/cpp/memory.hpp"

namespace thalweg::text {

class Json {
 public:
  enum class Type : uint8_t { kNone, kNull, kBool, kNumber, kText, kList, kObject };

  // charge: grows by the bytes of the tree. Throws INVALID_ARGUMENT if the text is no JSON.
  static Json Parse(std::string_view text, tw::Charge* charge);

  Type type() const { return type_; }
  bool is(Type type) const { return type_ == type; }
  // True for a value that is there and not null.
  explicit operator bool() const { return type_ > Type::kNull; }
  // Returns the member of that name; of type kNone if there is none, or this is no object.
  const Json& operator[](std::string_view key) const;
  // The members of a list or an object, and the names of those of an object, in one order.
  const std::vector<Json>& items() const { return items_; }
  const std::vector<std::string>& keys() const { return keys_; }
  // These have the value of their type, and a default of other types.
  const std::string& text() const { return text_; }
  double number() const { return number_; }
  bool yes() const { return number_ != 0; }

 private:
  friend class JsonReader;
  Type type_ = Type::kNone;
  double number_ = 0;
  std::string text_;
  std::vector<std::string> keys_;
  std::vector<Json> items_;
};

}  // namespace thalweg::text

#endif  // THALWEG_PLUGINS_TEXT_JSON_H_
