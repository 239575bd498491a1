// Level 3: streams and their timelines.
#include <atomic>
#include <thread>

#include "tools/conformance/device_block.h"
#include "tools/conformance/levels.h"
#include "tools/conformance/process.h"
#include "tools/conformance/queue.h"

namespace thalweg::conformance {
namespace {

constexpr uint64_t kBytes = 1 << 20;

// Copies from host to a, a to b, ..., to host, all enqueued at once. Each copy needs the previous one.
Outcome KeepsOrder(const Device& d) {
  Bytes got(kBytes);
  std::vector<DeviceBlock> blocks;
  for (int i = 0; i < 6; ++i) {
    ASSIGN_OR_RETURN(DeviceBlock b, DeviceBlock::Make(d, kBytes));
    blocks.push_back(std::move(b));
  }
  ASSIGN_OR_RETURN(Queue q, Queue::Make(d));
  for (uint32_t round = 0; round < 3; ++round) {
    const Bytes want = Pattern(kBytes, round);
    RETURN_IF_ERROR(blocks[0].Write(0, want.data(), kBytes, q.c()));
    for (size_t i = 1; i < blocks.size(); ++i) RETURN_IF_ERROR(blocks[i - 1].CopyTo(blocks[i], 0, 0, kBytes, q.c()));
    RETURN_IF_ERROR(blocks.back().Read(0, got.data(), kBytes, q.c()));
    RETURN_IF_ERROR(q.Drain());
    if (std::string s = Difference(got, want); !s.empty()) return Fail("after ", blocks.size() + 1, " copies in a row: ", s);
  }
  return {};
}

// Checks that values come in order, and that work enqueued before a signal is done when its value comes.
Outcome SignalsWhenDone(const Device& d) {
  Bytes want, got(kBytes);
  ASSIGN_OR_RETURN(DeviceBlock b, DeviceBlock::Make(d, kBytes));
  ASSIGN_OR_RETURN(Queue q, Queue::Make(d));
  struct Seen {
    std::atomic<uint64_t> times{0};
  } seen;
  constexpr uint32_t kRounds = 20;
  for (uint32_t i = 1; i <= kRounds; ++i) {
    want = Pattern(kBytes, i);
    RETURN_IF_ERROR(b.Write(0, want.data(), kBytes, q.c()));
    RETURN_IF_ERROR(b.Read(0, got.data(), kBytes, q.c()));
    ASSIGN_OR_RETURN(uint64_t value, q.Signal());
    q.line()->When(value, [](void* arg, const tw_status*) { static_cast<Seen*>(arg)->times.fetch_add(1); }, &seen);
    if (!Reaches(q.line(), value, kSoon)) return Fail("value ", value, " did not come within ", kSoon.count(), " ms");
    if (q.line()->value() != value) return Fail("the line is at ", q.line()->value(), ", though ", value, " is the last value asked for");
    if (std::string s = Difference(got, want); !s.empty()) return Fail("value ", value, " came before the work was over: ", s);
  }
  for (int tries = 0; seen.times != kRounds && tries < 1000; ++tries) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (seen.times != kRounds) return Fail(seen.times.load(), " of ", kRounds, " waiters were told");
  return {};
}

Outcome HoldsBack(const Device& d) {
  const Bytes old = Pattern(64, 1), fresh = Pattern(64, 2);
  Bytes got(64);
  ASSIGN_OR_RETURN(DeviceBlock b, DeviceBlock::Make(d, 64));
  ASSIGN_OR_RETURN(Queue q, Queue::Make(d));
  if (!q.can_wait()) return None("it has no wait: the host holds work back");
  Line gate = NewLine();
  RETURN_IF_ERROR(b.Put(old));
  RETURN_IF_ERROR(q.Wait(gate.get(), 3));
  RETURN_IF_ERROR(b.Write(0, fresh.data(), 64, q.c()));
  RETURN_IF_ERROR(b.Read(0, got.data(), 64, q.c()));
  const bool at_once = Difference(got, fresh).empty();
  ASSIGN_OR_RETURN(uint64_t value, q.Signal());
  gate->Signal(2);
  const bool early = Reaches(q.line(), value, kAWhile);
  gate->Signal(3);  // always, because the queue could not be destroyed otherwise
  if (at_once) return Fail("copies on a stream were done at once, though the stream waited for another line");
  if (early) return Fail("work went on while the other line was at 2, and 3 was waited for");
  RETURN_IF_ERROR(q.line()->Wait(value));
  if (std::string s = Difference(got, fresh); !s.empty()) return Fail("after the other line came to 3: ", s);
  return {};
}

Outcome RunsApart(const Device& d) {
  const Bytes want = Pattern(64, 5);
  Bytes got(64);
  ASSIGN_OR_RETURN(DeviceBlock b, DeviceBlock::Make(d, 64));
  ASSIGN_OR_RETURN(Queue held, Queue::Make(d));
  if (!held.can_wait()) return None("it has no wait, so no stream can be held back");
  ASSIGN_OR_RETURN(Queue free, Queue::Make(d));
  Line gate = NewLine();
  RETURN_IF_ERROR(held.Wait(gate.get(), 1));
  ASSIGN_OR_RETURN(uint64_t later, held.Signal());
  RETURN_IF_ERROR(b.Write(0, want.data(), 64, free.c()));
  RETURN_IF_ERROR(b.Read(0, got.data(), 64, free.c()));
  ASSIGN_OR_RETURN(uint64_t value, free.Signal());
  const bool came = Reaches(free.line(), value, kSoon), early = Reaches(held.line(), later, kAWhile);
  gate->Signal(1);
  RETURN_IF_ERROR(held.line()->Wait(later));
  if (early) return Fail("the stream that was held back signalled");
  if (!came) return Fail("a stream waited for another that was held back");
  if (std::string s = Difference(got, want); !s.empty()) return Fail(s);
  return {};
}

Outcome SignalsAfterFailure(const Device& d) {
  ASSIGN_OR_RETURN(Queue q, Queue::Make(d));
  if (!q.can_wait()) return None("it has no wait: the host waits for lines that fail");
  Line gate = NewLine();
  gate->Fail(Internal("the kit let this line fail"));
  RETURN_IF_ERROR(q.Wait(gate.get(), 1));
  auto value = q.Signal();
  gate->Signal(1);
  RETURN_IF_ERROR(value.status());
  if (!Reaches(q.line(), *value, kSoon)) return Fail("its value did not come: memory would never be used again");
  return {};
}

// Destroys a queue whose work waits for a gate that opens while destroy waits.
Outcome DrainsAtTheEnd(const Device& d) {
  const Bytes want = Pattern(kBytes, 6);
  Bytes got(kBytes);
  ASSIGN_OR_RETURN(DeviceBlock b, DeviceBlock::Make(d, kBytes));
  ASSIGN_OR_RETURN(Queue q, Queue::Make(d));
  Line gate = NewLine();
  if (q.can_wait()) RETURN_IF_ERROR(q.Wait(gate.get(), 1));
  RETURN_IF_ERROR(b.Write(0, want.data(), kBytes, q.c()));
  RETURN_IF_ERROR(b.Read(0, got.data(), kBytes, q.c()));
  ASSIGN_OR_RETURN(uint64_t value, q.Signal());
  std::thread opens([&] {
    std::this_thread::sleep_for(kAWhile);
    gate->Signal(1);
  });
  q.Destroy();
  const uint64_t at = q.line()->value();
  const std::string differs = Difference(got, want);
  opens.join();
  if (at < value) return Fail("destroy returned with the line at ", at, "; ", value, " was still to come");
  if (!differs.empty()) return Fail("destroy returned before the work was over: ", differs);
  return {};
}

Outcome LeavesNoThread(const Device& d, bool full) {
  auto once = [&]() -> Status {
    ASSIGN_OR_RETURN(Queue q, Queue::Make(d));
    return q.Drain();
  };
  for (int i = 0; i < 3; ++i) RETURN_IF_ERROR(once());
  const ProcessState before = ReadProcess();
  const int rounds = full ? 500 : 30;
  for (int i = 0; i < rounds; ++i) RETURN_IF_ERROR(once());
  SettledThreads(before.threads);
  const ProcessState after = ReadProcess();
  const std::string added = Added(before, after);
  return added.empty() ? Outcome() : Fail("after ", rounds, " streams: ", added);
}

}  // namespace

void CheckStreams(Run& run, World& world) {
  if (!world.play().name.empty() && !run.options().full) return;
  for (const Device* d : world.Devices()) {
    if (!d->has_streams()) continue;
    const std::string name = StrCat(d->kind(), ":", d->index());
    run.Check(301, name, [&] { return KeepsOrder(*d); });
    run.Check(302, name, [&] { return SignalsWhenDone(*d); });
    run.Check(303, name, [&] { return RunsApart(*d); });
    run.Check(304, name, [&] { return HoldsBack(*d); });
    run.Check(305, name, [&] { return SignalsAfterFailure(*d); });
    run.Check(306, name, [&] { return DrainsAtTheEnd(*d); });
    run.Check(307, name, [&] { return LeavesNoThread(*d, run.options().full); });
  }
}

}  // namespace thalweg::conformance
