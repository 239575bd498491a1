// Makes uses of any op from bytes, as op_fuzz.cc does, with feeds whose memory changes while the op
// runs (op/lender.h): before each access in turn, and by a concurrent thread. Whatever the op
// reads, it must not touch memory outside its tensors, and its errors must say why. Sanitizers
// detect other faults.
//   THALWEG_RACE_SECONDS=600   repeats all inputs with the concurrent thread for that time
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/fuzz/broken.h"
#include "tests/fuzz/op/kept.h"
#include "tests/fuzz/op/lender.h"
#include "tests/fuzz/op/outcome.h"
#include "tests/fuzz/op/use.h"

namespace {

using namespace thalweg::fuzz;

constexpr size_t kMostBytes = 4 << 10;
constexpr int kMostUses = 16;  // per input
#if defined(THALWEG_FUZZED)
constexpr int kMostOfAnOp = 1 << 30;
#else
constexpr int kMostOfAnOp = 2;  // valid uses that are single-stepped
#endif

struct Shared {
  tw_runtime* runtime = Make("threads=1");
  tw_runtime* threads = Make("threads=4");
  std::vector<OpSchema> ops = ReadSchemas(runtime);
  std::map<std::string, int> stepped;       // valid uses by op
  std::vector<std::vector<uint8_t>> sound;  // valid uses, for races
  uint64_t steps = 0, accesses = 0;

  static tw_runtime* Make(const char* threads) {
    const char* options[] = {threads, "disabled_plugins=org.thalweg.opencl"};
    tw_runtime* made = nullptr;
    Must(tw_runtime_create(options, 2, &made), "making a runtime");
    return made;
  }
};
Shared& All() {
  static Shared* const all = new Shared;
  return *all;
}

Way FedBy(Lender* lender, bool optimized) {
  Way way{"lent", Way::Entry::kFed, false, false, {"memory_limit=64M", optimized ? "engine=counted" : "optimize=false"}};
  way.lender = lender;
  return way;
}

// Excludes ops on files, which keep no lent memory and would leave stray files behind, and ops
// without kernels.
bool IsOutside(const OpSchema& op) { return op.touches || !op.has_kernels; }

uint64_t SeedOf(const uint8_t* data, size_t size) {
  uint64_t h = 14695981039346656037u;
  for (size_t i = 0; i < size; ++i) h = (h ^ data[i]) * 1099511628211u;
  return h;
}

void StepThrough(const Use& use, const uint8_t* data, size_t size) {
  Shared& all = All();
  int& stepped = all.stepped[use.op->name];
  if (stepped >= kMostOfAnOp) return;
  static const bool shown = std::getenv("SHOW_USES") != nullptr;
  if (shown) std::fprintf(stderr, "%s\n", Shown(use).c_str());
  SteppingLender lender(SeedOf(data, size));
  Run(all.runtime, use, FedBy(&lender, stepped % 2 == 1));
  all.steps += lender.steps();
  all.accesses += lender.accesses();
  if (!lender.succeeded()) return;
  ++stepped;
  all.sound.emplace_back(data, data + size);
}

// A use whose inputs are only handles and strings lends no memory.
bool Lends(const Use& use) {
  return std::any_of(use.inputs.begin(), use.inputs.end(), [](const Input& x) {
    if (!x.value || x.IsHandle()) return false;
    const uint32_t dtype = tw_tensor_dtype(x.value.get());
    return dtype != TW_STRING && dtype != TW_RESOURCE && dtype != TW_VARIANT && tw_tensor_bytes(x.value.get()) > 0;
  });
}

// Runs for as long as the environment says.
void Race() {
  const char* seconds = std::getenv("THALWEG_RACE_SECONDS");
  if (!seconds) return;
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(std::atoi(seconds));
  Shared& all = All();
  uint64_t rounds = 0, steps = 0, failures = 0;
  std::set<std::string> raced;
  for (; Clock::now() < end; ++rounds) {
    for (size_t k = 0; k < all.sound.size() && Clock::now() < end; ++k) {
      const size_t i = k * 7919 % all.sound.size();  // lets a short run reach ops of all letters
      size_t taken = 0;
      const std::vector<uint8_t>& bytes = all.sound[i];
      const Use use = ReadUse(all.ops, bytes.data(), bytes.size(), &taken);
      RacingLender lender(rounds * 1'000'003 + i);
      Run((rounds + i) % 2 ? all.threads : all.runtime, use, FedBy(&lender, rounds % 2 == 1));
      steps += lender.steps();
      failures += lender.failures();
      raced.insert(use.op->name);
    }
  }
  std::printf("%s s beside a thread that writes: %llu rounds, %llu steps of %zu uses of %zu ops, of which %llu failed with a message\n",
              seconds, static_cast<unsigned long long>(rounds), static_cast<unsigned long long>(steps), all.sound.size(), raced.size(),
              static_cast<unsigned long long>(failures));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4 || size > kMostBytes || !SteppingLender::Offered()) return -1;
  const std::vector<OpSchema>& ops = All().ops;
  size_t taken = 0;
  for (int i = 0; i < kMostUses && size >= 4; ++i, data += taken, size -= taken) {
    const Use use = ReadUse(ops, data, size, &taken);
    if (IsOutside(*use.op) || !Lends(use)) continue;
    StepThrough(use, data, taken);
  }
  return 0;
}

// Returns true for ops that read an input that can be lent, and of which a use can succeed (see
// op_fuzz.cc). The type of DeserializeSparse's input is an attribute, but neither of its two types can
// be lent.
bool IsToBeStepped(const OpSchema& op) {
  const auto plain = [](const Argument& x) { return !x.is_ref && x.dtype != TW_STRING && x.dtype != TW_RESOURCE && x.dtype != TW_VARIANT; };
  const bool calls = std::any_of(op.attrs.begin(), op.attrs.end(), [](const AttrSchema& a) { return a.kind == "func"; });
  const bool opens =
      std::any_of(op.inputs.begin(), op.inputs.end(), [](const Argument& x) { return !x.opens.empty() && !MakerOf(x.opens); });
  return !IsOutside(op) && std::any_of(op.inputs.begin(), op.inputs.end(), plain) && !calls && !opens && !op.makes_other &&
         !op.calls_program && !op.crosses && !op.only_takes && op.name != "Abort" && op.name != "DeserializeSparse";
}

// Checks that every such op was single-stepped.
extern "C" int ReplayEnded() {
  Shared& all = All();
  if (!SteppingLender::Offered()) {
    std::fprintf(stderr, "instructions cannot be run one by one on this machine\n");
    std::exit(77);
  }
  int lacking = 0;
  size_t ops = 0;
  for (const OpSchema& op : all.ops) {
    if (!IsToBeStepped(op) || all.stepped[op.name] > 0) continue;
    std::fprintf(stderr, "no sound use of %s was stepped through\n", op.name.c_str());
    ++lacking;
  }
  for (const auto& [op, stepped] : all.stepped) ops += stepped > 0;
  std::printf("%llu steps of %zu uses of %zu ops, %llu accesses\n", static_cast<unsigned long long>(all.steps), all.sound.size(), ops,
              static_cast<unsigned long long>(all.accesses));
  Race();
  return lacking;
}
