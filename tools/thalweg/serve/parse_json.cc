#include "parse_json.h"

#include <algorithm>
#include <vector>

#include "../../../plugins/common/json_value.h"
#include "http_error.h"

namespace thalweg::cli::serve {
namespace {

using nlohmann::json;

constexpr size_t kDeepest = 100;
constexpr uint64_t kValueBytes = sizeof(json), kListBytes = 64, kMemberBytes = 112;  // with the heap's own share

// Builds the values and throws at the first bound that they exceed.
class Builder final : public nlohmann::json_sax<json> {
 public:
  Builder(uint64_t memory, Charge* charge, json* root) : left_(memory), charge_(charge), root_(root) {}

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return Add(value); }
  bool number_unsigned(number_unsigned_t value) override { return Add(value); }
  bool number_float(number_float_t value, const string_t&) override { return Add(value); }
  bool string(string_t& value) override {
    Limit(kListBytes + value.size());
    charge_->Add(kListBytes + value.capacity());
    return Add(std::move(value));
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return Open(json::object()); }
  bool start_array(size_t) override { return Open(json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& value) override {
    Limit(kMemberBytes + value.size());
    charge_->Add(kMemberBytes + value.size());
    const auto [member, added] = open_.back()->get_ref<json::object_t&>().emplace(value, nullptr);
    if (!added) throw HttpError(400, "the request's JSON has the key " + Shown(value) + " twice in one object");
    member_ = &member->second;
    return true;
  }
  bool parse_error(size_t at, const std::string& near, const nlohmann::detail::exception& e) override {
    const std::string hint = std::any_of(near.begin(), near.end(), [](char c) { return c == 'N' || c == 'I'; })
                                 ? "; JSON has no NaN and no Infinity, send them as binary tensor data"
                                 : "";
    throw HttpError(400, "the request is no JSON, at byte " + std::to_string(at) + ": " + common::JsonFault(e.what()) + hint);
  }

 private:
  // Counts what values take without spare room, so that the limit does not depend on how lists grow.
  void Limit(uint64_t bytes) {
    if (bytes > left_) throw HttpError(413, "the request's JSON has too many values for --max-request-bytes; send binary tensor data");
    left_ -= bytes;
  }
  json* Put(json&& value) {
    Limit(kValueBytes);
    if (open_.empty()) return &(*root_ = std::move(value));
    if (!open_.back()->is_array()) return &(*member_ = std::move(value));
    auto& items = open_.back()->get_ref<json::array_t&>();
    if (items.size() == items.capacity()) Grow(&items);
    items.push_back(std::move(value));
    return &items.back();
  }
  // The old memory of a list and the new one are there together for a moment.
  void Grow(json::array_t* items) {
    const size_t before = items->capacity(), after = std::max<size_t>(4, 2 * before);
    charge_->Add(after * kValueBytes);
    items->reserve(after);
    charge_->Remove(before * kValueBytes);
  }
  bool Add(json&& value) {
    Put(std::move(value));
    return true;
  }
  bool Open(json&& value) {
    if (open_.size() == kDeepest) throw HttpError(400, "the request's JSON is nested deeper than " + std::to_string(kDeepest));
    Limit(kListBytes);
    charge_->Add(kListBytes);
    open_.push_back(Put(std::move(value)));
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  uint64_t left_;
  Charge* const charge_;
  json* const root_;
  std::vector<json*> open_;  // lists and objects that are not closed; a list is not extended while one of its values is open
  json* member_ = nullptr;   // the place of the next value of the innermost object
};

}  // namespace

json ParseJson(std::string_view text, uint64_t memory, Charge* charge) {
  // The library takes a NUL byte between values for the end of the text.
  if (const size_t nul = text.find('\0'); nul != text.npos)
    throw HttpError(400, "the request is no JSON, at byte " + std::to_string(nul + 1) + ": there is a NUL byte");
  const uint64_t reading = common::JsonReadingBytes(text);
  charge->Add(reading);
  json root;
  Builder builder(memory, charge, &root);
  json::sax_parse(text.begin(), text.end(), &builder);
  charge->Remove(reading);
  return root;
}

std::string Shown(const json& value) {
  constexpr size_t kShown = 60;  // bytes
  if (value.is_array()) return "a list of " + std::to_string(value.size());
  if (value.is_object()) return "an object";
  if (value.is_string() && value.get_ref<const std::string&>().size() > kShown) {
    return Shown(json(value.get_ref<const std::string&>().substr(0, kShown)));
  }
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kShown) text = text.substr(0, kShown - 3) + "...";
  return text;
}

const json* Member(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

}  // namespace thalweg::cli::serve
