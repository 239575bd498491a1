// The state file, the retention of checkpoints, and the times at which a checkpointer saves.
// save_crash_test.cc tests crashes and failures.
#include "framework/io/checkpoint_folder.h"

#include <unistd.h>

#include <atomic>
#include <cmath>
#include <condition_variable>
#include <mutex>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <sys/wait.h>

#include "framework/io/checkpoint.h"
#include "framework/io/checkpoint_state.h"
#include "framework/io/checkpointer.h"
#include "tests/framework/io/recorded_files.h"

namespace thalweg {
namespace {

using test::RecordedFiles;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

NamedTensors Value(float v) { return {{"v", *Tensor::Vector<float>(TW_FLOAT, {v})}}; }

// ---- The state file ----

TEST(CheckpointStateTest, SurvivesARoundTrip) {
  CheckpointState state;
  state.latest = "m-2";
  state.all = {{"a \"quoted\" \\ \xc3\xa4-1", 1.25, {}}, {"m-2", 1e9 + 0.5, -0.1}, {"m-3", 3, std::nan("")}};
  state.last_preserved = 7.5;
  state.removed = {"m-0"};
  state.preserved = {{"a name", 2.5}, {"m", 7.5}};
  const std::string text = CheckpointStateText(state);
  auto back = ParseCheckpointState(text);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(CheckpointStateText(*back), text);
  EXPECT_EQ(back->all[0].path, state.all[0].path);
  EXPECT_EQ(back->all[1].metric, -0.1);
  EXPECT_FALSE(back->all[0].metric);
  EXPECT_THAT(back->removed, ElementsAre("m-0"));
  EXPECT_EQ(back->preserved, state.preserved);
}

TEST(CheckpointStateTest, ReadsTheTextFormatAsOthersMayWriteIt) {
  auto state = ParseCheckpointState(
      "# a comment\nmodel_checkpoint_path:'m-' \"1\" ; all_model_checkpoint_paths : \"m-1\",\n"
      "future_field: -3 another: \"x\"\nall_model_checkpoint_timestamps:1e3 last_preserved_timestamp: 5");
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->latest, "m-1");
  EXPECT_EQ(state->all[0].time, 1000);
  EXPECT_EQ(state->last_preserved, 5);
  EXPECT_TRUE(ParseCheckpointState("").ok());
}

TEST(CheckpointStateTest, NamesTheLineThatIsDamaged) {
  for (const char* text : {"x", "\nx", "a: ", "a: \"b", "a: \"b\nc\"", "a { b: 1 }", "a: \"\\", ": 3", "a: 1x", "\x01"}) {
    auto state = ParseCheckpointState(text);
    ASSERT_TRUE(absl::IsDataLoss(state.status())) << text;
    EXPECT_THAT(std::string(Message(state.status())), HasSubstr("line ")) << text;
  }
}

// ---- Retention ----

std::set<std::string> Kept(const RecordedFiles& files) {
  std::set<std::string> kept;
  for (const std::string& name : files.names()) {
    if (name.ends_with(".index")) kept.insert(name.substr(4, name.size() - 10));
  }
  return kept;
}

struct Saving {
  RecordedFiles files;
  std::unique_ptr<CheckpointFolder> folder;
  explicit Saving(const CheckpointKeep& keep) { Reopen(keep); }
  void Reopen(const CheckpointKeep& keep) {
    auto opened = CheckpointFolder::Open("dir", "m", keep, files);
    EXPECT_TRUE(opened.ok()) << opened.status();
    folder = *std::move(opened);
  }
  void Save(int64_t step, double now, std::optional<double> metric = {}) {
    EXPECT_TRUE(folder->Save(step, metric, now, Value(float(step))).ok());
  }
};

TEST(CheckpointFolderTest, KeepsTheLast) {
  Saving s({2, 0, false, 0});
  for (int i = 1; i <= 5; ++i) s.Save(i, i);
  EXPECT_THAT(Kept(s.files), ElementsAre("m-4", "m-5"));
  s.Reopen({1, 0, false, 0});  // a new process with another rule
  s.Save(6, 6);
  EXPECT_THAT(Kept(s.files), ElementsAre("m-6"));
  Saving all({0, 0, false, 0});
  for (int i = 1; i <= 8; ++i) all.Save(i, i);
  EXPECT_EQ(Kept(all.files).size(), 8u);
}

TEST(CheckpointFolderTest, KeepsTheBestAcrossProcesses) {
  const CheckpointKeep keep{1, 2, false, 0};
  Saving s(keep);
  const double metrics[] = {3, 9, std::nan(""), 5, 9, 1};
  for (int i = 0; i < 6; ++i) {
    s.Save(i, i, metrics[i]);
    s.Reopen(keep);
  }
  EXPECT_THAT(Kept(s.files), ElementsAre("m-1", "m-4", "m-5"));
  EXPECT_EQ(*BestCheckpoint("dir", "m", false, s.files), "dir/m-4");  // of equal scores, the newest
  EXPECT_EQ(*BestCheckpoint("dir", "m", true, s.files), "dir/m-5");
  s.Save(6, 6);  // its score is not known
  EXPECT_THAT(Kept(s.files), ElementsAre("m-1", "m-4", "m-6"));
  EXPECT_TRUE(absl::IsNotFound(BestCheckpoint("nowhere", "m", false, s.files).status()));
}

TEST(CheckpointFolderTest, PreservesOneNowAndThenForGood) {
  Saving s({1, 0, false, 100});
  for (int i = 0; i < 10; ++i) s.Save(i, 1000 + 30 * i);
  // Times 1000, 1030, ...: the checkpoints at 1120 and 1240 are kept for good.
  EXPECT_THAT(Kept(s.files), ElementsAre("m-4", "m-8", "m-9"));
  EXPECT_EQ(s.folder->state().all.size(), 1u);
}

TEST(CheckpointFolderTest, LeavesWhatIsNotItsOwn) {
  RecordedFiles files;
  for (const char* name :
       {"dir/other-1.index", "dir/other-1.data-00000-of-00001", "dir/m-x.data-00000-of-00001", "dir/notes.tmp-txt", "dir/m-1.dataset",
        "dir/m-1.data-notes", "dir/m-1.index.tmp-notes-of-a-person", "dir/m-1.data-00000-of-00001", "dir/m-2.index.tmp-0123456789abcdef"}) {
    ASSERT_TRUE(files.Create(name).ok());
  }
  ASSERT_TRUE(CheckpointFolder::Open("dir", "m", {}, files).ok());
  EXPECT_THAT(files.names(),
              ElementsAre("dir/m-1.data-notes", "dir/m-1.dataset", "dir/m-1.index.tmp-notes-of-a-person", "dir/m-x.data-00000-of-00001",
                          "dir/notes.tmp-txt", "dir/other-1.data-00000-of-00001", "dir/other-1.index"));
  for (const char* name : {"", "a/b"}) EXPECT_TRUE(absl::IsInvalidArgument(CheckpointFolder::Open("dir", name, {}, files).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckpointFolder::Open("dir", std::string("a\0b", 3), {}, files).status()));
}

TEST(CheckpointFolderTest, FindsCheckpointsWithoutAStateFile) {
  Saving s({0, 0, false, 0});
  for (int step : {9, 10, 100}) s.Save(step, step);
  ASSERT_TRUE(s.files.Remove("dir/checkpoint").ok());
  std::vector<std::string> notes;
  EXPECT_THAT(*FindCheckpoints("dir", "m", s.files, &notes), ElementsAre("dir/m-100", "dir/m-10", "dir/m-9"));
  EXPECT_EQ(notes.size(), 1u);
  EXPECT_THAT(*FindCheckpoints("dir", "n", s.files, &notes), IsEmpty());
}

TEST(CheckpointFolderTest, NeverRemovesWhatItsFileDoesNotName) {
  for (bool damaged : {false, true}) {
    Saving s({0, 0, false, 0});
    for (int step : {9, 10, 100}) s.Save(step, step);
    if (damaged)
      s.files.disk().names.at("dir/checkpoint")->bytes.resize(20);
    else
      ASSERT_TRUE(s.files.Remove("dir/checkpoint").ok());
    s.Reopen({1, 0, false, 0});
    for (int step : {101, 102}) s.Save(step, step);
    EXPECT_THAT(Kept(s.files), ElementsAre("m-10", "m-100", "m-102", "m-9"));
  }
}

TEST(CheckpointFolderTest, AStateFileThatContradictsItselfRemovesNothingThatItKeeps) {
  Saving s({2, 0, false, 0});
  s.Save(1, 1);
  CheckpointState state = s.folder->state();
  state.all.push_back(state.all[0]);
  state.removed = {"m-1", "../m-1", "other-1"};
  ASSERT_TRUE(WriteCheckpointState(state, "dir", s.files).ok());
  s.Reopen({2, 0, false, 0});
  s.Save(2, 2);
  EXPECT_THAT(Kept(s.files), ElementsAre("m-1", "m-2"));
}

TEST(CheckpointFolderTest, FindsOnlyTheName) {
  Saving s({2, 0, false, 0});
  s.Save(3, 3);
  auto other = CheckpointFolder::Open("dir", "other", {}, s.files);
  ASSERT_TRUE(other.ok() && (*other)->Save(7, {}, 7, Value(7)).ok());
  std::vector<std::string> notes;
  EXPECT_THAT(*FindCheckpoints("dir", "m", s.files, &notes), ElementsAre("dir/m-3"));
  EXPECT_THAT(notes, IsEmpty());
  EXPECT_THAT(*FindCheckpoints("dir", "", s.files, &notes), ElementsAre("dir/other-7", "dir/m-3"));
  EXPECT_TRUE(absl::IsNotFound(FindCheckpoints("nowhere", "", LocalFiles(), &notes).status()));
}

// ---- Two names in a folder ----

struct TwoNames {
  RecordedFiles files;
  std::unique_ptr<CheckpointFolder> folders[2];
  CheckpointKeep keep;
  explicit TwoNames(const CheckpointKeep& k) : keep(k) { Reopen(); }
  void Reopen() {
    for (int i = 0; i < 2; ++i) folders[i] = *CheckpointFolder::Open("dir", i ? "other" : "m", keep, files);
  }
  void Save(int i, int64_t step, double now, std::optional<double> metric = {}) {
    EXPECT_TRUE(folders[i]->Save(step, metric, now, Value(float(step))).ok());
  }
  std::vector<std::string> Listed() {
    std::vector<std::string> paths;
    const CheckpointState state = *ReadCheckpointState("dir", files);
    for (const SavedCheckpoint& c : state.all) paths.push_back(c.path);
    return paths;
  }
};

TEST(CheckpointFolderTest, TwoNamesShareOneListAndKeepTheirOwn) {
  for (bool reopen : {false, true}) {
    TwoNames s({2, 0, false, 0});
    for (int step = 1; step <= 4; ++step) {
      s.Save(0, step, 10 * step);
      s.Save(1, 100 * step, 10 * step + 5);
      if (reopen) s.Reopen();
    }
    EXPECT_THAT(Kept(s.files), ElementsAre("m-3", "m-4", "other-300", "other-400"));
    EXPECT_THAT(s.Listed(), ElementsAre("m-3", "other-300", "m-4", "other-400"));
    EXPECT_EQ(ReadCheckpointState("dir", s.files)->latest, "other-400");
    std::vector<std::string> notes;
    EXPECT_EQ(FindCheckpoints("dir", "m", s.files, &notes)->at(0), "dir/m-4");
    EXPECT_EQ(FindCheckpoints("dir", "", s.files, &notes)->at(0), "dir/other-400");
    s.Save(0, 5, 1);  // a clock that was set back: still the latest
    EXPECT_THAT(s.Listed(), ElementsAre("other-300", "m-4", "other-400", "m-5"));
  }
}

TEST(CheckpointFolderTest, AnotherNameKeepsItsBestAndWhatItPreserves) {
  TwoNames s({1, 1, false, 100});
  for (int i = 0; i < 5; ++i) {
    s.Save(0, i, 1000 + 60 * i, i == 1 ? 9 : 0);
    s.Save(1, i, 5000 + 60 * i, i == 2 ? 100 : 50);
    s.Reopen();
  }
  EXPECT_EQ(*BestCheckpoint("dir", "m", false, s.files), "dir/m-1");
  EXPECT_EQ(*BestCheckpoint("dir", "other", false, s.files), "dir/other-2");
  EXPECT_EQ(s.folders[0]->state().last_preserved, 1120);
  EXPECT_EQ(s.folders[1]->state().last_preserved, 5180);
  EXPECT_THAT(Kept(s.files), ElementsAre("m-1", "m-2", "m-4", "other-2", "other-3", "other-4"));
}

TEST(CheckpointFolderTest, WhatACrashLeftToRemoveWaitsForItsOwnName) {
  TwoNames s({1, 0, false, 0});
  s.Save(0, 1, 1);
  CheckpointState state = *ReadCheckpointState("dir", s.files);
  state.removed = {"m-0"};
  state.all.push_back({"/elsewhere/model", 1, {}});
  ASSERT_TRUE(WriteCheckpointState(state, "dir", s.files).ok());
  s.Save(1, 1, 2);
  EXPECT_THAT(ReadCheckpointState("dir", s.files)->removed, ElementsAre("m-0"));
  EXPECT_THAT(s.Listed(), ElementsAre("m-1", "/elsewhere/model", "other-1"));
}

TEST(CheckpointFolderTest, StepsStandBehindTheLastDash) {
  EXPECT_EQ(StepOfCheckpoint("dir/m-12"), 12);
  EXPECT_EQ(StepOfCheckpoint("m-1-2"), 2);
  for (const char* none : {"m", "m-", "-3", "m-x", "m-1x", "m--", "m-99999999999999999999"}) EXPECT_EQ(StepOfCheckpoint(none), -1) << none;
}

// ---- When a checkpointer saves ----

struct Ticking {
  double now = 0;
  CheckpointClock clock() {
    return {[this] { return now; }, [this] { return now; }};
  }
};

struct Lines {
  std::mutex mu;
  std::vector<std::pair<uint32_t, std::string>> lines;
  Checkpointer::Log log() {
    return [this](uint32_t level, std::string_view text) {
      std::lock_guard<std::mutex> lock(mu);
      lines.emplace_back(level, text);
    };
  }
};

StatusOr<NamedTensors> One() { return Value(1); }

TEST(CheckpointerTest, SavesEverySoManyStepsOrSeconds) {
  RecordedFiles files;
  Ticking time;
  Lines log;
  CheckpointerOptions options;
  options.every_steps = 10;
  options.every_seconds = 60;
  auto made = Checkpointer::Open("dir", "m", options, log.log(), files, time.clock());
  ASSERT_TRUE(made.ok()) << made.status();
  Checkpointer& c = **made;
  std::vector<int> saved;
  for (int step = 1; step <= 40; ++step) {
    time.now += step < 25 ? 1 : 20;
    auto did = c.Step(step, {}, One);
    ASSERT_TRUE(did.ok()) << did.status();
    if (*did) saved.push_back(step);
  }
  EXPECT_THAT(saved, ElementsAre(10, 20, 27, 30, 33, 36, 39));  // every 10 steps, then three times every 20 seconds
  EXPECT_EQ(c.report().saves, 7u);
  EXPECT_EQ(c.report().step, 39);
  EXPECT_EQ(c.report().bytes, 4u);
  EXPECT_EQ(log.lines.size(), 7u);
  EXPECT_THAT(log.lines[0].second, HasSubstr("checkpoint 'dir/m-10' saved: 4 bytes in"));
  c.StartFrom(100);
  EXPECT_FALSE(*c.Step(109, {}, One));
  EXPECT_TRUE(*c.Step(110, {}, One));
}

TEST(CheckpointerTest, RefusesNegativeTimes) {
  RecordedFiles files;
  Lines log;
  for (int which = 0; which < 4; ++which) {
    CheckpointerOptions options;
    if (which == 0) options.every_steps = -1;
    if (which == 1) options.every_seconds = -1;
    if (which == 2) options.every_seconds = std::nan("");
    if (which == 3) options.keep.every_seconds = -1;
    EXPECT_TRUE(absl::IsInvalidArgument(Checkpointer::Open("dir", "m", options, log.log(), files).status())) << which;
  }
}

// Files on which every sync of a folder blocks until the test opens the gate.
class Gate {
 public:
  void Open() {
    std::lock_guard<std::mutex> lock(mu_);
    open_ = true;
    changed_.notify_all();
  }
  void Pass() {
    std::unique_lock<std::mutex> lock(mu_);
    waiting_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void Await() {
    std::unique_lock<std::mutex> lock(mu_);
    changed_.wait(lock, [this] { return waiting_; });
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  bool open_ = false, waiting_ = false;
};

class SlowFiles final : public FileSystem {
 public:
  SlowFiles(FileSystem& files, Gate* gate) : files_(files), gate_(gate) {}
  StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override { return files_.Create(path); }
  StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override { return files_.Open(path); }
  Status Rename(const std::string& from, const std::string& to) override { return files_.Rename(from, to); }
  Status Remove(const std::string& path) override { return files_.Remove(path); }
  StatusOr<std::vector<std::string>> List(const std::string& folder) override { return files_.List(folder); }
  Status MakeFolder(const std::string& folder) override { return files_.MakeFolder(folder); }
  Status RemoveFolder(const std::string& folder) override { return files_.RemoveFolder(folder); }
  Status SyncFolderOf(const std::string& path) override {
    gate_->Pass();
    return files_.SyncFolderOf(path);
  }
  StatusOr<std::unique_ptr<FolderLock>> LockFolderOf(const std::string& path) override { return files_.LockFolderOf(path); }

 private:
  FileSystem& files_;
  Gate* gate_;
};

TEST(CheckpointerTest, ABusyStepIsSkippedAndToldOrWaits) {
  for (bool skip : {true, false}) {
    RecordedFiles disk;
    Gate gate;
    SlowFiles files(disk, &gate);
    Lines log;
    CheckpointerOptions options;
    options.every_steps = 1;
    options.background = true;
    options.skip_if_busy = skip;
    auto made = Checkpointer::Open("dir", "m", options, log.log(), files);
    ASSERT_TRUE(made.ok());
    Checkpointer& c = **made;
    EXPECT_TRUE(*c.Step(1, {}, One));  // returns although nothing can be published yet
    gate.Await();
    EXPECT_EQ(c.report().saves, 0u);
    if (skip) {
      EXPECT_FALSE(*c.Step(2, {}, One));
      EXPECT_EQ(c.report().skipped, 1u);
      EXPECT_THAT(log.lines.back().second, HasSubstr("'m-2' skipped"));
      gate.Open();
    } else {
      std::thread opener([&] { gate.Open(); });
      EXPECT_TRUE(*c.Step(2, {}, One));
      opener.join();
    }
    EXPECT_TRUE(c.Wait().ok());
    EXPECT_EQ(c.report().saves, skip ? 1u : 2u);
    EXPECT_EQ(c.report().step, skip ? 1 : 2);
  }
}

TEST(CheckpointerTest, ALogMayAskForTheReport) {
  RecordedFiles disk;
  Gate gate;
  SlowFiles files(disk, &gate);
  Checkpointer* c = nullptr;
  std::atomic<uint64_t> skipped = 0;
  CheckpointerOptions options;
  options.every_steps = 1;
  options.background = options.skip_if_busy = true;
  auto made = Checkpointer::Open("dir", "m", options, [&](uint32_t, std::string_view) { skipped = c->report().skipped; }, files);
  ASSERT_TRUE(made.ok());
  c = made->get();
  EXPECT_TRUE(*c->Step(1, {}, One));
  gate.Await();
  EXPECT_FALSE(*c->Step(2, {}, One));
  EXPECT_EQ(skipped, 1u);
  gate.Open();
}

TEST(CheckpointerTest, AChildOfForkDoesNotWaitForAThreadThatItHasNot) {
  RecordedFiles disk;
  Gate gate;
  SlowFiles files(disk, &gate);
  CheckpointerOptions options;
  options.background = true;
  auto made = Checkpointer::Open("dir", "m", options, [](uint32_t, std::string_view) {}, files);
  ASSERT_TRUE(made.ok() && (*made)->Save(1, {}, One).ok());
  gate.Await();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // ends the process with another status
    made->reset();
    _exit(0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  gate.Open();
  EXPECT_TRUE((*made)->Wait().ok());
}

TEST(CheckpointerTest, RefusesNegativeSteps) {
  RecordedFiles files;
  Lines log;
  CheckpointerOptions options;
  options.every_steps = 1;
  options.background = true;
  auto made = Checkpointer::Open("dir", "m", options, log.log(), files);
  ASSERT_TRUE(made.ok());
  for (int64_t step : {int64_t{-1}, INT64_MIN}) {
    EXPECT_TRUE(absl::IsInvalidArgument((*made)->Step(step, {}, One).status()));
    EXPECT_TRUE(absl::IsInvalidArgument((*made)->Save(step, {}, One)));
  }
  EXPECT_TRUE(*(*made)->Step(INT64_MAX, {}, One));
}

TEST(CheckpointerTest, AFailureToReadTheValuesIsTold) {
  for (bool background : {false, true}) {
    RecordedFiles files;
    Lines log;
    CheckpointerOptions options;
    options.every_steps = 1;
    options.background = background;
    auto made = Checkpointer::Open("dir", "m", options, log.log(), files);
    ASSERT_TRUE(made.ok());
    auto fails = []() -> StatusOr<NamedTensors> { return FailedPrecondition("no values"); };
    EXPECT_TRUE(absl::IsFailedPrecondition((*made)->Step(1, {}, fails).status()));
    EXPECT_TRUE((*made)->Wait().ok());
    EXPECT_EQ((*made)->report().failed, 1u);
    EXPECT_TRUE(*(*made)->Step(2, {}, One));
    EXPECT_TRUE((*made)->Wait().ok());
    EXPECT_EQ((*made)->report().step, 2);
  }
}

StatusOr<uint64_t> WriteOne(const std::string& prefix, FileSystem& files) {
  ASSIGN_OR_RETURN(const auto writer, CheckpointWriter::Create(prefix, files));
  for (const auto& [name, value] : Value(1)) RETURN_IF_ERROR(writer->Add(name, value.view()));
  const uint64_t bytes = writer->bytes();
  RETURN_IF_ERROR(writer->Commit());
  return bytes;
}

// A writer whose values are taken at once and whose files are made once the gate is open.
Checkpointer::Writer Held(Gate* gate, FileSystem* files, Status end = Status()) {
  return [gate, files, end](const std::string& prefix, const std::function<void()>& taken) -> StatusOr<uint64_t> {
    taken();
    gate->Pass();
    RETURN_IF_ERROR(end);
    return WriteOne(prefix, *files);
  };
}

TEST(CheckpointerTest, ASaveByAWriterHoldsItsCallerUntilTheValuesAreTaken) {
  RecordedFiles files;
  Gate gate;
  Ticking time;
  Lines log;
  CheckpointerOptions options;
  options.every_steps = 1;
  options.background = options.skip_if_busy = true;
  auto made = Checkpointer::Open("dir", "m", options, log.log(), files, time.clock());
  ASSERT_TRUE(made.ok()) << made.status();
  Checkpointer& c = **made;
  EXPECT_TRUE(*c.StepBy(1, {}, Held(&gate, &files)));  // returns although the writer waits
  gate.Await();
  EXPECT_EQ(c.report().saves, 0u);
  EXPECT_FALSE(*c.StepBy(2, {}, Held(&gate, &files)));  // busy
  time.now += 7;
  gate.Open();
  EXPECT_TRUE(c.Wait().ok());
  EXPECT_EQ(c.report().step, 1);
  EXPECT_EQ(c.report().bytes, 4u);
  EXPECT_EQ(c.report().skipped, 1u);
  EXPECT_EQ(c.report().stall_ns, 0u);  // the clock went on after the values were taken
  EXPECT_EQ(c.report().write_ns, 7'000'000'000u);
  EXPECT_TRUE(CheckpointReader::Open("dir/m-1", files).ok());
}

TEST(CheckpointerTest, AWriterThatFailsBeforeItsValuesAreTakenFailsItsCaller) {
  for (bool background : {false, true}) {
    RecordedFiles files;
    Lines log;
    CheckpointerOptions options;
    options.background = background;
    auto made = Checkpointer::Open("dir", "m", options, log.log(), files);
    ASSERT_TRUE(made.ok());
    auto fails = [](const std::string&, const std::function<void()>&) -> StatusOr<uint64_t> { return FailedPrecondition("no values"); };
    EXPECT_TRUE(absl::IsFailedPrecondition((*made)->SaveBy(1, {}, fails)));
    EXPECT_TRUE((*made)->Wait().ok());  // was returned once
    EXPECT_EQ((*made)->report().failed, 1u);
    EXPECT_EQ(log.lines.size(), 1u);
  }
}

TEST(CheckpointerTest, AWriterThatFailsAfterItsValuesAreTakenFailsTheNextCall) {
  RecordedFiles files;
  Gate gate;
  Lines log;
  CheckpointerOptions options;
  options.background = true;
  auto made = Checkpointer::Open("dir", "m", options, log.log(), files);
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE((*made)->SaveBy(1, {}, Held(&gate, &files, Error(absl::StatusCode::kUnavailable, "the task is lost"))).ok());
  gate.Open();
  const Status s = (*made)->SaveBy(2, {}, Held(&gate, &files));
  EXPECT_TRUE(absl::IsUnavailable(s)) << s;
  EXPECT_TRUE((*made)->Wait().ok());
  EXPECT_EQ((*made)->report().step, 2);  // was saved all the same
  EXPECT_EQ((*made)->report().failed, 1u);
}

// A writer that has no use for `taken` holds its caller until it ends.
TEST(CheckpointerTest, AWriterThatNeverSaysThatItHasItsValuesHoldsItsCallerToItsEnd) {
  RecordedFiles files;
  Lines log;
  CheckpointerOptions options;
  options.background = true;
  auto made = Checkpointer::Open("dir", "m", options, log.log(), files);
  ASSERT_TRUE(made.ok());
  auto write = [&](const std::string& prefix, const std::function<void()>&) -> StatusOr<uint64_t> { return WriteOne(prefix, files); };
  EXPECT_TRUE((*made)->SaveBy(1, {}, write).ok());
  EXPECT_EQ((*made)->report().saves, 1u);
}

}  // namespace
}  // namespace thalweg
