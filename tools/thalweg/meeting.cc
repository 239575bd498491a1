#include "meeting.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>

#include <sys/stat.h>

#include "cluster_init.h"
#include "framework/json/json.h"
#include "handles.h"
#include "json_value.h"
#include "own_host.h"
#include "thalweg/version.h"

namespace thalweg::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{50};  // between two looks into the folder, which may be on another machine

constexpr double kLonger = 15;  // seconds that the others wait longer than rank 0, so that they hear its reason

constexpr int64_t kDays = 365;  // for which the certificates of a start are good; the folder is removed at its end

std::string Version() { return std::string(tw_version_string()) + ", plugin ABI draft " + std::to_string(tw_version_plugin_epoch()); }

std::string SecondsText(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", seconds);
  return text;
}

std::string Title(int64_t rank, int64_t ps) { return TaskOf(rank, ps).text() + " (rank " + std::to_string(rank) + ")"; }

}  // namespace

Meeting::Meeting(Config config) : config_(std::move(config)) {
  struct stat s;
  if (stat(config_.folder.c_str(), &s) != 0) {
    throw std::runtime_error("folder '" + config_.folder + "' on host " + OwnHostName() + ": " + std::strerror(errno) +
                             "; it must be on a file system that all hosts share, see --shared");
  }
  if (!S_ISDIR(s.st_mode)) throw std::runtime_error("'" + config_.folder + "' is no folder");
  if (s.st_uid != geteuid() || (s.st_mode & (S_IWGRP | S_IWOTH | S_IRGRP | S_IROTH)) != 0) {
    throw std::runtime_error("folder '" + config_.folder +
                             "' is not this user's alone, and the cluster's keys are written there; chmod 700");
  }
}

std::string Meeting::Own() const { return Title(config_.rank.rank, config_.ps) + " on host " + OwnHostName(); }

void Meeting::Write(const std::string& name, const std::string& text) const {
  const std::string hidden = Path("." + name + "." + std::to_string(config_.rank.rank));
  const int fd = open(hidden.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const bool good = fd >= 0 && write(fd, text.data(), text.size()) == ssize_t(text.size()) && fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  if (!good) throw std::runtime_error("'" + hidden + "': " + std::strerror(error));
  // Unlike rename, link keeps a file that is there: the first reason for a failure stays.
  if (link(hidden.c_str(), Path(name).c_str()) != 0 && errno != EEXIST) {
    throw std::runtime_error("'" + Path(name) + "': " + std::strerror(errno));
  }
  unlink(hidden.c_str());
}

// Lists the folder anew, which also makes a network file system look at its server.
std::vector<std::string> Meeting::Names(const std::string& prefix) const {
  std::vector<std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator(config_.folder)) {
    if (std::string name = entry.path().filename(); name.starts_with(prefix)) all.push_back(std::move(name));
  }
  return all;
}

void Meeting::CheckRefusal() const {
  if (!Names("refused").empty()) throw std::runtime_error(ReadFile(Path("refused"), kMostConfig));
}

void Meeting::Refuse(const std::string& why) const {
  try {
    Write("refused", why);
  } catch (const std::exception& e) {
    throw std::runtime_error(why + " (the others do not hear of it: " + e.what() + ")");
  }
  throw std::runtime_error(ReadFile(Path("refused"), kMostConfig));
}

// Writes where this process is.
void Meeting::Come() const {
  const std::string name = "rank-" + std::to_string(config_.rank.rank);
  if (std::filesystem::exists(Path(name))) {
    throw std::runtime_error("folder '" + config_.folder + "' was used by an earlier start: it has " + name +
                             " already; give each start a folder of its own");
  }
  std::string address, wrong;
  int port = 0;
  try {
    address = OwnAddress(config_.interface);
    port = FreePorts(1)[0];
  } catch (const std::exception& e) {
    wrong = Own() + ": " + e.what();
  }
  if (!wrong.empty()) Refuse(wrong);
  Json json;
  json.Object()
      .Number("rank", config_.rank.rank)
      .Number("size", config_.rank.size)
      .Number("ps", config_.ps)
      .Number("workers", config_.workers);
  json.Text("host", OwnHostName()).Text("place", OwnPlace()).Text("address", address).Number("port", port).Text("version", Version()).End();
  Write(name, json.text());
}

std::string Meeting::Join() {
  if (config_.rank.size != config_.ps + config_.workers) {
    throw std::runtime_error("the engine has started " + std::to_string(config_.rank.size) + " processes (" + config_.rank.from +
                             "), and -n " + std::to_string(config_.workers) + " --ps " + std::to_string(config_.ps) + " are " +
                             std::to_string(config_.ps + config_.workers));
  }
  Come();
  if (config_.rank.rank == 0) {
    std::string cluster;
    try {
      cluster = Gather();
    } catch (const std::exception& e) {
      Refuse(e.what());
    }
    Write("cluster.json", cluster);
    return cluster;
  }
  const auto end = Clock::now() + std::chrono::duration<double>(config_.seconds + kLonger);
  while (Names("cluster.json").empty()) {
    CheckRefusal();
    if (Clock::now() > end) {
      Refuse(Own() + " was told no cluster by rank 0 within " + SecondsText(config_.seconds + kLonger) + ": rank 0 did not come, or '" +
             config_.folder + "' is not one folder on all hosts");
    }
    std::this_thread::sleep_for(kLook);
  }
  return ReadFile(Path("cluster.json"), kMostConfig);
}

// Waits for the records of all ranks; makes the credentials, and the cluster's description.
std::string Meeting::Gather() const {
  const auto end = Clock::now() + std::chrono::duration<double>(config_.seconds);
  while (int64_t(Names("rank-").size()) < config_.rank.size) {
    CheckRefusal();
    if (Clock::now() > end) {
      std::string missing;
      for (int64_t r = 0; r < config_.rank.size; ++r) {
        if (!std::filesystem::exists(Path("rank-" + std::to_string(r)))) missing += (missing.empty() ? "" : ", ") + Title(r, config_.ps);
      }
      throw std::runtime_error("only " + std::to_string(Names("rank-").size()) + " of " + std::to_string(config_.rank.size) +
                               " processes came within " + SecondsText(config_.seconds) + "; missing: " + missing);
    }
    std::this_thread::sleep_for(kLook);
  }
  std::vector<JsonValue> all;
  bool one_place = true;
  for (int64_t r = 0; r < config_.rank.size; ++r) {
    all.push_back(JsonValue::Parse(ReadFile(Path("rank-" + std::to_string(r)), kMostConfig)));
    const auto& [first, other] = std::pair(all.front(), all.back());
    one_place = one_place && first["place"].text() == other["place"].text();
    if (first["version"].text() != other["version"].text()) {
      throw std::runtime_error(Title(r, config_.ps) + " on host " + other["host"].text() + " runs thalweg " + other["version"].text() +
                               ", and rank 0 on host " + first["host"].text() + " runs " + first["version"].text() +
                               "; install one version on all hosts");
    }
    for (const char* number : {"size", "ps", "workers"}) {
      if (first[number].number() != other[number].number()) {
        throw std::runtime_error(Title(r, config_.ps) + " was started with another number of processes, servers or workers than rank 0");
      }
    }
  }
  if (!one_place && config_.scheme != "grpc") {
    throw std::runtime_error("--scheme " + config_.scheme + " reaches the processes of one machine, and these are on several");
  }
  Json json;
  json.Object();
  for (const auto& [job, first, last] :
       {std::tuple("ps", int64_t{0}, config_.ps), std::tuple("worker", config_.ps, config_.ps + config_.workers)}) {
    if (first == last) continue;
    json.Array(job);
    for (int64_t r = first; r < last; ++r) {
      const std::string host = one_place ? "127.0.0.1" : all[size_t(r)]["address"].text();
      const std::string port = std::to_string(int64_t(all[size_t(r)]["port"].number()));
      // The process's number makes the names of two launches on one machine differ.
      json.Text("", config_.scheme == "grpc" ? (host.find(':') == host.npos ? host : "[" + host + "]") + ":" + port
                                             : config_.scheme + ":thalweg-" + std::to_string(getpid()) + "-" + std::to_string(r));
    }
    json.End();
  }
  const std::string cluster = json.End().text();
  if (config_.scheme == "grpc") {
    std::vector<std::string> clients;
    for (int64_t i = 0; i < config_.workers; ++i) clients.push_back("worker-" + std::to_string(i));
    InitCluster(cluster, Path("keys"), clients, kDays);
  }
  return cluster;
}

std::string Meeting::Credentials(const std::string& member) const { return config_.scheme == "grpc" ? Path("keys/" + member) : ""; }

void Meeting::Succeeded() { Write("done-" + std::to_string(config_.rank.rank), ""); }

void Meeting::Failed(int status, const std::string& what) {
  Json json;
  json.Object().Number("status", status).Text("what", Own() + ": " + what).End();
  try {
    Write("failed", json.text());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "thalweg launch: the others do not hear of this failure: %s\n", e.what());
  }
}

bool Meeting::Done(int* status, std::string* what) {
  if (!Names("failed").empty()) {
    const JsonValue json = JsonValue::Parse(ReadFile(Path("failed"), kMostConfig));
    *status = int(json["status"].number());
    *what = json["what"].text();
    return false;
  }
  return int64_t(Names("done-").size()) == config_.rank.size;
}

}  // namespace thalweg::cli
