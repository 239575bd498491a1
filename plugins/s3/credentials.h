// Credentials: the key with which requests are signed, from the usual places in the usual order, and
// its renewal. Threads: any.
#ifndef THALWEG_PLUGINS_S3_CREDENTIALS_H_
#define THALWEG_PLUGINS_S3_CREDENTIALS_H_

#include <ctime>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "http.h"
#include "options.h"
#include "sign.h"

namespace thalweg::s3 {

struct Credential {
  bool anonymous = false;
  Key key;
  std::string origin;  // where it was found, for messages; no secret
  time_t expires = 0;  // seconds since 1970; 0: never
};

// Parses the answer of a container's endpoint for credentials. Throws UNAUTHENTICATED.
Credential ParseContainerAnswer(const std::string& json);

class Credentials {
 public:
  // warn: receives a line about a file that should be hidden better.
  Credentials(const Settings& settings, Http* http, std::function<void(const std::string&)> warn)
      : settings_(settings), http_(*http), warn_(std::move(warn)) {}
  // Returns the key, which is valid for five more minutes if that can be had; a key that is not is looked
  // for again every ten seconds. Throws
  // UNAUTHENTICATED, naming the places, if there is none.
  Credential Get();
  // Looks again after the store has refused `used`. Returns false if nothing else was found.
  bool Renew(const Credential& used);

 private:
  Credential Find();
  std::optional<Credential> FromFile();
  std::optional<Credential> FromContainer();

  const Settings& settings_;
  Http& http_;
  const std::function<void(const std::string&)> warn_;
  std::mutex mu_;
  std::optional<Credential> found_;  // guarded by mu_
  Clock::time_point next_look_{};    // guarded by mu_: not before is a key that still holds looked for anew
  bool warned_ = false;              // guarded by mu_
};

}  // namespace thalweg::s3

#endif  // THALWEG_PLUGINS_S3_CREDENTIALS_H_
