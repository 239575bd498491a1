#include "framework/io/checkpoint.h"

#include <atomic>
#include <set>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/framework/io/fake_files.h"
#include "tests/framework/io/saved_tensors.h"

namespace thalweg {
namespace {

using test::FaultyFiles;
using test::Floats;
using test::Holds;
using test::Load;
using test::Same;
using test::Save;
using test::Spill;
using test::Strings;
using test::TempFolder;
using test::Tensors;
using test::Version;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Shape{} would have an unknown rank.
const Shape kScalar{std::vector<int64_t>()};

std::string Text(const Status& s) { return std::string(Message(s)); }

// ---- Round trips ----

TEST(CheckpointTest, KeepsEveryPlainTypeBitForBit) {
  TempFolder folder;
  Tensors all;
  for (uint32_t dtype = TW_FLOAT; dtype <= TW_UINT2; ++dtype) {
    if (dtype == TW_STRING || dtype == TW_RESOURCE || dtype == TW_VARIANT) continue;
    Tensor t = *Tensor::Make(dtype, Shape{2, 3});
    for (uint64_t i = 0; i < t.bytes(); ++i) t.as<uint8_t>()[i] = uint8_t(dtype == TW_BOOL || dtype >= TW_INT4 ? i % 2 : 37 * i + dtype);
    all["t" + std::to_string(dtype)] = t;
  }
  ASSERT_TRUE(Save(folder / "c", all).ok());
  EXPECT_TRUE(Holds(folder / "c", all));
  EXPECT_EQ(folder.names(), (std::set<std::string>{"c.index", "c.data-00000-of-00001"}));
}

TEST(CheckpointTest, KeepsStringsScalarsAndEmptyTensors) {
  TempFolder folder;
  Tensor scalar = *Tensor::Make(TW_STRING, kScalar);
  ASSERT_TRUE(scalar.SetString(0, std::string("a\0b", 3)).ok());
  const Tensors all = {{"s", scalar},        {"none", Strings({})},    {"many", Strings({"", "x", std::string(100000, 'y'), "\xff\xfe"})},
                       {"f", Floats({}, 2)}, {"e", Floats({3, 0}, 1)}, {"big", Floats({700, 1000}, 0.5f)}};
  ASSERT_TRUE(Save(folder / "c", all).ok());
  EXPECT_TRUE(Holds(folder / "c", all));
}

TEST(CheckpointTest, AddsInAnyOrderAndListsByName) {
  TempFolder folder;
  auto w = CheckpointWriter::Create(folder / "c");
  ASSERT_TRUE(w.ok());
  for (const char* name : {"b", "c", "a", "b/x"}) ASSERT_TRUE((*w)->Add(name, Floats({2}, 1).view()).ok());
  EXPECT_TRUE((*w)->Commit().ok());
  auto r = CheckpointReader::Open(folder / "c");
  ASSERT_TRUE(r.ok());
  std::vector<std::string> names;
  for (auto* e : (*r)->entries()) names.push_back(e->name);
  EXPECT_THAT(names, ElementsAre("a", "b", "b/x", "c"));
  EXPECT_EQ((*r)->Find("a")->shape, Shape({2}));
  EXPECT_EQ((*r)->Find("a")->dtype, uint32_t(TW_FLOAT));
  EXPECT_EQ((*r)->Find("none"), nullptr);
}

TEST(CheckpointTest, HoldsTenThousandTensors) {
  TempFolder folder;
  Tensors all;
  for (int i = 0; i < 10000; ++i) all["layer" + std::to_string(i) + "/weights"] = Floats({3}, float(i));
  ASSERT_TRUE(Save(folder / "c", all).ok());
  EXPECT_TRUE(Holds(folder / "c", all));
}

TEST(CheckpointTest, AnEmptyCheckpointIsOne) {
  TempFolder folder;
  ASSERT_TRUE(Save(folder / "c", {}).ok());
  EXPECT_TRUE(Holds(folder / "c", {}));
}

// ---- Refusals ----

TEST(CheckpointTest, WriterRefusesWhatCannotBeSaved) {
  TempFolder folder;
  auto made = CheckpointWriter::Create(folder / "c");
  ASSERT_TRUE(made.ok());
  CheckpointWriter& w = **made;
  const Tensor t = Floats({2}, 1);
  EXPECT_TRUE(absl::IsInvalidArgument(w.Add("", t.view())));
  EXPECT_TRUE(absl::IsInvalidArgument(w.Add(std::string_view("\0x", 2), t.view())));
  EXPECT_TRUE(w.Add("a", t.view()).ok());
  EXPECT_THAT(Text(w.Add("a", t.view())), HasSubstr("tensor 'a' was added before"));
  Tensor resource = *Tensor::Make(TW_RESOURCE, kScalar);
  EXPECT_TRUE(absl::IsUnimplemented(w.Add("r", resource.view())));
  tw_view odd = t.view();
  const int64_t stride = 2;
  odd.strides = &stride;
  EXPECT_TRUE(absl::IsInvalidArgument(w.Add("s", odd)));
  odd = t.view();
  odd.bytes = 4;
  EXPECT_TRUE(absl::IsInvalidArgument(w.Add("s", odd)));
  odd = t.view();
  odd.data = nullptr;
  EXPECT_TRUE(absl::IsInvalidArgument(w.Add("s", odd)));
  EXPECT_TRUE(w.Commit().ok());  // after a refusal, the writer still works
  EXPECT_TRUE(absl::IsFailedPrecondition(w.Add("b", t.view())));
  EXPECT_TRUE(absl::IsFailedPrecondition(w.Commit()));
  EXPECT_TRUE(Holds(folder / "c", {{"a", t}}));
}

TEST(CheckpointTest, PrefixNeedsAFileNameAndAFolder) {
  TempFolder folder;
  EXPECT_TRUE(absl::IsInvalidArgument(CheckpointWriter::Create("").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckpointWriter::Create(folder / "x/").status()));
  EXPECT_TRUE(absl::IsNotFound(CheckpointWriter::Create(folder / "no/such").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckpointWriter::Create(std::string("/tmp/a\0b", 8)).status()));
}

TEST(CheckpointTest, ReaderSaysWhatIsMissing) {
  TempFolder folder;
  Status s = CheckpointReader::Open(folder / "c").status();
  EXPECT_TRUE(absl::IsNotFound(s));
  EXPECT_THAT(Text(s), HasSubstr("there is no file '" + (folder / "c.index") + "'"));
  ASSERT_TRUE(Save(folder / "c", Version(1)).ok());
  auto r = CheckpointReader::Open(folder / "c");
  EXPECT_THAT(Text((*r)->Read("nope").status()), HasSubstr("it has no tensor 'nope'"));
  ASSERT_TRUE(LocalFiles().Remove(folder / "c.data-00000-of-00001").ok());
  s = CheckpointReader::Open(folder / "c").status();
  EXPECT_TRUE(absl::IsDataLoss(s));
  EXPECT_THAT(Text(s), HasSubstr("c.data-00000-of-00001"));
}

TEST(CheckpointTest, AWriterThatIsDroppedLeavesNothing) {
  TempFolder folder;
  {
    auto w = CheckpointWriter::Create(folder / "c");
    ASSERT_TRUE((*w)->Add("a", Floats({1000}, 1).view()).ok());
    EXPECT_EQ(folder.names().size(), 1u);
  }
  EXPECT_THAT(folder.names(), IsEmpty());
}

// ---- Saving over a checkpoint ----

TEST(CheckpointTest, OverwritingAlternatesBetweenTwoDataNames) {
  TempFolder folder;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(Save(folder / "c", Version(float(i))).ok());
    EXPECT_TRUE(Holds(folder / "c", Version(float(i))));
    EXPECT_EQ(folder.names(), (std::set<std::string>{"c.index", i % 2 ? "c.data-00001-of-00002" : "c.data-00000-of-00001"}));
  }
}

TEST(CheckpointTest, OverwritesADamagedCheckpoint) {
  TempFolder folder;
  Spill(folder / "c.index", "not an index");
  Spill(folder / "c.data-00000-of-00001", "junk");
  ASSERT_TRUE(Save(folder / "c", Version(1)).ok());
  EXPECT_TRUE(Holds(folder / "c", Version(1)));
}

TEST(CheckpointTest, AReaderKeepsWhatItOpened) {
  TempFolder folder;
  ASSERT_TRUE(Save(folder / "c", Version(1)).ok());
  auto r = CheckpointReader::Open(folder / "c");
  ASSERT_TRUE(r.ok());
  ASSERT_TRUE(Save(folder / "c", Version(2)).ok());
  for (auto& [name, t] : Version(1)) EXPECT_TRUE(Same(*(*r)->Read(name), t)) << name;
}

TEST(CheckpointTest, SaversAndReadersOfOnePrefixNeverSeeAMix) {
  TempFolder folder;
  const std::string prefix = folder / "c";
  ASSERT_TRUE(Save(prefix, Version(0)).ok());
  std::atomic<int> failures{0}, mixed{0}, reads{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int k = 0; k < 3; ++k) {
    threads.emplace_back([&, k] {
      for (int i = 0; i < 25; ++i) failures += !Save(prefix, Version(float(100 * k + i))).ok();
    });
  }
  std::thread reader([&] {
    while (!stop) {
      Tensors got;
      Status s = Load(prefix, &got);
      if (!s.ok()) {
        ++failures;
        ADD_FAILURE() << s;
        continue;
      }
      ++reads;
      const float v = got["step"].as<float>()[0];
      mixed += got["model/dense/kernel"].as<float>()[34] != v + 34 || got["model/dense/bias"].as<float>()[0] != v + 100;
    }
  });
  for (auto& t : threads) t.join();
  stop = true;
  reader.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(mixed, 0);
  EXPECT_GT(reads, 0);
  EXPECT_EQ(folder.names().size(), 2u);
}

// ---- Failing ---- (dying: save_crash_test.cc)

TEST(CheckpointTest, WhereverACallFailsTheOldCheckpointIsWholeAndNoTemporaryIsLeft) {
  for (int n = 1;; ++n) {
    TempFolder folder;
    const std::string prefix = folder / "c";
    ASSERT_TRUE(Save(prefix, Version(1)).ok());
    FaultyFiles files(n);
    Status s = Save(prefix, Version(2), files);
    if (files.calls() < n) {
      EXPECT_GT(n, 12);
      break;
    }
    SCOPED_TRACE("call " + std::to_string(n) + ": " + files.failed());
    const bool published = Holds(prefix, Version(2));
    EXPECT_TRUE(published || Holds(prefix, Version(1)));
    for (const std::string& name : folder.names()) EXPECT_THAT(name, Not(HasSubstr("tmp")));
    if (s.ok()) {
      // Only the removal of the old data may fail silently.
      EXPECT_TRUE(published);
      EXPECT_THAT(files.failed(), HasSubstr("remove"));
    } else {
      EXPECT_TRUE(absl::IsResourceExhausted(s)) << s;
      EXPECT_THAT(Text(s), HasSubstr("checkpoint '" + prefix + "':"));
      EXPECT_THAT(Text(s), HasSubstr("errno 28"));
      // A failure may leave the new checkpoint in place only if it is a failure of the last sync.
      if (published) {
        EXPECT_THAT(files.failed(), HasSubstr("sync folder"));
      }
      if (!published) {
        EXPECT_EQ(folder.names(), (std::set<std::string>{"c.index", "c.data-00000-of-00001"}));
      }
    }
    // Later saves work.
    EXPECT_TRUE(Save(prefix, Version(3)).ok());
    EXPECT_TRUE(Holds(prefix, Version(3)));
    EXPECT_EQ(folder.names().size(), 2u);
  }
}

// Files on another machine, whose answer to the renaming of an index is lost.
class AnswerlessFiles final : public FileSystem {
 public:
  explicit AnswerlessFiles(bool renames) : renames_(renames) {}
  StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override { return LocalFiles().Create(path); }
  StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override { return LocalFiles().Open(path); }
  Status Rename(const std::string& from, const std::string& to) override {
    const bool index = to.ends_with(".index");
    if (!index || renames_) RETURN_IF_ERROR(LocalFiles().Rename(from, to));
    return index ? absl::UnavailableError("the answer is lost") : Status();
  }
  Status Remove(const std::string& path) override { return LocalFiles().Remove(path); }
  StatusOr<std::vector<std::string>> List(const std::string& folder) override { return LocalFiles().List(folder); }
  Status MakeFolder(const std::string& folder) override { return LocalFiles().MakeFolder(folder); }
  Status RemoveFolder(const std::string& folder) override { return LocalFiles().RemoveFolder(folder); }
  Status SyncFolderOf(const std::string& path) override { return LocalFiles().SyncFolderOf(path); }
  StatusOr<std::unique_ptr<FolderLock>> LockFolderOf(const std::string& path) override { return LocalFiles().LockFolderOf(path); }

 private:
  const bool renames_;
};

TEST(CheckpointTest, ALostAnswerToTheRenamingOfTheIndexLeavesAWholeCheckpoint) {
  for (bool renames : {false, true}) {
    SCOPED_TRACE(renames);
    TempFolder folder;
    const std::string prefix = folder / "c";
    ASSERT_TRUE(Save(prefix, Version(1)).ok());
    AnswerlessFiles files(renames);
    EXPECT_TRUE(absl::IsUnavailable(Save(prefix, Version(2), files)));
    EXPECT_TRUE(Holds(prefix, Version(renames ? 2 : 1)));
    EXPECT_TRUE(Save(prefix, Version(3)).ok());
    EXPECT_TRUE(Holds(prefix, Version(3)));
    EXPECT_EQ(folder.names().size(), 2u);
  }
}

TEST(CheckpointTest, WhereverAFirstSaveFailsNothingIsLeft) {
  for (int n = 1;; ++n) {
    TempFolder folder;
    FaultyFiles files(n);
    Status s = Save(folder / "c", Version(1), files);
    if (files.calls() < n) break;
    if (s.ok()) continue;
    if (!Holds(folder / "c", Version(1))) {
      EXPECT_THAT(folder.names(), IsEmpty()) << files.failed();
    }
  }
}

TEST(CheckpointTest, WhereverAReadFailsTheStatusSaysSo) {
  TempFolder folder;
  ASSERT_TRUE(Save(folder / "c", Version(1)).ok());
  for (int n = 1;; ++n) {
    FaultyFiles files(n);
    Tensors got;
    Status s = Load(folder / "c", &got, files);
    if (files.calls() < n) {
      EXPECT_TRUE(s.ok()) << s;
      break;
    }
    EXPECT_TRUE(absl::IsResourceExhausted(s)) << s;
    EXPECT_THAT(Text(s), HasSubstr("errno 28"));
  }
}

}  // namespace
}  // namespace thalweg
