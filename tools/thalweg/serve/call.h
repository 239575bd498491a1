// A request and its answer, without anything of HTTP's library.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cancellation.h"
#include "request_memory.h"

namespace thalweg::cli::serve {

// The bytes of a request. Tensors may use them without copying, and keep the storage alive then.
struct Body {
  std::shared_ptr<const std::string> storage;
  std::string_view text;  // within the storage
};
constexpr size_t kAlignment = 64;  // of memory that tensors use without copying

struct Call {
  int refused = 0;           // the status of a request that must not be handled, because it is malformed or beyond a limit; 0: none
  std::string why;           // what is wrong with it
  std::string method, path;  // the path without query, with %XX decoded
  std::string client;        // its address
  std::function<std::string(const char* name)> header;  // "" if the request has none of this name
  // Reads the body, once. Byte `aligned` of it lies at a multiple of kAlignment if the request said its length. The storage holds the
  // charge for its memory. Throws HttpError.
  std::function<Body(size_t aligned)> body;
  Cancellation cancellation;              // cancelled when the client leaves or the server ends
  std::shared_ptr<RequestMemory> memory;  // pays for the body, for what is made of it, and for the answer
};

struct Answer {
  int status = 200;
  std::string body;
  std::string type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};
  Charge charge = {};  // for the body
};

using AnswerCall = std::function<Answer(Call& call)>;  // throws nothing

}  // namespace thalweg::cli::serve
