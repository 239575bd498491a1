#include "framework/registry/plugin_loader.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include <sys/stat.h>

#include "framework/base/float_state.h"
#include "framework/registry/plugin_file.h"
#include "framework/runtime/devices/device.h"
#include "tests/framework/registry/loading.h"

namespace thalweg {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing_support::LoadingTest;
using testing_support::Text;

// Loads files as they are found; plugin_known_test.cc tests the cache.
class PluginLoaderTest : public LoadingTest {
 protected:
  PluginLoaderTest() { NewLoader(); }
};

// ---- Files ----

TEST_F(PluginLoaderTest, LoadsAFileAndShutsItDown) {
  ASSERT_TRUE(loader_->Load(Built("good")).ok()) << Last().reason;
  PluginRecord r = Last();
  EXPECT_EQ(r.state, PluginRecord::kLoaded);
  EXPECT_EQ(r.id, "org.test.plugin");
  EXPECT_EQ(r.version, "1.2");
  EXPECT_THAT(r.ops, ElementsAre("TestPluginOp"));
  EXPECT_THAT(r.devices, ElementsAre("TEST"));
  EXPECT_EQ(r.kernels, 1u);
  EXPECT_EQ(r.epoch, uint32_t{TW_EPOCH});
  EXPECT_THAT(r.build, HasSubstr("compiler="));
  ASSERT_NE(registry_->FindOp("TestPluginOp"), nullptr);
  EXPECT_EQ(registry_->FindOp("TestPluginOp")->plugin, "org.test.plugin");
  loader_.reset();
  EXPECT_EQ(registry_->FindOp("TestPluginOp"), nullptr);
  EXPECT_THAT(lines_, ElementsAre("init", "shutdown"));
}

TEST_F(PluginLoaderTest, PutsBackTheFloatingPointStateAndSaysWhoChangedIt) {
  const FloatState before = FloatState::Now();
  EXPECT_EQ(before.text(), "as usual");
  for (const char* variant : {"flush_open", "round_init"}) {
    lines_.clear();
    NewLoader();
    ASSERT_TRUE(loader_->Load(Built(variant)).ok()) << Last().reason;
    EXPECT_TRUE(FloatState::Now() == before) << variant << ": " << FloatState::Now().text();
    EXPECT_THAT(lines_, Contains(HasSubstr("it changed the floating-point state of its thread"))) << variant;
  }
  EXPECT_THAT(lines_, Contains(HasSubstr("when its init ran (numbers are rounded up)")));
}

TEST_F(PluginLoaderTest, LoadsTheSameFileOnceWhateverItsPath) {
  ASSERT_TRUE(loader_->Load(Built("good")).ok());
  fs::create_symlink(fs::absolute(Built("good")), folder_ + "/other.so");
  EXPECT_TRUE(loader_->Load(folder_ + "/other.so").ok());
  PluginRecord r = Last();
  EXPECT_EQ(r.state, PluginRecord::kShadowed);
  EXPECT_EQ(r.id, "org.test.plugin");
  EXPECT_THAT(r.reason, HasSubstr("the same file is loaded from"));
  EXPECT_THAT(lines_, ElementsAre("init"));
}

TEST_F(PluginLoaderTest, LoadingAFileAgainIsNoSecondPlugin) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(loader_->Load(Built("good")).ok());
  EXPECT_EQ(loader_->records().size(), 1u);
  EXPECT_EQ(Last().state, PluginRecord::kLoaded);
  EXPECT_THAT(lines_, ElementsAre("init"));
}

TEST_F(PluginLoaderTest, WhatStoodBackForAFileHearsThatItIsUnloaded) {
  ASSERT_TRUE(loader_->Load(Built("good")).ok());
  fs::create_symlink(fs::absolute(Built("good")), folder_ + "/other.so");
  ASSERT_TRUE(loader_->Load(folder_ + "/other.so").ok());
  ASSERT_TRUE(loader_->Unload("org.test.plugin").ok());
  EXPECT_EQ(Last().state, PluginRecord::kShadowed);
  EXPECT_THAT(Last().reason, HasSubstr("good.so' went before it until the program unloaded that"));
  EXPECT_EQ(Last().fix, "tw_plugin_load loads it");
  EXPECT_TRUE(loader_->Load(folder_ + "/other.so").ok());
  EXPECT_EQ(Last().state, PluginRecord::kLoaded);
  EXPECT_EQ(loader_->records().size(), 1u);  // one file, which is now loaded
}

TEST_F(PluginLoaderTest, RefusesAnotherFileWithTheSameId) {
  ASSERT_TRUE(loader_->Load(Built("good")).ok());
  Status s = loader_->Load(Built("twin"));
  EXPECT_EQ(s.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(Text(s), HasSubstr("plugin 'org.test.plugin' ("));
  EXPECT_THAT(Text(s), HasSubstr("good.so'; remove one of the two"));
  EXPECT_EQ(Last().state, PluginRecord::kShadowed);
}

TEST_F(PluginLoaderTest, TellsWhatAFileIsInstead) {
  EXPECT_EQ(loader_->Load(folder_ + "/none.so").code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Last().reason, HasSubstr("No such file"));
  EXPECT_FALSE(loader_->Load(Write("text.so", "hello, I am no library, whatever my name says, and long enough to hold a header")).ok());
  EXPECT_THAT(Last().reason, HasSubstr("no ELF header"));
  EXPECT_FALSE(loader_->Load(Write("empty.so", "")).ok());
  EXPECT_THAT(Last().reason, HasSubstr("0 bytes"));
  EXPECT_FALSE(loader_->Load(folder_).ok());
  EXPECT_THAT(Last().reason, HasSubstr("it is no regular file"));
  ASSERT_EQ(mkfifo((folder_ + "/fifo.so").c_str(), 0600), 0);  // a FIFO without a writer
  EXPECT_FALSE(loader_->Load(folder_ + "/fifo.so").ok());
  EXPECT_THAT(Last().reason, HasSubstr("it is no regular file"));
  EXPECT_FALSE(loader_->Load("/proc/self/exe").ok());
  for (const PluginRecord& r : loader_->records()) {
    EXPECT_EQ(r.state, PluginRecord::kFailed);
    EXPECT_NE(r.fix, "") << r.path;
  }
}

TEST_F(PluginLoaderTest, SaysWhatToDoAboutAFileThatItMayNotRead) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads every file";
  const std::string path = Write("closed.so", Contents(Built("good")));
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  EXPECT_EQ(loader_->Load(path).code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(Last().reason, HasSubstr("Permission denied"));
  EXPECT_THAT(Last().fix, HasSubstr(StrCat("chmod a+r '", path, "'")));
}

TEST_F(PluginLoaderTest, RefusesAnotherMachinesLibrary) {
  std::string foreign = Contents(Built("good"));
  foreign[18] = 8;  // e_machine: MIPS
  foreign[19] = 0;
  Status s = loader_->Load(Write("foreign.so", foreign));
  EXPECT_THAT(Text(s), HasSubstr("it is built for ELF machine 8, this is"));
  EXPECT_THAT(Last().fix, HasSubstr("rebuild it for this machine"));
}

// A truncated file must not crash the process (the loader would map pages that do not exist).
TEST_F(PluginLoaderTest, RefusesATruncatedFile) {
  std::string whole = Contents(Built("good"));
  for (size_t keep : {size_t{10}, size_t{70}, size_t{300}, whole.size() / 4, whole.size() / 2}) {
    EXPECT_FALSE(loader_->Load(Write("short.so", whole.substr(0, keep))).ok()) << keep;
    EXPECT_EQ(Last().state, PluginRecord::kFailed);
  }
}

TEST_F(PluginLoaderTest, ExplainsMissingEntryAndUnresolvedSymbols) {
  EXPECT_FALSE(loader_->Load(Built("no_entry")).ok());
  EXPECT_EQ(Last().reason, "it does not export tw_plugin_query_v0");
  EXPECT_THAT(Last().fix, HasSubstr("TW_PLUGIN"));
  EXPECT_FALSE(loader_->Load(Built("unresolved")).ok());
  EXPECT_THAT(Last().reason, HasSubstr("tw_symbol_that_nobody_has"));
  EXPECT_THAT(Last().fix, HasSubstr("host table"));
}

TEST_F(PluginLoaderTest, KeepsAPluginUntilItsMemoryIsBack) {
  ASSERT_TRUE(loader_->Load(Built("good")).ok());
  const DeviceKind* kind = registry_->DeviceKinds().at(0);
  tw_device_info info{};
  auto device = std::make_unique<Device>(kind, 0, info, 0);
  Tensor t = *Tensor::Make(TW_FLOAT, Shape({100}), device->pool());
  device.reset();
  loader_.reset();
  EXPECT_THAT(lines_, ElementsAre("init"));
  t.reset();
  EXPECT_THAT(lines_, ElementsAre("init", "released", "shutdown"));
}

// ---- Search ----

TEST_F(PluginLoaderTest, LoadsFoldersInOrderAndSkipsWhatIsNoLibrary) {
  fs::create_directory(folder_ + "/a");
  fs::copy_file(Built("good"), folder_ + "/a/z_good.so");
  fs::copy_file(Built("no_entry"), folder_ + "/a/b_no_entry.so");
  Write("a/README.md", "not a plugin");
  loader_->LoadAll({{folder_ + "/a", folder_ + "/missing", folder_ + "/a/.", Built("twin")}, {}});
  auto all = loader_->records();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_THAT(all[0].path, HasSubstr("b_no_entry.so"));
  EXPECT_EQ(all[0].state, PluginRecord::kFailed);
  EXPECT_EQ(all[1].state, PluginRecord::kShadowed);  // an older version
  EXPECT_THAT(all[1].reason, HasSubstr("version 1.10, is"));
  EXPECT_THAT(all[2].reason, HasSubstr("cannot read the folder"));
  EXPECT_EQ(all[3].state, PluginRecord::kLoaded);
}

TEST_F(PluginLoaderTest, LeavesOutDisabledPluginsByIdOrFileName) {
  loader_->LoadAll({{Built("good")}, {"org.test.*"}});
  EXPECT_EQ(Last().state, PluginRecord::kDisabled);
  EXPECT_EQ(Last().id, "org.test.plugin");
  loader_->LoadAll({{Built("good")}, {"go?d.so"}});
  EXPECT_EQ(Last().state, PluginRecord::kDisabled);
  EXPECT_THAT(lines_, IsEmpty());
  EXPECT_TRUE(loader_->Load(Built("good")).ok());  // loading by name is allowed
}

class ScopedEnv {
 public:
  ScopedEnv(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old, had_ = true;
    value ? setenv(name, value, 1) : unsetenv(name);
  }
  ~ScopedEnv() { had_ ? setenv(name_, old_.c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::string old_;
  bool had_ = false;
};

TEST_F(PluginLoaderTest, SearchesVariableThenUserFolder) {
  fs::create_directories(folder_ + "/data/thalweg/plugins");
  ScopedEnv data("XDG_DATA_HOME", (folder_ + "/data").c_str());
  {
    ScopedEnv path("THALWEG_PLUGIN_PATH", "/first:/second");
    auto folders = DefaultPluginSearch().folders;
    ASSERT_GE(folders.size(), 3u);
    EXPECT_EQ(folders[0], "/first");
    EXPECT_EQ(folders[1], "/second");
    EXPECT_EQ(folders[2], folder_ + "/data/thalweg/plugins");
  }
  {
    ScopedEnv path("THALWEG_PLUGIN_PATH", "only:/first");
    EXPECT_THAT(DefaultPluginSearch().folders, ElementsAre("/first"));
  }
  ScopedEnv path("THALWEG_PLUGIN_PATH", nullptr);
  ASSERT_FALSE(DefaultPluginSearch().folders.empty());
  EXPECT_EQ(DefaultPluginSearch().folders[0], folder_ + "/data/thalweg/plugins");
}

// ---- Descriptors ----

// The queries below return it; each test fills it first.
tw_plugin descriptor;
const tw_plugin* Query(const tw_host_info*) { return &descriptor; }

tw_status* InitNothing(const tw_host*, tw_registrar*, void**) { return nullptr; }
tw_status* InitFails(const tw_host* h, tw_registrar*, void**) { return tw_fail(h, TW_UNAVAILABLE, TW_S("the driver is asleep")); }
tw_status* InitThrows(const tw_host*, tw_registrar*, void**) { throw std::runtime_error("surprise"); }
tw_status* InitIgnoresRefusal(const tw_host*, tw_registrar* r, void**) {
  tw_op_def bad = {TW_SIZED(tw_op_def), TW_S("F("), nullptr, nullptr, nullptr};
  tw_op_def good = {TW_SIZED(tw_op_def), TW_S("G() -> ()"), nullptr, nullptr, nullptr};
  (void)FromC(tw_add_op(r, &bad));
  return tw_add_op(r, &good);
}
tw_status* InitOfLaterVersions(const tw_host*, tw_registrar* r, void**) {
  const tw_op_def op = {TW_SIZED(tw_op_def), TW_S("G() -> ()"), nullptr, nullptr, nullptr};
  return tw_add_role(r, TW_S("op"), TW_OP_MAJOR, TW_OP_MINOR + 1, TW_OP_MINOR + 1, &op);
}
tw_status* InitWithALaterVersion(const tw_host* h, tw_registrar* r, void** out) {
  const tw_op_def op = {TW_SIZED(tw_op_def), TW_S("F() -> ()"), nullptr, nullptr, nullptr};
  const auto execute = [](const tw_frame*) -> tw_status* { return nullptr; };
  const tw_kernel_def kernel = {TW_SIZED(tw_kernel_def), TW_S("G @CPU"), nullptr, nullptr, execute, nullptr, nullptr, nullptr};
  TW_TRY(InitOfLaterVersions(h, r, out));
  TW_TRY(tw_add_kernel(r, &kernel));
  return tw_add_op(r, &op);
}
void SayShutdown(const tw_host* h, void*) { h->run->log(h, 1, TW_S("shutdown")); }

class DescriptorTest : public PluginLoaderTest {
 protected:
  DescriptorTest() {
    descriptor = {TW_SIZED(tw_plugin),       TW_EPOCH,    0,          0, TW_MINOR, TW_S("org.test.d"), TW_S("3.1"), TW_S("something new"),
                  TW_S("compiler=x; cpu=y"), InitNothing, SayShutdown};
  }
  // Returns the reason if loading fails.
  std::string Refusal() {
    Status s = loader_->LoadStatic(Query, "d");
    EXPECT_FALSE(s.ok());
    EXPECT_EQ(Last().state, PluginRecord::kFailed);
    return Last().reason;
  }
};

TEST_F(DescriptorTest, LoadsWhatIsLinkedIn) {
  ASSERT_TRUE(loader_->LoadStatic(Query, "d").ok());
  EXPECT_EQ(Last().path, "linked in as d");
  EXPECT_EQ(loader_->LoadStatic(Query, "d").code(), absl::StatusCode::kAlreadyExists);
  EXPECT_FALSE(loader_->LoadStatic(nullptr, "d").ok());
}

TEST_F(DescriptorTest, RefusesAnotherEpochInOneSentence) {
  descriptor.epoch = 7;
  descriptor.floor = 2;
  descriptor.target = 3;
  Status s = loader_->LoadStatic(Query, "d");
  EXPECT_EQ(s.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Text(s),
            StrCat("plugin 'org.test.d' (linked in as d): it needs ABI epoch 7, minors 2 to 3 (something new), this runtime offers epoch ",
                   TW_EPOCH, ", minors 0 to ", TW_MINOR, "; upgrade the runtime, or rebuild the plugin against its headers"));
}

TEST_F(DescriptorTest, ReadsOnlyFrozenMembersOfAnotherEpoch) {
  descriptor.epoch = 7;
  descriptor.size = offsetof(tw_plugin, floor_adds_len) + 8;
  descriptor.flags = ~0u;
  EXPECT_THAT(Refusal(), HasSubstr("epoch 7"));
}

TEST_F(DescriptorTest, ATargetThatItsHeadersDoNotHaveIsNamed) {
  descriptor.header = TW_MINOR;
  descriptor.floor = descriptor.target = TW_MINOR + 7;
  EXPECT_THAT(Refusal(), HasSubstr(StrCat("its headers declare minors up to ", TW_MINOR)));
  EXPECT_THAT(Last().fix, HasSubstr(StrCat("rebuild it with THALWEG_TARGET_MINOR and THALWEG_FLOOR_MINOR at most ", TW_MINOR)));
  descriptor.header = TW_MINOR + 7;  // with headers of that minor the runtime is what is too old
  EXPECT_THAT(Refusal(), Not(HasSubstr("its headers declare")));
  EXPECT_THAT(Last().fix, HasSubstr("upgrade the runtime"));
}

TEST_F(DescriptorTest, RefusesAFloorAboveWhatIsOffered) {
  descriptor.floor = descriptor.target = TW_MINOR + 2;
  EXPECT_THAT(Refusal(), HasSubstr("(something new)"));
  EXPECT_THAT(Last().fix, HasSubstr("THALWEG_FLOOR_MINOR"));
  descriptor.target = TW_MINOR + 1;
  EXPECT_THAT(Refusal(), HasSubstr("its floor is above its target"));
}

TEST_F(DescriptorTest, AFloorOfThisMinorIsAccepted) {
  descriptor.floor = descriptor.target = TW_MINOR;
  ASSERT_TRUE(loader_->LoadStatic(Query, "d").ok());
  EXPECT_EQ(Last().minor, uint32_t{TW_MINOR});
}

TEST_F(DescriptorTest, AgreesOnTheLowerMinor) {
  descriptor.target = TW_MINOR + 5;
  ASSERT_TRUE(loader_->LoadStatic(Query, "d").ok());
  EXPECT_EQ(Last().minor, uint32_t{TW_MINOR});
}

TEST_F(DescriptorTest, NamesTheOneLineThatAPluginOfAnEarlierEpochNeeds) {
  descriptor.epoch = TW_EPOCH - 1;
  EXPECT_THAT(Refusal(), HasSubstr(StrCat("it needs ABI epoch ", TW_EPOCH - 1)));
  EXPECT_EQ(Last().fix,
            "rebuild the plugin against this runtime's headers, with tw_add_op(r, &d) for r->op(r, &d), and so on for other roles");
}

TEST_F(DescriptorTest, UsesTheRestOfAPluginWithALaterRole) {
  descriptor.init = InitWithALaterVersion;
  ASSERT_TRUE(loader_->LoadStatic(Query, "d").ok());
  EXPECT_THAT(Last().ops, ElementsAre("F"));
  EXPECT_EQ(Last().kernels, 0u);
  const std::string left = StrCat("definitions of role 'op': they need version ", TW_OP_MAJOR, ".", TW_OP_MINOR + 1, ", this runtime has ",
                                  TW_OP_MAJOR, ".", TW_OP_MINOR, "; upgrade the runtime, or rebuild the plugin against its headers");
  EXPECT_EQ(Last().reason,
            StrCat("left out: ", left, "; left out: kernels of op 'G': there is no such op; load the plugin that defines it"));
  EXPECT_THAT(lines_, Contains(StrCat("some of what it provides is left out: ", left)));
}

TEST_F(DescriptorTest, RefusesAPluginOfWhichNothingIsLeft) {
  descriptor.init = InitOfLaterVersions;
  EXPECT_THAT(Refusal(), HasSubstr("this runtime can use nothing of it: definitions of role 'op': they need version"));
  EXPECT_EQ(Last().fix, "upgrade the runtime, or rebuild the plugin against its headers");
  EXPECT_THAT(lines_, ElementsAre("shutdown"));  // its init had succeeded
}

TEST_F(DescriptorTest, RefusesInstructionsThatThisCpuLacks) {
#if defined(__x86_64__)
  const char all[] = "compiler=x; cpu=x86-64 sse3 a_set_of_tomorrow";
  descriptor.build = all;
  descriptor.build_len = sizeof all - 1;
  EXPECT_TRUE(loader_->LoadStatic(Query, "d").ok()) << Last().reason;
  if (__builtin_cpu_supports("xop")) GTEST_SKIP() << "this CPU has the set that this test takes for missing";
  const char more[] = "compiler=x; cpu=x86-64 sse3 xop";
  descriptor.id = "org.test.e";
  descriptor.build = more;
  descriptor.build_len = sizeof more - 1;
  EXPECT_EQ(Refusal(), "it is built for a CPU with xop, which this machine's CPU lacks");
  EXPECT_EQ(Last().fix, "build it without -march=native, or for this CPU");
#else
  GTEST_SKIP() << "needs x86-64";
#endif
}

TEST_F(DescriptorTest, RefusesBrokenDescriptors) {
  EXPECT_FALSE(loader_->LoadStatic([](const tw_host_info*) -> const tw_plugin* { return nullptr; }, "d").ok());
  EXPECT_THAT(Last().reason, HasSubstr("answered NULL"));
  EXPECT_FALSE(loader_->LoadStatic([](const tw_host_info*) -> const tw_plugin* { throw 1; }, "d").ok());
  EXPECT_THAT(Last().reason, HasSubstr("threw"));
  tw_plugin good = descriptor;
  descriptor.size = 40;
  EXPECT_THAT(Refusal(), HasSubstr("its descriptor has 40 bytes"));
  descriptor = good;
  descriptor.flags = 2;
  EXPECT_THAT(Refusal(), HasSubstr("flags 2"));
  descriptor = good;
  descriptor.id = nullptr;
  EXPECT_THAT(Refusal(), HasSubstr("no id"));
  descriptor = good;
  descriptor.id_len = ~0ull;
  EXPECT_THAT(Refusal(), HasSubstr("no id"));
  descriptor = good;
  descriptor.init = nullptr;
  EXPECT_THAT(Refusal(), HasSubstr("no init"));
  descriptor = good;
  descriptor.size = offsetof(tw_plugin, init) + 4;  // half of the field is covered: it counts as absent
  EXPECT_THAT(Refusal(), HasSubstr("no init"));
}

TEST_F(DescriptorTest, RefusesAnotherSanitizerBeforeInit) {
  descriptor.init = InitThrows;
  std::string build = StrCat("compiler=x; sanitizer=", HostSanitizer() == "thread" ? "address" : "thread");
  descriptor.build = build.data();
  descriptor.build_len = build.size();
  EXPECT_THAT(Refusal(), HasSubstr("sanitizer"));
  EXPECT_THAT(Last().fix, HasSubstr("-fsanitize="));
}

TEST_F(DescriptorTest, TakesNothingOfAnInitThatFails) {
  descriptor.init = InitFails;
  EXPECT_EQ(Refusal(), "its init failed: the driver is asleep");
  descriptor.init = InitThrows;
  EXPECT_THAT(Refusal(), HasSubstr("threw a C++ exception: surprise"));
  EXPECT_THAT(lines_, IsEmpty());  // a plugin that did not start is not shut down
}

TEST_F(DescriptorTest, ShutsDownWhatStartedButWasRefused) {
  descriptor.init = InitIgnoresRefusal;
  EXPECT_THAT(Refusal(), HasSubstr("schema of op 'F', column 3"));
  EXPECT_EQ(registry_->FindOp("G"), nullptr);
  EXPECT_THAT(lines_, ElementsAre("shutdown"));
  EXPECT_THAT(Last().ops, IsEmpty());
}

TEST_F(DescriptorTest, AddsRemarksToTheRecord) {
  ASSERT_TRUE(loader_->LoadStatic(Query, "d").ok());
  loader_->Remark("org.test.d", "no device found");
  loader_->Remark("org.test.d", "really none");
  loader_->Remark("org.test.other", "lost");
  EXPECT_EQ(Last().reason, "no device found; really none");
}

TEST(PluginFileTest, KnowsSanitizersByTheirRuntimes) {
  EXPECT_EQ(SanitizerOf({{"libc.so.6", "libasan.so.8"}}), "address");
  EXPECT_EQ(SanitizerOf({{"libtsan.so.2"}}), "thread");
  EXPECT_EQ(SanitizerOf({{"libc.so.6", "libstdc++.so.6"}}), "");
}

}  // namespace
}  // namespace thalweg
