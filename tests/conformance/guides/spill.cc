// SPILL: a device whose memory is a file, so that values which a program keeps for later leave RAM.
// A stream is a thread that does its work in order, through small windows of memory. Written from
// plugins/first_device.md, the README of `thalweg new device` and the public headers alone.
//
// Settings: `folder` holds the file (default /tmp; it has no name there), `megabytes` limits it (1024).
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "thalweg/cpp/plugin.hpp"

namespace {

[[noreturn]] void Fail(uint32_t code, const char* what) {
  throw tw::Error{code, std::string("spill: ") + what + ": " + std::generic_category().message(errno)};
}

// ---- The memory: ranges of a file ----

constexpr uint64_t kPage = 4096;

// A handle of memory.
struct Range {
  uint64_t begin, bytes;
};

class File {
 public:
  void Open(const std::string& folder, uint64_t capacity) {
    fd_ = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd_ < 0) {  // not every file system has files without names
      std::string path = folder + "/spill.XXXXXX";
      fd_ = mkostemp(path.data(), O_CLOEXEC);
      if (fd_ >= 0) unlink(path.c_str());
    }
    if (fd_ < 0) Fail(TW_UNAVAILABLE, ("no file can be made in '" + folder + "'").c_str());
    capacity_ = capacity;
    free_ = {{0, capacity}};
  }
  ~File() {
    if (fd_ >= 0) close(fd_);
  }

  Range* Take(uint64_t bytes, uint64_t align) {
    const std::lock_guard lock(mutex_);
    align = std::max(align, kPage);
    for (auto at = free_.begin(); at != free_.end(); ++at) {
      const uint64_t end = at->first + at->second, begin = (at->first + align - 1) / align * align;
      if (begin > end || bytes > end - begin) continue;
      const uint64_t used = std::min(end - begin, (bytes + kPage - 1) / kPage * kPage);
      auto range = std::make_unique<Range>(Range{begin, used});
      // Space that is missing shows here, and not in the middle of a step.
      int error = 0;
      do {
        error = posix_fallocate(fd_, off_t(begin), off_t(used));
      } while (error == EINTR);
      if (error != 0) {
        errno = error;
        Fail(error == ENOSPC || error == EFBIG ? TW_RESOURCE_EXHAUSTED : TW_INTERNAL, "no space in the file");
      }
      const uint64_t before = begin - at->first;
      if (end > begin + used) free_[begin + used] = end - begin - used;
      if (before > 0) {
        at->second = before;
      } else {
        free_.erase(at);
      }
      used_ += used;
      peak_ = std::max(peak_, used_);
      return range.release();
    }
    throw tw::Error{TW_RESOURCE_EXHAUSTED, "spill: " + std::to_string(bytes) + " bytes do not fit; the file holds " +
                                               std::to_string(used_) + " of " + std::to_string(capacity_) +
                                               "; raise the setting 'megabytes'"};
  }

  void Give(Range* range) {
    const std::unique_ptr<Range> owned(range);
    const std::lock_guard lock(mutex_);
    // The disk gets the space back. If it cannot take it, the next user of the range overwrites it.
    (void)fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t(range->begin), off_t(range->bytes));
    used_ -= range->bytes;
    auto at = free_.emplace(range->begin, range->bytes).first;
    const auto next = std::next(at);
    if (next != free_.end() && at->first + at->second == next->first) {
      at->second += next->second;
      free_.erase(next);
    }
    if (at == free_.begin()) return;
    const auto previous = std::prev(at);
    if (previous->first + previous->second != at->first) return;
    previous->second += at->second;
    free_.erase(at);
  }

  void Read(uint64_t at, void* to, uint64_t bytes) const {
    for (auto* p = static_cast<char*>(to); bytes > 0;) {
      const ssize_t n = pread(fd_, p, bytes, off_t(at));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) Fail(TW_DATA_LOSS, "the file cannot be read");
      p += n;
      at += uint64_t(n);
      bytes -= uint64_t(n);
    }
  }
  void Write(uint64_t at, const void* from, uint64_t bytes) const {
    for (auto* p = static_cast<const char*>(from); bytes > 0;) {
      const ssize_t n = pwrite(fd_, p, bytes, off_t(at));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) Fail(errno == ENOSPC ? TW_RESOURCE_EXHAUSTED : TW_DATA_LOSS, "the file cannot be written");
      p += n;
      at += uint64_t(n);
      bytes -= uint64_t(n);
    }
  }

  uint64_t capacity() const { return capacity_; }
  void Count(uint64_t* out_used, uint64_t* out_peak) const {
    const std::lock_guard lock(mutex_);
    *out_used = used_;
    *out_peak = peak_;
  }

 private:
  int fd_ = -1;
  uint64_t capacity_ = 0;
  mutable std::mutex mutex_;
  std::map<uint64_t, uint64_t> free_;  // begin, bytes; neighbours are merged
  uint64_t used_ = 0, peak_ = 0;
};

tw_status* Allocate(const tw_host* h, void* self, const tw_allocation* a, void** out_memory) {
  return tw::guard(h, [&] { *out_memory = static_cast<File*>(self)->Take(a->bytes, a->align); });
}
void Release(const tw_host*, void* self, void* memory, uint64_t) { static_cast<File*>(self)->Give(static_cast<Range*>(memory)); }

// ---- Streams ----

// A value of another timeline that a stream waits for.
struct Gate {
  std::mutex mutex;
  std::condition_variable opened;
  bool open = false;
};

class Stream {
 public:
  Stream(const tw_host* h, const File* file, tw_timeline* line) : host_(h), file_(file), line_(line) {
    host_->timeline->retain(line_);
    try {
      thread_ = std::thread([this] { Work(); });
    } catch (...) {
      host_->timeline->release(line_);
      throw;
    }
  }
  ~Stream() {
    Enqueue(nullptr);
    thread_.join();
    host_->timeline->release(line_);
  }
  const File& file() const { return *file_; }

  // An empty piece of work ends the thread.
  void Enqueue(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(work));
    }
    more_.notify_one();
  }
  void Signal(uint64_t value) {
    Enqueue([this, value] { host_->timeline->signal(line_, value); });
  }
  void Wait(tw_timeline* other, uint64_t value) {
    auto gate = std::make_shared<Gate>();
    auto* arg = new std::shared_ptr<Gate>(gate);
    Enqueue([gate] {
      std::unique_lock lock(gate->mutex);
      gate->opened.wait(lock, [&] { return gate->open; });
    });
    // A failure of the other line opens the gate, too: the values that it was to signal come all the same.
    host_->timeline->when(
        other, value,
        [](void* p, const tw_status*) {
          const std::unique_ptr<std::shared_ptr<Gate>> held(static_cast<std::shared_ptr<Gate>*>(p));
          const std::lock_guard lock((*held)->mutex);
          (*held)->open = true;
          (*held)->opened.notify_one();
        },
        arg);
  }

 private:
  void Work() {
    for (;;) {
      std::function<void()> work;
      {
        std::unique_lock lock(mutex_);
        more_.wait(lock, [&] { return !queue_.empty(); });
        work = std::move(queue_.front());
        queue_.pop_front();
      }
      if (!work) return;
      // After a failure the rest of the queue still runs, since every value has to be signalled.
      if (tw_status* why = tw::guard(host_, work)) host_->timeline->fail(line_, why);
    }
  }

  const tw_host* host_;
  const File* file_;
  tw_timeline* line_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<std::function<void()>> queue_;
  std::thread thread_;
};

tw_status* CreateStream(const tw_host* h, void* self, const tw_stream_config* c, void** out_stream) {
  return tw::guard(h, [&] { *out_stream = new Stream(h, static_cast<File*>(self), c->line); });
}
void DestroyStream(const tw_host*, void* stream) { delete static_cast<Stream*>(stream); }
tw_status* SignalStream(const tw_host* h, void* stream, uint64_t value) {
  return tw::guard(h, [&] { static_cast<Stream*>(stream)->Signal(value); });
}
tw_status* WaitStream(const tw_host* h, void* stream, tw_timeline* other, uint64_t value) {
  return tw::guard(h, [&] { static_cast<Stream*>(stream)->Wait(other, value); });
}

// Runs the work now, or on the stream if there is one.
void Run(void* stream, std::function<void()> work) {
  if (!stream) return work();
  static_cast<Stream*>(stream)->Enqueue(std::move(work));
}

// ---- Copies ----

constexpr uint64_t kWindow = 1 << 16;  // bytes of a file that are in RAM at a time

uint64_t Place(const void* memory, uint64_t offset) { return static_cast<const Range*>(memory)->begin + offset; }

tw_status* Copy(const tw_host* h, void* self, const tw_copy* c) {
  return tw::guard(h, [&] {
    const File& file = *static_cast<File*>(self);
    const uint64_t bytes = c->bytes;
    if (c->from_host) {
      const char* from = static_cast<const char*>(c->from) + c->from_offset;
      const uint64_t to = Place(c->to, c->to_offset);
      Run(c->stream, [=, &file] { file.Write(to, from, bytes); });
    } else if (c->to_host) {
      char* to = static_cast<char*>(c->to) + c->to_offset;
      const uint64_t from = Place(c->from, c->from_offset);
      Run(c->stream, [=, &file] { file.Read(from, to, bytes); });
    } else {
      const uint64_t from = Place(c->from, c->from_offset), to = Place(c->to, c->to_offset);
      Run(c->stream, [=, &file] {
        std::vector<char> window(std::min(bytes, kWindow));
        for (uint64_t at = 0; at < bytes; at += window.size()) {
          const uint64_t n = std::min<uint64_t>(window.size(), bytes - at);
          file.Read(from + at, window.data(), n);
          file.Write(to + at, window.data(), n);
        }
      });
    }
  });
}

// ---- Kernels ----

// Computes out = combine(in...) window by window. An input may have the place of the output.
template <class Combine>
void ByWindows(const File& file, const std::vector<uint64_t>& in, uint64_t out, uint64_t count, Combine combine) {
  constexpr uint64_t kElements = kWindow / sizeof(float);
  std::vector<float> sum(std::min(count, kElements)), next(in.size() > 1 ? sum.size() : 0);
  for (uint64_t at = 0; at < count; at += sum.size()) {
    const uint64_t n = std::min<uint64_t>(sum.size(), count - at), skip = at * sizeof(float);
    file.Read(in[0] + skip, sum.data(), n * sizeof(float));
    for (size_t k = 1; k < in.size(); ++k) {
      file.Read(in[k] + skip, next.data(), n * sizeof(float));
      for (uint64_t i = 0; i < n; ++i) sum[i] += next[i];
    }
    for (uint64_t i = 0; i < n; ++i) sum[i] = combine(sum[i]);
    file.Write(out + skip, sum.data(), n * sizeof(float));
  }
}

template <float (*F)(float)>
tw_status* Execute(const tw_frame* f) {
  return tw::guard(f->host, [&] {
    const uint64_t count = f->out[0]->count;
    if (count == 0) return;
    std::vector<uint64_t> in;
    for (uint32_t i = 0; i < f->n_in; ++i) in.push_back(Place(f->in[i]->data, f->in[i]->offset));
    const uint64_t out = Place(f->out[0]->data, f->out[0]->offset);
    const File& file = *static_cast<File*>(f->device);
    Run(f->stream, [=, &file] { ByWindows(file, in, out, count, F); });
  });
}

float Same(float x) { return x; }
float Neg(float x) { return -x; }
float Relu(float x) { return x < 0 ? 0 : x; }
float Square(float x) { return x * x; }

// ---- The plugin ----

tw_status* Enumerate(const tw_host* h, void* user, tw_device_list* to) {
  return tw::guard(h, [&] {
    auto* file = static_cast<File*>(user);
    const tw_device_info d = {TW_SIZED(tw_device_info), TW_S("spill-0"), TW_S("a file as memory"), file, file->capacity(), 0};
    tw::check(to->add(to, &d));
  });
}

tw_status* ReadStatistics(const tw_host*, void* self, tw_number_list* to) {
  uint64_t used = 0, peak = 0;
  static_cast<File*>(self)->Count(&used, &peak);
  TW_TRY(to->add(to, TW_S("memory_used"), int64_t(used)));
  return to->add(to, TW_S("memory_peak"), int64_t(peak));
}

// The setting `key`, or `otherwise` if it is not set.
std::string Setting(const tw_host* h, std::string_view key, std::string otherwise) {
  std::string text;
  tw_sink to = {TW_SIZED(tw_sink), &text, [](tw_sink* s, const void* bytes, uint64_t n) -> tw_status* {
                  static_cast<std::string*>(s->user)->append(static_cast<const char*>(bytes), n);
                  return nullptr;
                }};
  tw_status* why = h->setting(h, key.data(), key.size(), &to);
  if (!why) return text;
  if (h->status->code(why) != TW_NOT_FOUND) throw tw::Raised{why};
  h->status->release(why);
  return otherwise;
}

uint64_t Megabytes(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const unsigned long long n = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || *end != 0 || errno != 0 || n == 0 || n > (1u << 24))
    throw tw::Error{TW_INVALID_ARGUMENT, "spill: the setting 'megabytes' is '" + text + "'; give a whole number from 1 to 16777216"};
  return n;
}

}  // namespace

TW_CPP_PLUGIN_WITH("org.example.spill", "1.0", File, p, file) {
  file.Open(Setting(p.h, "folder", "/tmp"), Megabytes(Setting(p.h, "megabytes", "1024")) << 20);
  const tw_stream_set streams = {TW_SIZED(tw_stream_set), CreateStream, DestroyStream, SignalStream, WaitStream};
  const tw_statistics_set statistics = {TW_SIZED(tw_statistics_set), ReadStatistics};
  tw_device_def d{};
  d.size = sizeof d;
  d.kind = "SPILL";
  d.kind_len = std::strlen(d.kind);
  d.user = &file;
  d.enumerate = Enumerate;
  d.allocate = Allocate;
  d.release = Release;
  d.copy = Copy;
  d.streams = &streams;
  d.statistics = &statistics;
  p.device(d);
  const auto kernel = [&](const char* spec, tw_status* (*execute)(const tw_frame*)) { p.add(spec, nullptr, execute, nullptr, nullptr); };
  kernel("Neg(float) @SPILL; inplace y=x", Execute<Neg>);
  kernel("Relu(float) @SPILL; inplace activations=features", Execute<Relu>);
  kernel("Square(float) @SPILL; inplace y=x", Execute<Square>);
  kernel("AddN(float) @SPILL", Execute<Same>);
}
