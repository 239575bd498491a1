// Plugins that are known but not loaded: the probe, the cache, the first use; allow-lists,
// conflicts, unloading.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include <sys/stat.h>

#include "framework/base/sha256.h"
#include "framework/registry/own_build.h"
#include "framework/registry/plugin_digest.h"
#include "framework/runtime/devices/device.h"
#include "tests/framework/registry/loading.h"

namespace thalweg {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing_support::LoadingTest;
using testing_support::Text;

class PluginKnownTest : public LoadingTest {
 protected:
  // Finds the plugins of the folder, as a runtime does when it starts. Stamps are trusted only if
  // they are older than a tick of the clock.
  PluginLoader& Start(PluginLoading loading) {
    usleep(20'000);
    PluginLoader& loader = NewLoader(std::move(loading));
    loader.LoadAll({{plugins()}, {}});
    return loader;
  }
  static PluginLoading NoHelper(PluginLoading loading) {
    loading.helper = "/no/such/helper";
    return loading;
  }
};

// ---- The probe, and the cache ----

TEST_F(PluginKnownTest, KnowsWhatAPluginBringsWithoutLoadingIt) {
  Put("good", "good.so");
  Start(Usual());
  PluginRecord r = Last();
  EXPECT_EQ(r.state, PluginRecord::kKnown) << r.reason;
  EXPECT_EQ(r.id, "org.test.plugin");
  EXPECT_EQ(r.version, "1.2");
  EXPECT_THAT(r.ops, ElementsAre("TestPluginOp"));
  EXPECT_THAT(r.devices, ElementsAre("TEST"));
  EXPECT_EQ(r.kernels, 1u);
  EXPECT_EQ(r.epoch, uint32_t{TW_EPOCH});
  EXPECT_EQ(r.digest, Sha256(Contents(Built("good"))));
  EXPECT_THAT(registry_->DeviceKindNames().at(0).kind, "TEST");
  EXPECT_EQ(registry_->FindOp("NobodysOp"), nullptr);
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(PluginKnownTest, TellsWhatIsLeftOutBeforeAndAfterLoading) {
  Put("later", "later.so");
  const std::string left =
      "left out: definitions of role 'teleport': this runtime does not know the role; upgrade the runtime, or rebuild the plugin against "
      "its "
      "headers";
  for (const char* from : {"the helper", "the cache"}) {
    Start(Usual());
    EXPECT_EQ(Last().state, PluginRecord::kKnown) << from;
    EXPECT_EQ(Last().reason, left) << from;
    EXPECT_NE(registry_->FindOp("TestPluginOp"), nullptr);
    EXPECT_EQ(Last().state, PluginRecord::kLoaded) << from;
    EXPECT_EQ(Last().reason, left) << from;
  }
}

TEST_F(PluginKnownTest, LoadsAtTheFirstUseOfAnyPart) {
  Put("good", "good.so");
  const std::function<bool(const Registry&)> uses[] = {
      [](const Registry& r) { return r.FindOp("TestPluginOp") != nullptr; },
      [](const Registry& r) { return r.Ops().size() == 1; },
      [](const Registry& r) { return r.Kernels("TestPluginOp").size() == 1; },
      [](const Registry& r) { return r.DeviceKinds("TEST").size() == 1; },
      [](const Registry& r) { return r.DeviceKinds().size() == 1; },
  };
  for (const auto& use : uses) {
    Start(Usual());
    lines_.clear();
    EXPECT_TRUE(use(*registry_));
    EXPECT_THAT(lines_, ElementsAre("init"));
    EXPECT_EQ(Last().state, PluginRecord::kLoaded);
  }
}

// A plan for one processor does not load a plugin with compilers for other devices.
TEST_F(PluginKnownTest, LoadsACompilerWithTheFirstPlanForItsDevices) {
  Put("good", "good.so");
  Put("kernels", "kernels.so");
  Start(Usual());
  lines_.clear();
  EXPECT_THAT(registry_->RolesOf<CompilerRole>({}, "TEST"), IsEmpty());
  EXPECT_THAT(registry_->RolesOf<CompilerRole>("knots"), IsEmpty());
  EXPECT_THAT(lines_, IsEmpty());
  EXPECT_EQ(registry_->RolesOf<CompilerRole>({}, "TEST2").size(), 1u);
  EXPECT_EQ(registry_->RolesOf<CompilerRole>({}, "TEST").size(), 0u);
  EXPECT_EQ(registry_->RolesOf<CompilerRole>("chains").size(), 1u);
  const std::function<size_t(const Registry&)> uses[] = {
      [](const Registry& r) { return r.RolesOf<CompilerRole>().size(); },
      [](const Registry& r) { return r.RolesOf<CompilerRole>("chains").size(); },
      [](const Registry& r) { return r.RolesOf<CompilerRole>("chains", "TEST2").size(); },
      [](const Registry& r) { return r.Roles().size(); },
  };
  for (const auto& use : uses) {
    Start(Usual());
    EXPECT_EQ(use(*registry_), 1u);
  }
}

TEST_F(PluginKnownTest, LooksOnlyOnce) {
  Put("good", "good.so");
  Start(Usual());
  Start(NoHelper(Usual()));
  EXPECT_EQ(Last().state, PluginRecord::kKnown) << Last().reason;
  EXPECT_NE(registry_->FindOp("TestPluginOp"), nullptr);
}

// Kernel specs are parsed at the first start; later only when they are used.
TEST_F(PluginKnownTest, RemembersThatABuildHasReadIt) {
  const std::string path = Put("good", "good.so");
  Start(Usual());
  EXPECT_THAT(Contents(CacheFile()), HasSubstr("\nchecked \n"));
  ASSERT_NE(registry_->FindOp("TestPluginOp"), nullptr);
  ASSERT_NE(OwnBuild(), "");
  EXPECT_THAT(Contents(CacheFile()), HasSubstr("\nchecked " + OwnBuild() + "\n"));
  Start(NoHelper(Usual()));
  EXPECT_EQ(registry_->Kernels("TestPluginOp").size(), 1u);
  EXPECT_EQ(Last().kernels, 1u);
  fs::remove(path);  // the file is still mapped
  Put("rival", "good.so");
  Start(Usual());
  EXPECT_THAT(Contents(CacheFile()), HasSubstr("\nchecked \n"));
}

// The kernels fitted the op's definition when they were read.
TEST_F(PluginKnownTest, RefusesKernelsThatNoLongerFitAnotherPluginsOp) {
  const std::string path = Put("good", "good.so");
  Put("kernels", "kernels.so");
  for (int start = 0; start < 2; ++start) {
    Start(Usual());
    EXPECT_EQ(registry_->Kernels("TestPluginOp").size(), 2u);
  }
  fs::remove(path);  // the file is still mapped
  Put("other", "good.so");
  Start(Usual());
  EXPECT_EQ(registry_->Kernels("TestPluginOp").size(), 1u);
  const auto all = loader_->records();
  const auto refused = std::find_if(all.begin(), all.end(), [](const PluginRecord& r) { return r.id == "org.test.kernels"; });
  ASSERT_NE(refused, all.end());
  EXPECT_EQ(refused->state, PluginRecord::kFailed);
  EXPECT_THAT(refused->reason, HasSubstr("TestPluginOp(float) @TEST2"));
}

TEST_F(PluginKnownTest, LooksAgainAtAFileThatChanged) {
  Put("good", "good.so");
  Start(Usual());
  Put("rival", "good.so");
  Start(NoHelper(Usual()));
  EXPECT_EQ(Last().state, PluginRecord::kFailed);
  EXPECT_THAT(Last().reason, HasSubstr("nobody can look at it first: the helper '/no/such/helper' is not there"));
  EXPECT_THAT(Last().fix, HasSubstr("plugin_probe"));
  Start(Usual());
  EXPECT_EQ(Last().id, "org.test.rival");
}

TEST_F(PluginKnownTest, KnowsContentsUnderAnotherPath) {
  const std::string path = Put("good", "good.so");
  Start(Usual());
  fs::rename(path, plugins() + "/moved.so");
  Start(NoHelper(Usual()));
  EXPECT_EQ(Last().state, PluginRecord::kKnown) << Last().reason;
  EXPECT_THAT(Last().path, HasSubstr("moved.so"));
}

// Truncates the cache at every length, and flips every bit.
TEST_F(PluginKnownTest, WritesADamagedCacheAnew) {
  Put("good", "good.so");
  Start(Usual());
  const std::string cache = CacheFile(), whole = Contents(cache);
  ASSERT_THAT(whole, HasSubstr("TestPluginOp"));
  auto refuses = [&](const std::string& text) {
    std::ofstream(cache, std::ios::binary) << text;
    Start(NoHelper(Usual()));
    return Last().state == PluginRecord::kFailed;
  };
  for (size_t i = 0; i < whole.size(); i += 97) {
    std::string bad = whole;
    bad[i] = char(bad[i] ^ 4);
    EXPECT_TRUE(refuses(bad)) << i;
    EXPECT_TRUE(refuses(whole.substr(0, i))) << i;
  }
  Start(Usual());
  EXPECT_EQ(Last().state, PluginRecord::kKnown);
  Start(NoHelper(Usual()));
  EXPECT_EQ(Last().state, PluginRecord::kKnown);
}

TEST_F(PluginKnownTest, BelievesNoCacheThatOthersCouldWrite) {
  Put("good", "good.so");
  Start(Usual());
  chmod(CacheFile().c_str(), 0666);
  Start(NoHelper(Usual()));
  EXPECT_EQ(Last().state, PluginRecord::kFailed);
  chmod(CacheFile().c_str(), 0600);
  chmod((folder_ + "/cache").c_str(), 0777);
  Start(NoHelper(Usual()));
  EXPECT_EQ(Last().state, PluginRecord::kFailed);
}

TEST_F(PluginKnownTest, DoesWithoutACacheThatCannotBeWritten) {
  Put("good", "good.so");
  PluginLoading loading = Usual();
  loading.cache_folder = Write("no_folder", "a file");
  Start(loading);
  EXPECT_EQ(Last().state, PluginRecord::kKnown) << Last().reason;
  EXPECT_NE(registry_->FindOp("TestPluginOp"), nullptr);
}

TEST_F(PluginKnownTest, WithoutAHelperTrustsOrLooksHereWhereToldTo) {
  Put("good", "good.so");
  PluginLoading loading = NoHelper(Usual());
  loading.without_helper = PluginProbe::kTrust;
  Start(loading);
  EXPECT_EQ(Last().state, PluginRecord::kLoaded) << Last().reason;
  EXPECT_THAT(lines_, ElementsAre("init"));
  lines_.clear();
  loading.without_helper = PluginProbe::kInProcess;
  Start(loading);
  EXPECT_EQ(Last().state, PluginRecord::kKnown) << Last().reason;
  EXPECT_THAT(lines_, ElementsAre("shutdown", "init", "shutdown"));  // of the loader before, and of the probe
  EXPECT_NE(registry_->FindOp("TestPluginOp"), nullptr);
}

TEST_F(PluginKnownTest, TrustLoadsOpsBeforeTheKernelsOfOthers) {
  Put("kernels", "a.so");  // its id is the smaller one, too
  Put("good", "b.so");
  PluginLoading loading = NoHelper(Usual());
  loading.without_helper = PluginProbe::kTrust;
  Start(loading);
  EXPECT_EQ(At(0).state, PluginRecord::kLoaded) << At(0).reason;
  EXPECT_EQ(At(1).state, PluginRecord::kLoaded) << At(1).reason;
}

// ---- Plugins that crash or hang ----

TEST_F(PluginKnownTest, QuarantinesWhatCrashesWithItsStage) {
  const std::pair<const char*, const char*> stages[] = {{"crash_open", "while it was opened (dlopen)"},
                                                        {"crash_query", "in tw_plugin_query_v0"},
                                                        {"crash_init", "in its init"},
                                                        {"crash_shutdown", "in its shutdown"}};
  for (const auto& [variant, stage] : stages) {
    fs::remove_all(plugins());
    Put(variant, "crash.so");
    Start(Usual());
    EXPECT_EQ(Last().state, PluginRecord::kQuarantined) << variant;
    EXPECT_THAT(Last().reason, HasSubstr(stage));
    EXPECT_THAT(Last().fix, HasSubstr("remove '"));
    Start(NoHelper(Usual()));  // the next start does not probe it again
    EXPECT_EQ(Last().state, PluginRecord::kQuarantined) << variant << ": " << Last().reason;
    EXPECT_THAT(Last().reason, HasSubstr(stage));
  }
  Put("good", "crash.so");
  Start(Usual());
  EXPECT_EQ(Last().state, PluginRecord::kKnown) << Last().reason;
}

TEST_F(PluginKnownTest, QuarantinesWhatHangs) {
  const std::string path = Put("hang_init", "hang.so");
  PluginLoading loading = Usual();
  loading.patience = std::chrono::milliseconds(1500);  // a busy machine needs time to reach the point that hangs
  NewLoader(loading);
  Status s = loader_->Load(path);
  EXPECT_EQ(s.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Text(s), HasSubstr("hang.so': it was not done after 1500 ms in its init, when it was looked at; repair it"));
  EXPECT_EQ(Last().state, PluginRecord::kQuarantined);
}

// A plugin that took too long, as on a busy machine, is usable later.
TEST_F(PluginKnownTest, LooksLaterAgainAtWhatTookTooLong) {
  Put("good", "good.so");
  auto now = std::chrono::system_clock::now();
  PluginLoading quiet = Usual();
  quiet.now = [&now] { return now; };
  quiet.retry_after_at_most = std::chrono::seconds(100);
  PluginLoading busy = quiet;
  busy.patience = std::chrono::milliseconds(1000);
  busy.helper = Write("helper", "#!/bin/sh\necho stage init >&3\nexec sleep 600\n");
  chmod(busy.helper.c_str(), 0700);
  Start(busy);
  EXPECT_EQ(Last().state, PluginRecord::kQuarantined) << Last().reason;
  EXPECT_THAT(Last().fix, HasSubstr("also from 60 s from now on, in case the machine was busy"));
  now += std::chrono::seconds(59);
  Start(quiet);
  EXPECT_EQ(Last().state, PluginRecord::kQuarantined);
  EXPECT_THAT(Last().reason, HasSubstr("it was not done after 1000 ms in its init"));
  EXPECT_THAT(Last().fix, HasSubstr("also from 1 s from now on"));
  now += std::chrono::seconds(1);
  Start(busy);
  EXPECT_THAT(Last().fix, HasSubstr("also from 100 s from now on"));  // twice as long, but at most that
  now -= std::chrono::seconds(1000);                                  // the clock was wrong
  Start(quiet);
  EXPECT_EQ(Last().state, PluginRecord::kKnown) << Last().reason;
  EXPECT_NE(registry_->FindOp("TestPluginOp"), nullptr);
  Start(NoHelper(Usual()));
  EXPECT_EQ(Last().state, PluginRecord::kKnown) << Last().reason;  // nothing of the quarantine is left
}

TEST_F(PluginKnownTest, LooksOnceAtWhatHangsAlsoWithoutACache) {
  const std::string path = Put("hang_init", "hang.so");
  PluginLoading loading = Usual();
  loading.patience = std::chrono::milliseconds(1500);  // a busy machine needs time to reach the point that hangs
  loading.cache_folder.clear();
  NewLoader(loading);
  EXPECT_EQ(loader_->Load(path).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(loader_->Load(path).code(), absl::StatusCode::kAborted);
  EXPECT_THAT(Last().reason, HasSubstr("1500 ms"));
}

// A pipe that processes of a plugin hold open; end of file means that they are gone.
class Alive {
 public:
  explicit Alive(const std::string& path) {
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
    reader_ = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    EXPECT_GE(reader_, 0);
    setenv("TW_TEST_ALIVE", path.c_str(), 1);
  }
  ~Alive() {
    unsetenv("TW_TEST_ALIVE");
    close(reader_);
  }
  // Returns true if a process opened it, and all processes that did are gone.
  bool AllGone() const {
    pollfd hung_up = {reader_, POLLIN, 0};
    return poll(&hung_up, 1, 10'000) == 1 && (hung_up.revents & POLLHUP);
  }

 private:
  int reader_ = -1;
};

// Whatever the plugin closes or writes, the probe has one deadline.
TEST_F(PluginKnownTest, EndsWhatClosesItsDescriptorsOrGoesOnTalking) {
  PluginLoading loading = Usual();
  loading.patience = std::chrono::milliseconds(1500);  // a busy machine needs time to reach the point that hangs
  for (const char* variant : {"close_init", "talk_init"}) {
    const std::string path = Put(variant, StrCat(variant, ".so"));
    const Alive alive(StrCat(folder_, "/", variant));
    Status s = NewLoader(loading).Load(path);
    EXPECT_EQ(s.code(), absl::StatusCode::kDeadlineExceeded) << variant;
    EXPECT_THAT(Text(s), HasSubstr("it was not done after 1500 ms in its init"));
    EXPECT_EQ(Last().state, PluginRecord::kQuarantined);
    EXPECT_TRUE(alive.AllGone()) << variant;
  }
}

TEST_F(PluginKnownTest, ReadsSoMuchOfWhatAPluginWrites) {
  const std::string path = Put("flood_init", "flood.so");
  const Alive alive(folder_ + "/flood");
  Status s = NewLoader(Usual()).Load(path);
  EXPECT_EQ(s.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(Text(s), HasSubstr("it wrote more than 16777216 bytes into the conversation of the helper in its init"));
  EXPECT_TRUE(alive.AllGone());
}

// A forked child holds the helper's socket open; the loader must not wait for it.
TEST_F(PluginKnownTest, EndsWhatAPluginForked) {
  Put("fork_init", "fork.so");
  const Alive alive(folder_ + "/fork");
  PluginLoading loading = Usual();
  loading.patience = std::chrono::minutes(10);
  Start(loading);
  EXPECT_EQ(Last().state, PluginRecord::kKnown) << Last().reason;
  EXPECT_TRUE(alive.AllGone());
}

// A helper that hangs before it loads the plugin proves nothing about the plugin.
TEST_F(PluginKnownTest, BlamesNoPluginForAHelperThatHangs) {
  Put("good", "good.so");
  PluginLoading loading = Usual();
  loading.patience = std::chrono::milliseconds(50);
  loading.helper = Write("helper", "#!/bin/sh\nexec sleep 600\n");
  loading.settings["plugin.org.test.plugin.long"] = std::string(4 << 20, 'x');  // more than the socket's buffer holds
  chmod(loading.helper.c_str(), 0700);
  Start(loading);
  EXPECT_EQ(Last().state, PluginRecord::kFailed);
  EXPECT_THAT(Last().reason, HasSubstr("said nothing for 50 ms"));
  Start(Usual());
  EXPECT_EQ(Last().state, PluginRecord::kKnown) << Last().reason;
}

TEST_F(PluginKnownTest, TellsOfARefusalAsIfItHadHappenedHere) {
  const std::string path = Put("init_fails", "fails.so");
  Start(Usual());
  EXPECT_EQ(Last().state, PluginRecord::kFailed);
  EXPECT_EQ(Last().id, "org.test.plugin");
  EXPECT_EQ(Last().reason, "its init failed: the driver is asleep");
  EXPECT_EQ(loader_->Load(path).code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(lines_, IsEmpty());
}

// ---- Allow-lists and priorities ----

TEST_F(PluginKnownTest, LoadsOnlyWhatIsAllowed) {
  const std::string good = Put("good", "good.so"), rival = Put("rival", "rival.so");
  const std::string list = Write("allowed", StrCat("# those that we built\n\n", Sha256(Contents(good)), "  good.so\n"));
  NewLoader(Usual()).Allow(*PluginAllowList::Read(list, false));
  loader_->LoadAll({{plugins()}, {}});
  EXPECT_EQ(At(0).state, PluginRecord::kKnown) << At(0).reason;
  EXPECT_EQ(At(1).state, PluginRecord::kNotAllowed);
  EXPECT_THAT(At(1).reason, HasSubstr(list));
  EXPECT_THAT(At(1).fix, HasSubstr(StrCat("add this line to the list: ", Sha256(Contents(rival)), "  ", rival)));
  EXPECT_EQ(loader_->Load(rival).code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(PluginKnownTest, BelievesNoCacheUnderAnAllowList) {
  const std::string path = Put("good", "good.so");
  Start(Usual());
  // The file is another one, but all attributes that the cache compares are unchanged.
  const std::string list = Write("allowed", StrCat(Sha256(Contents(path)), "\n"));
  Put("rival", "good.so");
  NewLoader(Usual()).Allow(*PluginAllowList::Read(list, false));
  loader_->LoadAll({{plugins()}, {}});
  EXPECT_EQ(Last().state, PluginRecord::kNotAllowed);
}

TEST_F(PluginKnownTest, RefusesAnAllowListThatCannotBeTrusted) {
  EXPECT_FALSE(PluginAllowList::Read(folder_ + "/none", false).ok());
  Status s = PluginAllowList::Read(Write("bad", "# fine\nnot a digest\n"), false).status();
  EXPECT_THAT(Text(s), HasSubstr("line 2 does not begin with a SHA-256"));
  const std::string open = Write("open", StrCat(std::string(64, 'a'), "\n"));
  chmod(open.c_str(), 0666);
  EXPECT_EQ(PluginAllowList::Read(open, false).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(PluginAllowList::Read(open, true).ok());
}

TEST_F(PluginKnownTest, SettlesConflictsByIdAndNotByTheOrderOfFiles) {
  Put("good", "b.so");
  Put("rival", "a.so");
  Start(Usual());
  EXPECT_EQ(At(1).state, PluginRecord::kKnown);
  EXPECT_EQ(At(0).state, PluginRecord::kShadowed);
  EXPECT_EQ(At(0).reason, StrCat("op 'TestPluginOp' is also in plugin 'org.test.plugin' (", plugins(),
                                 "/b.so), which goes first: its id is the smaller one"));
  EXPECT_THAT(At(0).fix, HasSubstr("plugin_prefer=org.test.rival"));
  PluginLoading loading = Usual();
  loading.preferred = {"org.test.rival"};
  Start(loading);
  EXPECT_EQ(At(0).state, PluginRecord::kKnown);
  EXPECT_EQ(At(1).state, PluginRecord::kShadowed);
  EXPECT_THAT(At(1).reason, HasSubstr("plugin_prefer names it"));
  EXPECT_EQ(registry_->FindOp("TestPluginOp")->plugin, "org.test.rival");
}

TEST_F(PluginKnownTest, OfTwoVersionsTheNewerWinsIfItComesFirst) {
  Put("twin", "a.so");
  Put("good", "b.so");
  Start(Usual());
  EXPECT_EQ(At(0).state, PluginRecord::kKnown) << At(0).reason;
  EXPECT_EQ(At(1).state, PluginRecord::kShadowed);
  EXPECT_THAT(At(1).reason, HasSubstr("a plugin with this id, version 1.10, is known from '"));
}

TEST_F(PluginKnownTest, OfTwoVersionsTheNewerWinsIfItComesLast) {
  Put("good", "a.so");
  Put("twin", "b.so");
  Start(Usual());
  EXPECT_EQ(At(1).state, PluginRecord::kKnown) << At(1).reason;
  EXPECT_EQ(At(1).version, "1.10");  // newer than 1.2
  EXPECT_EQ(At(0).state, PluginRecord::kShadowed);
  EXPECT_EQ(At(0).version, "1.2");
  EXPECT_THAT(At(0).reason, HasSubstr("a plugin with this id, version 1.10, is known from '"));
  EXPECT_THAT(At(0).reason, HasSubstr("b.so'"));
  EXPECT_EQ(At(0).fix, "remove one of the two");
  ASSERT_NE(registry_->FindOp("TestPluginOp"), nullptr);  // loads the newer one
  EXPECT_EQ(At(1).state, PluginRecord::kLoaded) << At(1).reason;
  EXPECT_EQ(At(0).state, PluginRecord::kShadowed);
}

TEST_F(PluginKnownTest, LoadsContentsOnceWhateverTheirPath) {
  const std::string path = Put("good", "good.so");
  const std::string others[] = {folder_ + "/copy.so", folder_ + "/symbolic.so", folder_ + "/hard.so"};
  fs::copy_file(path, others[0]);
  fs::create_symlink(path, others[1]);
  fs::create_hard_link(path, others[2]);
  Start(Usual());
  EXPECT_TRUE(loader_->Load(others[0]).ok()) << Last().reason;  // loads the known plugin
  for (const std::string& other : others) {
    EXPECT_TRUE(loader_->Load(other).ok()) << Last().reason;
    EXPECT_EQ(Last().state, PluginRecord::kShadowed);
    EXPECT_THAT(Last().reason, HasSubstr("is loaded from"));
  }
  EXPECT_THAT(lines_, ElementsAre("init"));
}

TEST_F(PluginKnownTest, LoadsThePluginThatHasTheOpsOfItsKernelsFirst) {
  Put("kernels", "a.so");
  Put("good", "b.so");
  Start(Usual());
  EXPECT_EQ(registry_->Kernels("TestPluginOp").size(), 2u);
  EXPECT_EQ(At(0).state, PluginRecord::kLoaded) << At(0).reason;
  Start(Usual());
  ASSERT_EQ(registry_->DeviceKinds("TEST2").size(), 1u);
  EXPECT_EQ(At(1).state, PluginRecord::kLoaded) << At(1).reason;
}

TEST_F(PluginKnownTest, WarnsOfAPluginThatFailsAtItsFirstUse) {
  const std::string path = Put("good", "good.so");
  PluginLoading loading = Usual();
  std::vector<std::string> warnings;
  loading.warn = [&](const std::string& text) { warnings.push_back(text); };
  Start(loading);
  Put("rival", "good.so");
  EXPECT_EQ(registry_->FindOp("TestPluginOp"), nullptr);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("it was changed after it was looked at"));
  EXPECT_EQ(Last().state, PluginRecord::kFailed);
}

// ---- Unloading ----

TEST_F(PluginKnownTest, UnloadsWhatNobodyUses) {
  const std::string path = Put("good", "good.so");
  NewLoader(Usual());
  for (int i = 0; i < 3; ++i) {
    lines_.clear();
    ASSERT_TRUE(loader_->Load(path).ok()) << Last().reason;
    ASSERT_TRUE(loader_->Unload("org.test.plugin").ok());
    EXPECT_THAT(lines_, ElementsAre("init", "shutdown"));
    EXPECT_EQ(registry_->FindOp("TestPluginOp"), nullptr);
    EXPECT_EQ(Last().state, PluginRecord::kDisabled);
    EXPECT_EQ(loader_->records().size(), 1u);
  }
  EXPECT_EQ(loader_->Unload("org.test.plugin").code(), absl::StatusCode::kNotFound);
}

TEST_F(PluginKnownTest, KeepsWhatIsInUse) {
  NewLoader(Usual());
  ASSERT_TRUE(loader_->Load(Put("good", "good.so")).ok()) << Last().reason;
  auto refused = [&](std::string_view why) {
    Status s = loader_->Unload("org.test.plugin");
    EXPECT_EQ(s.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(Text(s), HasSubstr(std::string(why)));
    EXPECT_THAT(lines_, ElementsAre("init"));
  };
  {
    auto graph = registry_->FindOp("TestPluginOp")->in_graphs.lock();
    ASSERT_NE(graph, nullptr);
    refused("graphs, and lists of ops, that have its ops: 1");
  }
  {
    auto plan = registry_->Kernels("TestPluginOp").at(0)->in_plans.lock();
    ASSERT_NE(plan, nullptr);
    refused("sessions, and lists, that have its kernels or devices: 1");
  }
  ASSERT_TRUE(loader_->Load(Put("kernels", "kernels.so")).ok()) << Last().reason;
  lines_.pop_back();
  refused("plugin 'org.test.kernels' has kernels of its op 'TestPluginOp'");
  ASSERT_TRUE(loader_->Unload("org.test.kernels").ok());
  EXPECT_TRUE(loader_->Unload("org.test.plugin").ok());
}

}  // namespace
}  // namespace thalweg
