// Http: requests by HTTP/1.1 over libcurl, which is opened at the first use. Connections stay open
// for later requests, but for those of Request::once. Redirections are not followed, and certificates
// are always verified.
// Threads: any; each request uses one handle of libcurl, and the calling thread waits.
#ifndef THALWEG_PLUGINS_S3_HTTP_H_
#define THALWEG_PLUGINS_S3_HTTP_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "sign.h"

namespace thalweg::s3 {

using Clock = std::chrono::steady_clock;

struct Request {
  std::string method, url;
  Pairs headers;          // one named "host" replaces libcurl's
  std::string_view body;  // of PUT and POST
  // The body of an answer 200 or 206 goes to `to`, which has `room` bytes, else into the answer.
  char* to = nullptr;
  uint64_t room = 0;
  uint64_t most_bytes = 1 << 20;  // the longest body that goes into the answer
  bool direct = false;            // no proxy
  // The request goes out once at most, over a connection of its own. libcurl sends another request
  // again, without a word, if a kept connection ends before the first byte of its answer.
  bool once = false;
  Clock::time_point deadline;
};

struct Answer {
  // kNone: there is an answer, whole as far as HTTP tells. kUnreachable: no connection was made.
  // kBroken: it failed on the way, and the store may have done what was asked. kRefused: another
  // attempt would fail, too.
  enum class Failure { kNone, kUnreachable, kBroken, kRefused } failure = Failure::kNone;
  uint32_t code = 0;  // of kRefused
  std::string why;    // of a failure
  int status = 0;
  Pairs headers;  // names in lower case
  std::string body;
  uint64_t received = 0;  // bytes that went to Request::to

  // Returns the value of a header; empty if there is none.
  std::string_view Header(std::string_view name) const;
  bool ok() const { return failure == Failure::kNone && status >= 200 && status < 300; }
};

class Http {
 public:
  // ca: a file of trusted certificates; empty: the machine's. silence: a connection that passes no
  // byte for so long is given up.
  Http(std::string ca, std::chrono::milliseconds silence, uint32_t most_idle);
  ~Http();
  Http(const Http&) = delete;
  // Throws FAILED_PRECONDITION if libcurl cannot be opened, DATA_LOSS if a header has a line end, and
  // std::bad_alloc; all other failures are in the answer. The process gets no SIGPIPE.
  Answer Send(const Request& request);
  // Waits between two attempts. Returns false if Stop was called.
  bool Pause(std::chrono::milliseconds time);
  // Ends the requests that are under way within about a second, and all later ones, with CANCELLED.
  void Stop();
  bool stopped() const { return stopped_; }

 private:
  void* Take();
  void Give(void* handle) noexcept;

  const std::string ca_;
  const std::chrono::milliseconds silence_;
  const uint32_t most_idle_;
  std::atomic<bool> stopped_{false};
  std::mutex mu_;
  std::condition_variable stops_;
  std::vector<void*> idle_;  // guarded by mu_; handles of libcurl with their connections
};

}  // namespace thalweg::s3

#endif  // THALWEG_PLUGINS_S3_HTTP_H_
