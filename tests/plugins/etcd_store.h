// An etcd process of a test, which the destructor ends.
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/support/free_port.h"

namespace thalweg {

class Etcd {
 public:
  // more: command line options. scheme: of the client addresses.
  explicit Etcd(std::vector<std::string> more = {}, std::string scheme = "http")
      : folder_(::testing::TempDir() + "etcd-" + std::to_string(getpid())),
        scheme_(std::move(scheme)),
        more_(std::move(more)),
        port_(FreePort()),
        peer_(FreePort()) {
    Start();
  }
  ~Etcd() {
    Stop();
    std::filesystem::remove_all(folder_);
  }
  static bool Installed() { return std::filesystem::exists("/usr/bin/etcd"); }
  void Start() {
    const std::string client = scheme_ + "://" + address(), peer = "http://127.0.0.1:" + std::to_string(peer_);
    std::vector<std::string> words = {"/usr/bin/etcd",
                                      "--data-dir",
                                      folder_,
                                      "--listen-client-urls",
                                      client,
                                      "--advertise-client-urls",
                                      client,
                                      "--listen-peer-urls",
                                      peer,
                                      "--initial-advertise-peer-urls",
                                      peer,
                                      "--initial-cluster",
                                      "default=" + peer,
                                      "--log-level",
                                      "panic",
                                      "--unsafe-no-fsync"};
    words.insert(words.end(), more_.begin(), more_.end());
    std::vector<char*> args;
    for (const std::string& w : words) args.push_back(const_cast<char*>(w.c_str()));
    args.push_back(nullptr);
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // ends the process if the test crashes
    const int quiet = open("/dev/null", O_WRONLY);
    dup2(quiet, 1);
    dup2(quiet, 2);
    execv(args[0], args.data());
    _exit(127);
  }
  void Signal(int s) const { kill(pid_, s); }
  void Stop() {
    if (pid_ > 0) kill(pid_, SIGKILL), waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  const std::string folder_, scheme_;
  const std::vector<std::string> more_;
  const int port_, peer_;
  pid_t pid_ = -1;
};

}  // namespace thalweg
