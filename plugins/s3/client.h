// Client: signed requests to the store, which are repeated while another attempt may help.
// Threads: any; the calling thread waits.
#ifndef THALWEG_PLUGINS_S3_CLIENT_H_
#define THALWEG_PLUGINS_S3_CLIENT_H_

#include <atomic>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "address.h"
#include "credentials.h"
#include "http.h"
#include "options.h"
#include "sign.h"

namespace thalweg::s3 {

struct Call {
  std::string method;
  Address address;
  Pairs query, headers;
  std::string_view body;
  // As in Request.
  char* to = nullptr;
  uint64_t room = 0;
  uint64_t most_bytes = 1 << 20;
  // Statuses that are answers here, beside 2xx. A missing bucket is an error nevertheless.
  std::vector<int> accepts = {};
  bool may_fail_late = false;  // an answer 200 may have an error as its body
  // After an attempt that may have taken effect without an answer, every error is UNAVAILABLE. Each
  // attempt has a connection of its own, so that none is repeated unseen.
  bool doubt_after_loss = false;
  // Returns why an answer is not whole, and the request is repeated; empty if it is whole.
  std::function<std::string(const Answer&)> damage = {};
  std::chrono::milliseconds patience{0};  // 0: that of the settings
};

class Client {
 public:
  Client(const Settings& settings, const Place& place, Http* http, Credentials* credentials)
      : settings_(settings), place_(place), http_(*http), credentials_(*credentials) {}
  // Throws tw::Error. The text names method and URL, what the store said, what to do, and of the last
  // of several attempts their number; it never has a key, a signature or a token. Codes: those of
  // refusal.h; UNAVAILABLE when the time is over, DATA_LOSS after five damaged answers.
  Answer Send(const Call& call);

 private:
  Request Signed(const Call& call, const Target& target, const std::string& payload, const Credential& key,
                 Clock::time_point deadline) const;

  const Settings& settings_;
  const Place& place_;
  Http& http_;
  Credentials& credentials_;
  std::atomic<bool> reached_{false};  // the store has answered
};

}  // namespace thalweg::s3

#endif  // THALWEG_PLUGINS_S3_CLIENT_H_
