// What both protocols share: the parts of a path, a request's deadline, and the entries of a model's values.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "call.h"
#include "charged_text.h"
#include "repository.h"
#include "settings.h"

namespace thalweg::cli::serve {

// A request for a model, as the server saw it.
struct ModelCall {
  Call* call;
  const Settings* settings;
  const Repository* repository;
  std::vector<std::string> path;  // the segments of the path
  Clock::time_point began;
  std::shared_ptr<ServedModel> model;  // set by the protocol once it is known, for the log and the metrics

  // Reads the body; byte `aligned` of it, see Call::body. Throws HttpError 415 for a type that is neither JSON nor bytes.
  Body TakeBody(size_t aligned) const;
  uint64_t json_memory() const { return 8 * settings->max_request_bytes; }
  // For what is made of the request, and for its answer.
  Charge NewCharge() const { return Charge(call->memory); }
  ChargedText NewText() const { return ChargedText(call->memory); }
  // Returns the earliest of the server's limit, the header X-Request-Timeout-Ms and `asked` (0: none). Throws HttpError 400.
  Deadline DeadlineAfter(std::chrono::microseconds asked) const;
};

// Returns a name that a client chose as a message shows it: in one line, and cut if it is long.
std::string ShownName(std::string_view name);

// Returns an answer of status 200 with its charge.
Answer GoodAnswer(ChargedText body, std::string type = "application/json", std::vector<std::pair<std::string, std::string>> headers = {});

// Throws HttpError 405 unless the request has the method.
void RequireMethod(const Call& call, const char* method);

// Returns the place of an input among the signature's. Throws HttpError 400 listing the names.
size_t InputAt(const ServedModel& model, const tw_model_signature& signature, const std::string& name);

// Throws HttpError 400 if the protocols have no form for the value's type.
void RequireCarried(const ServedModel& model, const char* kind, const tw_model_value& value);

}  // namespace thalweg::cli::serve
