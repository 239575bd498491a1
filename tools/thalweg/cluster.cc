// thalweg cluster: reports the state of a cluster's tasks and diagnoses faults.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "cluster_init.h"
#include "cluster_view.h"
#include "command.h"
#include "handles.h"

namespace thalweg::cli {
namespace {

// Appends the addresses of all tasks in a cluster's description to `all`.
void AddAddresses(const JsonValue& value, std::vector<std::string>* all) {
  if (!value.text().empty()) all->push_back(value.text());
  for (const JsonValue& item : value.items()) AddAddresses(item, all);
}

JsonValue ParseNamed(const std::string& name, const std::string& text) {
  try {
    return JsonValue::Parse(text);
  } catch (const std::exception& e) {
    throw std::runtime_error("'" + name + "': " + e.what());
  }
}

// Returns the addresses at which the cluster may be reached; any task of the cluster can answer.
std::vector<std::string> Targets(const Args& args) {
  if (args.has("--target")) return {args.get("--target")};
  const char* config = std::getenv("TF_CONFIG");
  if (!args.has("--cluster") && !config) {
    throw UsageError{"give the cluster: --target ADDRESS, --cluster FILE, or the environment variable TF_CONFIG"};
  }
  const JsonValue json =
      ParseNamed(args.get("--cluster", "TF_CONFIG"), args.has("--cluster") ? ReadFile(args.get("--cluster"), kMostConfig) : config);
  std::vector<std::string> all;
  AddAddresses(json.has("cluster") ? json["cluster"] : json, &all);
  if (all.empty()) throw std::runtime_error("the cluster names no address");
  return all;
}

class Watcher {
  // Returns the reply of the first target that answers. If none answers, throws the error of the
  // last.
  template <class F>
  auto FirstAnswer(const F& ask) const {
    for (size_t i = 0;; ++i) {
      std::vector<std::string> texts(options_);
      texts.push_back("target=" + targets_[i]);
      std::vector<const char*> all;
      for (const std::string& text : texts) all.push_back(text.c_str());
      try {
        return ask(all);
      } catch (const tw::StatusError&) {
        if (i + 1 == targets_.size()) throw;
      }
    }
  }

 public:
  explicit Watcher(const Args& args)
      : runtime_(MakeRuntime(args)), targets_(Targets(args)), timeout_(int64_t(args.number("--timeout", 5, 0.001) * 1e9)) {
    for (const std::string& option : args.all("--session-option")) options_.push_back(option);
  }

  std::string Json() {
    return FirstAnswer([this](const std::vector<const char*>& options) { return tw::cluster_status(runtime_, options, timeout_); });
  }
  uint64_t Reset(const std::string& container) {
    return FirstAnswer([&](const std::vector<const char*>& options) { return tw::cluster_reset(runtime_, options, container, timeout_); });
  }

 private:
  const tw::Runtime runtime_;
  const std::vector<std::string> targets_;
  const int64_t timeout_;
  std::vector<std::string> options_;
};

int Status(const Args& args, Watcher* watcher) {
  const std::string json = watcher->Json();
  std::fputs(args.has("--json") ? json.c_str() : StatusText(JsonValue::Parse(json)).c_str(), stdout);
  return kGood;
}

int Doctor(const Args& args, Watcher* watcher) {
  const JsonValue tasks = JsonValue::Parse(watcher->Json());
  const std::vector<std::string> all = Ailments(tasks, args.number("--stuck", 10, 0));
  for (const std::string& what : all) std::printf("%s %s\n", Coloured(kRed, "bad ").c_str(), what.c_str());
  if (all.empty())
    std::printf("%s all %zu tasks answer, run one version, and move\n", Coloured(kGreen, "good").c_str(), tasks["tasks"].items().size());
  return all.empty() ? kGood : kFailed;
}

int Top(const Args& args, Watcher* watcher) {
  const double every = args.number("--interval", 1, 0.01);
  const int64_t count = args.integer("--count", 0, 0);
  JsonValue before = JsonValue::Parse(watcher->Json());
  auto since = std::chrono::steady_clock::now();
  for (int64_t i = 0; count == 0 || i < count; ++i) {
    std::this_thread::sleep_for(std::chrono::duration<double>(every));
    JsonValue now = JsonValue::Parse(watcher->Json());
    const auto at = std::chrono::steady_clock::now();
    if (OnTerminal()) std::fputs("\033[H\033[2J", stdout);
    std::printf("%s\n", RatesText(before, now, std::chrono::duration<double>(at - since).count()).c_str());
    std::fflush(stdout);
    before = std::move(now);
    since = at;
  }
  return kGood;
}

int Reset(const Args& args, Watcher* watcher) {
  if (!args.has("--container")) throw UsageError{"reset needs --container NAME; clients that name none are in `localhost`"};
  const std::string container = args.get("--container");
  const uint64_t count = watcher->Reset(container);
  std::printf("container '%s' is empty on all tasks; it held %llu\n", container.c_str(), static_cast<unsigned long long>(count));
  return kGood;
}

int Init(const Args& args) {
  if (!args.has("--cluster") || !args.has("--out")) throw UsageError{"init needs --cluster FILE and --out DIR"};
  const std::string path = args.get("--cluster"), cluster = ReadFile(path, kMostConfig);
  ParseNamed(path, cluster);
  InitCluster(cluster, args.get("--out"), args.all("--client"), args.integer("--days", 365, 1));
  std::printf("a folder for each task and client is in %s; give each to its process alone: thalweg worker --credentials DIR\n",
              args.get("--out").c_str());
  return kGood;
}

int Revoke(const Args& args) {
  const bool named = args.positional().size() == 2;
  if (!args.has("--out") || named == args.has("--serial"))
    throw UsageError{"revoke needs --out DIR, as init had it, and either a name (client/NAME, task/JOB/N) or --serial HEX"};
  RevokeMember(args.get("--out"), named ? args.positional()[1] : "serial=" + args.get("--serial"));
  std::printf("the list is in 'revoked' of each folder in %s; copy it to members elsewhere: they read it within a second\n",
              args.get("--out").c_str());
  return kGood;
}

int Run(const Args& args) {
  const std::string& what = args.positional()[0];
  if (what == "revoke") return Revoke(args);
  if (args.positional().size() > 1) throw UsageError{"'" + args.positional()[1] + "' is one word too many"};
  if (what == "init") return Init(args);
  if (what != "status" && what != "doctor" && what != "top" && what != "reset")
    throw UsageError{"'" + what + "' is none of init, revoke, status, doctor, top, reset"};
  Watcher watcher(args);
  if (what == "reset") return Reset(args, &watcher);
  return what == "status" ? Status(args, &watcher) : what == "doctor" ? Doctor(args, &watcher) : Top(args, &watcher);
}

}  // namespace

const Command& ClusterCommand() {
  static constexpr const char* kMore =
      "init: an authority, a certificate for each task and client, and a token; members may be added later, and certificates made anew.\n"
      "revoke: takes the certificates of client/NAME or task/JOB/N back, or the one of --serial; members end its connections.\n"
      "status: tasks with incarnations, steps, memory, devices, what came from whom, who waits for whom, and what confines sandboxes.\n"
      "doctor: what is wrong; exit status 1 if something is: tasks that do not answer, versions that differ, steps that stand still.\n"
      "top: steps and bytes in a second, again and again.\n"
      "reset: empties a container of state on every task: variables, queues and tables that clients share there are gone.\n";
  static const Command command = {
      "cluster",
      "init|revoke|status|doctor|top|reset",
      "Tells what the tasks of a cluster do, and what ails them; makes what proves who they are; empties their state.",
      kMore,
      {{"--out", "DIR", "init, revoke: where the folders of the members are"},
       {"--serial", "HEX", "revoke: the number of one certificate (openssl x509 -serial)"},
       {"--client", "NAME", "init: a client that may use the cluster; may be repeated"},
       {"--days", "N", "init: how long the certificates are good (365)"},
       {"--target", "ADDRESS", "any task of the cluster"},
       {"--cluster", "FILE", "the tasks and their addresses, as JSON; without both, TF_CONFIG says so"},
       {"--session-option", "KEY=VALUE", "how the tasks are reached: credentials, insecure; may be repeated"},
       {"--timeout", "SECONDS", "in which tasks have to answer (5)"},
       {"--container", "NAME", "reset: the container; that of clients which name none is localhost"},
       {"--stuck", "SECONDS", "doctor: a step that moved nothing for so long is told (10)"},
       {"--interval", "SECONDS", "top: between two looks (1)"},
       {"--count", "N", "top: how many; 0: until it is ended (0)"},
       kJsonOption,
       kPluginOption,
       kRuntimeOption},
      1,
      2,
      Run};
  return command;
}

}  // namespace thalweg::cli
