// Questions to etcd's JSON gateway by HTTP/1.1: one connection each. Threads: values, no sharing, but Hang from any.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

namespace thalweg::etcd {

// What goes wrong: a TW_* code, and a text for people.
struct Failed : std::runtime_error {
  Failed(uint32_t why, const std::string& text) : std::runtime_error(text), code(why) {}
  const uint32_t code;
};

// Nanoseconds of the host's clock; 0: any.
using Now = std::function<int64_t()>;

// A question whose answer may come in pieces.
class Exchange {
 public:
  // address: "host:port". Throws Failed, as all here: UNAVAILABLE where nobody answers, DEADLINE_EXCEEDED.
  Exchange(const std::string& address, Now now, int64_t deadline);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  void Ask(const std::string& path, const std::string& token, const std::string& json);
  // The next line of the answer, without its end; false: there is none.
  bool NextLine(std::string* line);
  // All that is left.
  std::string Rest();
  int status() const { return status_; }
  void set_deadline(int64_t deadline) { deadline_ = deadline; }
  // Another thread that reads finds the connection closed.
  void Hang();

 private:
  void Connect();
  void KeepAlive();
  void Wait(short what);
  bool Fill();
  bool Body();
  std::string HeadLine();

  const std::string address_;
  const Now now_;
  int64_t deadline_;
  int fd_ = -1;
  int status_ = 0;
  bool chunked_ = false, over_ = false;
  uint64_t left_ = 0;       // of the body, or of its chunk
  std::string raw_, text_;  // read and not looked at; of the body
};

}  // namespace thalweg::etcd
