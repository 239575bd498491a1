// A cluster with its own credentials, made by the code of `thalweg cluster init`: a task in its own
// process, clients, and folders like those of members.
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "distributed/messenger.h"
#include "distributed/server.h"
#include "framework/runtime/runtime.h"
#include "tests/distributed/addresses.h"
#include "tools/credentials/certificate.h"

extern char** environ;

namespace thalweg::distributed {

inline constexpr int64_t kDay = 24 * 3600;

inline std::string Whole(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A task in its own process.
class Process {
 public:
  enum class Ends { kWhenTold, kAtOnce };
  // files: the limit of its descriptors; 0: the limit of this process.
  Process(const std::string& folder, const std::string& address, std::vector<std::string> more, Ends ends = Ends::kWhenTold, int files = 0)
      : log_(folder + "/log" + Port(address)) {
    const std::string cluster = folder + "/cluster" + Port(address) + ".json";
    std::ofstream(cluster) << "{\"ps\": [\"" << address << "\"]}";
    std::vector<std::string> words = {THALWEG_PROGRAM, "worker", "--cluster", cluster, "--job", "ps", "--plugin", Transport()};
    words.insert(words.end(), more.begin(), more.end());
    if (files) words.insert(words.begin(), {"/usr/bin/prlimit", "--nofile=" + std::to_string(files) + ":" + std::to_string(files)});
    std::vector<char*> pointers;
    for (std::string& w : words) pointers.push_back(w.data());
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t to_log;
    posix_spawn_file_actions_init(&to_log);
    posix_spawn_file_actions_addopen(&to_log, 1, log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&to_log, 1, 2);
    EXPECT_EQ(posix_spawn(&pid_, words[0].c_str(), &to_log, nullptr, pointers.data(), environ), 0);
    posix_spawn_file_actions_destroy(&to_log);
    if (ends == Ends::kAtOnce) {
      int status = 0;
      EXPECT_EQ(waitpid(std::exchange(pid_, -1), &status, 0) > 0 && WIFEXITED(status) && WEXITSTATUS(status) != 0, true) << log();
      return;
    }
    for (int i = 0; i < 6000 && log().find("listening") == std::string::npos; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_THAT(log(), ::testing::HasSubstr("listening at " + address));
  }
  ~Process() {
    if (pid_ < 0) return;
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }
  std::string log() const { return Whole(log_); }
  pid_t pid() const { return pid_; }
  int64_t memory() const {  // bytes private to the process
    std::ifstream in("/proc/" + std::to_string(pid_) + "/smaps_rollup");
    for (std::string word; in >> word;) {
      if (word != "Private_Dirty:") continue;
      int64_t kb = 0;
      in >> kb;
      return kb << 10;
    }
    return 0;
  }
  size_t descriptors() const {
    const std::filesystem::directory_iterator all("/proc/" + std::to_string(pid_) + "/fd");
    return size_t(std::distance(begin(all), end(all)));
  }

 private:
  static std::string Port(const std::string& address) { return address.substr(address.rfind(':') + 1); }
  const std::string log_;
  pid_t pid_ = -1;
};

// A client with the credentials of a folder.
class Client {
 public:
  explicit Client(const std::string& credentials) {
    RuntimeOptions options;
    options.threads = 1;
    options.disabled_plugins = {"*opencl*"};
    runtime_ = *Runtime::Create(options);
    const Status loaded = runtime_->LoadPlugin(Transport());
    EXPECT_TRUE(loaded.ok()) << loaded;
    auto transport = FindTransport(runtime_.get(), {"grpc", ""}, false);
    EXPECT_TRUE(transport.ok()) << transport.status();
    auto messenger =
        Messenger::Create(*std::move(transport), {"", credentials, 1 << 20, false, true}, &clock_, [](std::shared_ptr<Incoming>) {});
    EXPECT_TRUE(messenger.ok()) << messenger.status();
    messenger_ = *std::move(messenger);
  }
  ~Client() {
    messenger_->Close();
    clock_.Stop();
  }
  struct Answer {
    Status status;
    std::string fields, body;
  };
  template <typename Message>
  std::future<Answer> Begin(const std::string& address, Method method, const Message& m, std::string body = "") {
    WireWriter w;
    m.Put(&w);
    return Say(address, method, w, std::move(body));
  }
  template <typename Message>
  Status Ask(const std::string& address, Method method, const Message& m) {
    return Begin(address, method, m).get().status;
  }
  Status Hello(const std::string& address) { return Say(address, Method::kHello, WireWriter(), "").get().status; }

 private:
  std::future<Answer> Say(const std::string& address, Method method, const WireWriter& fields, std::string body) {
    auto answer = std::make_shared<std::promise<Answer>>();
    Call call;
    call.to = {address.substr(address.find(':') + 1), "the task", 0};
    call.method = method;
    call.fields = fields;
    call.body = Payload::Of(std::move(body));
    call.deadline = clock_.Now() + 30'000'000'000;
    call.done = [answer](const Reply& reply) {
      answer->set_value({reply.outcome.status, std::string(reply.fields), std::string(reply.body)});
    };
    messenger_->Start(std::move(call));
    return answer->get_future();
  }
  std::shared_ptr<Runtime> runtime_;
  SystemClock clock_;
  std::unique_ptr<Messenger> messenger_;
};

class DenialTest : public ::testing::Test {
 protected:
  DenialTest() {
    signal(SIGPIPE, SIG_IGN);  // a peer that is turned away may still be writing
    char name[] = "/tmp/thalweg-denial-XXXXXX";
    folder_ = mkdtemp(name);
    address_ = "grpc:127.0.0.1:" + std::to_string(FreePort());
    credentials::MakeCluster(folder_, {{"task/ps/0", {"127.0.0.1"}}, {"client/ann", {}}, {"client/bob", {}}}, 10);
    ca_ = {Whole(folder_ + "/authority/ca.pem"), Whole(folder_ + "/authority/key.pem")};
    task_ = std::make_unique<Process>(folder_, address_, std::vector<std::string>{"--credentials", folder_ + "/ps-0"});
  }
  ~DenialTest() override {
    task_.reset();
    std::filesystem::remove_all(folder_);
  }
  static credentials::Recipe Good() {
    credentials::Recipe r;
    r.name = "ann";
    r.uri = "thalweg://client/ann";
    r.client = true;
    r.ends = kDay;
    return r;
  }
  // Makes a folder like a member's, with another certificate or token.
  std::string Folder(const std::string& name, const credentials::Pair& pair, const std::string& token) {
    const std::string place = folder_ + "/" + name;
    std::filesystem::create_directories(place);
    credentials::WriteSecret(place + "/ca.pem", ca_.cert);
    credentials::WriteSecret(place + "/cert.pem", pair.cert);
    credentials::WriteSecret(place + "/key.pem", pair.key);
    credentials::WriteSecret(place + "/token", token);
    return place;
  }
  std::string Token() const { return Whole(folder_ + "/authority/token"); }
  std::string folder_, address_;
  credentials::Pair ca_;
  std::unique_ptr<Process> task_;
};

}  // namespace thalweg::distributed
