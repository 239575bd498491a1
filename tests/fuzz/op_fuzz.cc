// Makes uses of any op from bytes (op/use.h). Runs each alone, inside a graph that is partly known,
// and after the optimizer has seen all of it. The results must have the same bits, or errors that
// name the op; the inferred shapes must be true; and afterwards a valid use of the op must give its
// earlier result. Results of the baseline instruction set must be close, those of eight threads the
// same.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/fuzz/broken.h"
#include "tests/fuzz/op/compare.h"
#include "tests/fuzz/op/kept.h"
#include "tests/fuzz/op/outcome.h"
#include "tests/fuzz/op/use.h"

namespace {

using namespace thalweg::fuzz;

constexpr size_t kMostBytes = 4 << 10;
constexpr int kMostUses = 16;                        // per input
constexpr const char* kMemory = "memory_limit=64M";  // the limit of a use; refusing more takes no time
constexpr size_t kMostMemory = 512 << 20;            // of one allocation
// Seconds of all threads, whatever else the machine does; the caller stops a use that waits for
// ever.
#if defined(__has_feature)
constexpr int kMostTime = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ? 60 : 5;
#else
constexpr int kMostTime = 5;
#endif

tw_runtime* MakeRuntime(std::vector<const char*> options) {
  options.push_back("disabled_plugins=org.thalweg.opencl");
  tw_runtime* made = nullptr;
  Must(tw_runtime_create(options.data(), uint32_t(options.size()), &made), "making a runtime");
  return made;
}

// The folder for ops that touch files. It ends with the process.
const char* Folder() {
  static const std::string* const folder = [] {
    auto* made = new std::string(std::filesystem::temp_directory_path() / "thalweg_op_fuzz_XXXXXX");
    if (!mkdtemp(made->data())) Broken("no folder for files: " + *made);
    std::atexit([] { std::filesystem::remove_all(Folder()); });
    return made;
  }();
  return folder->c_str();
}

struct Sound {
  std::vector<uint8_t> bytes;
  Outcome outcome;
};

void TellCounts();

// Made once; never released.
struct Shared {
  tw_runtime* runtime = MakeRuntime({"threads=1"});
  tw_runtime* baseline = MakeRuntime({"threads=1", "plugin.org.thalweg.cpu.isa=baseline"});
  tw_runtime* threads = MakeRuntime({"threads=8"});
  std::vector<OpSchema> ops = ReadSchemas(runtime);
  std::string files = std::string("allow_files=") + Folder();
  Way alone{"alone", Way::Entry::kFed, false, false, {kMemory, "optimize=false", "engine=fixed"}};
  Way inside{"inside a graph", Way::Entry::kPartly, true, false, {kMemory, "engine=counted"}};
  Way optimized{"optimized", Way::Entry::kConstant, false, true, {kMemory, files.c_str()}};
  Way fed_files{"with files", Way::Entry::kFed, false, true, {kMemory, files.c_str(), "optimize=false"}};
  std::map<std::string, Sound> sound;   // by op, the first of each
  std::map<std::string, size_t> tried;  // by op
};
Shared& All() {
  static Shared* const all = [] {
    std::atexit(TellCounts);
    return new Shared;
  }();
  return *all;
}

void TellCounts() {
  size_t uses = 0, succeeded = All().sound.size();
  for (const auto& [op, n] : All().tried) uses += n;
  std::fprintf(stderr, "%zu uses of %zu ops, of which %zu succeeded\n", uses, All().tried.size(), succeeded);
}

bool Tells(const Use& use) {
  return std::none_of(use.inputs.begin(), use.inputs.end(), [](const Input& x) {
    return x.state == State::kNotFed || x.state == State::kOfAnotherRuntime || !x.value;  // the failure is due to the feed
  });
}

void CheckMessage(const Use& use, const Way& way, const Outcome& out) {
  if (out.ok() || out.limited()) return;
  const bool named = out.message.find(use.op->name) != std::string::npos || Blames(use, out.message);
  if (Tells(use) && !named) Broken("the message does not name the op, " + std::string(way.name) + ": " + out.message + ": " + Shown(use));
  if (out.message.find('\n') != std::string::npos) Broken("the message has several lines: " + out.message);
}

// Checks that both fail, or both have the same results.
void Compare(const Use& use, const Outcome& a, const Outcome& b, const std::string& names) {
  if (a.limited() || b.limited()) return;
  if (a.ok() != b.ok()) Broken("of " + names + " only one fails: " + a.message + b.message + ": " + Shown(use));
  for (size_t i = 0; i < a.results.size() && !use.op->IsRandom(); ++i) {
    const std::string difference = Difference(a.results[i], b.results[i]);
    if (!difference.empty()) Broken("of result " + std::to_string(i) + ", " + names + ", " + difference + ": " + Shown(use));
  }
}

void CompareNear(const Use& use, const Outcome& best, const Outcome& baseline) {
  if (best.limited() || baseline.limited()) return;
  if (best.ok() != baseline.ok()) Broken("only one instruction set fails: " + best.message + baseline.message + ": " + Shown(use));
  for (size_t i = 0; i < best.results.size() && use.plain && !use.op->IsRandom(); ++i) {
    if (!best.results[i] || !baseline.results[i]) continue;
    const std::string difference = Far(*best.results[i], *baseline.results[i]);
    if (!difference.empty()) Broken("result " + std::to_string(i) + " of the baseline " + difference + ": " + Shown(use));
  }
}

// Checks after a failure that a valid use still gives its result.
void CheckSound(const OpSchema& op) {
  const auto found = All().sound.find(op.name);
  if (found == All().sound.end()) return;
  size_t taken = 0;
  const Use use = ReadUse(All().ops, found->second.bytes.data(), found->second.bytes.size(), &taken);
  const Outcome again = Run(All().runtime, use, All().alone);
  if (!again.ok()) Broken("a sound use fails after a wrong one: " + again.message + ": " + Shown(use));
  Compare(use, found->second.outcome, again, "a sound use before and after a wrong one");
}

void CheckOneUse(const Use& use, const uint8_t* data, size_t size) {
  static const bool shown = std::getenv("SHOW_USES") != nullptr;
  Shared& all = All();
  ++all.tried[use.op->name];
  const Way& first = use.op->touches ? all.fed_files : all.alone;
  Outcome alone = Run(all.runtime, use, first);
  if (shown) std::fprintf(stderr, "%s\n  -> %s\n", Shown(use).c_str(), alone.ok() ? "results" : alone.message.c_str());
  CheckMessage(use, first, alone);
  if (use.op->touches) {  // the contents of files differ from run to run
    CheckMessage(use, all.optimized, Run(all.runtime, use, all.optimized));
  } else {
    for (const Way* way : {&all.inside, &all.optimized}) {
      const Outcome out = Run(all.runtime, use, *way);
      CheckMessage(use, *way, out);
      Compare(use, alone, out, std::string(first.name) + " and " + way->name);
    }
    Compare(use, alone, Run(all.threads, use, first), "one thread and eight");
    CompareNear(use, alone, Run(all.baseline, use, first));
  }
  if (!alone.ok() && !use.op->touches) CheckSound(*use.op);
  if (alone.ok() && !all.sound.contains(use.op->name)) all.sound[use.op->name] = {{data, data + size}, std::move(alone)};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4 || size > kMostBytes) return -1;
  const std::vector<OpSchema>& ops = All().ops;  // made before the time is measured
  size_t taken = 0;
  for (int i = 0; i < kMostUses && size >= 4; ++i, data += taken, size -= taken) {
    const std::clock_t start = std::clock();
    const Use use = ReadUse(ops, data, size, &taken);
    CheckOneUse(use, data, taken);
    if ((std::clock() - start) / CLOCKS_PER_SEC > kMostTime) Broken("it takes too long: " + Shown(use));
  }
  return 0;
}

// Called by the sanitizers' allocators.
extern "C" void __sanitizer_malloc_hook(const volatile void*, size_t size) {
  if (size > kMostMemory) Broken("an allocation of " + std::to_string(size) + " bytes");
}

// Ops of which no use can succeed here: they read a fed value, call a function of the graph or of
// the program, or read a resource that another op makes or opens; or they make a resource under a
// name that another resource has, since all nodes have one name.
bool AlwaysFails(const OpSchema& op) {
  const bool calls = std::any_of(op.attrs.begin(), op.attrs.end(), [](const AttrSchema& a) { return a.kind == "func"; });
  const bool opens =
      std::any_of(op.inputs.begin(), op.inputs.end(), [](const Argument& x) { return !x.opens.empty() && !MakerOf(x.opens); });
  return !op.has_kernels || calls || opens || op.makes_other || op.calls_program || op.crosses || op.only_takes || op.name == "Abort" ||
         op.touches || op.name == "Placeholder" || op.name == "SaveResource" || op.name == "RestoreResources";
}

// Checks that every op is in the corpus, and succeeds there.
extern "C" int ReplayEnded() {
  int lacking = 0;
  for (const OpSchema& op : All().ops) {
    if (All().tried[op.name] > 0 && (All().sound.contains(op.name) || AlwaysFails(op))) continue;
    std::fprintf(stderr, "the corpus has %s of %s: run make_op_corpus.py\n", All().tried[op.name] ? "only failures" : "nothing",
                 op.name.c_str());
    ++lacking;
  }
  return lacking;
}
