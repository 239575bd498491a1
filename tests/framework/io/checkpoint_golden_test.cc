// Reads checkpoints that TensorFlow 2.21 wrote (checkpoint_goldens.py), and writes them again byte
// for byte.
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/io/checkpoint.h"
#include "framework/io/checkpoint_folder.h"
#include "framework/io/checkpoint_pieces.h"
#include "tests/framework/io/fake_files.h"

namespace thalweg {
namespace {

using testing::ElementsAre;

std::string Golden(const std::string& name) {
  const char* source = std::getenv("THALWEG_SOURCE_DIR");
  return std::string(source ? source : ".") + "/tests/framework/io/testdata/" + name;
}

template <class T>
std::vector<T> Values(const StatusOr<Tensor>& t) {
  if (!t.ok()) ADD_FAILURE() << t.status();
  return t.ok() ? std::vector<T>(t->as<T>(), t->as<T>() + t->count()) : std::vector<T>();
}

template <class T>
std::vector<T> UpTo(int n) {
  std::vector<T> v(static_cast<size_t>(n));
  std::iota(v.begin(), v.end(), T(0));
  return v;
}

template <class T>
Tensor Make(uint32_t dtype, std::vector<int64_t> dims, const std::vector<T>& values) {
  Tensor t = *Tensor::Make(dtype, Shape(std::move(dims)));
  std::copy(values.begin(), values.end(), t.as<T>());
  return t;
}

TEST(CheckpointGoldenTest, ShardedAndPartitionedTensorsAreReadWhole) {
  auto r = CheckpointReader::Open(Golden("sharded-2"));
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_TRUE((*r)->VerifyAll().ok());
  EXPECT_EQ((*r)->entries().size(), 5u);
  EXPECT_EQ(Values<float>((*r)->Read("rows")), UpTo<float>(24));
  EXPECT_EQ(Values<int32_t>((*r)->Read("columns")), UpTo<int32_t>(6));
  EXPECT_THAT(Values<uint16_t>((*r)->Read("half")), ElementsAre(0x3f80, 0x4000, 0x4040));
  EXPECT_THAT(Values<int64_t>((*r)->Read("step")), ElementsAre(7));
  auto names = (*r)->Read("names");
  ASSERT_TRUE(names.ok());
  EXPECT_EQ(names->str(0), "");
  EXPECT_EQ(names->str(1), "three");
  EXPECT_EQ(names->str(2), std::string_view("\0\xff", 2));
}

TEST(CheckpointGoldenTest, PartsOfTensorsAreReadFromTheirPieces) {
  auto r = CheckpointReader::Open(Golden("sharded-2"));
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT(Values<float>((*r)->ReadPart("rows", {{1, 2}, {2, 2}})), ElementsAre(8, 9, 14, 15));
  EXPECT_THAT(Values<float>((*r)->ReadPart("rows", {{3, 0}, {1, -1}})), ElementsAre(18, 19, 20, 21, 22, 23));
  EXPECT_THAT(Values<int32_t>((*r)->ReadPart("columns", {{1, 0}, {1, 2}})), ElementsAre(3, 4));
  EXPECT_THAT(Values<uint16_t>((*r)->ReadPart("half", {{1}, {2}})), ElementsAre(0x4000, 0x4040));
  auto names = (*r)->ReadPart("names", {{1}, {1}});
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_EQ(names->str(0), "three");
  EXPECT_TRUE(absl::IsInvalidArgument((*r)->ReadPart("rows", {{3, 0}, {2, 6}}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument((*r)->ReadPart("rows", {{0}, {1}}).status()));
  EXPECT_TRUE(absl::IsNotFound((*r)->ReadPart("none", {{0}, {1}}).status()));
}

TEST(CheckpointGoldenTest, PartitionedVariablesOfASaverAreRead) {
  auto r = CheckpointReader::Open(Golden("variables-5"));
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(Values<float>((*r)->Read("scope/by_rows")), UpTo<float>(30));
  EXPECT_EQ(Values<float>((*r)->Read("scope/by_columns")), UpTo<float>(30));
  EXPECT_EQ((*r)->Read("text")->str(1), "bc");
}

TEST(CheckpointGoldenTest, TheStateFileNamesThem) {
  std::vector<std::string> notes;
  EXPECT_THAT(*FindCheckpoints(Golden(""), "", LocalFiles(), &notes), ElementsAre(Golden("/sharded-2"), Golden("/variables-5")));
  EXPECT_THAT(notes, testing::IsEmpty());
  auto state = ReadCheckpointState(Golden(""), LocalFiles());
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->latest, "sharded-2");
  EXPECT_EQ(state->all[0].time, 1.5);
  EXPECT_EQ(CheckpointStateText(*state), test::Slurp(Golden("checkpoint")));
}

// The same pieces in the same order give the same files.
TEST(CheckpointGoldenTest, WeWriteTheSameBytes) {
  test::TempFolder folder;
  const Tensor rows = Make(TW_FLOAT, {2, 6}, UpTo<float>(12)), half = Make<uint16_t>(TW_BFLOAT16, {3}, {0x3f80, 0x4000, 0x4040});
  const Tensor more = Make<float>(TW_FLOAT, {2, 6}, {12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23});
  const Tensor left = Make<int32_t>(TW_INT32, {2, 1}, {0, 3}), right = Make<int32_t>(TW_INT32, {2, 2}, {1, 2, 4, 5});
  const Tensor step = Make<int64_t>(TW_INT64, {}, {7});
  Tensor names = *Tensor::Make(TW_STRING, Shape({3}));
  ASSERT_TRUE(names.SetString(1, "three").ok() && names.SetString(2, std::string_view("\0\xff", 2)).ok());
  auto a = CheckpointWriter::Create(folder / "a"), b = CheckpointWriter::Create(folder / "b");
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_TRUE((*a)->AddPiece("rows", Shape({4, 6}), {{0, 0}, {2, -1}}, rows.view()).ok());
  EXPECT_TRUE((*a)->AddPiece("columns", Shape({2, 3}), {{0, 0}, {-1, 1}}, left.view()).ok());
  EXPECT_TRUE((*a)->Add("half", half.view()).ok());
  EXPECT_TRUE((*b)->AddPiece("rows", Shape({4, 6}), {{2, 0}, {2, -1}}, more.view()).ok());
  EXPECT_TRUE((*b)->AddPiece("columns", Shape({2, 3}), {{0, 1}, {-1, 2}}, right.view()).ok());
  EXPECT_TRUE((*b)->Add("names", names.view()).ok());
  EXPECT_TRUE((*b)->Add("step", step.view()).ok());
  ASSERT_TRUE((*a)->Commit().ok() && (*b)->Commit().ok());
  ASSERT_TRUE(MergeCheckpoints({folder / "a", folder / "b"}, folder / "c", true).ok());
  EXPECT_EQ(folder.names(), (std::set<std::string>{"c.index", "c.data-00000-of-00002", "c.data-00001-of-00002"}));
  for (const char* end : {".index", ".data-00000-of-00002", ".data-00001-of-00002"}) {
    EXPECT_EQ(test::Slurp(folder / (std::string("c") + end)), test::Slurp(Golden(std::string("sharded-2") + end))) << end;
  }
}

TEST(CheckpointGoldenTest, PiecesThatDoNotFitAreRefused) {
  test::TempFolder folder;
  auto made = CheckpointWriter::Create(folder / "c");
  ASSERT_TRUE(made.ok());
  CheckpointWriter& w = **made;
  const Tensor t = Make(TW_FLOAT, {2, 2}, UpTo<float>(4)), wrong = Make(TW_INT32, {2, 2}, UpTo<int32_t>(4));
  const Shape whole({4, 2});
  EXPECT_TRUE(absl::IsInvalidArgument(w.AddPiece("t", whole, {{3, 0}, {2, -1}}, t.view())));
  EXPECT_TRUE(absl::IsInvalidArgument(w.AddPiece("t", whole, {{0}, {2}}, t.view())));
  EXPECT_TRUE(absl::IsInvalidArgument(w.AddPiece("t", whole, {{0, 0}, {3, -1}}, t.view())));
  EXPECT_TRUE(w.AddPiece("t", whole, {{0, 0}, {2, -1}}, t.view()).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(w.AddPiece("t", whole, {{0, 0}, {2, -1}}, t.view())));
  EXPECT_TRUE(absl::IsAlreadyExists(w.Add("t", t.view())));
  EXPECT_TRUE(absl::IsInvalidArgument(w.AddPiece("t", whole, {{2, 0}, {2, -1}}, wrong.view())));
  EXPECT_TRUE(absl::IsInvalidArgument(w.AddPiece("t", Shape({5, 2}), {{2, 0}, {2, -1}}, t.view())));
  EXPECT_TRUE(w.Add("whole", t.view()).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(w.AddPiece("whole", whole, {{0, 0}, {2, -1}}, t.view())));
  EXPECT_TRUE(w.AddPiece("all", Shape({2, 2}), {{0, 0}, {-1, 2}}, t.view()).ok());
  EXPECT_TRUE(w.Commit().ok());
  auto r = CheckpointReader::Open(folder / "c");
  ASSERT_TRUE(r.ok());
  EXPECT_TRUE((*r)->Find("all")->pieces.empty());
  EXPECT_TRUE(absl::IsDataLoss((*r)->Read("t").status())) << "the other half is in no file";
  EXPECT_TRUE((*r)->ReadPart("t", {{1, 0}, {1, 2}}).ok()) << "this half is";
}

TEST(CheckpointGoldenTest, WhatCannotBeMergedIsRefusedAndStays) {
  test::TempFolder folder;
  const Tensor t = Make(TW_FLOAT, {2, 2}, UpTo<float>(4));
  auto save = [&](const char* prefix, const char* name) {
    auto w = CheckpointWriter::Create(folder / prefix);
    EXPECT_TRUE((*w)->Add(name, t.view()).ok() && (*w)->Commit().ok());
  };
  save("a", "x");
  save("b", "x");
  save("c", "y");
  const std::set<std::string> before = folder.names();
  auto merge = [&](const std::vector<std::string>& parts) { return MergeCheckpoints(parts, folder / "c", true); };
  EXPECT_TRUE(absl::IsInvalidArgument(merge({folder / "a", folder / "b"})));
  EXPECT_TRUE(absl::IsInvalidArgument(merge({folder / "a", folder / "a"})));
  EXPECT_TRUE(absl::IsInvalidArgument(merge({folder / "a", folder / "c"})));
  EXPECT_TRUE(absl::IsInvalidArgument(merge({folder / "./c"})));  // another name of the target
  EXPECT_TRUE(absl::IsInvalidArgument(merge({})));
  EXPECT_TRUE(absl::IsNotFound(merge({folder / "a", folder / "none"})));
  EXPECT_EQ(folder.names(), before);
  EXPECT_TRUE(merge({folder / "a"}).ok());
  EXPECT_EQ((*CheckpointReader::Open(folder / "c"))->entries()[0]->name, "x");
}

}  // namespace
}  // namespace thalweg
