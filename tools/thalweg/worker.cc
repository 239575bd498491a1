// thalweg worker: runs a task of a cluster until it is told to end.
#include <malloc.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <thread>

#include "command.h"
#include "handles.h"
#include "heap_trim.h"

namespace thalweg::cli {
namespace {

std::string ClusterText(const Args& args) {
  if (args.has("--cluster")) return ReadFile(args.get("--cluster"), kMostConfig);
  const char* config = std::getenv("TF_CONFIG");
  if (!config) throw UsageError{"give the cluster: --cluster FILE, or the environment variable TF_CONFIG"};
  return config;
}

// Adds the file's name, which the library does not know, to errors in the cluster's JSON.
tw::Server MakeServer(const Args& args, const tw::Runtime& runtime, const std::string& cluster, const std::vector<const char*>& options) {
  const std::string job = args.get("--job");
  const auto task = uint32_t(args.integer("--task", 0, 0));
  try {
    return tw::Server(runtime, cluster, args.has("--job") ? job.c_str() : nullptr, task, options);
  } catch (const tw::StatusError& e) {
    if (!std::string_view(e.what()).starts_with("JSON, ")) throw;
    throw tw::StatusError(e.code(), "'" + args.get("--cluster", "TF_CONFIG") + "': " + e.what(), e.operation(), e.place());
  }
}

// glibc would make up to eight arenas a processor, one for each new thread, and free memory stays in
// the arena that it came from. A server has many threads and bursts of messages, so most of its
// memory would soon be free memory of arenas. Threads take small blocks from caches of their own, so
// they seldom meet at one arena. REQUIRES: no thread has started.
void LimitArenas() {
#ifdef __GLIBC__
  if (std::getenv("MALLOC_ARENA_MAX") || std::getenv("GLIBC_TUNABLES")) return;  // the user decides
  mallopt(M_ARENA_MAX, int(std::max(1u, std::thread::hardware_concurrency())));
#endif
}

double Seconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

// The share of one processor that the process has used since the last call.
class Load {
 public:
  double Share() {
    const double used = Seconds(CLOCK_PROCESS_CPUTIME_ID), now = Seconds(CLOCK_MONOTONIC);
    const double share = (used - used_) / std::max(now - now_, 1e-3);
    used_ = used;
    now_ = now;
    return share;
  }

 private:
  double used_ = 0, now_ = Seconds(CLOCK_MONOTONIC);
};

// Returns the first signal that arrives. Until then this thread, which serves no requests, returns
// free memory to the system from time to time. By itself glibc returns only memory at the end of an
// arena, so memory that a burst of requests or connections has freed would stay, and pools keep the
// buffers of large requests for the next ones.
int WaitFor(const sigset_t& signals, const tw::Runtime& runtime) {
  constexpr timespec kLookEvery = {.tv_sec = 5, .tv_nsec = 0};
  constexpr double kIdle = 0.02;  // share of a processor; so rare requests take the memory again once in kLookEvery at most
  HeapTrim heap;
  Load load;
  for (;;) {
    if (const int signal = sigtimedwait(&signals, nullptr, &kLookEvery); signal > 0) return signal;
    if (load.Share() < kIdle) runtime.give_back();
    heap.Look();  // also after SIGCONT, which ends the wait early
  }
}

int Run(const Args& args) {
  LimitArenas();
  // Blocked before any thread starts: all threads inherit the mask, and only this thread waits for
  // the signals.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  const std::string cluster = ClusterText(args);
  const tw::Runtime runtime = MakeRuntime(args);
  // The log also reports the restrictions of the sandbox that are in force.
  tw::raise(tw_log_set_sink(runtime.c(), tw_log_to_stderr, nullptr, args.has("--sandbox") ? TW_LOG_INFO : TW_LOG_WARNING));
  std::vector<std::string> texts;
  if (args.has("--sandbox")) texts.push_back("sandbox=on");
  for (const std::string& text : args.all("--server-option")) texts.push_back(text);  // may contain sandbox=strict
  if (args.has("--credentials")) texts.push_back("credentials=" + args.get("--credentials"));
  if (args.has("--allow")) texts.push_back("allow_files=" + args.get("--allow"));
  if (args.has("--insecure")) texts.push_back("insecure=true");
  std::vector<const char*> options;
  for (const std::string& text : texts) options.push_back(text.c_str());
  tw::Server server = MakeServer(args, runtime, cluster, options);
  std::printf("listening at %s\n", server.address().c_str());
  std::fflush(stdout);
  WaitFor(ends, runtime);
  server.stop();
  return kGood;
}

std::string Details() {
  std::string text = "Options of the server, for --server-option:\n";
  for (uint32_t i = 0; const tw_option* o = tw_server_option(i); ++i) {
    text += std::string("  ") + o->name + "=" + o->default_value + ": " + o->doc + "\n";
  }
  text += "With --sandbox (sandbox=on) the log tells what of the confinement is in force.\n";
  return text + "Ends on SIGTERM and SIGINT: steps that run here end, their clients are told.\n";
}

}  // namespace

const Command& WorkerCommand() {
  static const std::string details = Details();
  static const Command command = {"worker",
                                  "",
                                  "Serves a task of a cluster until it is told to end.",
                                  details.c_str(),
                                  {{"--cluster", "FILE", "the tasks and their addresses, as JSON; without it TF_CONFIG says so"},
                                   {"--job", "NAME", "the job of this task; without it the cluster's \"task\" says who this is"},
                                   {"--task", "N", "its number in the job (0)"},
                                   {"--credentials", "DIR", "what proves who the task is and who may use it, from thalweg cluster init"},
                                   {"--allow", "DIR", "a folder beneath which clients' operations may read and write files (none)"},
                                   {"--sandbox", nullptr, "each client's graphs run in a process of their own that is confined, see below"},
                                   {"--insecure", nullptr, "whoever reaches the address may use the task, without proof and encryption"},
                                   {"--server-option", "KEY=VALUE", "an option of the server, see below; may be repeated"},
                                   kThreadsOption,
                                   kPluginOption,
                                   kRuntimeOption},
                                  0,
                                  0,
                                  Run};
  return command;
}

}  // namespace thalweg::cli
