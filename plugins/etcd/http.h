// Exchange: requests to etcd's JSON gateway by HTTP/1.1, with or without TLS, on one connection
// each. Threads: values, no sharing, except that any thread may call Hang.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

namespace thalweg::etcd {

// An error: a TW_* code, and a human-readable text.
struct Failed : std::runtime_error {
  Failed(uint32_t why, const std::string& text) : std::runtime_error(text), code(why) {}
  const uint32_t code;
};

// Nanoseconds of the host's clock. A deadline of 0 means none.
using Now = std::function<int64_t()>;

class Tls;

// The address of etcd.
struct Address {
  // text: "host:port", "http://host:port" or, with TLS, "https://host:port"; a host may be in
  // brackets. Throws INVALID_ARGUMENT.
  static Address Parse(const std::string& text);
  std::string host, port;
  bool tls = false;
  std::string text() const { return host + ":" + port; }
};

// A request whose answer may come in pieces.
class Exchange {
 public:
  // folder: for TLS (tls.h). Throws Failed, as all methods here: UNAVAILABLE if nobody answers,
  // DEADLINE_EXCEEDED, and the errors of TLS.
  Exchange(const Address& address, const std::string& folder, Now now, int64_t deadline);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  void Ask(const std::string& path, const std::string& token, const std::string& json);
  // Reads the next line of the answer, without its end. Returns false if there is none.
  bool NextLine(std::string* line);
  // Returns the rest of the answer.
  std::string Rest();
  int status() const { return status_; }
  void set_deadline(int64_t deadline) { deadline_ = deadline; }
  // Shuts the connection down, so that another thread that reads it returns.
  void Hang();

 private:
  void Connect();
  void KeepAlive();
  void Shake(const std::string& folder);
  void Wait(short what);
  void Write(const std::string& bytes);
  void HearWhy();
  bool Read(std::string* bytes);
  bool Fill();
  bool Body();
  std::string HeadLine();

  const Address at_;
  const std::string address_;  // as people write it
  const Now now_;
  int64_t deadline_;
  int fd_ = -1;
  std::unique_ptr<Tls> tls_;  // NULL without TLS
  int status_ = 0;
  bool chunked_ = false, over_ = false;
  uint64_t left_ = 0;       // bytes left of the body, or of its chunk
  std::string raw_, text_;  // received, not parsed; of the body
};

}  // namespace thalweg::etcd
