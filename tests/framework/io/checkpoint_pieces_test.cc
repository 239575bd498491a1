#include "framework/io/checkpoint_pieces.h"

#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/base/crc32c.h"
#include "framework/io/checkpoint.h"
#include "tests/framework/io/fake_files.h"
#include "tests/framework/io/index_tables.h"
#include "tests/framework/io/saved_tensors.h"

namespace thalweg {
namespace {

using test::Entry;
using test::Floats;
using test::Header;
using test::Spill;
using test::Table;
using test::TempFolder;
using testing::HasSubstr;

std::string Text(const Status& s) { return std::string(Message(s)); }

TEST(CheckpointPiecesTest, PieceKeysAreThoseOfTensorFlow) {
  // Copied from indexes that TensorFlow 2.21 wrote.
  using std::string_literals::operator""s;
  EXPECT_EQ(PieceKey("w", {{0, 0}, {2, -1}}), "\x00w\x00\x01\x01\x02\x80\x82\x80\x7f"s);
  EXPECT_EQ(PieceKey("w", {{64, 0}, {100, -1}}), "\x00w\x00\x01\x01\x02\xc0\x40\xc0\x64\x80\x7f"s);
  EXPECT_EQ(PieceKey("w\xc3\xbf\0q"s, {{8192, 1}, {1048576, 1}}), "\0w\xc3\xbf\0\xffq\0\x01\x01\x02\xe0\x20\0\xf0\x10\0\0\x81\x81"s);
}

struct PieceSpec {
  CheckpointPiece piece;
  Tensor value;
};

// Writes a checkpoint with "w" in pieces.
void SpillPieces(const TempFolder& folder, const std::vector<int64_t>& dims, const std::vector<PieceSpec>& specs) {
  auto whole = Entry(TW_FLOAT, dims, 0, 0);
  std::map<std::string, std::string> entries = {{"", Header().SerializeAsString()}};
  std::string data;
  for (const PieceSpec& spec : specs) {
    auto* slice = whole.add_slices();
    for (size_t i = 0; i < dims.size(); ++i) {
      auto* extent = slice->add_extent();
      extent->set_start(spec.piece.starts[i]);
      if (spec.piece.sizes[i] >= 0) extent->set_length(spec.piece.sizes[i]);
    }
    const uint64_t n = spec.value.bytes();
    entries[PieceKey("w", spec.piece)] = Entry(TW_FLOAT, {spec.value.view().dims, spec.value.view().dims + spec.value.rank()},
                                               int64_t(data.size()), int64_t(n), MaskCrc(ExtendCrc32c(0, spec.value.data(), n)))
                                             .SerializeAsString();
    data.append(static_cast<const char*>(spec.value.data()), n);
  }
  entries["w"] = whole.SerializeAsString();
  Spill(folder / "c.index", Table(entries));
  Spill(folder / "c.data-00000-of-00001", data);
}

TEST(CheckpointPiecesTest, PutsPartitionedTensorsTogether) {
  TempFolder folder;
  SpillPieces(folder, {3, 4},
              {{{{0, 0}, {1, -1}}, Floats({1, 4}, 0)}, {{{1, 0}, {2, 3}}, Floats({2, 3}, 10)}, {{{1, 3}, {2, 1}}, Floats({2, 1}, 20)}});
  auto r = CheckpointReader::Open(folder / "c");
  ASSERT_TRUE(r.ok()) << r.status();
  ASSERT_EQ((*r)->entries().size(), 1u);
  EXPECT_EQ((*r)->BytesOf(*(*r)->entries()[0]), 12 * sizeof(float));
  auto t = (*r)->Read("w");
  ASSERT_TRUE(t.ok()) << t.status();
  const float want[] = {0, 1, 2, 3, 10, 11, 12, 20, 13, 14, 15, 21};
  EXPECT_EQ(std::memcmp(t->data(), want, sizeof(want)), 0);
  EXPECT_TRUE((*r)->VerifyAll().ok());
}

TEST(CheckpointPiecesTest, RefusesPiecesThatDoNotMakeAWhole) {
  TempFolder folder;
  auto read = [&](const std::vector<PieceSpec>& specs) {
    SpillPieces(folder, {4}, specs);
    auto r = CheckpointReader::Open(folder / "c");
    return r.ok() ? (*r)->Read("w").status() : r.status();
  };
  EXPECT_TRUE(read({{{{0}, {2}}, Floats({2}, 0)}, {{{2}, {2}}, Floats({2}, 0)}}).ok());
  EXPECT_THAT(Text(read({{{{0}, {2}}, Floats({2}, 0)}})), HasSubstr("have 2 elements, but shape [4] has 4"));
  EXPECT_THAT(Text(read({{{{0}, {3}}, Floats({3}, 0)}, {{{2}, {2}}, Floats({2}, 0)}})), HasSubstr("overlap"));
  EXPECT_THAT(Text(read({{{{0}, {3}}, Floats({3}, 0)}, {{{2}, {4}}, Floats({4}, 0)}})), HasSubstr("a piece covers 2 + 4 of axis 0"));
  EXPECT_THAT(Text(read({{{{0}, {2}}, Floats({1}, 0)}, {{{2}, {2}}, Floats({2}, 0)}})), HasSubstr("must be float of shape [2]"));
}

TEST(CheckpointPiecesTest, RefusesPiecesThatShareBytes) {
  TempFolder folder;
  auto whole = Entry(TW_FLOAT, {4}, 0, 0);
  std::map<std::string, std::string> entries = {{"", Header().SerializeAsString()}};
  for (int64_t start : {0, 2}) {
    auto* extent = whole.add_slices()->add_extent();
    extent->set_start(start);
    extent->set_length(2);
    entries[PieceKey("w", {{start}, {2}})] = Entry(TW_FLOAT, {2}, 0, 8).SerializeAsString();
  }
  entries["w"] = whole.SerializeAsString();
  Spill(folder / "c.index", Table(entries));
  Spill(folder / "c.data-00000-of-00001", std::string(8, 'x'));
  Status s = CheckpointReader::Open(folder / "c").status();
  EXPECT_TRUE(absl::IsDataLoss(s)) << s;
  EXPECT_THAT(Text(s), HasSubstr("a piece of tensor 'w' in '" + (folder / "c.data-00000-of-00001")));
  EXPECT_THAT(Text(s), HasSubstr("0 + 8, but a piece of tensor 'w' lies at bytes 0 + 8"));
}

}  // namespace
}  // namespace thalweg
