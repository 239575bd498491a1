// A CUDA driver without a GPU. Streams are threads, memory is the host's, and kernels are the
// plugin's own, compiled for the host. It tracks the order of work as vector clocks: accesses of
// two streams to one place must be ordered by events, by flags, or by a host wait, whatever their
// real times. It records missing order, work on freed memory, calls without a context, and uses of
// destroyed objects. A mutant disables the effect of one kind of call, as if the plugin had omitted
// the call; tests must detect that.
#include "stub.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "library.h"
#include "state.h"

namespace stub {

void Join(Clock* to, const Clock& from) {
  for (const auto& [stream, at] : from) (*to)[stream] = std::max((*to)[stream], at);
}

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
void Wrong(const std::string& text) {
  if (Now().wrong.size() < 100) Now().wrong.push_back(text);
}

CUresult Enter(const char* function, bool needs_context) {
  State& s = Now();
  const long long n = ++s.calls[function];
  if (needs_context && !current) Wrong(std::string(function) + " without a context");
  if (const auto fail = s.options.find("fail"); fail != s.options.end() && fail->second == std::string(function) + ":" + std::to_string(n))
    return CUresult(Option("with", CUDA_ERROR_UNKNOWN));
  return needs_context ? s.lost : CUDA_SUCCESS;
}

namespace {

// Returns true if `a` is over before work with this clock starts.
bool Before(const Access& a, const Clock& clock) {
  const auto found = clock.find(a.stream);
  return found != clock.end() && found->second >= a.at;
}

void CheckTouches(const Work& w, const CUstream_st& stream) {
  State& s = Now();
  const uint64_t at = stream.clock.at(stream.id);
  for (const Work::Touched& t : w.touches) {
    auto memory = s.memory.upper_bound(t.begin);
    const bool somewhere = memory != s.memory.begin() && t.begin <= (--memory)->first + memory->second.bytes;
    // A tensor without elements may have no address, or the end address of memory.
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

// Runs one piece of a stream's work, on the stream's thread.
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

}  // namespace

void WorkOff(CUstream stream) {
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

CUstream Another(CUstream stream) {
  for (CUstream other : Now().streams)
    if (other != stream) return other;
  return stream;
}

CUresult Drain(std::unique_lock<std::mutex>& lock, CUstream stream) {
  State& s = Now();
  s.changed.wait(lock, [&] { return stream->work.empty() && !stream->busy; });
  Join(&s.host, stream->clock);
  return s.lost;
}

CUresult Answer(const char* function, bool needs_context) {
  std::lock_guard lock(Now().mutex);
  return Enter(function, needs_context);
}

}  // namespace stub

using namespace stub;

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

// THALWEG_CUDA_STUB=strict: the process exits with an error if a fault was recorded.
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
