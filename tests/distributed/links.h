// The two ends of a link over gRPC, below sessions: tasks that keep their requests, and a relay
// between them.
#pragma once
#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "distributed/messenger.h"
#include "distributed/server.h"
#include "framework/runtime/runtime.h"
#include "tests/distributed/relay.h"

namespace thalweg::distributed::testing {

using thalweg::testing::Relay;

// The messages that use shared memory within this machine instead of the relayed link.
enum class Shares { kAll, kBodies, kNothing };

inline std::shared_ptr<Runtime> RuntimeWith(const std::string& transport, Shares shares) {
  RuntimeOptions options;
  options.threads = 1;
  options.disabled_plugins = {"*opencl*", "*libgrpc.so"};  // of the plugins that are found; a test loads its own by name
  options.plugin_settings["plugin.org.thalweg.grpc.ring"] = shares == Shares::kAll ? "1" : "0";
  options.plugin_settings["plugin.org.thalweg.grpc.shared_memory"] = shares != Shares::kNothing ? "1" : "0";
  auto runtime = *Runtime::Create(options);
  const Status loaded = runtime->LoadPlugin(transport);
  EXPECT_TRUE(loaded.ok()) << loaded;
  return runtime;
}

// Answers Hello, and keeps every other request until its caller is gone.
class Task {
 public:
  explicit Task(const std::shared_ptr<Runtime>& runtime) {
    auto m = Messenger::Create(*FindTransport(runtime.get(), {"grpc", ""}, false), {"127.0.0.1:0", "", 1 << 20}, &clock_,
                               [this](std::shared_ptr<Incoming> request) { Serve(std::move(request)); });
    EXPECT_TRUE(m.ok()) << m.status();
    messenger_ = *std::move(m);
  }
  ~Task() {
    messenger_->Close();
    clock_.Stop();
  }
  std::string address() const { return messenger_->address(); }
  size_t kept() {
    std::lock_guard lock(mu_);
    return kept_.size();
  }
  std::atomic<int> gone{0};

  // Sends a request to the address; returns the status of the answer.
  std::future<Status> Ask(const std::string& address, Method method, std::string body = "") {
    auto answer = std::make_shared<std::promise<Status>>();
    Call call;
    call.to = {address, "the task at " + address, 0};
    call.method = method;
    call.body = Payload::Of(std::move(body));
    call.done = [answer](const Reply& reply) { answer->set_value(reply.outcome.status); };
    auto future = answer->get_future();
    messenger_->Start(std::move(call));
    return future;
  }

 private:
  void Serve(std::shared_ptr<Incoming> request) {
    const auto head = GetRequest(request->head());
    if (head.ok() && head->method == Method::kHello) return request->Answer(PutAnswer(WireWriter()));
    auto* r = request.get();
    {
      std::lock_guard lock(mu_);
      kept_.push_back(std::move(request));
    }
    r->WhenGone([this, r] {
      ++gone;
      r->Fail({absl::CancelledError("nobody waits"), false});
    });
  }
  std::mutex mu_;
  std::vector<std::shared_ptr<Incoming>> kept_;
  SystemClock clock_;
  std::unique_ptr<Messenger> messenger_;
};

// A relayed link to `there`, and the address at which it begins.
struct Link {
  explicit Link(const std::string& there) : address("127.0.0.1:" + std::to_string(FreePort())), relay("grpc:" + address, "grpc:" + there) {}
  const std::string address;
  Relay relay;
};

}  // namespace thalweg::distributed::testing
