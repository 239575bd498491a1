#include "framework/session/limits.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/base/machine_memory.h"
#include "framework/graph/graph_def.h"
#include "framework/runtime/devices/give_memory_back.h"
#include "framework/session/session.h"
#include "tests/framework/io/bridged_files.h"
#include "tests/framework/io/fake_files.h"
#include "tests/framework/io/recorded_files.h"
#include "tests/framework/support/fakes.h"
#include "tests/framework/support/test_ops.h"

namespace thalweg {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing_support::ClearJournal;
using testing_support::Floats;
using testing_support::FloatsOf;
using testing_support::Journal;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::Text;

using Options = std::map<std::string, std::string>;

// A graph whose nodes were all imported.
class LimitsTest : public testing::Test {
 protected:
  void SetUp() override { ClearJournal(); }
  // Imports the nodes made so far in `theirs_` into g_, as "in/...".
  void Import() {
    auto bytes = ExportGraphDef(theirs_.graph());
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    ImportOptions options;
    options.prefix = "in";
    Status s = ImportGraphDef(bytes->data(), bytes->size(), options, &g_.graph());
    ASSERT_TRUE(s.ok()) << s;
  }
  Edge Imported(const std::string& name) { return *g_.graph().FindEdge("in/" + name); }
  Status Run(Edge fetch, const Options& options) {
    auto session = g_.NewSession(options);
    return session ? Step(*session, {{}, {fetch}, {}}).status() : Status();
  }
  Status Create(const Options& options) {
    SessionOptions o;
    for (const auto& [key, value] : options) EXPECT_TRUE(SetSessionOption(&o, key, value).ok()) << key;
    return Session::Create(std::shared_ptr<Graph>(&g_.graph(), [](Graph*) {}), o).status();
  }
  Edge TheirSave(const std::string& name, const std::string& prefix) {
    return theirs_.Op("SaveAs", {theirs_.Const({1, 2})}, {.name = name, .attrs = {{"prefix", AttrValue::String(prefix)}}});
  }
  bool Saved(const std::string& prefix) const { return fs::exists(prefix + ".index"); }

  test::TempFolder folder_;
  TestGraph theirs_{2}, g_{2};
};

// ---- Files ----

TEST_F(LimitsTest, ImportedNodesThatTouchFilesAreRefused) {
  TheirSave("save", folder_ / "x");
  Import();
  Status s = Run(Imported("save"), {});
  EXPECT_TRUE(absl::IsPermissionDenied(s));
  EXPECT_EQ(Text(s),
            "SaveAs 'in/save' of an imported graph touches files; give the session allow_files=DIR, or trust_imported=true, if the graph "
            "may do that");
  EXPECT_FALSE(Saved(folder_ / "x"));
}

TEST_F(LimitsTest, NodesOfTheProgramAreFree) {
  theirs_.Const({1, 2}, {.name = "value"});
  Import();
  Edge own = g_.Op("SaveAs", {Imported("value")}, {.attrs = {{"prefix", AttrValue::String(folder_ / "own")}}});
  EXPECT_TRUE(Run(own, {}).ok());
  EXPECT_TRUE(Saved(folder_ / "own"));
}

TEST_F(LimitsTest, WhatDoesNotRunIsNotRefused) {
  TheirSave("save", folder_ / "x");
  theirs_.Op("Next", {theirs_.Const({1})}, {.name = "next"});
  Import();
  EXPECT_TRUE(Run(Imported("next"), {}).ok());
}

TEST_F(LimitsTest, AllowFilesIsAFolderAndNothingElse) {
  fs::create_directory(folder_ / "allowed");
  TheirSave("relative", "a");
  TheirSave("absolute", folder_ / "allowed/b");
  TheirSave("up", "../c");
  TheirSave("elsewhere", folder_ / "d");
  Import();
  const Options options = {{"allow_files", folder_ / "allowed"}};
  EXPECT_TRUE(Run(Imported("relative"), options).ok());
  EXPECT_TRUE(Saved(folder_ / "allowed/a"));
  EXPECT_TRUE(Run(Imported("absolute"), options).ok());
  EXPECT_TRUE(Saved(folder_ / "allowed/b"));
  for (const char* name : {"up", "elsewhere"}) {
    Status s = Run(Imported(name), options);
    EXPECT_TRUE(absl::IsPermissionDenied(s)) << s;
    EXPECT_THAT(Text(s), HasSubstr(StrCat("SaveAs 'in/", name, "'")));
  }
  EXPECT_THAT(folder_.names(), ElementsAre("allowed"));
  // `trust` permits everything else, but a named folder still limits access.
  EXPECT_TRUE(absl::IsPermissionDenied(Run(Imported("elsewhere"), {{"allow_files", folder_ / "allowed"}, {"trust_imported", "true"}})));
  EXPECT_TRUE(Run(Imported("elsewhere"), {{"trust_imported", "true"}}).ok());
  EXPECT_TRUE(Saved(folder_ / "d"));
}

TEST_F(LimitsTest, FileSystemsOfPluginsAreOutsideUnlessNamed) {
  test::RecordedFiles disk;
  Registration r;
  r.roles.push_back(test::Bridge(&disk));
  ASSERT_TRUE(g_.runtime().registry().Commit(std::move(r)).ok());
  TheirSave("relative", "a");
  TheirSave("inside", "test://allowed/b");
  TheirSave("beside", "test://other/c");
  TheirSave("machine", folder_ / "d");
  Import();
  Status s = Run(Imported("inside"), {{"allow_files", folder_.path()}});
  EXPECT_TRUE(absl::IsPermissionDenied(s));
  EXPECT_THAT(Text(s), HasSubstr("'test://allowed/b.data.tmp-"));
  EXPECT_THAT(Text(s), HasSubstr("is of another file system"));
  EXPECT_THAT(disk.names(), IsEmpty());
  const Options options = {{"allow_files", "test://allowed"}};
  EXPECT_TRUE(Run(Imported("relative"), options).ok());
  EXPECT_TRUE(Run(Imported("inside"), options).ok());
  for (const char* name : {"beside", "machine"}) EXPECT_TRUE(absl::IsPermissionDenied(Run(Imported(name), options))) << name;
  EXPECT_EQ(disk.names().size(), 4u);
  for (const std::string& name : disk.names()) EXPECT_THAT(name, testing::StartsWith("test://allowed/"));
  EXPECT_THAT(folder_.names(), IsEmpty());
  EXPECT_TRUE(Run(Imported("beside"), {{"trust_imported", "true"}}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Create({{"allow_files", "test://"}})));
}

TEST_F(LimitsTest, OneSessionConfinesImportedNodesAndNotItsOwn) {
  fs::create_directory(folder_ / "allowed");
  TheirSave("save", "x");
  Import();
  Edge own = g_.Op("SaveAs", {Imported("save")}, {.attrs = {{"prefix", AttrValue::String(folder_ / "own")}}});
  EXPECT_TRUE(Run(own, {{"allow_files", folder_ / "allowed"}}).ok());
  EXPECT_TRUE(Saved(folder_ / "allowed/x"));
  EXPECT_TRUE(Saved(folder_ / "own"));
}

TEST_F(LimitsTest, TheNetworkIsNotAFolder) {
  theirs_.Op("Phone", {theirs_.Const({1})}, {.name = "call", .attrs = {{"tag", AttrValue::Int(7)}}});
  Import();
  EXPECT_THAT(Text(Run(Imported("call"), {})), HasSubstr("touches files and network; give the session trust_imported=true"));
  Status s = Run(Imported("call"), {{"allow_files", folder_.path()}});
  EXPECT_THAT(Text(s), HasSubstr("touches network; give the session trust_imported=true"));
  EXPECT_THAT(Journal(), IsEmpty());
  EXPECT_TRUE(Run(Imported("call"), {{"trust_imported", "true"}}).ok());
  EXPECT_THAT(Journal(), ElementsAre(7));
}

TEST_F(LimitsTest, AGraphMayGrowByImportWhileSessionsRun) {
  Edge own = g_.Op("Next", {g_.Const({1})});
  auto session = g_.NewSession();
  EXPECT_TRUE(Step(*session, {{}, {own}, {}}).ok());
  TheirSave("save", folder_ / "x");
  Import();
  EXPECT_TRUE(absl::IsPermissionDenied(Step(*session, {{}, {Imported("save")}, {}}).status()));
}

TEST_F(LimitsTest, AllowFilesMustBeAFolder) {
  EXPECT_EQ(Text(Create({{"allow_files", folder_ / "none"}})),
            "session option 'allow_files': cannot open folder '" + (folder_ / "none") + "': No such file or directory (errno 2)");
}

// ---- Ops ----

TEST_F(LimitsTest, OnlyAllowedOpsRunInImportedParts) {
  theirs_.Op("Mirror", {theirs_.Op("Dice", {theirs_.Const({1})}, {.name = "dice"})}, {.name = "mirror"});
  Import();
  EXPECT_TRUE(Run(Imported("mirror"), {{"allow_ops", "Const,Dice,Mirror"}}).ok());
  Status s = Run(Imported("mirror"), {{"allow_ops", "Const,Mirror"}});
  EXPECT_TRUE(absl::IsPermissionDenied(s));
  EXPECT_EQ(Text(s),
            "Dice 'in/dice' of an imported graph: op Dice is not in the session's allow_ops; add it there if the graph may use it");
  EXPECT_TRUE(Run(g_.Op("Dice", {g_.Const({1})}), {{"allow_ops", "Mirror"}}).ok());  // made by the program, not imported
}

TEST_F(LimitsTest, DeniedOpsDoNotRunInImportedParts) {
  theirs_.Op("Mirror", {theirs_.Op("Dice", {theirs_.Const({1})}, {.name = "dice"})}, {.name = "mirror"});
  Import();
  EXPECT_TRUE(Run(Imported("mirror"), {{"deny_ops", "Noise"}}).ok());
  EXPECT_THAT(Text(Run(Imported("mirror"), {{"deny_ops", "Noise,Dice"}})), HasSubstr("op Dice is in the session's deny_ops"));
  EXPECT_THAT(Text(Run(Imported("mirror"), {{"deny_ops", "Dice"}, {"trust_imported", "true"}})), HasSubstr("deny_ops"));
  EXPECT_TRUE(Run(g_.Op("Dice", {g_.Const({1})}), {{"deny_ops", "Dice"}}).ok());
}

TEST_F(LimitsTest, AMisspeltOpIsAnError) {
  for (const char* option : {"allow_ops", "deny_ops"}) {
    EXPECT_EQ(Text(Create({{option, "Dice,Dize"}})),
              StrCat("session option '", option, "': no loaded plugin defines op 'Dize'; check the spelling"));
  }
}

// ---- Memory ----

class MemoryLimitTest : public LimitsTest {
 protected:
  Edge x_ = g_.Input(Shape({-1}), "x");
};

TEST_F(MemoryLimitTest, ThePlansBlockCounts) {
  Edge y = g_.Op("Mirror", {g_.Op("Next", {x_})});
  auto session = g_.NewSession({{"memory_limit", "100000"}});
  EXPECT_TRUE(Step(*session, {{x_}, {y}, {}}, {FloatsOf(Shape({100}))}).ok());
  Status s = Step(*session, {{x_}, {y}, {}}, {FloatsOf(Shape({100'000}))}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(s)) << s;
  EXPECT_THAT(Text(s), HasSubstr("of the 100000 bytes of its memory_limit"));
  EXPECT_TRUE(Step(*session, {{x_}, {y}, {}}, {FloatsOf(Shape({100}))}).ok());  // the session still works
}

TEST_F(MemoryLimitTest, WhatOnlyRunningTellsCounts) {
  Edge grown = g_.Op("Grow", {g_.Const(*Tensor::Make(TW_FLOAT, Shape({})))},
                     {.name = "grown", .attrs = {{"shape", AttrValue::OfShape(Shape({1'000'000}))}}});
  Edge given = g_.Op("Give", {x_}, {.name = "given", .attrs = {{"more", AttrValue::Int(1'000'000)}}});
  for (auto [fetch, name] : {std::pair(grown, "Grow 'grown'"), {given, "Give 'given'"}}) {
    auto session = g_.NewSession({{"memory_limit", "1M"}, {"max_shape_plans", "1"}});
    Status s = Step(*session, {{x_}, {fetch}, {}}, {Floats({1})}).status();
    EXPECT_TRUE(absl::IsResourceExhausted(s)) << s;
    EXPECT_THAT(Text(s), HasSubstr(name));
    EXPECT_THAT(Text(s), HasSubstr("the session holds"));
  }
}

TEST_F(MemoryLimitTest, FetchedTensorsCountUntilTheyAreReleased) {
  Edge y = g_.Op("Next", {x_});
  auto session = g_.NewSession({{"memory_limit", "14000"}});
  auto step = [&] { return Step(*session, {{x_}, {y}, {}}, {FloatsOf(Shape({1000}))}); };
  std::vector<std::vector<Tensor>> kept;
  kept.push_back(*step());
  kept.push_back(*step());
  EXPECT_TRUE(absl::IsResourceExhausted(step().status()));
  kept.pop_back();
  EXPECT_TRUE(step().ok());
  session.reset();
  EXPECT_EQ(kept[0][0].as<float>()[999], 1001);  // tensors outlive the session
}

TEST_F(MemoryLimitTest, VariablesCountForWhoGaveThemTheirValue) {
  Edge box = g_.Op("Box", {}, {.attrs = {{"key", AttrValue::String("v")}, {"shape", AttrValue::OfShape(Shape({-1}))}}});
  const Node* put = g_.Op("Next", {x_}).node;
  NodeSpec spec;
  spec.op = "Put";
  spec.inputs = {box, {put, 0}};
  const Node* assign = *g_.graph().AddNode(std::move(spec));
  auto session = g_.NewSession({{"memory_limit", "14000"}});
  auto other = g_.NewSession({{"memory_limit", "14000"}});
  auto set = [&](Session& s, int64_t n) { return Step(s, {{x_}, {}, {assign}}, {FloatsOf(Shape({n}))}).status(); };
  EXPECT_TRUE(set(*session, 1500).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(set(*session, 1600)));
  EXPECT_TRUE(set(*other, 1500).ok());  // is charged for the variable from now on
  EXPECT_TRUE(set(*session, 1500).ok());
}

// A variable's value on a device that another variable shares is copied before it changes.
TEST_F(MemoryLimitTest, ACopyOfASharedVariableOnADeviceCounts) {
  auto box = [&](const char* key) {
    return g_.Op("Box", {}, {.device = "FAKE:0", .attrs = {{"key", AttrValue::String(key)}, {"shape", AttrValue::OfShape(Shape({-1}))}}});
  };
  auto put = [&](Edge to, Edge value) {
    NodeSpec spec;
    spec.op = "Put";
    spec.inputs = {to, value};
    spec.device = "FAKE:0";
    return *g_.graph().AddNode(std::move(spec));
  };
  Edge a = box("shared a"), b = box("shared b");
  const Node *set = put(a, x_), *share = put(b, g_.Op("Get", {a}, {.device = "FAKE:0"}));
  auto second_set = [&](const char* limit, Status* first) {
    auto session = g_.NewSession({{"memory_limit", limit}, {"container", StrCat("shared ", limit)}});
    const std::vector<Tensor> feeds = {FloatsOf(Shape({1000}))};
    *first = Step(*session, {{x_}, {}, {set}}, feeds).status();
    if (first->ok()) *first = Step(*session, {{}, {}, {share}}).status();
    return Step(*session, {{x_}, {}, {set}}, feeds).status();
  };
  Status first;
  EXPECT_TRUE(second_set("30000", &first).ok());
  EXPECT_TRUE(first.ok()) << first;
  Status s = second_set("10000", &first);  // 4,000 bytes shared, 4,000 fed, and 4,000 for the copy
  EXPECT_TRUE(first.ok()) << first;
  EXPECT_TRUE(absl::IsResourceExhausted(s)) << s;
  EXPECT_THAT(Text(s), HasSubstr(StrCat("Put 'Put' on FAKE:0: ", 4096 + MemoryBudget::kPerBuffer, " bytes more are too many")));
}

TEST_F(MemoryLimitTest, MemoryOfIdlePlansIsGivenUpFirst) {
  Edge y = g_.Op("Mirror", {g_.Op("Next", {x_})});
  auto session = g_.NewSession({{"memory_limit", "40000"}});
  for (int round = 0; round < 3; ++round) {
    for (int64_t n : {1000, 1100, 1200, 1300, 1400, 1500}) {
      auto out = Step(*session, {{x_}, {y}, {}}, {FloatsOf(Shape({n}))});
      EXPECT_TRUE(out.ok()) << n << out.status();
    }
  }
}

TEST_F(MemoryLimitTest, ImportedNodesBringALimitUnlessTheyAreTrusted) {
  theirs_.Op("Next", {theirs_.Const({1})}, {.name = "next"});
  auto limit = [&](bool trust, uint64_t bytes) {
    SessionOptions options;
    options.trust_imported = trust;
    options.memory_limit = bytes;
    auto limits = SessionLimits::Create(options, &g_.runtime());
    (*limits)->EnsureBudget(g_.graph(), [] {});
    return (*limits)->budget() ? (*limits)->budget()->limit() : 0;
  };
  EXPECT_EQ(limit(false, 0), 0u);
  Import();
  EXPECT_GT(MachineMemory(), 100u << 20);
  EXPECT_EQ(limit(false, 0), MachineMemory() / 4 * 3);
  EXPECT_EQ(limit(true, 0), 0u);
  EXPECT_EQ(limit(true, 5), 5u);
  EXPECT_EQ(limit(false, 5), 5u);
}

TEST_F(MemoryLimitTest, WhatIsComputedWhilePlanningCounts) {
  Edge value = theirs_.Const(*Tensor::Make(TW_FLOAT, Shape({1 << 20})));
  for (int i = 0; i < 40; ++i) value = theirs_.Op("Next", {value}, {.name = StrCat("n", i)});
  Import();
  Edge fed = g_.Op("Next", {x_});
  auto nodes = [&](const Options& options) {
    auto session = g_.NewSession(options);
    auto callable = session->MakeCallable({{x_}, {Imported("n39"), fed}, {}});
    std::vector<Tensor> feeds = {Floats({1})}, fetches(2);
    Status s = (*callable)->Run(feeds.data(), {}, fetches.data());
    EXPECT_TRUE(s.ok()) << s;
    return (*callable)->Report({Shape({1})})->nodes;
  };
  EXPECT_EQ(nodes({}), 1u);
  // A value that does not fit is computed in the step; planning has freed its temporary memory by
  // then.
  EXPECT_GT(nodes({{"memory_limit", "20M"}}), 30u);
}

TEST_F(MemoryLimitTest, AnAccountPaysForItsSessionsWithTheirLimits) {
  Edge y = g_.Op("Mirror", {g_.Op("Next", {x_})});
  MemoryBudget* account = MemoryBudget::Create(220'000, "client 'ann'");
  const auto create = [&](const char* limit) {
    SessionOptions options;
    EXPECT_TRUE(SetSessionOption(&options, "memory_limit", limit).ok());
    return *Session::Create(std::shared_ptr<Graph>(&g_.graph(), [](Graph*) {}), options, account);
  };
  const auto step = [&](Session& session, int64_t n) { return Step(session, {{x_}, {y}, {}}, {FloatsOf(Shape({n}))}); };
  {
    auto first = create("0"), second = create("0"), little = create("20000");
    auto kept = step(*first, 12'000);
    ASSERT_TRUE(kept.ok()) << kept.status();
    EXPECT_GT(account->used(), 48'000u);
    EXPECT_LE(account->used(), 220'000u);
    // The account is shared, and each session also keeps to its own limit.
    EXPECT_THAT(Text(step(*second, 12'000).status()), HasSubstr("client 'ann' holds"));
    kept = Status();
    first.reset();
    EXPECT_TRUE(step(*second, 12'000).ok());
    EXPECT_THAT(Text(step(*little, 6'000).status()), HasSubstr("the session holds"));
    EXPECT_TRUE(step(*little, 1'000).ok());
  }
  EXPECT_EQ(account->used(), 0u);
  account->Release();
}

TEST_F(MemoryLimitTest, WhatPoolsKeptGoesBackToTheSystemWithTheSession) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr bool kMeasured = false;  // these builds use their own allocator
#else
  constexpr bool kMeasured = true;
#endif
  constexpr uint64_t kMega = 1 << 20, kBytes = 64 * kMega;
  const auto resident = [] {
    uint64_t pages = 0, all = 0;
    std::ifstream("/proc/self/statm") >> all >> pages;
    return pages * uint64_t(sysconf(_SC_PAGESIZE));
  };
  Edge y = g_.Op("Mirror", {g_.Op("Next", {x_})});
  GiveMemoryBack(g_.runtime());
  const uint64_t before = resident(), held = MemoryPool::Host()->stats().held;
  auto session = g_.NewSession({});
  EXPECT_TRUE(Step(*session, {{x_}, {y}, {}}, {FloatsOf(Shape({int64_t(kBytes / sizeof(float))}))}).ok());
  EXPECT_GE(MemoryPool::Host()->stats().held, held + kBytes) << "for the next step";
  EXPECT_TRUE(!kMeasured || resident() >= before + kBytes) << resident() - before;
  session.reset();
  EXPECT_LE(MemoryPool::Host()->stats().held, held + kMega);
  EXPECT_TRUE(!kMeasured || resident() <= before + 16 * kMega) << resident() - before;
}

// A graph keeps 64 MiB of known values, and works without further ones.
TEST_F(LimitsTest, ValuesThatFollowFromConstantsTakeLittleMemory) {
  const uint64_t before = MemoryPool::Host()->stats().in_use;
  Edge value = g_.Const(*Tensor::Make(TW_FLOAT, Shape({1024})));
  const Edge first = g_.Op("Next", {value});
  for (int i = 0; i < 20'000; ++i) value = g_.Op("Next", {value});
  EXPECT_TRUE(first.node->value(0));
  EXPECT_FALSE(value.node->value(0));
  EXPECT_EQ(value.node->shape(0), Shape({1024}));
  EXPECT_LE(MemoryPool::Host()->stats().in_use - before, 65u << 20);
}

// ---- Time ----

TEST_F(LimitsTest, ARunEndsAfterTheSessionsTime) {
  Edge x = g_.Input(Shape({1}), "x"), y = g_.Op("Stubborn", {x});
  auto session = g_.NewSession({{"step_timeout_ms", "20"}});
  EXPECT_TRUE(absl::IsDeadlineExceeded(Step(*session, {{x}, {y}, {}}, {Floats({1})}).status()));
  auto patient = g_.NewSession({{"step_timeout_ms", "1000000"}});  // a run's own timeout takes precedence
  EXPECT_TRUE(absl::IsDeadlineExceeded(Step(*patient, {{x}, {y}, {}}, {Floats({1})}, {.deadline_ns = 20'000'000}).status()));
}

}  // namespace
}  // namespace thalweg
