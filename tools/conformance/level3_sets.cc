// Level 3: the optional function sets of a device, each if it is present.
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

#include "tools/conformance/device_block.h"
#include "tools/conformance/guarded.h"
#include "tools/conformance/levels.h"
#include "tools/conformance/queue.h"

namespace thalweg::conformance {
namespace {

constexpr uint64_t kBytes = 70001;

Outcome Pinned(const Device& d) {
  const DeviceKind& kind = d.def();
  const tw_pinned_set& set = *kind.pinned;
  for (uint64_t bytes : {uint64_t{1}, uint64_t{4096}, kBytes}) {
    void* address = nullptr;
    const tw_allocation wanted = {TW_SIZED(tw_allocation), bytes, 64};
    RETURN_IF_ERROR(FromC(set.allocate(kind.host, d.self(), &wanted, &address)));
    if (!address) return Fail("allocate answered neither an address nor an error");
    if (reinterpret_cast<uintptr_t>(address) % 64 != 0) return Fail("the address of ", bytes, " bytes is not 64-byte aligned");
    const Bytes want = Pattern(bytes, 8);
    std::memcpy(address, want.data(), bytes);
    ASSIGN_OR_RETURN(DeviceBlock b, DeviceBlock::Make(d, bytes));
    RETURN_IF_ERROR(b.Write(0, address, bytes));
    std::memset(address, 0, bytes);
    RETURN_IF_ERROR(b.Read(0, address, bytes));
    const bool same = std::memcmp(address, want.data(), bytes) == 0;
    set.release(kind.host, d.self(), address, bytes);
    if (!same) return Fail(bytes, " bytes came back changed through pinned memory");
  }
  return {};
}

Outcome Peer(const Device& from, const Device& to) {
  const DeviceKind& kind = from.def();
  const uint32_t reaches = kind.peer->reaches(kind.host, from.self(), to.self());
  if (reaches != kind.peer->reaches(kind.host, from.self(), to.self())) return Fail("asked twice, reaches answers differently");
  if (!reaches) return None("it does not reach that one");
  ASSIGN_OR_RETURN(DeviceBlock a, DeviceBlock::Make(from, kBytes));
  ASSIGN_OR_RETURN(DeviceBlock b, DeviceBlock::Make(to, kBytes));
  const Bytes source = Pattern(kBytes, 1);
  Bytes want = Pattern(kBytes, 2);
  RETURN_IF_ERROR(a.Put(source));
  RETURN_IF_ERROR(b.Put(want));
  Padded<tw_copy> padded(RecordSize<tw_copy>());
  tw_copy& c = padded.c;
  c.from = a.memory();
  c.from_offset = 3;
  c.to = b.memory();
  c.to_offset = 129;
  c.bytes = 60001;
  RETURN_IF_ERROR(FromC(kind.peer->copy(kind.host, from.self(), to.self(), &c)));
  std::copy_n(source.begin() + 3, c.bytes, want.begin() + 129);
  ASSIGN_OR_RETURN(Bytes got, b.Get());
  if (std::string s = Difference(got, want); !s.empty()) return Fail(s);
  return {};
}

// Checks that an event of one stream blocks another stream until the first has reached the event.
Outcome Events(const Device& d) {
  const DeviceKind& kind = d.def();
  const tw_event_set& set = *kind.events;
  if (TextOf(set.kind, set.kind_len).empty()) return Fail("it does not say of what kind its events are");
  ASSIGN_OR_RETURN(Queue first, Queue::Make(d));
  ASSIGN_OR_RETURN(Queue second, Queue::Make(d));
  Line gate = NewLine();
  if (first.can_wait()) RETURN_IF_ERROR(first.Wait(gate.get(), 1));
  void* event = nullptr;
  Status recorded = FromC(set.record(kind.host, first.c(), &event));
  Status waits = recorded.ok() ? FromC(set.wait(kind.host, second.c(), event)) : recorded;
  auto value = second.Signal();
  const bool early = first.can_wait() && value.ok() && Reaches(second.line(), *value, kAWhile);
  gate->Signal(1);
  RETURN_IF_ERROR(recorded);
  RETURN_IF_ERROR(waits);
  RETURN_IF_ERROR(value.status());
  const bool came = Reaches(second.line(), *value, kSoon);
  first.Destroy();
  set.release(kind.host, d.self(), event);
  if (early) return Fail("the event was reached before the work in front of it was over");
  return came ? Outcome() : Fail("the event was never reached");
}

Outcome Statistics(const Device& d) {
  struct List {
    tw_number_list c{TW_SIZED(tw_number_list), &Add};
    std::vector<std::string> names;
    std::string wrong;
    static tw_status* Add(tw_number_list* l, const char* name, uint64_t len, int64_t value) {
      auto* self = reinterpret_cast<List*>(l);
      self->names.emplace_back(TextOf(name, len));
      const std::string& n = self->names.back();
      if (n.empty()) self->wrong = "a number has no name";
      if (n == "busy" && (value < 0 || value > 100)) self->wrong = StrCat("busy is ", value, " percent");
      if (n.rfind("memory_", 0) == 0 && value < 0) self->wrong = StrCat(n, " is ", value);
      return nullptr;
    }
  };
  List first, second;
  const DeviceKind& kind = d.def();
  RETURN_IF_ERROR(FromC(kind.statistics->read(kind.host, d.self(), &first.c)));
  RETURN_IF_ERROR(FromC(kind.statistics->read(kind.host, d.self(), &second.c)));
  if (!first.wrong.empty()) return Fail(first.wrong);
  std::vector<std::string> sorted = first.names;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return Fail("two numbers have one name");
  return {};
}

// A recording of two copies, of which the second is named and then becomes a copy of other memory.
Outcome UpdatesOf(const Device& d) {
  const DeviceKind& kind = d.def();
  const tw_capture_set& set = *kind.capture;
  ASSIGN_OR_RETURN(DeviceBlock a, DeviceBlock::Make(d, kBytes));
  ASSIGN_OR_RETURN(DeviceBlock b, DeviceBlock::Make(d, kBytes));
  ASSIGN_OR_RETURN(DeviceBlock to_1, DeviceBlock::Make(d, kBytes));
  ASSIGN_OR_RETURN(DeviceBlock to_2, DeviceBlock::Make(d, kBytes));
  ASSIGN_OR_RETURN(Queue q, Queue::Make(d));
  const Bytes of_a = Pattern(kBytes, 1), of_b = Pattern(kBytes, 2);
  RETURN_IF_ERROR(a.Put(of_a));
  RETURN_IF_ERROR(b.Put(of_b));
  const tw_capture_config config = {TW_SIZED(tw_capture_config), q.c()};
  RETURN_IF_ERROR(FromC(set.begin(kind.host, &config)));
  Status enqueued = a.CopyTo(to_1, 0, 0, kBytes, q.c());
  Status marked = FromC(set.mark(kind.host, q.c(), 7));
  if (enqueued.ok()) enqueued = a.CopyTo(to_2, 0, 0, kBytes, q.c());
  void* recording = nullptr;
  RETURN_IF_ERROR(FromC(set.end(kind.host, q.c(), &recording)));
  RETURN_IF_ERROR(enqueued);
  RETURN_IF_ERROR(marked);
  const auto replay = [&](const Bytes& second) -> Outcome {
    RETURN_IF_ERROR(FromC(set.replay(kind.host, q.c(), recording)));
    RETURN_IF_ERROR(q.Drain());
    ASSIGN_OR_RETURN(Bytes got, to_1.Get());
    if (std::string s = Difference(got, of_a); !s.empty()) return Fail("the part without a name: ", s);
    ASSIGN_OR_RETURN(got, to_2.Get());
    if (std::string s = Difference(got, second); !s.empty()) return Fail("the named part: ", s);
    return {};
  };
  if (Outcome first = replay(of_a); !first.passed()) return first;
  RETURN_IF_ERROR(FromC(set.update(kind.host, q.c(), recording, 7)));
  enqueued = b.CopyTo(to_2, 0, 0, kBytes, q.c());
  RETURN_IF_ERROR(FromC(set.updated(kind.host, q.c(), recording, 7)));
  RETURN_IF_ERROR(enqueued);
  RETURN_IF_ERROR(q.Drain());
  ASSIGN_OR_RETURN(Bytes got, to_2.Get());
  if (std::string s = Difference(got, of_a); !s.empty()) return Fail("what updates a recording ran at once: ", s);
  if (Outcome second = replay(of_b); !second.passed()) return second;
  set.release(kind.host, d.self(), recording);
  return {};
}

Outcome Capture(const Device& d) {
  const DeviceKind& kind = d.def();
  const tw_capture_set& set = *kind.capture;
  ASSIGN_OR_RETURN(DeviceBlock a, DeviceBlock::Make(d, kBytes));
  ASSIGN_OR_RETURN(DeviceBlock b, DeviceBlock::Make(d, kBytes));
  ASSIGN_OR_RETURN(Queue q, Queue::Make(d));
  const Bytes old = Pattern(kBytes, 1);
  RETURN_IF_ERROR(b.Put(old));
  const tw_capture_config config = {TW_SIZED(tw_capture_config), q.c()};
  RETURN_IF_ERROR(FromC(set.begin(kind.host, &config)));
  Status enqueued = a.CopyTo(b, 0, 0, kBytes, q.c());
  void* recording = nullptr;
  RETURN_IF_ERROR(FromC(set.end(kind.host, q.c(), &recording)));
  RETURN_IF_ERROR(enqueued);
  RETURN_IF_ERROR(q.Drain());
  ASSIGN_OR_RETURN(Bytes got, b.Get());
  if (std::string s = Difference(got, old); !s.empty()) return Fail("what was recorded ran at once: ", s);
  for (uint32_t round = 2; round < 5; ++round) {
    const Bytes want = Pattern(kBytes, round);
    RETURN_IF_ERROR(a.Put(want));
    RETURN_IF_ERROR(FromC(set.replay(kind.host, q.c(), recording)));
    RETURN_IF_ERROR(q.Drain());
    ASSIGN_OR_RETURN(got, b.Get());
    if (std::string s = Difference(got, want); !s.empty()) return Fail("after replay ", round - 1, ": ", s);
  }
  if (set.end_into) {
    RETURN_IF_ERROR(FromC(set.begin(kind.host, &config)));
    enqueued = b.CopyTo(a, 0, 0, kBytes, q.c());
    RETURN_IF_ERROR(FromC(set.end_into(kind.host, q.c(), recording)));
    RETURN_IF_ERROR(enqueued);
    RETURN_IF_ERROR(b.Put(old));
    RETURN_IF_ERROR(FromC(set.replay(kind.host, q.c(), recording)));
    RETURN_IF_ERROR(q.Drain());
    ASSIGN_OR_RETURN(got, a.Get());
    if (std::string s = Difference(got, old); !s.empty()) return Fail("after what was recorded became something else: ", s);
  }
  set.release(kind.host, d.self(), recording);
  return set.mark ? UpdatesOf(d) : Outcome();
}

Outcome Profile(const Device& d) {
  struct Spans {
    tw_span_list c{TW_SIZED(tw_span_list), &Add};
    std::mutex mu;
    int64_t begin = 0, end = 0, added = 0;
    bool stopped = false;
    std::string wrong;
    static void Add(tw_span_list* l, const tw_span* s) {
      auto* self = reinterpret_cast<Spans*>(l);
      std::lock_guard lock(self->mu);
      ++self->added;
      if (self->stopped) self->wrong = "a span was added after stop";
      if (s->end < s->begin) self->wrong = StrCat("a span ends ", s->begin - s->end, " ns before it begins");
      self->begin = self->added == 1 ? s->begin : std::min(self->begin, s->begin);
      self->end = std::max(self->end, s->end);
      if (TextOf(s->name, s->name_len).empty() || TextOf(s->queue, s->queue_len).empty()) self->wrong = "a span has no name or no queue";
    }
  };
  auto* spans = new Spans;  // never freed, because a device may add to it later
  const DeviceKind& kind = d.def();
  auto work = [&]() -> Status {
    ASSIGN_OR_RETURN(DeviceBlock b, DeviceBlock::Make(d, kBytes));
    const Bytes bytes = Pattern(kBytes, 1);
    if (!d.has_streams()) return b.Put(bytes);
    ASSIGN_OR_RETURN(Queue q, Queue::Make(d));
    RETURN_IF_ERROR(b.Write(0, bytes.data(), kBytes, q.c()));
    return q.Drain();
  };
  const int64_t begin = kind.host->run->now(kind.host);
  RETURN_IF_ERROR(FromC(kind.profile->start(kind.host, d.self(), &spans->c)));
  Status done = work();
  kind.profile->stop(kind.host, d.self());
  const int64_t end = kind.host->run->now(kind.host);
  {
    std::lock_guard lock(spans->mu);
    spans->stopped = true;
  }
  RETURN_IF_ERROR(done);
  RETURN_IF_ERROR(work());
  std::this_thread::sleep_for(kAWhile);
  std::lock_guard lock(spans->mu);
  if (!spans->wrong.empty()) return Fail(spans->wrong);
  if (spans->added && (spans->begin < begin || spans->end > end)) {
    return Fail("spans reach from ", spans->begin - begin, " ns after start to ", end - spans->end, " ns before stop");
  }
  return {};
}

// The check uses the device's own idle memory in place of another library's memory.
Outcome Dlpack(const Device& d, const std::vector<Device*>& all) {
  const DeviceKind& kind = d.def();
  const tw_dlpack_set& set = *kind.dlpack;
  if (set.type == 0) return Fail("its type is 0, which is no device of DLPack");
  if (set.handles > 1) return Fail("handles is ", set.handles, ", neither 0 nor 1");
  const int32_t id = set.id(kind.host, d.self());
  if (id < 0) return Fail("its number is ", id);
  if (const int32_t again = set.id(kind.host, d.self()); again != id) return Fail("asked twice, its number is ", id, " and ", again);
  for (const Device* other : all) {
    if (other != &d && &other->def() == &kind && set.id(kind.host, other->self()) == id) {
      return Fail("the number of ", other->kind(), ":", other->index(), " is ", id, ", too");
    }
  }
  ASSIGN_OR_RETURN(DeviceBlock b, DeviceBlock::Make(d, kBytes));
  const Bytes want = Pattern(kBytes, 1);
  RETURN_IF_ERROR(b.Put(want));
  RETURN_IF_ERROR(FromC(set.take(kind.host, d.self(), b.memory(), 0, kBytes, nullptr)));
  RETURN_IF_ERROR(FromC(set.take(kind.host, d.self(), b.memory(), 129, 60001, nullptr)));
  // An object has a known size, so a range beyond it must be refused. Behind an address, memory of others
  // may follow.
  constexpr uint64_t kBeyond = uint64_t{1} << 40;
  for (const auto& [offset, bytes] : {std::pair{uint64_t{129}, kBeyond}, {kBeyond, uint64_t{4}}}) {
    const Status taken = FromC(set.take(kind.host, d.self(), b.memory(), offset, bytes, nullptr));
    if (taken.ok() && set.handles) return Fail("it takes ", bytes, " bytes from byte ", offset, " of memory of ", kBytes);
    if (taken.ok()) continue;
    if (taken.code() != absl::StatusCode::kInvalidArgument) return Fail("a range beyond the memory is refused otherwise: ", Message(taken));
    if (Message(taken).empty()) return Fail("a range beyond the memory is refused without a reason");
  }
  ASSIGN_OR_RETURN(Bytes got, b.Get());
  if (std::string s = Difference(got, want); !s.empty()) return Fail("after it was taken: ", s);
  return {};
}

}  // namespace

void CheckSets(Run& run, World& world) {
  const std::vector<Device*> devices = world.Devices();
  for (const Device* d : devices) {
    const std::string name = StrCat(d->kind(), ":", d->index());
    const DeviceKind& kind = d->def();
    if (kind.pinned) run.Check(311, name, [&] { return Pinned(*d); });
    for (const Device* other : devices) {
      if (!kind.peer || other == d || other->kind() != d->kind()) continue;
      run.Check(312, StrCat(name, " to ", other->kind(), ":", other->index()), [&] { return Peer(*d, *other); });
    }
    if (kind.events && kind.has_streams) run.Check(313, name, [&] { return Events(*d); });
    if (kind.statistics) run.Check(314, name, [&] { return Statistics(*d); });
    if (kind.capture && kind.has_streams) run.Check(315, name, [&] { return Capture(*d); });
    if (kind.profile) run.Check(316, name, [&] { return Profile(*d); });
    if (kind.dlpack) run.Check(317, name, [&] { return Dlpack(*d, devices); });
  }
}

}  // namespace thalweg::conformance
