// The transport's messages to the host's log; the host may end while gRPC's threads still have
// messages.
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "log.h"

namespace thalweg::grpc_transport {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A host that writes a line slowly.
struct SlowHost {
  SlowHost() {
    run.size = sizeof run;
    run.log = [](const tw_host* h, uint32_t, const char* text, uint64_t len) {
      auto* self = static_cast<SlowHost*>(h->self);
      self->came = self->inside = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      self->lines.emplace_back(text, size_t(len));
      self->inside = false;
    };
    host.size = sizeof host;
    host.self = this;
    host.run = &run;
  }
  tw_run_api run{};
  tw_host host{};
  std::atomic<bool> came{false}, inside{false};
  std::vector<std::string> lines;
};

TEST(GrpcLogTest, LinesThatComeAtOnceAreCounted) {
  SlowHost host;
  Log log(&host.host);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back([&] { log.Warn("nobody is there"); });
  for (std::thread& t : threads) t.join();
  EXPECT_THAT(host.lines, ElementsAre(HasSubstr("nobody is there")));
}

TEST(GrpcLogTest, TheHostIsLeftAloneOnceItIsClosed) {
  for (int k = 0; k < 5; ++k) {
    auto host = std::make_unique<SlowHost>();
    auto log = std::make_shared<Log>(&host->host);
    std::thread late([log] {
      log->Warn("a peer was turned away");
      log->Warn("and another");
    });
    while (!host->came) std::this_thread::yield();  // on a busy machine the host may have ended by then
    log->Close();
    EXPECT_FALSE(host->inside) << "a line is being written down";
    host.reset();
    late.join();
    log->Warn("one more");
  }
}

}  // namespace
}  // namespace thalweg::grpc_transport
