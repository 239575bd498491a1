#include "protocol.h"

#include <strings.h>

#include <algorithm>
#include <charconv>

#include "datatype.h"
#include "framework/base/meant.h"
#include "http_error.h"
#include "utf8.h"

namespace thalweg::cli::serve {
namespace {

constexpr size_t kLongestMeant = 256;  // bytes of a wrong name that are compared with the names that there are

}  // namespace

Body ModelCall::TakeBody(size_t aligned) const {
  // curl -d sends a form's type whatever the data is; TensorFlow Serving's own examples do so.
  static constexpr const char* kTypes[] = {"application/json", "application/octet-stream", "application/x-www-form-urlencoded",
                                           "text/json"};
  std::string type = call->header("Content-Type");
  type = type.substr(0, type.find(';'));
  while (!type.empty() && type.back() == ' ') type.pop_back();
  const bool known = std::any_of(std::begin(kTypes), std::end(kTypes), [&](const char* t) { return strcasecmp(type.c_str(), t) == 0; });
  if (!type.empty() && !known) {
    throw HttpError(
        415, "Content-Type is '" + ShownName(type) + "'; send application/json, or application/octet-stream with binary tensor data");
  }
  return call->body(aligned);
}

Deadline ModelCall::DeadlineAfter(std::chrono::microseconds asked) const {
  Deadline deadline = settings->timeout.count() ? began + settings->timeout : Deadline::max();
  if (asked.count() > 0) deadline = std::min(deadline, began + std::min<std::chrono::microseconds>(asked, std::chrono::hours(24)));
  const std::string header = call->header("X-Request-Timeout-Ms");
  if (header.empty()) return deadline;
  uint32_t ms = 0;
  const auto [end, error] = std::from_chars(header.data(), header.data() + header.size(), ms);
  if (error != std::errc() || end != header.data() + header.size() || ms == 0) {
    throw HttpError(400, "X-Request-Timeout-Ms is '" + ShownName(header) + "'; it takes a whole number of milliseconds of at least 1");
  }
  return std::min<Deadline>(deadline, began + std::chrono::milliseconds(ms));
}

std::string ShownName(std::string_view name) {
  constexpr size_t kShown = 200;  // bytes
  return name.size() <= kShown ? OneLine(std::string(name)) : OneLine(std::string(name.substr(0, kShown))) + "...";
}

Answer GoodAnswer(ChargedText body, std::string type, std::vector<std::pair<std::string, std::string>> headers) {
  std::string text = body.TakeText();
  return {200, std::move(text), std::move(type), std::move(headers), body.TakeCharge()};
}

void RequireMethod(const Call& call, const char* method) {
  if (call.method == method || (call.method == "HEAD" && std::string_view(method) == "GET")) return;
  throw HttpError(405, "'" + OneLine(call.path) + "' takes " + method + ", not " + OneLine(call.method));
}

size_t InputAt(const ServedModel& model, const tw_model_signature& signature, const std::string& name) {
  Meant meant(std::string_view(name).substr(0, kLongestMeant));
  std::string names;
  for (uint32_t i = 0; i < signature.n_inputs; ++i) {
    if (signature.inputs[i]->name == name) return i;
    meant.Consider(signature.inputs[i]->name);
    names += (i ? ", '" : "'") + std::string(signature.inputs[i]->name) + "'";
  }
  const std::string close = meant.text();
  throw HttpError(400, "model '" + model.name() + "', signature '" + signature.name + "' has no input '" + ShownName(name) + "'" +
                           (close.empty() ? "; its inputs are " + names : close));
}

void RequireCarried(const ServedModel& model, const char* kind, const tw_model_value& value) {
  if (IsCarried(value.dtype)) return;
  throw HttpError(400, model.Where(kind, value.name) + ": the protocol has no form for its type " + DatatypeName(value.dtype));
}

}  // namespace thalweg::cli::serve
