// Limits on the transport's incoming connections: in total, per address, per identity, and when no
// descriptors are left.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "front.h"
#include "own_user.h"
#include "tests/support/free_port.h"

namespace thalweg::grpc_transport {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;
using std::chrono::steady_clock;
using Time = Arrivals::Time;

// A host that records its calls.
struct Host {
  Host() {
    run.size = sizeof run;
    run.log = [](const tw_host* h, uint32_t, const char* text, uint64_t len) {
      auto* self = static_cast<Host*>(h->self);
      std::lock_guard lock(self->mu);
      self->lines.append(text, size_t(len)).append("\n");
    };
    host.size = sizeof host;
    host.self = this;
    host.run = &run;
  }
  std::string said() {
    std::lock_guard lock(mu);
    return lines;
  }
  tw_run_api run = {};
  tw_host host = {};
  std::mutex mu;
  std::string lines;
};

// Returns true if the condition becomes true in time.
template <typename F>
bool Soon(F f, std::chrono::seconds most = 20s) {
  for (const auto until = steady_clock::now() + most; !f() && steady_clock::now() < until;) std::this_thread::sleep_for(2ms);
  return f();
}

SocketAddress At(const std::string& host, int port) {
  std::string why;
  return AddressesOf({host, port}, &why).at(0);
}

int Connected(const SocketAddress& to, const std::string& from = "") {
  const int fd = socket(to.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (!from.empty()) {
    const SocketAddress own = At(from, 0);
    EXPECT_EQ(bind(fd, own.get(), own.size), 0);
  }
  if (connect(fd, to.get(), to.size) == 0) return fd;
  close(fd);
  return -1;
}

// Returns true if the other side hangs up.
bool Ends(int fd, std::chrono::milliseconds most = 10s) {
  pollfd p = {fd, POLLIN, 0};
  char c;
  return poll(&p, 1, int(most.count())) == 1 && read(fd, &c, 1) <= 0;
}

class FrontTest : public ::testing::Test {
 protected:
  void Open(Front::Lets lets, bool own_user = true) {
    port_ = FreePort();
    log_ = std::make_shared<Log>(&host_.host);
    front_ = std::make_unique<Front>(log_, lets, [this](int fd) {
      close(fd);
      ++taken_;
    });
    int port = 0;
    ASSERT_EQ(front_->Listen({"127.0.0.1", port_}, own_user, &port), "");
    ASSERT_EQ(port, port_);
    front_->Start();
  }
  SocketAddress tcp() const { return At("127.0.0.1", port_); }
  // Returns the listening descriptor.
  int Listening(const SocketAddress& at) const {
    for (int fd = 3; fd < 1024; ++fd) {
      int listens = 0;
      socklen_t size = sizeof listens;
      SocketAddress own;
      own.size = sizeof own.bytes;
      if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || !listens) continue;
      if (getsockname(fd, own.get(), &own.size) == 0 && own.size == at.size && std::memcmp(&own.bytes, &at.bytes, at.size) == 0) return fd;
    }
    return -1;
  }
  Host host_;
  std::shared_ptr<Log> log_;
  int port_ = 0;
  std::atomic<int> taken_{0};
  std::unique_ptr<Front> front_;
};

// ---- Numbers of connections ----

TEST(ArrivalsTest, OneAddressLeavesRoomForOthers) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  Arrivals all({100, 60, 40, 10});
  Time now(1h);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(all.Add(ends[0], At("10.0.0.1", 1000 + i), now), "");
  EXPECT_EQ(all.Add(ends[0], At("10.0.0.1", 2000), now), "of its address 10 have not said who they are");
  EXPECT_EQ(all.Add(ends[0], At("::ffff:10.0.0.1", 2001), now), "of its address 10 have not said who they are");
  // An admitted connection no longer counts there.
  all.LetIn("10.0.0.1:1003");
  EXPECT_EQ(all.Add(ends[0], At("10.0.0.1", 2000), now), "");
  EXPECT_EQ(all.Add(ends[0], At("10.0.0.2", 1000), now), "");
  EXPECT_EQ(all.waiting(), 11u);
  // An IPv6 network counts as one address.
  for (int i = 0; i < 10; ++i) EXPECT_EQ(all.Add(ends[0], At("2001:db8::" + std::to_string(i + 1), 7), now), "");
  EXPECT_THAT(all.Add(ends[0], At("2001:db8::77", 7), now), HasSubstr("of its address"));
  // More connections than an address may have waiting, all admitted.
  for (int i = 0; i < 60; ++i) {
    const std::string why = all.Add(ends[0], At("10.0.0.9", 1000 + i), now);
    if (i < 60) {
      EXPECT_EQ(why, "") << i;
    }
    all.LetIn("10.0.0.9:" + std::to_string(1000 + i));
  }
  EXPECT_EQ(all.Add(ends[0], At("10.0.0.9", 3000), now), "its address has 60 connections");
  close(ends[0]);
  close(ends[1]);
}

TEST(ArrivalsTest, WhoeverHasMostMakesRoom) {
  Arrivals all({100, 100, 8, 6});
  int ends[8][2];
  Time now(1h);
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]), 0);
    EXPECT_EQ(all.Add(ends[i][0], At(i < 6 ? "10.0.0.1" : "10.0.0.2", 1000 + i), now), "");
  }
  int more[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, more), 0);
  EXPECT_EQ(all.Add(more[0], At("10.0.0.3", 1), now), "");
  EXPECT_TRUE(Ends(ends[0][1]));  // the oldest of the first address
  for (int i = 1; i < 8; ++i) EXPECT_FALSE(Ends(ends[i][1], 0ms)) << i;
  EXPECT_THAT(all.Add(more[0], At("10.0.0.1", 2), now), HasSubstr("8 have not said who they are"));
}

TEST(ArrivalsTest, WhoeverSaysNothingIsEndedAndWhoHasGoneIsForgotten) {
  Arrivals all({100, 100, 8, 8});
  int ends[3][2];
  for (auto& pair : ends) ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  EXPECT_EQ(all.Add(ends[0][0], At("10.0.0.1", 1), Time(10s)), "");
  EXPECT_EQ(all.Add(ends[1][0], At("10.0.0.1", 2), Time(10s)), "");
  EXPECT_EQ(all.Add(ends[2][0], At("10.0.0.1", 3), Time(15s)), "");
  all.LetIn("10.0.0.1:2");
  EXPECT_EQ(all.EndOlder(Time(12s)), 1u);
  EXPECT_TRUE(Ends(ends[0][1]));
  EXPECT_FALSE(Ends(ends[1][1], 0ms));
  EXPECT_FALSE(Ends(ends[2][1], 0ms));
  EXPECT_EQ(all.size(), 2u);
  // The descriptor's number now belongs to another file, which must not be closed.
  close(ends[2][0]);
  ASSERT_EQ(dup2(ends[1][0], ends[2][0]), ends[2][0]);
  EXPECT_EQ(all.EndOlder(Time(20s)), 0u);
  EXPECT_EQ(all.size(), 1u);
  EXPECT_FALSE(Ends(ends[1][1], 0ms));
}

TEST(ArrivalsTest, AConnectionThatOpensStreamAfterStreamIsCut) {
  Arrivals all({100, 100, 8, 8});
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  EXPECT_EQ(all.Add(ends[0], At("10.0.0.1", 1), Time(10s)), "");
  for (int i = 0; i < Arrivals::kStreams; ++i) EXPECT_TRUE(all.Stream("10.0.0.1:1"));
  EXPECT_FALSE(Ends(ends[1], 0ms));
  EXPECT_FALSE(all.Stream("10.0.0.1:1"));
  EXPECT_TRUE(Ends(ends[1]));
}

// ---- No more descriptors, and sockets that accept nothing ----

TEST_F(FrontTest, WhoComesWhenThereIsNoDescriptorIsToldSoAndLetInLater) {
  Open(Front::Lets::kAnybody);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  std::vector<int> visitors, rest;
  for (int i = 0; i < 20; ++i) visitors.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const rlimit few = {rlim_t(visitors.back() + 4), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  for (int fd; (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) rest.push_back(fd);
  ASSERT_EQ(errno, EMFILE);
  const sockaddr_in to = [&] {
    sockaddr_in in = {};
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    in.sin_port = htons(uint16_t(port_));
    return in;
  }();
  for (int fd : visitors) ASSERT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  for (int fd : visitors) EXPECT_TRUE(Ends(fd));
  EXPECT_EQ(taken_, 0);
  for (int fd : rest) close(fd);
  for (int fd : visitors) close(fd);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  const int fd = Connected(tcp());
  EXPECT_TRUE(Soon([&] { return taken_ == 1; }));
  close(fd);
  EXPECT_THAT(host_.said(), HasSubstr("no file descriptor left"));
}

TEST_F(FrontTest, ASocketThatHasGoneDeafIsMadeAnew) {
  Open(Front::Lets::kAnybody);
  for (const SocketAddress& at : {tcp(), OwnUserSocket(tcp())}) {
    const auto heard = [&] {
      const int before = taken_, fd = Connected(at);
      const bool taken = fd >= 0 && Soon([&] { return taken_ > before; }, 1s);
      close(fd);
      return taken;
    };
    ASSERT_TRUE(heard());
    const int listening = Listening(at), silent = eventfd(0, EFD_CLOEXEC);
    ASSERT_GE(listening, 0);
    ASSERT_EQ(dup2(silent, listening), listening);  // the socket accepts nothing, without an error
    close(silent);
    EXPECT_TRUE(Soon(heard));
  }
  EXPECT_THAT(host_.said(), HasSubstr("is listened at anew: "));
}

// ---- Identities ----

TEST_F(FrontTest, ByTheNetworkNobodyIsTakenForTheSameUser) {
  Open(Front::Lets::kOwnUser);
  const int fd = Connected(tcp());
  ASSERT_GE(fd, 0);
  EXPECT_TRUE(Ends(fd));
  close(fd);
  int own = -1;
  std::string why;
  ASSERT_EQ(MeetOwnUser({"127.0.0.1", port_}, &own, &why), Met::kYes) << why;
  EXPECT_TRUE(Soon([&] { return taken_ == 1; }));
  close(own);
  EXPECT_THAT(host_.said(), HasSubstr("without `credentials` processes of this user come in by @thalweg.grpc.127.0.0.1:"));
}

// A process of another user that runs a function until its `stop` tells it to end; the exit status
// is the function's result.
class Stranger {
 public:
  template <typename F>
  explicit Stranger(F work) : pid_(fork()) {
    if (pid_ == 0) {
      if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0) _exit(99);
      _exit(work());
    }
  }
  ~Stranger() { End(); }
  int End() {
    if (pid_ < 0) return -1;
    kill(pid_, SIGKILL);
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_;
};

TEST_F(FrontTest, AnotherUserNeitherStallsNorLocksOut) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  Open(Front::Lets::kOwnUser);
  const SocketAddress own = OwnUserSocket(tcp()), by_network = tcp();
  const SocketAddress elsewhere = At("127.0.0.77", port_);
  const Stranger listens([&] {  // the same port, at another address of this machine
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(fd, elsewhere.get(), elsewhere.size) != 0 || listen(fd, 8) != 0) return 1;
    pause();
    return 0;
  });
  const auto comes = [&](const SocketAddress& to) {
    return [&to] {
      for (;;) {
        const int fd = socket(to.bytes.ss_family, SOCK_STREAM, 0);
        (void)!connect(fd, to.get(), to.size);
        close(fd);
      }
      return 0;
    };
  };
  const Stranger first(comes(own)), second(comes(own)), third(comes(by_network));
  ASSERT_TRUE(Soon([&] { return host_.said().find("of another user was turned away") != std::string::npos; }));
  for (int i = 0; i < 20; ++i) {
    const auto began = steady_clock::now();
    int fd = -1;
    std::string why;
    ASSERT_EQ(MeetOwnUser({"127.0.0.1", port_}, &fd, &why), Met::kYes) << why;
    ASSERT_TRUE(Soon([&] { return taken_ == i + 1; }));
    EXPECT_LT(steady_clock::now() - began, 2s);
    close(fd);
  }
}

TEST_F(FrontTest, AnotherUserWhoListensInItsPlaceIsKnown) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  port_ = FreePort();
  const SocketAddress own = OwnUserSocket(tcp());
  const Stranger impostor([&] {
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(fd, own.get(), own.size) != 0 || listen(fd, 8) != 0) return 1;
    pause();
    return 0;
  });
  int fd = -1;
  std::string why;
  Met met = Met::kNobody;
  ASSERT_TRUE(Soon([&] { return (met = MeetOwnUser({"127.0.0.1", port_}, &fd, &why)) != Met::kNobody; }));
  EXPECT_EQ(met, Met::kOther);
  EXPECT_EQ(fd, -1);
}

}  // namespace
}  // namespace thalweg::grpc_transport
