// Level 0: init and shutdown: once, two at the same time, repeatedly, and under hosts that refuse.
#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "framework/registry/registrar.h"
#include "framework/runtime/host/host_table.h"
#include "tools/conformance/levels.h"
#include "tools/conformance/process.h"
#include "tools/conformance/process_settings.h"

namespace thalweg::conformance {
namespace {

const Play kRealHost;

// The counts of what a plugin registers.
struct Brought {
  size_t ops = 0, kernels = 0, resources = 0, devices = 0, roles = 0;
  bool operator==(const Brought&) const = default;
  std::string text() const {
    return StrCat(ops, " ops, ", kernels, " kernels, ", resources, " resource types, ", devices, " device kinds, ", roles, " other roles");
  }
};

// Runs init and shutdown with a registrar that only collects. It checks each registered item alone, but
// not against other plugins.
class Trial {
 public:
  // played: the plugin as PlayedQuery returns it.
  Trial(Runtime* runtime, const tw_plugin* played)
      : plugin_(played),
        host_(MakeHostTable(runtime, TextOf(played->id, played->id_len), "", std::min<uint32_t>(TW_MINOR, played->target))) {}
  Status Init() {
    Registration r;
    Registrar registrar(host_.get(), std::string(TextOf(plugin_->id, plugin_->id_len)), &r);
    void* instance = nullptr;
    Status s = FromC(plugin_->init(host_.get(), registrar.c(), &instance));
    refused_ = r.status;
    brought_ = {r.ops.size(), r.kernels.size(), r.resources.size(), r.devices.size(), r.roles.size()};
    if (s.ok()) plugin_->shutdown(host_.get(), instance);
    return s;
  }
  const Status& refused() const { return refused_; }  // error of the registrar
  const Brought& brought() const { return brought_; }

 private:
  const tw_plugin* plugin_;
  std::unique_ptr<tw_host, void (*)(tw_host*)> host_;
  Status refused_;
  Brought brought_;
};

Brought Count(const World& w) {
  Brought b;
  b.ops = w.Ops().size();
  b.kernels = w.Kernels().size();
  b.devices = w.Kinds().size();
  return b;
}

Outcome Registers(const std::string& file, const Play& play) {
  ASSIGN_OR_RETURN(auto library, Library::Open(file));
  ASSIGN_OR_RETURN(auto world, World::Make(*library, play));
  const Brought played = Count(*world);
  for (const PluginRecord& r : world->runtime().plugins()) {
    if (play.name.empty() && r.id == world->id() && !r.left_out.empty()) return Fail("this host leaves out ", r.left_out[0]);
  }
  world.reset();
  if (TheLedger().inits != 1 || TheLedger().shutdowns != 1)
    return Fail("one init was answered by ", TheLedger().shutdowns.load(), " shutdowns");
  if (play.name.empty()) return {};
  ASSIGN_OR_RETURN(world, World::Make(*library, kRealHost));
  const Brought real = Count(*world);
  if (!(real == played)) return Fail("it registers ", played.text(), "; with the real host ", real.text());
  return {};
}

Outcome ServesTwoRuntimes(const std::string& file) {
  ASSIGN_OR_RETURN(auto library, Library::Open(file));
  ASSIGN_OR_RETURN(auto one, World::Make(*library, kRealHost));
  ASSIGN_OR_RETURN(auto two, World::Make(*library, kRealHost));
  if (!(Count(*one) == Count(*two))) return Fail("the first registers ", Count(*one).text(), ", the second ", Count(*two).text());
  const size_t devices = one->Devices().size();
  if (two->Devices().size() != devices) return Fail("the first has ", devices, " devices, the second ", two->Devices().size());
  At("the shutdown of the first runtime");
  one.reset();
  ASSIGN_OR_RETURN(auto three, World::Make(*library, kRealHost));
  if (three->Devices().size() != devices)
    return Fail("after the first has ended there are ", three->Devices().size(), " devices, not ", devices);
  At("the shutdown of the others");
  two.reset();
  three.reset();
  return {};
}

// A driver may keep threads of its own until the process ends, so the first round does not count. A
// thread of the plugin that is left crashes when the plugin's code is unloaded.
Outcome LeavesNoThread(const std::string& file) {
  auto round = [&](const Library& library) -> Status {
    ASSIGN_OR_RETURN(auto world, World::Make(library, kRealHost));
    (void)world->Devices();
    return Status();
  };
  ASSIGN_OR_RETURN(auto library, Library::Open(file));
  const int64_t alone = ReadProcess().threads;
  RETURN_IF_ERROR(round(*library));
  const int64_t before = SettledThreads(alone);
  for (int i = 0; i < 2; ++i) RETURN_IF_ERROR(round(*library));
  const int64_t left = SettledThreads(before) - before;
  if (left > 0) return Fail(left, " threads are left of two rounds; join them in shutdown");
  At("what ran on after it was unloaded");
  library.reset();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  return {};
}

Outcome DoesNotGrow(const std::string& file, int cycles) {
  ASSIGN_OR_RETURN(auto oracle, World::Oracle());
  auto cycle = [&]() -> Status {
    ASSIGN_OR_RETURN(auto library, Library::Open(file));
    const tw_plugin* d = library->Descriptor();
    if (!d) return Internal("the query answered NULL");
    const tw_host_info info{};
    SetSubject(d, kRealHost);
    Trial trial(&oracle->runtime(), PlayedQuery(&info));
    return trial.Init();
  };
  for (int i = 0; i < 20; ++i) RETURN_IF_ERROR(cycle());
  const ProcessState before = ReadProcess();
  for (int i = 0; i < cycles; ++i) {
    At(StrCat("cycle ", i));
    RETURN_IF_ERROR(cycle());
  }
  SettledThreads(before.threads);
  const ProcessState after = ReadProcess();
  if (std::string added = Added(before, after); !added.empty()) return Fail(added, ", after ", cycles, " cycles");
  const int64_t grown = after.heap - before.heap;
  if (grown > 256 * cycles) return Fail("the heap has grown by ", grown / cycles, " bytes a cycle");
  if (after.mappings - before.mappings > cycles / 4)
    return Fail(after.mappings - before.mappings, " mappings more than before, after ", cycles, " cycles");
  return {};
}

// Makes each host call of init fail in one round, while the other calls succeed.
Outcome SurvivesRefusals(const std::string& file, bool full) {
  ASSIGN_OR_RETURN(auto library, Library::Open(file));
  ASSIGN_OR_RETURN(auto oracle, World::Oracle());
  const tw_host_info info{};
  if (!library->Descriptor()) return Fail("the query answered NULL");
  SetSubject(library->Descriptor(), kRealHost);
  Ledger& ledger = TheLedger();
  ledger.FailAt(0);
  Trial first(&oracle->runtime(), PlayedQuery(&info));
  RETURN_IF_ERROR(first.Init());
  const int64_t calls = ledger.calls;
  for (int64_t n = 1; n <= calls; n += full || n < 20 ? 1 : 1 + n / 4) {
    At(StrCat("an init whose host call ", n, " of ", calls, " fails"));
    ledger.FailAt(n);
    Trial trial(&oracle->runtime(), PlayedQuery(&info));
    Status s = trial.Init();
    if (s.ok() && trial.brought().text() != first.brought().text()) {
      return Fail("init answered NULL although host call ", n, " of ", calls, " failed, and registered ", trial.brought().text(),
                  " instead of ", first.brought().text());
    }
  }
  ledger.FailAt(0);
  Trial last(&oracle->runtime(), PlayedQuery(&info));
  if (Status s = last.Init(); !s.ok()) return Fail("afterwards, with a host that refuses nothing: ", Message(s));
  if (!(last.brought() == first.brought()))
    return Fail("afterwards it registers ", last.brought().text(), " instead of ", first.brought().text());
  return {};
}

// Checks the settings of the thread and of the process, and output to the standard files.
Outcome LeavesTheProcess(const std::string& file) {
  ASSIGN_OR_RETURN(auto oracle, World::Oracle());
  const ProcessSettings before;
  TheLedger().quiet = true;
  std::string when, changed;
  Overheard overheard;
  const auto look = [&](const char* after) {
    if (!changed.empty()) return;
    changed = before.ChangedSince();
    when = after;
  };
  auto library = Library::Open(file);
  look("after it was loaded");
  Status s = library.status();
  if (s.ok()) {
    const tw_host_info info{};
    const tw_plugin* d = (*library)->Descriptor();
    look("after the query");
    if (d) SetSubject(d, kRealHost);
    s = d ? Trial(&oracle->runtime(), PlayedQuery(&info)).Init() : Internal("the query answered NULL");
    look("after init and shutdown");
  }
  const std::string said = overheard.Stop();
  TheLedger().quiet = false;
  before.Restore();
  if (!changed.empty()) return Fail(when, ", ", changed);
  if (!said.empty()) return Fail("it writes to standard output or standard error, '", said, "'; host->run->log is for that");
  return s;
}

// Unlike rule 10, the library stays loaded, so that memory which it keeps once does not count and small
// leaks show.
Outcome LosesNothing(const std::string& file) {
  constexpr int kRounds = 24, kMost = 31;  // kMost: bytes a round, less than the smallest block of the heap
  ASSIGN_OR_RETURN(auto library, Library::Open(file));
  ASSIGN_OR_RETURN(auto oracle, World::Oracle());
  const tw_host_info info{};
  if (!library->Descriptor()) return Fail("the query answered NULL");
  SetSubject(library->Descriptor(), kRealHost);
  Ledger& ledger = TheLedger();
  const auto round = [&](int64_t failing) {
    ledger.FailAt(failing);
    return Trial(&oracle->runtime(), PlayedQuery(&info)).Init();
  };
  RETURN_IF_ERROR(round(0));
  const int64_t threads = ReadProcess().threads;
  const int64_t calls = std::min<int64_t>(ledger.calls, 8);
  for (int64_t failing = 0; failing <= calls; ++failing) {
    const std::string what = failing ? StrCat("with host call ", failing, " failing each time, ") : std::string();
    At(StrCat(what, "init over and over"));
    for (int i = 0; i < 4; ++i) (void)round(failing);
    int64_t grown = 0;
    for (int attempt = 0; attempt < 5; ++attempt) {  // growth by other threads does not repeat each time
      const int64_t before = ReadHeap();
      for (int i = 0; i < kRounds; ++i) (void)round(failing);
      grown = ReadHeap() - before;
      if (grown <= kRounds * kMost) break;
    }
    if (SettledThreads(threads) > threads) return Skip("it leaves threads, which hold memory, see rule 009");
    if (grown > kRounds * kMost) return Fail(what, "init and shutdown take ", grown / kRounds, " bytes more each time");
  }
  ledger.FailAt(0);
  return {};
}

// A newer host has further entries behind the known ones; here they are poison. A plugin that was
// written for such a host may call them, so it is skipped.
Outcome RegistersInANewerHost(const std::string& file) {
  ASSIGN_OR_RETURN(auto library, Library::Open(file));
  if (const tw_plugin* d = library->Descriptor(); d && d->target > TW_MINOR) {
    return Skip("its target, minor ", d->target, ", is newer than this kit, minor ", TW_MINOR, ", which cannot play hosts beyond that");
  }
  Play newer;
  newer.name = "newer";
  newer.newer = true;
  return Registers(file, newer);
}

}  // namespace

void CheckInit(Run& run) {
  const std::string& file = run.options().path;
  run.Check(7, "", [&] { return Registers(file, kRealHost); });
  run.Check(8, "", [&] { return ServesTwoRuntimes(file); });
  run.Check(9, "", [&] { return LeavesNoThread(file); });
  run.Check(10, "", [&] { return DoesNotGrow(file, run.options().full ? 1000 : 100); });
  run.Check(11, "", [&] { return SurvivesRefusals(file, run.options().full); });
  run.Check(12, "", [&] { return RegistersInANewerHost(file); });
  Play older;
  older.name = "older";
  older.older = true;
  run.Check(13, "", [&] { return Registers(file, older); });
  run.Check(14, "", [&] { return LeavesTheProcess(file); });
  run.Check(15, "", [&] { return LosesNothing(file); });
}

}  // namespace thalweg::conformance
