#include "framework/io/checkpoint.h"

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leveldb/env.h"
#include "leveldb/table_builder.h"

#include "framework/io/checkpoint_pieces.h"
#include "framework/io/checkpoint_strings.h"
#include "framework/io/crc32c.h"
#include "framework/proto/checkpoint.pb.h"
#include "tests/framework/io/fake_files.h"

namespace thalweg {
namespace {

using test::FaultyFiles;
using test::Slurp;
using test::Spill;
using test::TempFolder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Not Shape{}, whose rank is unknown.
const Shape kScalar{std::vector<int64_t>()};

std::string Text(const Status& s) { return std::string(Message(s)); }

Tensor Floats(std::vector<int64_t> dims, float first) {
  Tensor t = *Tensor::Make(TW_FLOAT, Shape(std::move(dims)));
  for (uint64_t i = 0; i < t.count(); ++i) t.as<float>()[i] = first + float(i);
  return t;
}

Tensor Strings(const std::vector<std::string>& values) {
  const int64_t n = int64_t(values.size());
  Tensor t = *Tensor::Make(TW_STRING, &n, 1);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_TRUE(t.SetString(i, values[i]).ok());
  return t;
}

bool Same(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  if (a.dtype() != TW_STRING) return a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0;
  for (uint64_t i = 0; i < a.count(); ++i) {
    if (a.str(i) != b.str(i)) return false;
  }
  return true;
}

using Tensors = std::map<std::string, Tensor>;

// Two checkpoints with the same names and sizes, so that a mix of them would not be noticed by shape.
Tensors Version(float v) {
  return {{"model/dense/kernel", Floats({7, 5}, v)},
          {"model/dense/bias", Floats({5}, v + 100)},
          {"step", Floats({}, v)},
          {"names", Strings({v > 1 ? "new" : "old", "", std::string(300, 'x')})},
          {"empty", Floats({0, 3}, v)}};
}

Status Save(const std::string& prefix, const Tensors& tensors, FileSystem& files = LocalFiles()) {
  ASSIGN_OR_RETURN(auto writer, CheckpointWriter::Create(prefix, files));
  for (auto& [name, t] : tensors) RETURN_IF_ERROR(writer->Add(name, t.view()));
  return writer->Commit();
}

// Everything, or what is wrong.
Status Load(const std::string& prefix, Tensors* out, FileSystem& files = LocalFiles()) {
  ASSIGN_OR_RETURN(auto reader, CheckpointReader::Open(prefix, files));
  RETURN_IF_ERROR(reader->VerifyAll());
  out->clear();
  for (const CheckpointEntry* e : reader->entries()) {
    ASSIGN_OR_RETURN((*out)[e->name], reader->Read(e->name));
  }
  return Status();
}

bool Holds(const std::string& prefix, const Tensors& want, FileSystem& files = LocalFiles()) {
  Tensors got;
  Status s = Load(prefix, &got, files);
  if (!s.ok() || got.size() != want.size()) return false;
  for (auto& [name, t] : want) {
    if (!got.count(name) || !Same(got[name], t)) return false;
  }
  return true;
}

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
  EXPECT_TRUE(w.Commit().ok());  // a refusal does not spoil the rest
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
      // Only clearing away the old data may fail without a word.
      EXPECT_TRUE(published);
      EXPECT_THAT(files.failed(), HasSubstr("remove"));
    } else {
      EXPECT_TRUE(absl::IsResourceExhausted(s)) << s;
      EXPECT_THAT(Text(s), HasSubstr("checkpoint '" + prefix + "':"));
      EXPECT_THAT(Text(s), HasSubstr("errno 28"));
      // The one failure after which the new one stands is that of the last sync.
      if (published) {
        EXPECT_THAT(files.failed(), HasSubstr("sync folder"));
      }
      if (!published) {
        EXPECT_EQ(folder.names(), (std::set<std::string>{"c.index", "c.data-00000-of-00001"}));
      }
    }
    // And life goes on.
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

// ---- Damage ----

TEST(CheckpointTest, EveryTruncationOfTheIndexIsNoticed) {
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

TEST(CheckpointTest, EveryTruncationOfTheDataIsNoticed) {
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

TEST(CheckpointTest, DataThatShrinksAfterOpeningIsNoticed) {
  TempFolder folder;
  ASSERT_TRUE(Save(folder / "c", Version(1)).ok());
  auto r = CheckpointReader::Open(folder / "c");
  ASSERT_TRUE(r.ok());
  std::filesystem::resize_file(folder / "c.data-00000-of-00001", 0);
  EXPECT_TRUE(absl::IsDataLoss((*r)->Read("step").status()));
  EXPECT_TRUE(absl::IsDataLoss((*r)->VerifyAll()));
}

TEST(CheckpointTest, EveryFlippedBitOfTheDataIsNoticedAndTheTensorNamed) {
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

TEST(CheckpointTest, AFlippedBitOfTheIndexIsNoticedOrHarmless) {
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
  // The footer's padding and the empty meta index mean nothing.
  EXPECT_LT(harmless, 60u * 8);
}

// ---- Foreign and hostile indexes ----

class StringSink final : public leveldb::WritableFile {
 public:
  leveldb::Status Append(const leveldb::Slice& s) override {
    bytes.append(s.data(), s.size());
    return leveldb::Status::OK();
  }
  leveldb::Status Close() override { return leveldb::Status::OK(); }
  leveldb::Status Flush() override { return leveldb::Status::OK(); }
  leveldb::Status Sync() override { return leveldb::Status::OK(); }
  std::string bytes;
};

std::string Table(const std::map<std::string, std::string>& entries, leveldb::CompressionType compression = leveldb::kNoCompression) {
  StringSink sink;
  leveldb::Options options;
  options.compression = compression;
  leveldb::TableBuilder table(options, &sink);
  for (auto& [k, v] : entries) table.Add(k, v);
  EXPECT_TRUE(table.Finish().ok());
  return sink.bytes;
}

proto::BundleHeaderProto Header(int32_t shards = 1) {
  proto::BundleHeaderProto h;
  h.set_num_shards(shards);
  h.mutable_version()->set_producer(1);
  return h;
}

proto::BundleEntryProto Entry(uint32_t dtype, std::vector<int64_t> dims, int64_t offset, int64_t size, uint32_t crc = 0) {
  proto::BundleEntryProto e;
  e.set_dtype(proto::DataType(dtype));
  for (int64_t d : dims) e.mutable_shape()->add_dim()->set_size(d);
  e.set_offset(offset);
  e.set_size(size);
  e.set_crc32c(crc);
  return e;
}

// What opening says where the index has this header and, under "t", this entry, and the data file 64 bytes.
Status OpenWith(const proto::BundleHeaderProto& header, const proto::BundleEntryProto& entry) {
  TempFolder folder;
  Spill(folder / "c.index", Table({{"", header.SerializeAsString()}, {"t", entry.SerializeAsString()}}));
  Spill(folder / "c.data-00000-of-00001", std::string(64, 'x'));
  return CheckpointReader::Open(folder / "c").status();
}

TEST(CheckpointTest, RefusesFilesThatAreNoIndex) {
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

TEST(CheckpointTest, RefusesHeadersMeantForOthers) {
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

TEST(CheckpointTest, RefusesEntriesThatLie) {
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

TEST(CheckpointTest, RefusesStringsWhoseLengthsLie) {
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
  // Two lengths whose sum overflows to what is there.
  EXPECT_TRUE(absl::IsDataLoss(read({2}, std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01\0\0\0\0", 15))));
}

TEST(CheckpointTest, RefusesABoolThatIsNeitherTrueNorFalse) {
  TempFolder folder;
  const std::string bytes = {1, 0, 7};
  Spill(folder / "c.index", Table({{"", Header().SerializeAsString()},
                                   {"t", Entry(TW_BOOL, {3}, 0, 3, MaskCrc(ExtendCrc32c(0, bytes.data(), 3))).SerializeAsString()}}));
  Spill(folder / "c.data-00000-of-00001", bytes);
  auto r = CheckpointReader::Open(folder / "c");
  ASSERT_TRUE(r.ok());
  EXPECT_THAT(Text((*r)->Read("t").status()), HasSubstr("element 2 is 7"));
}

TEST(CheckpointTest, ListsTypesThatItCannotRead) {
  TempFolder folder;
  Spill(folder / "c.index", Table({{"", Header().SerializeAsString()},
                                   {"f4", Entry(33, {3}, 0, 3).SerializeAsString()},
                                   {"v", Entry(TW_VARIANT, {}, 0, 3).SerializeAsString()}}));
  Spill(folder / "c.data-00000-of-00001", "abc");
  auto r = CheckpointReader::Open(folder / "c");
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ((*r)->entries().size(), 2u);
  EXPECT_TRUE(absl::IsUnimplemented((*r)->Read("f4").status()));
  EXPECT_TRUE(absl::IsUnimplemented((*r)->Read("v").status()));
}

TEST(CheckpointTest, NamesThatUnfoldToGigabytesAreRefused) {
  TempFolder folder;
  std::map<std::string, std::string> entries = {{"", Header().SerializeAsString()}};
  // The table stores only what differs from the name before.
  const std::string stem(100000, 'n');
  for (int i = 0; i < 2000; ++i) entries[stem + std::to_string(10000 + i)] = Entry(TW_FLOAT, {}, 0, 4).SerializeAsString();
  Spill(folder / "c.index", Table(entries, leveldb::kSnappyCompression));
  Spill(folder / "c.data-00000-of-00001", "abcd");
  Status s = CheckpointReader::Open(folder / "c").status();
  EXPECT_TRUE(absl::IsDataLoss(s));
  EXPECT_THAT(Text(s), HasSubstr("no honest file"));
}

TEST(CheckpointTest, ReadsCompressedIndexesAndManyShards) {
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
  // And saving over it clears its shards away.
  ASSERT_TRUE(Save(folder / "c", Version(1)).ok());
  EXPECT_EQ(folder.names(), (std::set<std::string>{"c.index", "c.data-00000-of-00001"}));
}

// ---- Partitioned tensors ----

TEST(CheckpointTest, PieceKeysAreThoseOfTensorFlow) {
  // Taken from indexes that TensorFlow 2.21 wrote.
  using std::string_literals::operator""s;
  EXPECT_EQ(PieceKey("w", {{0, 0}, {2, -1}}), "\x00w\x00\x01\x01\x02\x80\x82\x80\x7f"s);
  EXPECT_EQ(PieceKey("w", {{64, 0}, {100, -1}}), "\x00w\x00\x01\x01\x02\xc0\x40\xc0\x64\x80\x7f"s);
  EXPECT_EQ(PieceKey("w\xc3\xbf\0q"s, {{8192, 1}, {1048576, 1}}), "\0w\xc3\xbf\0\xffq\0\x01\x01\x02\xe0\x20\0\xf0\x10\0\0\x81\x81"s);
}

struct PieceSpec {
  CheckpointPiece piece;
  Tensor value;
};

// A checkpoint with "w" in pieces.
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

TEST(CheckpointTest, PutsPartitionedTensorsTogether) {
  TempFolder folder;
  SpillPieces(folder, {3, 4},
              {{{{0, 0}, {1, -1}}, Floats({1, 4}, 0)}, {{{1, 0}, {2, 3}}, Floats({2, 3}, 10)}, {{{1, 3}, {2, 1}}, Floats({2, 1}, 20)}});
  auto r = CheckpointReader::Open(folder / "c");
  ASSERT_TRUE(r.ok()) << r.status();
  ASSERT_EQ((*r)->entries().size(), 1u);
  auto t = (*r)->Read("w");
  ASSERT_TRUE(t.ok()) << t.status();
  const float want[] = {0, 1, 2, 3, 10, 11, 12, 20, 13, 14, 15, 21};
  EXPECT_EQ(std::memcmp(t->data(), want, sizeof(want)), 0);
  EXPECT_TRUE((*r)->VerifyAll().ok());
}

TEST(CheckpointTest, RefusesPiecesThatDoNotMakeAWhole) {
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

}  // namespace
}  // namespace thalweg
