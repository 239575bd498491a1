#include "cluster_init.h"

#include <spawn.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <sys/wait.h>

#include "helper_program.h"
#include "json_value.h"

extern char** environ;

namespace thalweg::cli {
namespace {

// Returns the host of "grpc:host:port" or "host:port". Returns "" if other machines do not reach
// the address by a host.
std::string HostOf(const std::string& address) {
  std::string rest = address.substr(0, 5) == "grpc:" ? address.substr(5) : address;
  const size_t port = rest.rfind(':');
  if (port == rest.npos) return "";
  rest.resize(port);
  if (rest.size() > 2 && rest.front() == '[') return rest.substr(1, rest.size() - 2);
  if (rest.find(':') != rest.npos) return "";  // another scheme
  if (rest == "0.0.0.0")
    throw std::runtime_error("address '" + address + "' is where a task listens; give the host that others reach it at");
  return rest;
}

void AddTask(const std::string& job, const std::string& index, const JsonValue& address, std::vector<std::string>* words) {
  const std::string host = HostOf(address.text());
  if (job.empty() || job.find_first_of("/=,") != job.npos || address.text().empty())
    throw std::runtime_error("the cluster's job '" + job + "' has a name or an address that makes no sense");
  words->push_back("task/" + job + "/" + index + (host.empty() ? "" : "=" + host));
}

std::vector<std::string> Tasks(const std::string& text) {
  const JsonValue json = JsonValue::Parse(text);
  const JsonValue& jobs = json.has("cluster") ? json["cluster"] : json;
  std::vector<std::string> words;
  for (const std::string& job : jobs.keys()) {
    const JsonValue& tasks = jobs[job];
    for (size_t i = 0; i < tasks.items().size(); ++i) {
      AddTask(job, tasks.keys().empty() ? std::to_string(i) : tasks.keys()[i], tasks.items()[i], &words);
    }
  }
  if (words.empty()) throw std::runtime_error("the cluster has no tasks");
  return words;
}

std::string Maker() {
  const std::string maker = FindHelper("thalweg-credentials");
  if (maker.empty()) throw std::runtime_error("this build has no thalweg-credentials: it was made without gRPC or OpenSSL");
  return maker;
}

void RunMaker(std::vector<std::string> words, const char* failed) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t pid = -1;
  int status = 0;
  if (const int error = posix_spawn(&pid, pointers[0], nullptr, nullptr, pointers.data(), environ))
    throw std::runtime_error("cannot start '" + words[0] + "': " + std::strerror(error));
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw std::runtime_error(failed);
}

}  // namespace

void RevokeMember(const std::string& folder, const std::string& what) {
  RunMaker({Maker(), folder, "revoke", what}, "nothing was revoked");
}

void InitCluster(const std::string& cluster, const std::string& folder, const std::vector<std::string>& clients, int64_t days) {
  std::vector<std::string> words = {Maker(), folder, std::to_string(days)};
  for (const std::string& task : Tasks(cluster)) words.push_back(task);
  for (const std::string& name : clients) {
    if (name.empty() || name.find_first_of("/=,") != name.npos) throw std::runtime_error("'" + name + "' is no name for a client");
    words.push_back("client/" + name);
  }
  RunMaker(std::move(words), "no credentials were made");
}

}  // namespace thalweg::cli
