// A CUDA driver without a GPU. Streams are threads, memory is the host's, kernels are the plugin's own, compiled for the host. It keeps the
// order that calls give work, as vector clocks: work of two streams on one place must be ordered by events, by flags, or by a host that
// waited in between, whatever the clock on the wall says. What is not, is written down, as is work on memory that is gone, calls without a
// context, and objects that are used after their end.
// A mutant leaves out the effect of one kind of call, as if the plugin had forgotten it: tests must notice.
#include "stub.h"

#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "library.h"
#include "programs.h"

thread_local HostLaunch launch_of_host;

namespace {

using Functions = std::map<std::string, const HostFunction*>;

Functions& BuiltIn() {
  static Functions all;
  return all;
}
std::map<const HostFunction*, std::string>& Names() {
  static std::map<const HostFunction*, std::string> all;
  return all;
}
thread_local Functions* loading = nullptr;  // those of a program that was compiled while running

constexpr size_t kGone = 256;

using Clock = std::map<int, uint64_t>;  // how far of each stream

void Join(Clock* to, const Clock& from) {
  for (const auto& [stream, at] : from) (*to)[stream] = std::max((*to)[stream], at);
}

struct Record {  // an event was told to mark a place
  bool done = false;
  std::chrono::steady_clock::time_point when;
  CUresult result = CUDA_SUCCESS;
  Clock clock;
};

struct Work {
  std::string what;
  Clock known;  // what the host had waited for when it enqueued this
  std::function<void()> run;
  std::shared_ptr<Record> before, mark;
  const uint32_t* flag = nullptr;
  struct Touched {
    uintptr_t begin, end;
    bool written, may_be_empty = false;
  };
  std::vector<Touched> touches;
  bool harmless = false;        // may not fail
  std::shared_ptr<void> graph;  // that it was launched with
};

struct Access {
  int stream;
  uint64_t at;
  bool written;
  std::string what;
};

struct Memory {
  size_t bytes;
  bool gone = false;
  Access taken;  // at 0: not yet
};

}  // namespace

struct CUstream_st {
  int id;
  std::deque<Work> work;
  Clock clock;
  bool busy = false, closing = false;
  std::thread thread;
  bool recorded = false, broken = false;  // what it is given is kept; and something of it cannot be
  std::vector<Work> kept;
};
struct CUgraph_st {
  std::vector<Work> work;
};
struct CUgraphExec_st {
  std::vector<Work> work;
  std::shared_ptr<void> running = std::make_shared<int>();
};
struct CUevent_st {
  std::shared_ptr<Record> record;
};
struct CUctx_st {
  int device;
};
struct CUmod_st {
  Functions functions;  // empty: those that are built in
};
struct CUfunc_st {};
struct CUmemPoolHandle_st {};

namespace {

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
  std::deque<uintptr_t> gone;                         // given back, and kept for a while to notice who still uses it
  std::map<uintptr_t, std::vector<Access>> accesses;  // by where they begin
  std::map<uintptr_t, size_t> pinned;
  Clock host;  // what host threads have waited for
  int next_stream = 0;
  long long work = 0, used = 0;
  CUresult lost = CUDA_SUCCESS;
  CUctx_st contexts[16];
  std::string told;
};

State& Now() {
  static State* state = new State;  // threads may outlive main
  return *state;
}

thread_local CUcontext current = nullptr;

long long Option(const std::string& key, long long otherwise) {
  const auto& all = Now().options;
  const auto found = all.find(key);
  return found == all.end() ? otherwise : std::atoll(found->second.c_str());
}
bool Mutant(const char* name) {
  const auto& all = Now().options;
  const auto found = all.find("mutant");
  return found != all.end() && found->second == name;
}
void Wrong(const std::string& text) {  // REQUIRES: the mutex
  if (Now().wrong.size() < 100) Now().wrong.push_back(text);
}

// Counts the call; what it is to fail with, if it is.
CUresult Enter(const char* function, bool needs_context = true) {  // REQUIRES: the mutex
  State& s = Now();
  const long long n = ++s.calls[function];
  if (needs_context && !current) Wrong(std::string(function) + " without a context");
  if (const auto fail = s.options.find("fail"); fail != s.options.end() && fail->second == std::string(function) + ":" + std::to_string(n))
    return CUresult(Option("with", CUDA_ERROR_UNKNOWN));
  return needs_context ? s.lost : CUDA_SUCCESS;
}

// Whether `a` is over before work with this clock starts.
bool Before(const Access& a, const Clock& clock) {
  const auto found = clock.find(a.stream);
  return found != clock.end() && found->second >= a.at;
}

// REQUIRES: the mutex.
void CheckTouches(const Work& w, const CUstream_st& stream) {
  State& s = Now();
  const uint64_t at = stream.clock.at(stream.id);
  for (const Work::Touched& t : w.touches) {
    auto memory = s.memory.upper_bound(t.begin);
    const bool somewhere = memory != s.memory.begin() && t.begin <= (--memory)->first + memory->second.bytes;
    // A tensor without elements may lie nowhere, or where memory ends.
    if (t.may_be_empty && (t.begin == 0 || (somewhere && t.begin == memory->first + memory->second.bytes))) continue;
    if (!somewhere || t.end > memory->first + memory->second.bytes)
      Wrong(w.what + " touches what is no memory of the device");
    else if (memory->second.gone)
      Wrong(w.what + " touches memory that was given back");
    else if (memory->second.taken.at == 0)
      memory->second.taken = {stream.id, at, true, w.what};
    else if (memory->second.taken.stream != stream.id && !Before(memory->second.taken, stream.clock))
      Wrong(w.what + " is not ordered behind " + memory->second.taken.what + " there");
    for (auto a = s.accesses.lower_bound(t.begin); a != s.accesses.end() && a->first < t.end; ++a) {
      for (const Access& other : a->second) {
        if ((t.written || other.written) && other.stream != stream.id && !Before(other, stream.clock))
          Wrong(w.what + " is not ordered behind " + other.what + " on the same memory");
      }
    }
    auto& here = s.accesses[t.begin];
    std::erase_if(here, [&](const Access& a) { return Before(a, stream.clock) && (t.written || !a.written); });
    here.push_back({stream.id, at, t.written, w.what});
  }
}

// One piece of work of a stream, from its thread.
void Run(std::unique_lock<std::mutex>& lock, CUstream stream, Work w) {
  State& s = Now();
  if (w.before) s.changed.wait(lock, [&] { return w.before->done; });
  if (w.flag) {
    while (std::atomic_ref(*const_cast<uint32_t*>(w.flag)).load(std::memory_order_acquire) == 0) {
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      lock.lock();
    }
    Join(&stream->clock, s.host);
  }
  if (const long long most = Option("delay", 0)) {
    const auto lasts = std::chrono::microseconds(s.random() % uint64_t(most + 1));
    lock.unlock();
    std::this_thread::sleep_for(lasts);
    lock.lock();
  }
  Join(&stream->clock, w.known);
  if (w.before) Join(&stream->clock, w.before->clock);
  ++stream->clock[stream->id];
  CheckTouches(w, *stream);
  if (!w.harmless && ++s.work == Option("late", 0)) s.lost = CUresult(Option("with", CUDA_ERROR_ECC_UNCORRECTABLE));
  if (s.lost == CUDA_SUCCESS && w.run) {
    lock.unlock();
    w.run();
    lock.lock();
  }
  if (w.mark) {
    w.mark->done = true;
    w.mark->when = std::chrono::steady_clock::now();
    w.mark->result = s.lost;
    w.mark->clock = stream->clock;
  }
}

void Work_(CUstream stream) {
  State& s = Now();
  std::unique_lock lock(s.mutex);
  for (;;) {
    s.changed.wait(lock, [&] { return stream->closing || !stream->work.empty(); });
    if (stream->work.empty()) return;
    Work w = std::move(stream->work.front());
    stream->work.pop_front();
    stream->busy = true;
    Run(lock, stream, std::move(w));
    stream->busy = false;
    s.changed.notify_all();
  }
}

// REQUIRES: the mutex.
void Enqueue(CUstream stream, Work w) {
  State& s = Now();
  if (!s.streams.count(stream)) return Wrong(w.what + " on a stream that is not there");
  if (stream->recorded) {
    if (w.before || w.mark || w.flag || w.harmless) {
      Wrong(w.what + " on a stream that is being recorded");
      stream->broken = true;
    }
    return stream->kept.push_back(std::move(w));
  }
  w.known = s.host;
  stream->work.push_back(std::move(w));
  s.changed.notify_all();
}

// The stream that was made before or after this one: where a mutant puts work that belongs here. REQUIRES: the mutex.
CUstream Another(CUstream stream) {
  for (CUstream other : Now().streams)
    if (other != stream) return other;
  return stream;
}

std::function<void()> KernelCall(const HostFunction* f, std::shared_ptr<std::vector<std::vector<char>>> values, HostLaunch launch) {
  return [f, values, launch] {
    std::vector<void*> arguments;
    for (auto& v : *values) arguments.push_back(v.data());
    launch_of_host = launch;
    for (unsigned z = 0; z < launch.grid[2]; ++z) {
      for (unsigned y = 0; y < launch.grid[1]; ++y) {
        for (unsigned x = 0; x < launch.grid[0]; ++x) {
          launch_of_host.at[0] = x, launch_of_host.at[1] = y, launch_of_host.at[2] = z;
          f->call(arguments.data());
        }
      }
    }
  };
}

// Where a function's pointers lead: their first elements. REQUIRES: copies of all arguments.
std::vector<Work::Touched> TouchesOf(const HostFunction& f, const std::vector<std::vector<char>>& values) {
  std::vector<Work::Touched> all;
  for (size_t i = 0; i < values.size(); ++i) {
    const HostParameter& p = f.parameters[i];
    if (!p.pointer || i + 1 >= values.size()) continue;
    uintptr_t address;
    int64_t first;
    std::memcpy(&address, values[i].data(), sizeof address);
    std::memcpy(&first, values[i + 1].data(), sizeof first);
    address += uintptr_t(first) * p.element;
    all.push_back({address, address + 1, p.written, true});
  }
  return all;
}

CUresult Copy(const char* function, CUstream stream, void* to, const void* from, size_t bytes, bool to_device, bool from_device) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter(function)) return error;
  Work w;
  w.what = to_device && from_device ? "a copy inside the device" : to_device ? "a copy in" : "a copy out";
  // What comes from memory that is not pinned is taken along at once, as the driver does.
  std::shared_ptr<std::string> staged;
  const auto pinned = Now().pinned.upper_bound(uintptr_t(from));
  const bool is_pinned = pinned != Now().pinned.begin() && std::prev(pinned)->first + std::prev(pinned)->second >= uintptr_t(from) + bytes;
  if (!from_device && !is_pinned) staged = std::make_shared<std::string>(static_cast<const char*>(from), bytes);
  w.run = [=] { std::memcpy(to, staged ? staged->data() : from, bytes); };
  if (to_device) w.touches.push_back({uintptr_t(to), uintptr_t(to) + bytes, true});
  if (from_device) w.touches.push_back({uintptr_t(from), uintptr_t(from) + bytes, false});
  const bool moved = (Mutant("copy_in_on_another_stream") && !from_device) || (Mutant("copy_out_on_another_stream") && !to_device) ||
                     (Mutant("peer_copy_on_another_stream") && std::string(function) == "cuMemcpyPeerAsync");
  Enqueue(moved ? Another(stream) : stream, std::move(w));
  return CUDA_SUCCESS;
}

// Waits until the stream has nothing to do. REQUIRES: lock.
CUresult Drain(std::unique_lock<std::mutex>& lock, CUstream stream) {
  State& s = Now();
  s.changed.wait(lock, [&] { return stream->work.empty() && !stream->busy; });
  Join(&s.host, stream->clock);
  return s.lost;
}

CUresult Answer(const char* function, bool needs_context = true) {
  std::lock_guard lock(Now().mutex);
  return Enter(function, needs_context);
}

}  // namespace

HostFunction::HostFunction(const char* name, void (*f)(void**), std::vector<HostParameter> p) : call(f), parameters(std::move(p)) {
  (loading ? *loading : BuiltIn())[name] = this;
  Names()[this] = name;
}

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void stub_reset(const char* options) {
  State& s = Now();
  std::lock_guard lock(s.mutex);
  s.options.clear();
  std::istringstream words(options);
  for (std::string word; words >> word;) s.options[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  s.calls.clear(), s.wrong.clear(), s.accesses.clear(), s.host.clear();
  for (auto& [address, memory] : s.memory) std::free(reinterpret_cast<void*>(address));
  s.memory.clear();
  s.gone.clear();
  s.random.seed(uint32_t(Option("seed", 1)));
  s.work = s.used = 0;
  s.lost = CUDA_SUCCESS;
}

EXPORT const char* stub_wrong() {
  State& s = Now();
  std::lock_guard lock(s.mutex);
  s.told.clear();
  for (const std::string& line : s.wrong) s.told += line + "\n";
  return s.told.c_str();
}

EXPORT long long stub_count(const char* what) {
  State& s = Now();
  std::lock_guard lock(s.mutex);
  const std::string name(what);
  if (name == "streams") return (long long)(s.streams.size());
  if (name == "events") return (long long)(s.events.size());
  if (name == "modules") return (long long)(s.modules.size());
  if (name == "graphs") return (long long)(s.graphs.size() + s.executables.size());
  if (name == "pinned") return (long long)(s.pinned.size());
  if (name == "memory") return s.used;
  if (name == "work") return s.work;
  return s.calls[name];
}

namespace {

// THALWEG_CUDA_STUB=strict: a process in which something was wrong does not end well.
struct Strict {
  ~Strict() {
    const char* set = std::getenv("THALWEG_CUDA_STUB");
    if (!set || std::string(set) != "strict" || Now().wrong.empty()) return;
    std::fprintf(stderr, "the stub driver noticed:\n%s", stub_wrong());
    std::_Exit(1);
  }
} strict;

}  // namespace

CUresult EnqueueOfLibrary(CUstream stream, const char* what, std::vector<LibraryTouch> touches, std::function<void()> run) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter(what)) return error;
  Work w;
  w.what = what;
  for (const LibraryTouch& t : touches) w.touches.push_back({uintptr_t(t.memory), uintptr_t(t.memory) + t.bytes, t.written, true});
  w.run = std::move(run);
  Enqueue(Mutant("library_on_another_stream") ? Another(stream) : stream, std::move(w));
  return CUDA_SUCCESS;
}
CUresult EnterLibrary(const char* function) {
  std::lock_guard lock(Now().mutex);
  return Enter(function);
}
long long LibraryOption(const char* key, long long otherwise) {
  std::lock_guard lock(Now().mutex);
  return Option(key, otherwise);
}
void WrongInLibrary(const std::string& text) {
  std::lock_guard lock(Now().mutex);
  Wrong(text);
}

EXPORT CUresult cuDriverGetVersion(int* version) {
  std::lock_guard lock(Now().mutex);
  *version = int(Option("version", 13000));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuInit(unsigned) { return Answer("cuInit", false); }
EXPORT CUresult cuGetErrorName(CUresult error, const char** name) {
  switch (error) {
    case CUDA_ERROR_OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case CUDA_ERROR_ECC_UNCORRECTABLE: *name = "CUDA_ERROR_ECC_UNCORRECTABLE"; break;
    case CUDA_ERROR_NO_DEVICE: *name = "CUDA_ERROR_NO_DEVICE"; break;
    case CUDA_ERROR_LAUNCH_FAILED: *name = "CUDA_ERROR_LAUNCH_FAILED"; break;
    default: *name = "CUDA_ERROR_OF_THE_STUB";
  }
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetCount(int* count) {
  std::lock_guard lock(Now().mutex);
  *count = int(Option("devices", 1));
  return Enter("cuDeviceGetCount", false);
}
EXPORT CUresult cuDeviceGet(CUdevice* device, int i) {
  *device = i;
  return Answer("cuDeviceGet", false);
}
EXPORT CUresult cuDeviceGetName(char* name, int bytes, CUdevice) {
  std::strncpy(name, "Stub", size_t(bytes));
  return Answer("cuDeviceGetName", false);
}
EXPORT CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  std::memset(uuid, device, sizeof *uuid);
  return Answer("cuDeviceGetUuid", false);
}
EXPORT CUresult cuDeviceTotalMem(size_t* bytes, CUdevice) {
  std::lock_guard lock(Now().mutex);
  *bytes = size_t(Option("memory", 1 << 30));
  return Enter("cuDeviceTotalMem", false);
}
EXPORT CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute what, CUdevice) {
  *value = what == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : what == CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED ? 1 : 0;
  return Answer("cuDeviceGetAttribute", false);
}
EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  *context = &Now().contexts[device];
  return Answer("cuDevicePrimaryCtxRetain", false);
}
EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice) { return Answer("cuDevicePrimaryCtxRelease", false); }
EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  std::lock_guard lock(Now().mutex);
  current = Mutant("no_context") ? nullptr : context;
  return Enter("cuCtxSetCurrent", false);
}
EXPORT CUresult cuCtxSynchronize() { return Answer("cuCtxSynchronize"); }

// What a stream that is recorded cannot be told. REQUIRES: the mutex.
static bool Refuses(CUstream stream, const char* what) {
  if (!Now().streams.count(stream) || !stream->recorded) return false;
  Wrong(std::string(what) + " on a stream that is being recorded");
  stream->broken = true;
  return true;
}

EXPORT CUresult cuStreamCreate(CUstream* stream, unsigned) {
  State& s = Now();
  std::lock_guard lock(s.mutex);
  if (CUresult error = Enter("cuStreamCreate")) return error;
  *stream = new CUstream_st{};
  (*stream)->id = s.next_stream++;
  s.streams.insert(*stream);
  (*stream)->thread = std::thread(Work_, *stream);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamDestroy(CUstream stream) {
  State& s = Now();
  {
    std::unique_lock lock(s.mutex);
    Enter("cuStreamDestroy");
    if (!s.streams.erase(stream)) {
      Wrong("a stream is destroyed that is not there");
      return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!stream->work.empty() || stream->busy) Wrong("a stream is destroyed with work in it");
    if (stream->recorded) Wrong("a stream is destroyed while it is recorded");
    stream->closing = true;
    s.changed.notify_all();
  }
  stream->thread.join();
  delete stream;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamSynchronize(CUstream stream) {
  std::unique_lock lock(Now().mutex);
  if (CUresult error = Enter("cuStreamSynchronize")) {
    Drain(lock, stream);
    return error;
  }
  if (stream->recorded) Wrong("a stream is waited for while it is recorded");
  if (Mutant("no_stream_synchronize")) return CUDA_SUCCESS;
  return Drain(lock, stream);
}
EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuStreamWaitEvent")) return error;
  if (Refuses(stream, "a wait")) return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  if (!Now().events.count(event)) Wrong("a stream waits for an event that is not there");
  Work w;
  w.what = "waiting for an event";
  w.harmless = true;
  if (!Mutant("no_wait_event")) w.before = event->record;
  Enqueue(Mutant("wait_event_on_another_stream") ? Another(stream) : stream, std::move(w));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t, unsigned) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuStreamWaitValue32")) return error;
  if (Refuses(stream, "a wait")) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  Work w;
  w.what = "waiting for a flag";
  w.harmless = true;
  if (!Mutant("no_wait_value")) w.flag = reinterpret_cast<const uint32_t*>(address);
  Enqueue(stream, std::move(w));
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventCreate(CUevent* event, unsigned) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuEventCreate")) return error;
  *event = new CUevent_st{std::make_shared<Record>()};
  (*event)->record->done = true;
  Now().events.insert(*event);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuEventDestroy(CUevent event) {
  std::lock_guard lock(Now().mutex);
  Enter("cuEventDestroy");
  if (!Now().events.erase(event)) {
    Wrong("an event is destroyed that is not there");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  delete event;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuEventRecord")) return error;
  if (Refuses(stream, "an event")) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (Mutant("no_event_record")) return CUDA_SUCCESS;
  if (!event->record->done) Wrong("an event is used again before its place was reached");
  event->record = std::make_shared<Record>();
  Work w;
  w.what = "an event";
  w.harmless = true;
  w.mark = event->record;
  Enqueue(Mutant("record_on_another_stream") ? Another(stream) : stream, std::move(w));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuEventQuery(CUevent event) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuEventQuery")) return error;
  return event->record->done ? event->record->result : CUDA_ERROR_NOT_READY;
}
EXPORT CUresult cuEventSynchronize(CUevent event) {
  State& s = Now();
  std::unique_lock lock(s.mutex);
  const CUresult error = Enter("cuEventSynchronize");
  if (Mutant("no_event_synchronize")) return CUDA_SUCCESS;
  const std::shared_ptr<Record> record = event->record;
  s.changed.wait(lock, [&] { return record->done; });
  Join(&s.host, record->clock);
  return error ? error : record->result;
}

EXPORT CUresult cuEventElapsedTime(float* ms, CUevent from, CUevent to) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuEventElapsedTime")) return error;
  if (!from->record->done || !to->record->done) return CUDA_ERROR_NOT_READY;
  *ms = std::chrono::duration<float, std::milli>(to->record->when - from->record->when).count();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuStreamBeginCapture")) return error;
  if (stream->recorded) Wrong("a stream is recorded that is being recorded");
  stream->recorded = true;
  stream->broken = false;
  stream->kept.clear();
  Now().taken_while_recorded.clear();
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  State& s = Now();
  std::lock_guard lock(s.mutex);
  const CUresult error = Enter("cuStreamEndCapture");
  if (!stream->recorded) {
    Wrong("recording ends that did not begin");
    return CUDA_ERROR_ILLEGAL_STATE;
  }
  *graph = nullptr;
  stream->recorded = Mutant("capture_left_open");
  std::vector<Work> kept = std::move(stream->kept);
  stream->kept.clear();
  if (Mutant("captured_memory_back_early"))
    for (uintptr_t m : s.taken_while_recorded) s.memory[m].gone = true;
  if (error || stream->broken) return error ? error : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  *graph = new CUgraph_st{std::move(kept)};
  s.graphs.insert(*graph);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphDestroy(CUgraph graph) {
  std::lock_guard lock(Now().mutex);
  Enter("cuGraphDestroy");
  if (!Now().graphs.erase(graph)) {
    Wrong("a graph is destroyed that is not there");
    return CUDA_ERROR_INVALID_VALUE;
  }
  delete graph;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuGraphInstantiateWithFlags")) return error;
  *executable = new CUgraphExec_st{graph->work};
  Now().executables.insert(*executable);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphExecUpdate(CUgraphExec executable, CUgraph graph, CUgraphExecUpdateResultInfo*) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuGraphExecUpdate")) return error;
  if (executable->running.use_count() > 1) Wrong("a graph is changed while it runs");
  const auto same = [](const Work& a, const Work& b) { return a.what == b.what && a.touches.size() == b.touches.size(); };
  if (!std::equal(executable->work.begin(), executable->work.end(), graph->work.begin(), graph->work.end(), same))
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  if (!Mutant("graph_not_updated")) executable->work = graph->work;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphExecDestroy(CUgraphExec executable) {
  std::lock_guard lock(Now().mutex);
  Enter("cuGraphExecDestroy");
  if (!Now().executables.erase(executable)) {
    Wrong("an executable graph is destroyed that is not there");
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (executable->running.use_count() > 1) Wrong("a graph is destroyed while it runs");
  delete executable;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuGraphLaunch")) return error;
  if (!Now().executables.count(executable)) {
    Wrong("a graph is launched that is not there");
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (Mutant("graph_not_launched")) return CUDA_SUCCESS;
  for (Work w : executable->work) {
    w.graph = executable->running;
    Enqueue(Mutant("graph_on_another_stream") ? Another(stream) : stream, std::move(w));
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceCanAccessPeer(int* can, CUdevice, CUdevice) {
  std::lock_guard lock(Now().mutex);
  *can = int(Option("peers", 1));
  return Enter("cuDeviceCanAccessPeer", false);
}
EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool, const CUmemAccessDesc* access, size_t) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuMemPoolSetAccess")) return error;
  if (access->location.type != CU_MEM_LOCATION_TYPE_DEVICE) Wrong("memory is opened to what is no device");
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes, CUstream stream) {
  return Copy("cuMemcpyPeerAsync", stream, reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes, true, true);
}

EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice) {
  static CUmemPoolHandle_st only;
  *pool = &only;
  return Answer("cuDeviceGetDefaultMemPool", false);
}
EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool, CUmemPool_attribute, void*) { return Answer("cuMemPoolSetAttribute"); }
EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool, size_t) { return Answer("cuMemPoolTrimTo"); }
EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool, CUstream stream) {
  State& s = Now();
  std::lock_guard lock(s.mutex);
  if (CUresult error = Enter("cuMemAllocFromPoolAsync")) return error;
  if (s.used + (long long)(bytes) > Option("memory", 1 << 30)) return CUDA_ERROR_OUT_OF_MEMORY;
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(memory, 0xEE, bytes);
  *address = CUdeviceptr(memory);
  s.memory[uintptr_t(memory)] = {bytes, false, {}};
  for (CUstream other : s.streams)
    if (other->recorded) s.taken_while_recorded.push_back(uintptr_t(memory));
  s.used += (long long)(bytes);
  Work w;
  w.what = "taking memory";
  w.harmless = true;
  w.touches.push_back({uintptr_t(memory), uintptr_t(memory) + bytes, true});
  Enqueue(Mutant("memory_from_another_stream") ? Another(stream) : stream, std::move(w));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  State& s = Now();
  std::lock_guard lock(s.mutex);
  Enter("cuMemFreeAsync");
  const auto found = s.memory.find(uintptr_t(address));
  if (found == s.memory.end() || found->second.gone) {
    Wrong("memory is given back that was not taken");
    return CUDA_ERROR_INVALID_VALUE;
  }
  Work w;
  w.what = "giving memory back";
  w.harmless = true;
  w.touches.push_back({uintptr_t(address), uintptr_t(address) + found->second.bytes, true});
  const auto end = [&s, found] {
    found->second.gone = true;
    s.gone.push_back(found->first);
    s.used -= (long long)(found->second.bytes);
    std::memset(reinterpret_cast<void*>(found->first), 0xEE, found->second.bytes);
    if (s.gone.size() <= kGone) return;
    const auto oldest = s.memory.find(s.gone.front());
    s.gone.pop_front();
    s.accesses.erase(s.accesses.lower_bound(oldest->first), s.accesses.lower_bound(oldest->first + oldest->second.bytes));
    std::free(reinterpret_cast<void*>(oldest->first));
    s.memory.erase(oldest);
  };
  if (Mutant("memory_back_at_once")) return end(), CUDA_SUCCESS;
  w.run = [&s, end] {
    std::lock_guard inner(s.mutex);
    end();
  };
  Enqueue(Mutant("memory_back_on_another_stream") ? Another(stream) : stream, std::move(w));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemGetInfo(size_t* free, size_t* total) {
  std::lock_guard lock(Now().mutex);
  *total = size_t(Option("memory", 1 << 30));
  *free = *total - size_t(Now().used);
  return Enter("cuMemGetInfo");
}
EXPORT CUresult cuMemHostAlloc(void** address, size_t bytes, unsigned) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuMemHostAlloc")) return error;
  *address = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  Now().pinned[uintptr_t(*address)] = bytes;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemFreeHost(void* address) {
  std::lock_guard lock(Now().mutex);
  Enter("cuMemFreeHost", false);
  if (!Now().pinned.erase(uintptr_t(address))) {
    Wrong("pinned memory is given back that was not taken");
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::free(address);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemHostGetDevicePointer(CUdeviceptr* address, void* host, unsigned) {
  *address = CUdeviceptr(host);
  return Answer("cuMemHostGetDevicePointer");
}
EXPORT CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return Copy("cuMemcpyHtoDAsync", stream, reinterpret_cast<void*>(to), from, bytes, true, false);
}
EXPORT CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return Copy("cuMemcpyDtoHAsync", stream, to, reinterpret_cast<const void*>(from), bytes, false, true);
}
EXPORT CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return Copy("cuMemcpyDtoDAsync", stream, reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes, true, true);
}

EXPORT CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuModuleLoadData")) return error;
  uint32_t magic;
  std::memcpy(&magic, image, sizeof magic);
  Functions functions;
  if (magic == kHostImage) {
    loading = &functions;
    const bool loaded = LoadHostImage(static_cast<const char*>(image));
    loading = nullptr;
    if (!loaded) return CUDA_ERROR_INVALID_IMAGE;
  } else if (magic != 0xBA55ED50) {
    Wrong("a module is no fat binary of nvcc");
  }
  *module = new CUmod_st{std::move(functions)};
  Now().modules.insert(*module);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuModuleUnload(CUmodule module) {
  std::lock_guard lock(Now().mutex);
  Enter("cuModuleUnload");
  Now().modules.erase(module);
  delete module;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuModuleGetFunction")) return error;
  const Functions& all = module->functions.empty() ? BuiltIn() : module->functions;
  const auto found = all.find(name);
  if (found == all.end()) return CUDA_ERROR_NOT_FOUND;
  *function = reinterpret_cast<CUfunction>(const_cast<HostFunction*>(found->second));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned,
                               CUstream stream, void** arguments, void**) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuLaunchKernel")) return error;
  if (!gx || !gy || !gz || !bx || !by || !bz || bx * by * bz > 1024 || gy > 65535 || gz > 65535) Wrong("a kernel's grid is none");
  const auto* f = reinterpret_cast<const HostFunction*>(function);
  auto values = std::make_shared<std::vector<std::vector<char>>>();
  for (size_t i = 0; i < f->parameters.size(); ++i) {
    const char* from = static_cast<const char*>(arguments[i]);
    values->emplace_back(from, from + f->parameters[i].bytes);
  }
  Work w;
  w.what = "kernel " + Names()[f];
  w.touches = TouchesOf(*f, *values);
  w.run = KernelCall(f, values, {{gx, gy, gz}, {bx, by, bz}, {}});
  Enqueue(Mutant("kernel_on_another_stream") ? Another(stream) : stream, std::move(w));
  return CUDA_SUCCESS;
}
