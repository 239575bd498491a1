// Level 5: profilers, on steps that the kit makes up.
#include <filesystem>
#include <thread>
#include <utility>

#include "framework/registry/profiler_role.h"
#include "tools/conformance/guarded.h"
#include "tools/conformance/levels.h"
#include "tools/conformance/process.h"

namespace thalweg::conformance {
namespace {

// A profile of the plugin: what a session does with a profiler.
class Profile {
 public:
  Profile(const ProfilerRole& role, const World& world, std::string argument)
      : role_(role), hasty_(world.play().hasty), argument_(std::move(argument)) {}
  ~Profile() { Stop().IgnoreError(); }
  Profile(const Profile&) = delete;

  Status Start() {
    Guarded memory(hasty_);
    const char* text = memory.Text(argument_);
    RETURN_IF_ERROR(FromC(role_.def.start(role_.host, role_.def.user, text, argument_.size(), &self_)));
    running_ = true;
    return Status();
  }
  Status Stop() { return std::exchange(running_, false) ? FromC(role_.def.stop(role_.host, self_)) : Status(); }

  // Hands over a step with n_spans spans of all kinds and as many values of counters.
  Status Step(uint64_t number, uint32_t n_spans, bool failed) {
    constexpr int64_t kBegin = int64_t{1} << 40, kLength = 1'000'000;
    RETURN_IF_ERROR(Give<tw_profiled_step>(role_.def.step, [&](tw_profiled_step* s, Guarded*) {
      s->trace = number;
      s->step = failed && n_spans == 0 ? 0 : number;
      s->begin = kBegin;
      s->planned = kBegin + kLength / 10;
      s->end = kBegin + kLength;
      s->failed = failed;
      s->left_out = failed ? 3 : 0;
    }));
    for (uint32_t i = 0; i < n_spans; ++i) {
      RETURN_IF_ERROR(Give<tw_profiled_span>(role_.def.span, [&](tw_profiled_span* s, Guarded* memory) {
        const bool bare = i % 5 == 4;  // with empty texts and without a length
        Set("Mul\n\"\\\x01", memory, &s->name, &s->name_len);
        Set(bare ? "" : "scope/node", memory, &s->node, &s->node_len);
        Set(bare ? "" : "/job:localhost/replica:0/task:0/device:CPU:0", memory, &s->device, &s->device_len);
        Set(i % 3 ? "" : "copy in", memory, &s->row, &s->row_len);
        s->begin = kBegin + kLength * int64_t{i} / n_spans;
        s->end = bare ? s->begin : kBegin + kLength;
        s->left = (s->begin + s->end) / 2;
        s->bytes = i % 2 ? UINT64_MAX : i;
        s->kind = 1 + i % 8;  // two of them are of a later minor
        s->thread = i % 4 == 3 ? UINT32_MAX : i % 4;
        s->failed = failed && i + 1 == n_spans;
      }));
    }
    for (uint32_t i = 0; i < n_spans; ++i) {
      RETURN_IF_ERROR(Give<tw_profiled_count>(role_.def.count, [&](tw_profiled_count* c, Guarded* memory) {
        Set("bytes", memory, &c->name, &c->name_len);
        Set("scope/node", memory, &c->node, &c->node_len);
        Set("", memory, &c->device, &c->device_len);
        c->at = kBegin + int64_t{i};
        c->value = i % 2 ? INT64_MIN : INT64_MAX;
        c->thread = i % 2 ? UINT32_MAX : 0;
      }));
    }
    return FromC(role_.def.done(role_.host, self_));
  }

 private:
  static void Set(std::string_view text, Guarded* memory, const char** at, uint64_t* len) {
    *at = memory->Text(text);
    *len = text.size();
  }
  // Makes a record, which is gone after the call under the hasty host, and calls `entry` with it.
  template <class T, class F>
  Status Give(tw_status* (*entry)(const tw_host*, void*, const T*), F&& fill) {
    Guarded memory(hasty_);
    Padded<T>* record = memory.New(Padded<T>(PlayedSize(sizeof(T), sizeof(T))));
    fill(&record->c, &memory);
    return FromC(entry(role_.host, self_, &record->c));
  }

  const ProfilerRole& role_;
  const bool hasty_;
  const std::string argument_;
  void* self_ = nullptr;
  bool running_ = false;
};

struct Subject {
  const ProfilerRole* role;
  World* world;
  std::string place;
  // The argument of profile number i.
  std::string Argument(int i) const { return StrCat(place, ".", i); }
};

// says: the caller is the check's own thread, which reports where it is.
Status Steps(Profile* p, bool full, bool says) {
  uint64_t number = 0;
  for (const uint32_t n_spans : {0u, 1u, 40u, full ? 20000u : 2000u}) {
    for (const bool failed : {false, true}) {
      if (says) At(StrCat(failed ? "a step that failed, with " : "a step with ", n_spans, " spans"));
      RETURN_IF_ERROR(p->Step(++number, n_spans, failed));
    }
  }
  return Status();
}

Outcome TakesEveryStep(const Subject& s, bool full) {
  Profile p(*s.role, *s.world, s.Argument(0));
  RETURN_IF_ERROR(p.Start());
  RETURN_IF_ERROR(Steps(&p, full, true));
  return p.Stop();
}

// Stopping one profile leaves the other as it is; two may be called at the same time.
Outcome KeepsProfilesApart(const Subject& s) {
  Profile a(*s.role, *s.world, s.Argument(1)), b(*s.role, *s.world, s.Argument(2));
  RETURN_IF_ERROR(a.Start());
  RETURN_IF_ERROR(b.Start());
  Status of_a;
  std::thread other([&] { of_a = Steps(&a, false, false); });
  Status of_b = Steps(&b, false, false);
  other.join();
  RETURN_IF_ERROR(of_a);
  RETURN_IF_ERROR(of_b);
  RETURN_IF_ERROR(a.Stop());
  At("a step of the second profile, after the first one was stopped");
  RETURN_IF_ERROR(b.Step(99, 10, false));
  return b.Stop();
}

Outcome LeavesNothing(const Subject& s) {
  constexpr int kCycles = 50;
  constexpr int64_t kMost = 8;  // bytes that a cycle may keep on average, as memory of the C library grows once
  const auto cycle = [&]() -> Status {
    Profile p(*s.role, *s.world, s.Argument(3));
    RETURN_IF_ERROR(p.Start());
    RETURN_IF_ERROR(p.Step(1, 3, false));
    return p.Stop();
  };
  RETURN_IF_ERROR(cycle());
  const ProcessState before = ReadProcess();
  int64_t grown = 0;
  for (int tries = 0; tries < 3; ++tries) {
    const int64_t heap = ReadHeap();
    for (int i = 0; i < kCycles; ++i) RETURN_IF_ERROR(cycle());
    grown = ReadHeap() - heap;
    if (grown <= kCycles * kMost) break;
  }
  SettledThreads(before.threads);
  const std::string added = Added(before, ReadProcess());
  if (!added.empty()) return Fail("after many profiles the process has ", added);
  if (grown > kCycles * kMost) return Fail("a profile takes ", grown / kCycles, " bytes more each time");
  return {};
}

// A place for the files of a profiler: a name that does not exist, in the folder that the user named or
// in the folder of the checks.
std::string PlaceFor(const Run& run, const ProfilerRole& role) {
  std::error_code wrong;
  const std::string& at = run.options().at;
  if (!at.empty() && !std::filesystem::is_directory(at, wrong)) return at;
  return StrCat(at.empty() ? run.options().folder : at, "/", role.name, ".profile");
}

}  // namespace

void CheckProfilers(Run& run, World& world) {
  for (const auto& role : world.registry().RolesOf<ProfilerRole>()) {
    if (role->plugin != world.id()) continue;
    const Subject s{role.get(), &world, PlaceFor(run, *role)};
    const bool full = run.options().full;
    if (world.play().hasty) {
      run.Check(592, role->name, [&] { return TakesEveryStep(s, false); });
      continue;
    }
    run.Check(591, role->name, [&] { return TakesEveryStep(s, full); });
    if (!world.play().name.empty()) continue;
    run.Check(593, role->name, [&] { return KeepsProfilesApart(s); });
    run.Check(594, role->name, [&] { return LeavesNothing(s); });
  }
}

}  // namespace thalweg::conformance
