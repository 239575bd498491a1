#include "parse_json.h"

#include <algorithm>
#include <vector>

#include "http_error.h"

namespace thalweg::cli::serve {
namespace {

using nlohmann::json;

constexpr size_t kDeepest = 100;
constexpr uint64_t kValueBytes = sizeof(json), kListBytes = 64, kMemberBytes = 112;  // with the heap's own share

// Builds the values and throws at the first bound that they exceed.
class Builder final : public nlohmann::json_sax<json> {
 public:
  Builder(uint64_t memory, json* root) : left_(memory), root_(root) {}

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return Add(value); }
  bool number_unsigned(number_unsigned_t value) override { return Add(value); }
  bool number_float(number_float_t value, const string_t&) override { return Add(value); }
  bool string(string_t& value) override {
    Charge(kListBytes + value.size());
    return Add(std::move(value));
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return Open(json::object()); }
  bool start_array(size_t) override { return Open(json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& value) override {
    Charge(kMemberBytes + value.size());
    const auto [member, added] = open_.back()->get_ref<json::object_t&>().emplace(value, nullptr);
    if (!added) throw HttpError(400, "the request's JSON has the key " + Shown(value) + " twice in one object");
    member_ = &member->second;
    return true;
  }
  bool parse_error(size_t at, const std::string& near, const nlohmann::detail::exception& e) override {
    const std::string hint = std::any_of(near.begin(), near.end(), [](char c) { return c == 'N' || c == 'I'; })
                                 ? "; JSON has no NaN and no Infinity, send them as binary tensor data"
                                 : "";
    std::string why = e.what();
    // The library puts a code and the place before its words.
    if (const size_t end = why.find("] "); end != why.npos) why = why.substr(end + 2);
    if (const size_t end = why.find(": "); why.starts_with("parse error at") && end != why.npos) why = why.substr(end + 2);
    throw HttpError(400, "the request is no JSON, at byte " + std::to_string(at) + ": " + why + hint);
  }

 private:
  void Charge(uint64_t bytes) {
    if (bytes > left_) throw HttpError(413, "the request's JSON has too many values for --max-request-bytes; send binary tensor data");
    left_ -= bytes;
  }
  json* Put(json&& value) {
    Charge(kValueBytes);
    if (open_.empty()) return &(*root_ = std::move(value));
    if (!open_.back()->is_array()) return &(*member_ = std::move(value));
    auto& items = open_.back()->get_ref<json::array_t&>();
    items.push_back(std::move(value));
    return &items.back();
  }
  bool Add(json&& value) {
    Put(std::move(value));
    return true;
  }
  bool Open(json&& value) {
    if (open_.size() == kDeepest) throw HttpError(400, "the request's JSON is nested deeper than " + std::to_string(kDeepest));
    Charge(kListBytes);
    open_.push_back(Put(std::move(value)));
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  uint64_t left_;
  json* const root_;
  std::vector<json*> open_;  // lists and objects that are not closed; a list is not extended while one of its values is open
  json* member_ = nullptr;   // the place of the next value of the innermost object
};

}  // namespace

json ParseJson(std::string_view text, uint64_t memory) {
  json root;
  Builder builder(memory, &root);
  json::sax_parse(text.begin(), text.end(), &builder);
  return root;
}

std::string Shown(const json& value) {
  if (value.is_array()) return "a list of " + std::to_string(value.size());
  if (value.is_object()) return "an object";
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

const json* Member(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

}  // namespace thalweg::cli::serve
