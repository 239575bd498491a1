// Checkpoints that are damaged, hostile, or written differently by other programs.
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/base/crc32c.h"
#include "framework/io/checkpoint.h"
#include "framework/io/checkpoint_strings.h"
#include "tests/framework/io/fake_files.h"
#include "tests/framework/io/index_tables.h"
#include "tests/framework/io/saved_tensors.h"

namespace thalweg {
namespace {

using test::Entry;
using test::Floats;
using test::Header;
using test::Holds;
using test::Load;
using test::Save;
using test::Slurp;
using test::Spill;
using test::Table;
using test::TempFolder;
using test::Tensors;
using test::Version;
using testing::HasSubstr;

std::string Text(const Status& s) { return std::string(Message(s)); }

TEST(CheckpointDamageTest, EveryTruncationOfTheIndexIsNoticed) {
  TempFolder folder;
  ASSERT_TRUE(Save(folder / "c", Version(1)).ok());
  const std::string whole = Slurp(folder / "c.index");
  for (size_t n = 0; n < whole.size(); ++n) {
    Spill(folder / "c.index", whole.substr(0, n));
    Status s = CheckpointReader::Open(folder / "c").status();
    ASSERT_TRUE(absl::IsDataLoss(s)) << n << ": " << s;
    ASSERT_THAT(Text(s), HasSubstr("c.index"));
  }
}

TEST(CheckpointDamageTest, EveryTruncationOfTheDataIsNoticed) {
  TempFolder folder;
  ASSERT_TRUE(Save(folder / "c", {{"a", Floats({3000}, 1)}, {"b", Floats({1000}, 2)}}).ok());
  const std::string data = folder / "c.data-00000-of-00001", whole = Slurp(data);
  ASSERT_EQ(whole.size(), 16000u);
  for (size_t n = 0; n < whole.size(); n += 512) {
    Spill(data, whole.substr(0, n));
    Status s = CheckpointReader::Open(folder / "c").status();
    ASSERT_TRUE(absl::IsDataLoss(s)) << n << ": " << s;
    ASSERT_THAT(Text(s), HasSubstr(n < 12000 ? "tensor 'a' in '" + data : "tensor 'b' in '" + data));
    ASSERT_THAT(Text(s), HasSubstr("torn"));
  }
}

TEST(CheckpointDamageTest, DataThatShrinksAfterOpeningIsNoticed) {
  TempFolder folder;
  ASSERT_TRUE(Save(folder / "c", Version(1)).ok());
  auto r = CheckpointReader::Open(folder / "c");
  ASSERT_TRUE(r.ok());
  std::filesystem::resize_file(folder / "c.data-00000-of-00001", 0);
  EXPECT_TRUE(absl::IsDataLoss((*r)->Read("step").status()));
  EXPECT_TRUE(absl::IsDataLoss((*r)->VerifyAll()));
}

TEST(CheckpointDamageTest, EveryFlippedBitOfTheDataIsNoticedAndTheTensorNamed) {
  TempFolder folder;
  const Tensors all = Version(1);
  ASSERT_TRUE(Save(folder / "c", all).ok());
  const std::string data = folder / "c.data-00000-of-00001", whole = Slurp(data);
  auto intact = CheckpointReader::Open(folder / "c");
  ASSERT_TRUE(intact.ok());
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string bad = whole;
    bad[bit / 8] ^= char(1 << bit % 8);
    Spill(data, bad);
    auto r = CheckpointReader::Open(folder / "c");
    ASSERT_TRUE(r.ok());
    for (const CheckpointEntry* e : (*r)->entries()) {
      const bool hit = bit / 8 >= e->offset && bit / 8 < e->offset + e->size;
      Status s = (*r)->Read(e->name).status();
      ASSERT_EQ(absl::IsDataLoss(s), hit) << bit << " " << e->name << ": " << s;
      if (hit) {
        ASSERT_THAT(Text(s), HasSubstr("tensor '" + e->name + "' in '" + data + "'"));
      }
      ASSERT_EQ((*r)->Verify(*e).code(), s.code());
    }
    ASSERT_TRUE(absl::IsDataLoss((*r)->VerifyAll()));
  }
}

TEST(CheckpointDamageTest, AFlippedBitOfTheIndexIsNoticedOrHarmless) {
  TempFolder folder;
  const Tensors all = Version(1);
  ASSERT_TRUE(Save(folder / "c", all).ok());
  const std::string whole = Slurp(folder / "c.index");
  size_t harmless = 0;
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string bad = whole;
    bad[bit / 8] ^= char(1 << bit % 8);
    Spill(folder / "c.index", bad);
    Tensors got;
    Status s = Load(folder / "c", &got);
    if (s.ok()) {
      ++harmless;
      ASSERT_TRUE(Holds(folder / "c", all)) << bit;
    } else {
      ASSERT_THAT(Text(s), HasSubstr("c.index")) << bit;
    }
  }
  // The footer's padding and the empty meta index carry no information.
  EXPECT_LT(harmless, 60u * 8);
}

// ---- Foreign and hostile indexes ----

// Returns the status of opening a checkpoint with this header, this entry for "t", and a data file
// of 64 bytes.
Status OpenWith(const proto::BundleHeaderProto& header, const proto::BundleEntryProto& entry) {
  TempFolder folder;
  Spill(folder / "c.index", Table({{"", header.SerializeAsString()}, {"t", entry.SerializeAsString()}}));
  Spill(folder / "c.data-00000-of-00001", std::string(64, 'x'));
  return CheckpointReader::Open(folder / "c").status();
}

TEST(CheckpointDamageTest, RefusesFilesThatAreNoIndex) {
  TempFolder folder;
  const std::string good_header = Header().SerializeAsString();
  const std::map<std::string, std::string> foreign = {
      {"empty", ""},
      {"text", std::string(500, 'a')},
      {"a table without header", Table({{"k", "v"}})},
      {"an empty table", Table({})},
      {"a header that is none", Table({{"", "\xff\xff\xff"}})},
      {"an entry that is none", Table({{"", good_header}, {"t", "\xff\xff\xff"}})},
  };
  for (auto& [what, bytes] : foreign) {
    Spill(folder / "c.index", bytes);
    Status s = CheckpointReader::Open(folder / "c").status();
    EXPECT_TRUE(absl::IsDataLoss(s)) << what << ": " << s;
    EXPECT_THAT(Text(s), HasSubstr("checkpoint index '" + (folder / "c.index") + "':")) << what;
  }
}

TEST(CheckpointDamageTest, RefusesHeadersMeantForOthers) {
  const auto entry = Entry(TW_FLOAT, {2}, 0, 8);
  EXPECT_TRUE(OpenWith(Header(), entry).ok());
  auto h = Header();
  h.set_endianness(proto::BundleHeaderProto::BIG);
  EXPECT_TRUE(absl::IsUnimplemented(OpenWith(h, entry)));
  h = Header();
  h.mutable_version()->set_min_consumer(2);
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenWith(h, entry)));
  h = Header();
  h.mutable_version()->add_bad_consumers(1);
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenWith(h, entry)));
  for (int32_t shards : {0, -1, 1 << 30}) EXPECT_TRUE(absl::IsDataLoss(OpenWith(Header(shards), entry))) << shards;
}

TEST(CheckpointDamageTest, RefusesEntriesThatLie) {
  const int64_t big = INT64_MAX;
  const std::vector<std::pair<proto::BundleEntryProto, const char*>> lies = {
      {Entry(TW_FLOAT, {2}, 60, 8), "torn"},
      {Entry(TW_FLOAT, {2}, 64, 8), "torn"},
      {Entry(TW_FLOAT, {2}, big, 8), "torn"},
      {Entry(TW_FLOAT, {2}, -8, 8), "lies at byte -8"},
      {Entry(TW_FLOAT, {2}, 0, -8), "has -8 bytes"},
      {Entry(TW_FLOAT, {2}, 0, 12), "takes 8"},
      {Entry(TW_FLOAT, {2}, 0, 0), "takes 8"},
      {Entry(TW_FLOAT, {-1}, 0, 8), "not complete"},
      {Entry(TW_FLOAT, {-2}, 0, 8), "below -1"},
      {Entry(TW_FLOAT, {int64_t{1} << 40}, 0, int64_t{1} << 42), "torn"},
      {Entry(TW_FLOAT, {int64_t{1} << 40, int64_t{1} << 40}, 0, 8), "2^63-1"},
      {Entry(TW_FLOAT, {big}, 0, 8), "2^63-1"},
      {Entry(TW_FLOAT, std::vector<int64_t>(300, 1), 0, 4), "axes"},
      {Entry(TW_STRING, {100}, 0, 64), "cannot hold"},
      {Entry(TW_STRING, {int64_t{1} << 50}, 0, 64), "cannot hold"},
  };
  for (auto& [entry, words] : lies) {
    Status s = OpenWith(Header(), entry);
    EXPECT_TRUE(absl::IsDataLoss(s)) << words << ": " << s;
    EXPECT_THAT(Text(s), HasSubstr(words));
    EXPECT_THAT(Text(s), HasSubstr("tensor 't'"));
  }
  auto elsewhere = Entry(TW_FLOAT, {2}, 0, 8);
  elsewhere.set_shard_id(1);
  EXPECT_THAT(Text(OpenWith(Header(), elsewhere)), HasSubstr("data file 1 of 1"));
  elsewhere.set_shard_id(-1);
  EXPECT_TRUE(absl::IsDataLoss(OpenWith(Header(), elsewhere)));
}

// A thousand tensors that share one megabyte would be read into a gigabyte.
TEST(CheckpointDamageTest, RefusesTensorsThatShareBytes) {
  TempFolder folder;
  const auto open = [&](const std::vector<proto::BundleEntryProto>& entries) {
    std::map<std::string, std::string> all = {{"", Header().SerializeAsString()}};
    for (size_t i = 0; i < entries.size(); ++i) all[StrCat("t", i)] = entries[i].SerializeAsString();
    Spill(folder / "c.index", Table(all));
    return CheckpointReader::Open(folder / "c").status();
  };
  Spill(folder / "c.data-00000-of-00001", std::string(64, 'x'));
  EXPECT_TRUE(open({Entry(TW_FLOAT, {2}, 8, 8), Entry(TW_FLOAT, {2}, 0, 8), Entry(TW_STRING, {3}, 16, 48)}).ok());
  EXPECT_TRUE(open({Entry(TW_FLOAT, {2}, 0, 8), Entry(TW_FLOAT, {0}, 4, 0), Entry(TW_FLOAT, {0}, 4, 0)}).ok());
  const std::vector<std::pair<proto::BundleEntryProto, const char*>> shared = {
      {Entry(TW_FLOAT, {2}, 8, 8), "8 + 8"}, {Entry(TW_FLOAT, {1}, 8, 4), "8 + 4"}, {Entry(TW_STRING, {3}, 15, 5), "15 + 5"}};
  for (const auto& [entry, bytes] : shared) {
    Status s = open({Entry(TW_FLOAT, {2}, 8, 8), entry});
    EXPECT_TRUE(absl::IsDataLoss(s)) << bytes << ": " << s;
    EXPECT_THAT(Text(s), HasSubstr("c.data-00000-of-00001"));
    EXPECT_THAT(Text(s), HasSubstr("tensor 't0'"));
    EXPECT_THAT(Text(s), HasSubstr("tensor 't1'"));
    EXPECT_THAT(Text(s), HasSubstr("8 + 8"));
    EXPECT_THAT(Text(s), HasSubstr(bytes));
  }
}

TEST(CheckpointDamageTest, RefusesShardsThatAreOneFile) {
  TempFolder folder;
  std::map<std::string, std::string> entries = {{"", Header(3).SerializeAsString()}};
  for (int i = 0; i < 3; ++i) {
    auto e = Entry(TW_FLOAT, {4}, 0, 16);
    e.set_shard_id(i);
    entries[StrCat("t", i)] = e.SerializeAsString();
  }
  Spill(folder / "c.index", Table(entries));
  for (int i = 0; i < 2; ++i) Spill(ShardPath(folder / "c", i, 3), std::string(16, 'x'));
  for (bool symbolic : {false, true}) {
    const std::string third = ShardPath(folder / "c", 2, 3), first = ShardPath(folder / "c", 0, 3);
    std::filesystem::remove(third);
    symbolic ? std::filesystem::create_symlink(first, third) : std::filesystem::create_hard_link(first, third);
    Status s = CheckpointReader::Open(folder / "c").status();
    EXPECT_TRUE(absl::IsDataLoss(s)) << s;
    EXPECT_THAT(Text(s), HasSubstr("'" + first + "' and '" + third + "' are one file"));
  }
}

TEST(CheckpointDamageTest, RefusesStringsWhoseLengthsLie) {
  TempFolder folder;
  auto read = [&](std::vector<int64_t> dims, const std::string& bytes) {
    Spill(folder / "c.index", Table({{"", Header().SerializeAsString()},
                                     {"t", Entry(TW_STRING, std::move(dims), 0, int64_t(bytes.size())).SerializeAsString()}}));
    Spill(folder / "c.data-00000-of-00001", bytes);
    auto r = CheckpointReader::Open(folder / "c");
    return r.ok() ? (*r)->Read("t").status() : r.status();
  };
  for (const std::string& bytes : {std::string("\x05\0\0\0\0abc", 8), std::string("\x03\0\0\0\0abc", 8), std::string("\x03", 1),
                                   std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10), std::string("\xff\xff\xff\xff\xff", 5),
                                   std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\0\0\0\0", 14)}) {
    Status s = read({1}, bytes);
    EXPECT_TRUE(absl::IsDataLoss(s)) << s;
    EXPECT_THAT(Text(s), HasSubstr("tensor 't' in"));
  }
  // Two lengths whose sum overflows to the actual size.
  EXPECT_TRUE(absl::IsDataLoss(read({2}, std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01\0\0\0\0", 15))));
}

TEST(CheckpointDamageTest, RefusesABoolThatIsNeitherTrueNorFalse) {
  TempFolder folder;
  const std::string bytes = {1, 0, 7};
  Spill(folder / "c.index", Table({{"", Header().SerializeAsString()},
                                   {"t", Entry(TW_BOOL, {3}, 0, 3, MaskCrc(ExtendCrc32c(0, bytes.data(), 3))).SerializeAsString()}}));
  Spill(folder / "c.data-00000-of-00001", bytes);
  auto r = CheckpointReader::Open(folder / "c");
  ASSERT_TRUE(r.ok());
  EXPECT_THAT(Text((*r)->Read("t").status()), HasSubstr("element 2 is 7"));
}

TEST(CheckpointDamageTest, ListsTypesThatItCannotRead) {
  TempFolder folder;
  Spill(folder / "c.index", Table({{"", Header().SerializeAsString()},
                                   {"f4", Entry(33, {3}, 0, 3).SerializeAsString()},
                                   {"v", Entry(TW_VARIANT, {}, 3, 3).SerializeAsString()}}));
  Spill(folder / "c.data-00000-of-00001", "abcdef");
  auto r = CheckpointReader::Open(folder / "c");
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ((*r)->entries().size(), 2u);
  EXPECT_TRUE(absl::IsUnimplemented((*r)->Read("f4").status()));
  EXPECT_TRUE(absl::IsUnimplemented((*r)->Read("v").status()));
}

TEST(CheckpointDamageTest, NamesThatUnfoldToGigabytesAreRefused) {
  TempFolder folder;
  std::map<std::string, std::string> entries = {{"", Header().SerializeAsString()}};
  // The table stores each name without the prefix that it shares with the name before.
  const std::string stem(100000, 'n');
  for (int i = 0; i < 2000; ++i) entries[stem + std::to_string(10000 + i)] = Entry(TW_FLOAT, {}, 0, 4).SerializeAsString();
  Spill(folder / "c.index", Table(entries, leveldb::kSnappyCompression));
  Spill(folder / "c.data-00000-of-00001", "abcd");
  Status s = CheckpointReader::Open(folder / "c").status();
  EXPECT_TRUE(absl::IsDataLoss(s));
  EXPECT_THAT(Text(s), HasSubstr("no honest file"));
}

TEST(CheckpointDamageTest, ReadsCompressedIndexesAndManyShards) {
  TempFolder folder;
  std::map<std::string, std::string> entries = {{"", Header(3).SerializeAsString()}};
  for (int i = 0; i < 3; ++i) {
    const Tensor t = Floats({4}, float(i));
    Spill(ShardPath(folder / "c", i, 3), std::string(static_cast<const char*>(t.data()), t.bytes()));
    auto e = Entry(TW_FLOAT, {4}, 0, 16, MaskCrc(ExtendCrc32c(0, t.data(), t.bytes())));
    e.set_shard_id(i);
    entries["t" + std::to_string(i)] = e.SerializeAsString();
  }
  Spill(folder / "c.index", Table(entries, leveldb::kSnappyCompression));
  EXPECT_TRUE(Holds(folder / "c", {{"t0", Floats({4}, 0)}, {"t1", Floats({4}, 1)}, {"t2", Floats({4}, 2)}}));
  // Saving over the checkpoint removes its shards.
  ASSERT_TRUE(Save(folder / "c", Version(1)).ok());
  EXPECT_EQ(folder.names(), (std::set<std::string>{"c.index", "c.data-00000-of-00001"}));
}

}  // namespace
}  // namespace thalweg
