// Builds checkpoint indexes as other programs may write them.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "leveldb/env.h"
#include "leveldb/table_builder.h"

#include "framework/proto/checkpoint.pb.h"

namespace thalweg::test {

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

inline std::string Table(const std::map<std::string, std::string>& entries,
                         leveldb::CompressionType compression = leveldb::kNoCompression) {
  StringSink sink;
  leveldb::Options options;
  options.compression = compression;
  leveldb::TableBuilder table(options, &sink);
  for (auto& [k, v] : entries) table.Add(k, v);
  EXPECT_TRUE(table.Finish().ok());
  return sink.bytes;
}

inline proto::BundleHeaderProto Header(int32_t shards = 1) {
  proto::BundleHeaderProto h;
  h.set_num_shards(shards);
  h.mutable_version()->set_producer(1);
  return h;
}

inline proto::BundleEntryProto Entry(uint32_t dtype, std::vector<int64_t> dims, int64_t offset, int64_t size, uint32_t crc = 0) {
  proto::BundleEntryProto e;
  e.set_dtype(proto::DataType(dtype));
  for (int64_t d : dims) e.mutable_shape()->add_dim()->set_size(d);
  e.set_offset(offset);
  e.set_size(size);
  e.set_crc32c(crc);
  return e;
}

}  // namespace thalweg::test
