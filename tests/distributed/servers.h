// A cluster of several servers in one process, for tests through the C API, over the transport of
// addresses.h, at new addresses.
#pragma once
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/distributed/addresses.h"
#include "thalweg/cpp/thalweg.hpp"
#include "thalweg/thalweg.h"

namespace thalweg::testing {

// THALWEG_TEST_SHARED_MEMORY=0: gRPC uses only its streams, also within this machine.
inline tw::Runtime NewRuntime(std::vector<const char*> options = {"threads=2"}) {
  const char* shares = std::getenv("THALWEG_TEST_SHARED_MEMORY");
  if (shares && std::string(shares) == "0") options.push_back("plugin.org.thalweg.grpc.shared_memory=0");
  tw::Runtime runtime(options);
  runtime.load_plugin(Transport());
  return runtime;
}

// Workers only: "/job:worker/task:0", ...
class Servers {
 public:
  explicit Servers(int n, const std::vector<const char*>& options = {}, const std::vector<const char*>& runtime = {"threads=2"})
      : options_(options), runtime_(runtime) {
    static std::atomic<int> count{0};
    const std::string id = "s" + std::to_string(getpid()) + "-" + std::to_string(++count);
    for (int i = 0; i < n; ++i) addresses_.push_back(NewAddress(id + "-" + std::to_string(i)));
    cluster_ = "{\"worker\": [";
    for (int i = 0; i < n; ++i) cluster_ += (i ? ", \"" : "\"") + address(i) + "\"";
    cluster_ += "]}";
    servers_.resize(size_t(n));
    for (int i = 0; i < n; ++i) start(i);
  }
  void start(int i) { servers_[size_t(i)] = std::make_unique<tw::Server>(NewRuntime(runtime_), cluster_, "worker", uint32_t(i), options_); }
  void stop(int i) { servers_[size_t(i)].reset(); }
  const std::string& address(int i) const { return addresses_[size_t(i)]; }
  static std::string task(int i) { return "/job:worker/task:" + std::to_string(i); }
  const std::string& cluster() const { return cluster_; }
  tw::Session session(const tw::Graph& graph, std::vector<const char*> options = {}) const {
    const std::string target = "target=" + address(0);
    options.push_back(target.c_str());
    return tw::Session(graph, options);
  }

 private:
  const std::vector<const char*> options_, runtime_;
  std::vector<std::string> addresses_;
  std::string cluster_;
  std::vector<std::unique_ptr<tw::Server>> servers_;
};

// A thrown error; empty text: nothing was thrown.
struct Failure {
  uint32_t code = TW_OK;
  std::string text;
  double seconds = 0;
};
inline Failure FailureOf(const std::function<void()>& f) {
  const auto began = std::chrono::steady_clock::now();
  Failure out;
  try {
    f();
  } catch (const tw::StatusError& e) {
    out.code = e.code();
    out.text = e.what();
  }
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return out;
}

// Three servers, and a runtime of a client.
class OneCluster : public ::testing::Test {
 protected:
  Servers servers_{3};
  tw::Runtime client_ = NewRuntime();
};

inline tw_run_options Within(int64_t ms) {
  tw_run_options options = {};
  options.size = sizeof options;
  options.timeout_ns = ms * 1'000'000;
  return options;
}

}  // namespace thalweg::testing
