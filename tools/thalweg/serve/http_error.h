// An answer to a request that cannot be served: an HTTP status and a text for people.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>

namespace thalweg::cli::serve {

class HttpError : public std::runtime_error {
 public:
  HttpError(int status, const std::string& text) : std::runtime_error(text), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

// The status of a request whose client left. It is not of HTTP's own, but proxies and their logs know it.
constexpr int kStatusClientLeft = 499;

// Throws HttpError 400. where: names model and input.
[[noreturn]] void Wrong(const std::string& where, const std::string& what);

// Returns the HTTP status for a code of the runtime, such as TW_INVALID_ARGUMENT.
int HttpStatus(uint32_t code);

// Returns {"error": "TEXT"}, the body of every error of both protocols.
std::string ErrorBody(const std::string& text);

}  // namespace thalweg::cli::serve
