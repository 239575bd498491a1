#include "device.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace thalweg::fake {
namespace {

constexpr const char* kQueues[] = {"compute", "copy in", "copy out", "copy inside", "copy to a peer", "wait", "event"};

Command::Kind KindOf(const tw_copy& c, bool peer) {
  if (c.from_host && c.to_host) throw tw::Error{TW_INVALID_ARGUMENT, "a copy between two host addresses is none of a device's"};
  return c.from_host ? Command::kCopyIn : c.to_host ? Command::kCopyOut : peer ? Command::kCopyPeer : Command::kCopyInside;
}

}  // namespace

Device::Device(const tw_host* host, const Settings& settings, Faults& faults, uint64_t index)
    : host_(host),
      settings_(settings),
      faults_(faults),
      number_(int32_t(index)),
      uid_("fake-" + std::to_string(index)),
      speed_(index < settings.speed.size() ? settings.speed[index] : 100),
      memory_(uid_, settings.memory) {}

void Device::CheckLost() const {
  if (lost()) throw tw::Error{TW_UNAVAILABLE, uid_ + " is lost; make a new runtime"};
}

void* Device::Allocate(uint64_t bytes) {
  CheckLost();
  if (Faults::Hits(faults_.allocates, settings_.fail_allocate, settings_.fail_times))
    throw tw::Error{TW_RESOURCE_EXHAUSTED, uid_ + ": this allocation was to fail (fail_allocate)"};
  return memory_.Allocate(bytes);
}

void Device::Take(const void* memory, uint64_t offset, uint64_t bytes, const uint32_t* work) {
  CheckLost();
  try {
    (void)memory_.Cells(memory, offset, bytes);
  } catch (const tw::Error& e) {
    throw tw::Error{TW_INVALID_ARGUMENT, e.text};
  }
  if (work) others_.Add(work);
}

Command Device::Copy(const tw_copy& copy, Device& to) {
  CheckLost();
  if (Faults::Hits(faults_.copies, settings_.fail_copy, settings_.fail_times))
    throw tw::Error{TW_INTERNAL, uid_ + ": this copy was to fail (fail_copy)"};
  const tw_copy c = copy;  // copied, because the record ends with the call
  auto from_cells = [this, c] {
    return c.from_host ? static_cast<const char*>(c.from) + c.from_offset : memory_.Cells(c.from, c.from_offset, c.bytes);
  };
  auto to_cells = [&to, c] { return c.to_host ? static_cast<char*>(c.to) + c.to_offset : to.memory_.Cells(c.to, c.to_offset, c.bytes); };
  Command command{KindOf(c, &to != this), "a copy of " + std::to_string(c.bytes) + " bytes", {}, nullptr, nullptr, 0, c.bytes};
  (void)from_cells(), (void)to_cells();
  command.run = [this, c, from_cells, to_cells] {
    std::memcpy(to_cells(), from_cells(), c.bytes);
    if (c.from_host) counters_.bytes_in += int64_t(c.bytes);
    if (c.to_host) counters_.bytes_out += int64_t(c.bytes);
  };
  return command;
}

void Device::Enter(const std::string& what) {
  CheckLost();
  if (Faults::Hits(faults_.enqueues, settings_.fail_enqueue, settings_.fail_times))
    throw tw::Error{TW_INTERNAL, uid_ + ": " + what + " was not to be enqueued (fail_enqueue)"};
}

void Device::EnterRecording() {
  CheckLost();
  if (Faults::Hits(faults_.records, settings_.fail_record, settings_.fail_times))
    throw tw::Error{TW_INTERNAL, uid_ + ": this recording was to fail (fail_record)"};
}

void Device::Count(Command::Kind kind) {
  std::atomic<int64_t>* const counts[] = {&counters_.kernels,       &counters_.copies_in,   &counters_.copies_out,
                                          &counters_.copies_inside, &counters_.copies_peer, &counters_.waits};
  if (kind < Command::kEvent) ++*counts[kind];
}

void Device::Run(const Command& command) {
  if (command.kind < Command::kWait) {
    CheckLost();
    if (Faults::Hits(faults_.commands, settings_.lose_after)) {
      lost_ = true;
      throw tw::Error{TW_UNAVAILABLE, uid_ + " was lost in " + command.what + " (lose_after)"};
    }
  }
  const bool copy = command.kind > Command::kKernel && command.kind < Command::kWait;
  if (copy && Faults::Hits(faults_.transfers, settings_.fail_transfer, settings_.fail_times))
    throw tw::Error{TW_INTERNAL, command.what + " on " + uid_ + " was to fail while it ran (fail_transfer)"};
  if (command.kind == Command::kKernel && Faults::Hits(faults_.kernels, settings_.fail_kernel, settings_.fail_times))
    throw tw::Error{TW_INTERNAL, command.what + " on " + uid_ + " was to fail while it ran (fail_kernel)"};
  const int64_t begin = host_->run->now(host_);
  command.run();
  const bool host = command.kind == Command::kCopyIn || command.kind == Command::kCopyOut;
  const uint64_t rate = command.kind == Command::kKernel ? settings_.simulate_ns : host ? settings_.copy_ns : 0;
  if (rate) Simulate(command, rate, begin);
  Count(command.kind);
  std::lock_guard lock(spans_mutex_);
  if (!spans_) return;
  const char* queue = kQueues[command.kind];
  const tw_span span{TW_SIZED(tw_span),   queue, std::strlen(queue),     command.what.data(),
                     command.what.size(), begin, host_->run->now(host_), command.kind < Command::kWait ? command.stream : nullptr,
                     command.after};
  spans_->add(spans_, &span);
}

// Sleeps until as much time has passed as a device of this speed would need, and counts the time of
// kernels. rate: nanoseconds per thousand units of the command's size.
void Device::Simulate(const Command& command, uint64_t rate, int64_t begin) {
  const bool kernel = command.kind == Command::kKernel;
  const int64_t ns = int64_t(command.size * rate / 1000 * 100 / (kernel ? speed_ : 100));
  if (kernel) counters_.simulated_ns += ns;
  const int64_t left = begin + ns - host_->run->now(host_);
  if (left > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(left));
}

uint64_t Device::Delay() {
  std::lock_guard lock(random_mutex_);
  return random_() % (settings_.delay_us + 1);
}

void Device::Profile(tw_span_list* to) {
  std::lock_guard lock(spans_mutex_);
  spans_ = to;
}

namespace {

tw_status* AllocatePinned(const tw_host* h, void* self, const tw_allocation* a, void** out_address) {
  return tw::guard(h, [&] {
    void* p = std::aligned_alloc(64, (a->bytes + 63) / 64 * 64);
    if (!p) throw tw::Error{TW_RESOURCE_EXHAUSTED, "the host has no " + std::to_string(a->bytes) + " bytes to pin"};
    static_cast<Device*>(self)->counters().pinned += int64_t(a->bytes);
    *out_address = p;
  });
}
void ReleasePinned(const tw_host*, void* self, void* address, uint64_t bytes) {
  static_cast<Device*>(self)->counters().pinned -= int64_t(bytes);
  std::free(address);
}

tw_status* Read(const tw_host* h, void* self, tw_number_list* to) {
  return tw::guard(h, [&] {
    Device& d = *static_cast<Device*>(self);
    const Memory::Use use = d.memory().use();
    Counters& c = d.counters();
    const std::pair<const char*, int64_t> numbers[] = {{"memory_used", int64_t(use.used)},
                                                       {"memory_peak", int64_t(use.peak)},
                                                       {"memory_largest_free", int64_t(use.largest_free)},
                                                       {"kernels", c.kernels},
                                                       {"copies_in", c.copies_in},
                                                       {"copies_out", c.copies_out},
                                                       {"copies_inside", c.copies_inside},
                                                       {"copies_peer", c.copies_peer},
                                                       {"bytes_in", c.bytes_in},
                                                       {"bytes_out", c.bytes_out},
                                                       {"waits", c.waits},
                                                       {"streams", c.streams},
                                                       {"pinned", c.pinned},
                                                       {"simulated_ns", c.simulated_ns},
                                                       {"records", c.records},
                                                       {"replays", c.replays},
                                                       {"updates", c.updates}};
    for (const auto& [name, value] : numbers) tw::check(to->add(to, name, std::strlen(name), value));
  });
}

tw_status* StartProfile(const tw_host*, void* self, tw_span_list* to) {
  static_cast<Device*>(self)->Profile(to);
  return nullptr;
}
void StopProfile(const tw_host*, void* self) { static_cast<Device*>(self)->Profile(nullptr); }

int32_t Number(const tw_host*, void* self) { return static_cast<Device*>(self)->number(); }
tw_status* Take(const tw_host* h, void* self, void* memory, uint64_t offset, uint64_t bytes, void* queue) {
  return tw::guard(h, [&] { static_cast<Device*>(self)->Take(memory, offset, bytes, static_cast<const uint32_t*>(queue)); });
}

}  // namespace

const tw_pinned_set kPinned = {TW_SIZED(tw_pinned_set), AllocatePinned, ReleasePinned};
const tw_statistics_set kStatistics = {TW_SIZED(tw_statistics_set), Read};
const tw_profile_set kProfile = {TW_SIZED(tw_profile_set), StartProfile, StopProfile};
const tw_dlpack_set kDlpack = {TW_SIZED(tw_dlpack_set), 12, 0, Number, Take};

}  // namespace thalweg::fake
