// The shared state of the stub driver: its objects, the known order of work, and the lock over all
// of it.
#pragma once
#include <cuda.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "programs.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace stub {

using Clock = std::map<int, uint64_t>;  // per stream, the number of the last work known to be over

struct Record {  // an event recorded at a place
  bool done = false;
  std::chrono::steady_clock::time_point when;
  CUresult result = CUDA_SUCCESS;
  Clock clock;
};

struct Work {
  std::string what;
  Clock known;  // the host's clock when the work was enqueued
  std::function<void()> run;
  std::shared_ptr<Record> before, mark;
  const uint32_t* flag = nullptr;
  struct Touched {
    uintptr_t begin, end;
    bool written, may_be_empty = false;
  };
  std::vector<Touched> touches;
  bool harmless = false;        // may not fail
  std::shared_ptr<void> graph;  // the graph of the launch
};

struct Access {
  int stream;
  uint64_t at;
  bool written;
  std::string what;
};

struct Memory {
  size_t bytes;
  int device = 0;
  bool gone = false;
  Access taken;  // allocation in stream order; at 0: not done yet
};

using Functions = std::map<std::string, const HostFunction*>;

}  // namespace stub

struct CUstream_st {
  int id;
  std::deque<stub::Work> work;
  stub::Clock clock;
  bool busy = false, closing = false;
  std::thread thread;
  bool recorded = false, broken = false;  // recorded: work is captured; broken: a part cannot be captured
  std::vector<stub::Work> kept;
};
struct CUgraph_st {
  std::vector<stub::Work> work;
};
struct CUgraphExec_st {
  std::vector<stub::Work> work;
  std::shared_ptr<void> running = std::make_shared<int>();
};
struct CUevent_st {
  std::shared_ptr<stub::Record> record;
};
struct CUctx_st {
  int device;
};
struct CUmod_st {
  stub::Functions functions;  // empty: the built-in functions
};
struct CUfunc_st {};
struct CUmemPoolHandle_st {};

namespace stub {

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> options;
  std::map<std::string, long long> calls;
  std::vector<std::string> wrong;
  std::mt19937 random;
  std::set<CUstream> streams;
  std::set<CUevent> events;
  std::set<CUmodule> modules;
  std::set<CUgraph> graphs;
  std::set<CUgraphExec> executables;
  std::map<uintptr_t, Memory> memory;
  std::vector<uintptr_t> taken_while_recorded;
  std::deque<uintptr_t> gone;                         // freed, and kept for a while to detect later uses
  std::map<uintptr_t, std::vector<Access>> accesses;  // by start address
  std::map<uintptr_t, size_t> pinned;
  Clock host;  // the work that host threads have waited for
  int next_stream = 0;
  long long work = 0, used = 0;
  CUresult lost = CUDA_SUCCESS;
  CUctx_st contexts[16];
  std::string told;
};

State& Now();
extern thread_local CUcontext current;

// REQUIRES for all functions below: the mutex.
long long Option(const std::string& key, long long otherwise);
bool Mutant(const char* name);
void Wrong(const std::string& text);
// Counts the call; returns the error if a test makes the call fail.
CUresult Enter(const char* function, bool needs_context = true);
void Enqueue(CUstream stream, Work w);
// Returns another stream, if there is one, to which a mutant misdirects work.
CUstream Another(CUstream stream);
// Waits until the stream is idle.
CUresult Drain(std::unique_lock<std::mutex>& lock, CUstream stream);

// These take the mutex.
CUresult Answer(const char* function, bool needs_context = true);
void WorkOff(CUstream stream);  // body of a stream's thread
void Join(Clock* to, const Clock& from);

}  // namespace stub
