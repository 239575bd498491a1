// Saves that crash, fail or are torn, at every call and in every way, leave the old checkpoint or
// the new one.
// THALWEG_TEST_LARGE=FLOATS sets another size.
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/io/checkpoint.h"
#include "tests/framework/io/fake_files.h"
#include "tests/framework/io/recorded_files.h"
#include "tests/framework/io/save_scenarios.h"

namespace thalweg {
namespace {

using test::Call;
using test::Crash;
using test::Disk;
using test::Load;
using test::RecordedFiles;
using test::Same;
using test::Scenario;
using test::Tensors;
using testing::HasSubstr;
using testing::Not;

// Floats in a large tensor; THALWEG_TEST_LARGE overrides it.
constexpr int64_t kLarge = 300000;
int64_t Large() {
  const char* text = std::getenv("THALWEG_TEST_LARGE");
  return text ? std::atoll(text) : kLarge;
}

std::string Text(const Status& s) { return std::string(Message(s)); }

// Returns the version on disk: -1 none, -2 something that no save wrote.
int VersionOf(const Scenario& scenario, const std::vector<Tensors>& versions, FileSystem& files, Status* why) {
  Tensors got;
  *why = test::LoadLatest(scenario, files, &got);
  if (absl::IsNotFound(*why)) return -1;
  if (!why->ok()) return -2;
  for (int v = int(versions.size()); v-- > 0;) {
    if (Same(got, versions[size_t(v)])) return v;
  }
  return -2;
}

std::vector<Tensors> VersionsOf(const Scenario& scenario) {
  std::vector<Tensors> versions;
  for (int v = 0; v < scenario.saves; ++v) versions.push_back(scenario.values(v));
  return versions;
}

// Versions with the same contents (empty checkpoints) cannot be distinguished.
bool IsOneOf(int found, int a, int b, const std::vector<Tensors>& versions) {
  if (found == a || found == b) return true;
  for (int v : {a, b}) {
    if (found >= 0 && v >= 0 && Same(versions[size_t(found)], versions[size_t(v)])) return true;
  }
  return false;
}

struct Recording {
  RecordedFiles files;
  std::vector<size_t> done;  // number of calls when save v returned
};

void Record(const Scenario& scenario, Recording* r) {
  auto save = scenario.start(r->files);
  for (int v = 0; v < scenario.saves; ++v) {
    const Status s = save(v);
    ASSERT_TRUE(s.ok()) << scenario.name << ": " << s;
    r->done.push_back(r->files.calls().size());
  }
}

// Checks that the disk after a crash holds version `before` or `before` + 1, and that a program can
// continue with it.
void CheckDisk(const Scenario& scenario, const std::vector<Tensors>& versions, Disk disk, int before) {
  RecordedFiles files(std::move(disk));
  Status why;
  const int found = VersionOf(scenario, versions, files, &why);
  const int next = std::min(before + 1, scenario.saves - 1);
  ASSERT_TRUE(IsOneOf(found, before, next, versions)) << "found " << found << " after " << before << ": " << why;
  const int last = scenario.saves - 1;
  const Status s = scenario.start(files)(last);
  ASSERT_TRUE(s.ok()) << s;
  ASSERT_TRUE(IsOneOf(VersionOf(scenario, versions, files, &why), last, last, versions)) << why;
  if (scenario.folder.empty()) return;
  for (const std::string& name : files.names()) {
    ASSERT_THAT(name, Not(HasSubstr(".tmp-"))) << "is left for good";
    ASSERT_THAT(name, Not(HasSubstr(".part"))) << "is left for good";
  }
}

TEST(SaveCrashTest, AfterACrashAtAnyCallTheOldOrTheNewCheckpointIsWhole) {
  int states = 0, scenarios = 0;
  for (const Scenario& scenario : test::SaveScenarios(Large())) {
    Recording r;
    Record(scenario, &r);
    const std::vector<Tensors> versions = VersionsOf(scenario);
    Disk disk;
    int saved = -1;
    const std::vector<Call>& calls = r.files.calls();
    for (size_t k = 0; k <= calls.size(); ++k) {
      while (saved + 1 < scenario.saves && r.done[size_t(saved) + 1] <= k) ++saved;
      for (Crash crash : test::kCrashes) {
        SCOPED_TRACE(scenario.name + ", after call " + std::to_string(k) + ", crash " + std::to_string(int(crash)));
        ASSERT_NO_FATAL_FAILURE(CheckDisk(scenario, versions, disk.After(crash), saved));
        ++states;
      }
      if (k == calls.size()) break;
      if (calls[k].kind == Call::kAppend) {  // half of the append is written
        Disk torn = disk.After(Crash::kNothing);
        Replay(calls[k], &torn, calls[k].to.size() / 2);
        SCOPED_TRACE(scenario.name + ", in call " + std::to_string(k));
        ASSERT_NO_FATAL_FAILURE(CheckDisk(scenario, versions, std::move(torn), saved));
        ++states;
      }
      Replay(calls[k], &disk);
    }
    ++scenarios;
  }
  std::printf("%d crash states in %d scenarios\n", states, scenarios);
  EXPECT_GE(states, 2000);
  EXPECT_GE(scenarios, 20);
}

// Proves that the test above can fail: it detects a writer that omits one kind of call.
TEST(SaveCrashTest, AForgottenSyncIsFoundOut) {
  for (Call::Kind forgotten : {Call::kSync, Call::kSyncFolder}) {
    int bad = 0;
    for (const Scenario& scenario : test::SaveScenarios(1000)) {
      Recording r;
      Record(scenario, &r);
      const std::vector<Tensors> versions = VersionsOf(scenario);
      Disk disk;
      int saved = -1;
      for (size_t k = 0; k < r.files.calls().size(); ++k) {
        if (r.files.calls()[k].kind != forgotten) Replay(r.files.calls()[k], &disk);
        while (saved + 1 < scenario.saves && r.done[size_t(saved) + 1] <= k + 1) ++saved;
        RecordedFiles files(disk.After(Crash::kBoth));
        Status why;
        const int found = VersionOf(scenario, versions, files, &why);
        bad += !IsOneOf(found, saved, std::min(saved + 1, scenario.saves - 1), versions);
      }
    }
    EXPECT_GT(bad, 100) << "without calls of kind " << forgotten;
  }
}

// ---- Calls that fail ----

struct Fault {
  int error;
  bool for_good;  // every later call fails, too: the disk has become read-only
};

void CheckFailure(const Scenario& scenario, const std::vector<Tensors>& versions, RecordedFiles* disk, const test::FaultyFiles& files,
                  const Status& s, const Fault& fault, int before) {
  SCOPED_TRACE("call " + files.failed());
  Status why;
  const int found = VersionOf(scenario, versions, *disk, &why);
  ASSERT_TRUE(IsOneOf(found, before, before + 1, versions)) << found << " after " << before << ": " << why;
  if (s.ok()) {
    ASSERT_TRUE(IsOneOf(found, before + 1, before + 1, versions)) << "reported as saved";
  } else {
    ASSERT_THAT(Text(s), HasSubstr("errno " + std::to_string(fault.error)));
    ASSERT_THAT(Text(s), HasSubstr("dir"));
  }
  if (fault.for_good) return;
  for (const std::string& name : disk->names()) {
    const bool left = name.find(".tmp-") != name.npos || name.find(".part") != name.npos;
    ASSERT_TRUE(!left || files.failed().starts_with("remove")) << name;
  }
}

// Runs the scenario with call n failing; returns false if there are fewer calls.
bool RunWithFault(const Scenario& scenario, const std::vector<Tensors>& versions, const std::set<std::string>& clean, int n,
                  const Fault& fault) {
  RecordedFiles disk;
  test::FaultyFiles files(n, disk, fault.error, fault.for_good);
  auto save = scenario.start(files);
  int v = 0;
  if (files.calls() >= n) return true;  // opening failed before anything was written
  for (; v < scenario.saves; ++v) {
    const Status s = save(v);
    if (files.calls() < n) {
      EXPECT_TRUE(s.ok()) << s;
      continue;
    }
    CheckFailure(scenario, versions, &disk, files, s, fault, v - 1);
    break;
  }
  if (v == scenario.saves) return false;
  if (fault.for_good || testing::Test::HasFatalFailure()) return true;
  // The same program continues: the next saves work, and leave nothing that a clean run would not
  // leave.
  for (; v < scenario.saves; ++v) EXPECT_TRUE(save(v).ok());
  Status why;
  EXPECT_TRUE(IsOneOf(VersionOf(scenario, versions, disk, &why), scenario.saves - 1, scenario.saves - 1, versions)) << why;
  if (!scenario.folder.empty()) {
    EXPECT_LE(disk.names().size(), clean.size());
  }
  return true;
}

TEST(SaveFailureTest, WhicheverCallFailsTheOldCheckpointIsWholeAndTheStatusSaysWhy) {
  int runs = 0;
  const Fault faults[] = {{ENOSPC, false}, {EIO, false}, {EDQUOT, false}, {EROFS, true}, {EIO, true}};
  for (const Scenario& scenario : test::SaveScenarios(1000)) {
    SCOPED_TRACE(scenario.name);
    Recording r;
    Record(scenario, &r);
    const std::vector<Tensors> versions = VersionsOf(scenario);
    for (const Fault& fault : faults) {
      SCOPED_TRACE("errno " + std::to_string(fault.error));
      for (int n = 1; RunWithFault(scenario, versions, r.files.names(), n, fault); ++n, ++runs) {
        ASSERT_FALSE(HasFailure()) << "at call " << n;
      }
    }
  }
  std::printf("%d saves with a call that failed\n", runs);
  EXPECT_GT(runs, 5000);
}

// ---- Torn files ----

// Truncates data files at each multiple of 512 bytes, and the index and the state at every byte:
// each cut is detected, or loses nothing.
TEST(TornFileTest, EveryTruncationIsNoticedOrHarmless) {
  int cuts = 0;
  for (const Scenario& scenario : test::SaveScenarios(4000)) {
    Recording r;
    Record(scenario, &r);
    const std::vector<Tensors> versions = VersionsOf(scenario);
    const Disk whole = r.files.disk().After(Crash::kNothing);
    for (const auto& [name, file] : whole.names) {
      const std::string bytes = file->bytes;
      const bool data = name.find(".data-") != name.npos;
      const size_t edge = data && Large() == kLarge ? 512 : 1;  // with another size, data files are truncated at every byte, too
      for (size_t n = 0; n < bytes.size(); n += edge) {
        file->bytes.resize(n);
        RecordedFiles files(whole);
        Status why;
        const int found = VersionOf(scenario, versions, files, &why);
        ++cuts;
        const bool right = found == -2 ? absl::IsDataLoss(why) : IsOneOf(found, scenario.saves - 1, scenario.saves - 1, versions);
        // A prefix of the state file may still be a state: an earlier line is cut, but the name of
        // the latest checkpoint is complete.
        ASSERT_TRUE(right) << scenario.name << ": '" << name << "' cut to " << n << " bytes: version " << found << ", " << why;
        file->bytes = bytes;
      }
    }
  }
  std::printf("%d truncations\n", cuts);
  EXPECT_GT(cuts, Large() == kLarge ? 10000 : 50000);
}

TEST(TornFileTest, ATornLatestIsPassedOverForTheNewestWholeOne) {
  RecordedFiles files;
  auto folder = CheckpointFolder::Open("dir", "m", {}, files);
  ASSERT_TRUE(folder.ok());
  for (int v = 1; v <= 3; ++v) {
    NamedTensors values = {{"v", *Tensor::Vector<float>(TW_FLOAT, {float(v)})}};
    ASSERT_TRUE((*folder)->Save(v, {}, v, values).ok());
  }
  auto first_whole = [&] {
    std::vector<std::string> notes;
    const auto found = FindCheckpoints("dir", "m", files, &notes);
    for (const std::string& prefix : *found) {
      Tensors got;
      if (Load(prefix, &got, files).ok()) return StepOfCheckpoint(prefix);
    }
    return int64_t{-1};
  };
  EXPECT_EQ(first_whole(), 3);
  files.disk().names.at("dir/m-3.data-00000-of-00001")->bytes.resize(2);
  EXPECT_EQ(first_whole(), 2);
  files.disk().names.at("dir/checkpoint")->bytes.resize(20);
  files.disk().names.at("dir/m-2.index")->bytes.resize(20);
  EXPECT_EQ(first_whole(), 1);
}

}  // namespace
}  // namespace thalweg
