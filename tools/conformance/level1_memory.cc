// Level 1: the four functions of a device.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "tools/conformance/device_block.h"
#include "tools/conformance/levels.h"

namespace thalweg::conformance {
namespace {

constexpr uint64_t kSmallDevice = 256u << 20;  // largest device that the check fills, in bytes

// The results of one call of enumerate.
struct Listed {
  tw_device_list c{TW_SIZED(tw_device_list), &Add};
  std::vector<std::string> uids;
  std::string wrong;
  bool refuse = false;
  const tw_host* host = nullptr;

  static tw_status* Add(tw_device_list* l, const tw_device_info* d) {
    auto* self = reinterpret_cast<Listed*>(l);
    if (self->refuse) return tw_fail(self->host, TW_RESOURCE_EXHAUSTED, TW_S("the list was made to refuse"));
    if (!d || d->size < 2 * sizeof(uint32_t)) {
      self->wrong = "a device's record is NULL or has no size";
      return nullptr;
    }
    self->uids.emplace_back(TextOf(d->uid, d->uid_len));
    if (self->uids.back().empty()) self->wrong = "a device has no uid";
    if (TextOf(d->description, d->description_len).empty()) self->wrong = StrCat("device '", self->uids.back(), "' has no description");
    return nullptr;
  }
};

// Lists the devices. NOT_FOUND without devices is no error: a plugin may give the reason for having none.
Status Enumerate(const DeviceKind& kind, Listed* to) {
  to->host = kind.host;
  Status s = FromC(kind.def.enumerate(kind.host, kind.def.user, &to->c));
  return s.code() == absl::StatusCode::kNotFound && to->uids.empty() ? Status() : s;
}

Outcome ListsDevices(const DeviceKind& kind) {
  Listed first, second;
  RETURN_IF_ERROR(Enumerate(kind, &first));
  RETURN_IF_ERROR(Enumerate(kind, &second));
  if (!first.wrong.empty()) return Fail(first.wrong);
  if (first.uids != second.uids) return Fail("asked twice, it lists different devices");
  if (std::set<std::string>(first.uids.begin(), first.uids.end()).size() != first.uids.size()) return Fail("two devices have one uid");
  if (first.uids.empty()) return Skip("there is no such device on this machine");
  return {};
}

Outcome PassesOnRefusals(const DeviceKind& kind) {
  Listed listed;
  RETURN_IF_ERROR(Enumerate(kind, &listed));
  if (listed.uids.empty()) return Skip("there is no such device on this machine");
  Listed refusing;
  refusing.refuse = true;
  if (Enumerate(kind, &refusing).ok()) return Fail("the list refused a device, and enumerate answered NULL");
  return {};
}

std::vector<uint64_t> Sizes(Effort effort) {
  std::vector<uint64_t> sizes = {1, 2, 3, 7, 63, 64, 65, 1000, 4095, 4096, 4097, 1 << 20, (1 << 20) + 1};
  if (effort == Effort::kFull) sizes.insert(sizes.end(), {(16 << 20) - 1, 64 << 20});
  return sizes;
}

Outcome Allocates(const Device& d, Effort effort) {
  for (uint64_t align : {64, 256, 4096}) {
    for (uint64_t bytes : Sizes(effort)) {
      ASSIGN_OR_RETURN(DeviceBlock block, DeviceBlock::Make(d, bytes, align));
      if (d.host_memory() && reinterpret_cast<uintptr_t>(block.memory()) % align != 0) {
        return Fail("the address of ", bytes, " bytes is not a multiple of ", align, ", as asked");
      }
      const unsigned char last = 77;
      RETURN_IF_ERROR(block.Write(bytes - 1, &last, 1));
    }
  }
  return {};
}

Outcome ComesBack(const Device& d, Effort effort) {
  for (uint64_t bytes : Sizes(effort)) {
    ASSIGN_OR_RETURN(DeviceBlock block, DeviceBlock::Make(d, bytes));
    const Bytes want = Pattern(bytes, uint32_t(bytes));
    RETURN_IF_ERROR(block.Put(want));
    ASSIGN_OR_RETURN(Bytes got, block.Get());
    if (std::string s = Difference(got, want); !s.empty()) return Fail("of ", bytes, " bytes: ", s);
  }
  // Write a part at odd offsets; the bytes around it must stay.
  constexpr uint64_t kBytes = 1021;
  ASSIGN_OR_RETURN(DeviceBlock block, DeviceBlock::Make(d, kBytes));
  Bytes want = Pattern(kBytes, 1);
  RETURN_IF_ERROR(block.Put(want));
  for (uint64_t offset : {1, 5, 64, 333, 1020}) {
    for (uint64_t n : {1, 3, 64, 257}) {
      if (offset + n > kBytes) continue;
      const Bytes part = Pattern(n, uint32_t(offset + n));
      RETURN_IF_ERROR(block.Write(offset, part.data(), n));
      std::copy(part.begin(), part.end(), want.begin() + int64_t(offset));
      ASSIGN_OR_RETURN(Bytes got, block.Get());
      if (std::string s = Difference(got, want); !s.empty()) return Fail("after writing ", n, " bytes at offset ", offset, ": ", s);
      Bytes read(n + 2, 9);
      RETURN_IF_ERROR(block.Read(offset, read.data() + 1, n));
      if (read.front() != 9 || read.back() != 9) return Fail("reading ", n, " bytes at offset ", offset, " wrote beside them");
      if (!std::equal(part.begin(), part.end(), read.begin() + 1)) return Fail("reading ", n, " bytes at offset ", offset, " gave others");
    }
  }
  return {};
}

Outcome CopiesWithin(const Device& d) {
  constexpr uint64_t kBytes = 4099;
  ASSIGN_OR_RETURN(DeviceBlock from, DeviceBlock::Make(d, kBytes));
  ASSIGN_OR_RETURN(DeviceBlock to, DeviceBlock::Make(d, kBytes));
  const Bytes source = Pattern(kBytes, 3);
  Bytes want = Pattern(kBytes, 4);
  RETURN_IF_ERROR(from.Put(source));
  RETURN_IF_ERROR(to.Put(want));
  const struct {
    uint64_t from, to, bytes;
  } parts[] = {{0, 0, 1}, {3, 1, 5}, {64, 128, 64}, {1001, 17, 999}, {0, 0, kBytes}};
  for (const auto& p : parts) {
    RETURN_IF_ERROR(from.CopyTo(to, p.from, p.to, p.bytes));
    std::copy_n(source.begin() + int64_t(p.from), p.bytes, want.begin() + int64_t(p.to));
    ASSIGN_OR_RETURN(Bytes got, to.Get());
    if (std::string s = Difference(got, want); !s.empty()) {
      return Fail("after copying ", p.bytes, " bytes from offset ", p.from, " to ", p.to, ": ", s);
    }
  }
  ASSIGN_OR_RETURN(Bytes got, from.Get());
  if (std::string s = Difference(got, source); !s.empty()) return Fail("the source of the copies has changed: ", s);
  return {};
}

Outcome KeepsBlocksApart(const Device& d, Effort effort) {
  const int rounds = effort == Effort::kFull ? 50 : effort == Effort::kUsual ? 4 : 1;
  constexpr size_t kBlocks = 24;
  for (int round = 0; round < rounds; ++round) {
    std::vector<DeviceBlock> blocks;
    for (size_t i = 0; i < kBlocks; ++i) {
      const uint64_t bytes = 1 + (i * 977 + size_t(round) * 131) % 5000;
      ASSIGN_OR_RETURN(DeviceBlock b, DeviceBlock::Make(d, bytes));
      RETURN_IF_ERROR(b.Put(Pattern(bytes, uint32_t(i))));
      blocks.push_back(std::move(b));
    }
    for (size_t step = 0; step < kBlocks; ++step) {
      const size_t i = (step * 7 + size_t(round)) % kBlocks;
      if (!blocks[i]) return Internal("the order of release is no permutation");
      ASSIGN_OR_RETURN(Bytes got, blocks[i].Get());
      if (std::string s = Difference(got, Pattern(blocks[i].bytes(), uint32_t(i))); !s.empty()) {
        return Fail("block ", i, " of ", kBlocks, " lost its contents to the others: ", s);
      }
      blocks[i] = DeviceBlock();
    }
  }
  // Allocate and release, one after the other, blocks of more bytes in total than the device has.
  if (d.memory() == 0 || d.memory() > kSmallDevice) return {};
  const uint64_t piece = std::max<uint64_t>(1, d.memory() / 8);
  for (int i = 0; i < 20; ++i) {
    auto b = DeviceBlock::Make(d, piece);
    if (!b.ok()) return Fail("block ", i, " of ", piece, " bytes, each released before the next: ", Message(b.status()));
  }
  return {};
}

Outcome RefusesTooMuch(const Device& d) {
  const DeviceKind& kind = d.def();
  const uint64_t too_much = uint64_t{1} << 60;
  int untouched = 0;
  void* memory = &untouched;
  At(StrCat("allocating ", too_much, " bytes"));
  const tw_allocation wanted = {TW_SIZED(tw_allocation), too_much, 64};
  Status s = FromC(kind.def.allocate(kind.host, d.self(), &wanted, &memory));
  if (s.ok()) return Fail("it gave ", too_much, " bytes");
  if (s.code() != absl::StatusCode::kResourceExhausted) return Fail("the error is not RESOURCE_EXHAUSTED but ", s.ToString());
  if (Message(s).empty()) return Fail("the error has no text");
  if (memory != &untouched) return Fail("out_memory was written although the call failed");
  At("");
  std::vector<DeviceBlock> all;
  if (d.memory() && d.memory() <= kSmallDevice) {
    const uint64_t piece = std::max<uint64_t>(64, d.memory() / 16);
    for (int i = 0; i < 64; ++i) {
      auto b = DeviceBlock::Make(d, piece);
      if (!b.ok()) break;
      all.push_back(*std::move(b));
    }
    if (all.size() == 64) return Fail("it says that it has ", d.memory(), " bytes, and gave 64 times ", piece);
    all.clear();
  }
  ASSIGN_OR_RETURN(DeviceBlock block, DeviceBlock::Make(d, 4096));
  const Bytes want = Pattern(4096, 9);
  RETURN_IF_ERROR(block.Put(want));
  ASSIGN_OR_RETURN(Bytes got, block.Get());
  if (std::string text = Difference(got, want); !text.empty()) return Fail("afterwards: ", text);
  return {};
}

Outcome ServesThreads(const Device& d, Effort effort) {
  const uint32_t threads = 4, rounds = effort == Effort::kFull ? 500 : effort == Effort::kUsual ? 50 : 5;
  std::mutex mu;
  Outcome worst;
  auto work = [&](uint32_t t) -> Outcome {
    for (uint32_t i = 0; i < rounds; ++i) {
      const uint64_t bytes = 1 + (i * 251 + t * 1009) % 9000;
      const Bytes want = Pattern(bytes, t * 100000 + i);
      ASSIGN_OR_RETURN(DeviceBlock a, DeviceBlock::Make(d, bytes));
      ASSIGN_OR_RETURN(DeviceBlock b, DeviceBlock::Make(d, bytes));
      RETURN_IF_ERROR(a.Put(want));
      RETURN_IF_ERROR(a.CopyTo(b, 0, 0, bytes));
      ASSIGN_OR_RETURN(Bytes got, b.Get());
      if (std::string s = Difference(got, want); !s.empty()) return Fail("thread ", t, ", round ", i, ": ", s);
    }
    return {};
  };
  std::vector<std::thread> all;
  for (uint32_t t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      Outcome o = work(t);
      std::lock_guard lock(mu);
      if (!o.passed()) worst = o;
    });
  }
  for (std::thread& t : all) t.join();
  return worst;
}

}  // namespace

void CheckMemory(Run& run, World& world) {
  const Effort effort = EffortOf(run, world);
  const bool hasty = world.play().hasty;
  // The hasty host makes each check on a new thread.
  auto check = [&](int rule, const std::string& subject, const Run::Body& body) {
    run.Check(rule, subject, [&] {
      if (!hasty) return body();
      Outcome o;
      std::thread([&] { o = body(); }).join();
      return o;
    });
  };
  for (const DeviceKind* kind : world.Kinds()) {
    check(101, kind->kind, [&] { return ListsDevices(*kind); });
    check(108, kind->kind, [&] { return PassesOnRefusals(*kind); });
  }
  for (const Device* d : world.Devices()) {
    const std::string name = StrCat(d->kind(), ":", d->index());
    check(102, name, [&] { return Allocates(*d, effort); });
    check(103, name, [&] { return ComesBack(*d, effort); });
    check(104, name, [&] { return CopiesWithin(*d); });
    check(105, name, [&] { return KeepsBlocksApart(*d, effort); });
    check(106, name, [&] { return RefusesTooMuch(*d); });
    check(107, name, [&] { return ServesThreads(*d, effort); });
  }
}

}  // namespace thalweg::conformance
