// Reads tensors from the bytes of a checkpoint's files: open, list, describe, read, verify. The
// first byte of an input selects the format of the rest. 0: the index file unchanged (after two
// bytes of length), then the data file. 1: a list of keys and values (each a byte of length and
// that many bytes; an empty key ends the list), which becomes a valid table, then the data file. 2:
// the same with correct checksums of all entries, so that the code behind the checks is reached,
// too.
#include <stdlib.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>

#include "leveldb/env.h"
#include "leveldb/options.h"
#include "leveldb/table_builder.h"

#include "framework/proto/checkpoint.pb.h"
#include "tests/fuzz/broken.h"
#include "tests/fuzz/masked_crc.h"
#include "thalweg/thalweg.h"

namespace {

using thalweg::fuzz::Broken;
using thalweg::fuzz::MaskedCrc;
using thalweg::fuzz::Take;

constexpr size_t kMostBytes = 64 << 10;

const std::string& Prefix() {
  static const auto* prefix = new std::string([] {
    char name[] = "/dev/shm/checkpoint_fuzz_XXXXXX";
    if (!mkdtemp(name)) Broken("cannot make a folder in /dev/shm");
    std::atexit([] { std::filesystem::remove_all(std::filesystem::path(Prefix()).parent_path()); });
    return std::string(name) + "/c";
  }());
  return *prefix;
}

class StringSink final : public leveldb::WritableFile {
 public:
  leveldb::Status Append(const leveldb::Slice& data) override {
    bytes.append(data.data(), data.size());
    return leveldb::Status::OK();
  }
  leveldb::Status Close() override { return leveldb::Status::OK(); }
  leveldb::Status Flush() override { return leveldb::Status::OK(); }
  leveldb::Status Sync() override { return leveldb::Status::OK(); }
  std::string bytes;
};

std::string Table(const std::map<std::string, std::string>& entries) {
  StringSink sink;
  leveldb::Options options;
  options.compression = leveldb::kNoCompression;
  leveldb::TableBuilder table(options, &sink);
  for (const auto& [key, value] : entries) table.Add(key, value);
  if (!table.Finish().ok()) Broken("the table cannot be built");
  return sink.bytes;
}

std::string_view Cut(std::string_view* rest, size_t n) {
  const std::string_view cut = rest->substr(0, n);
  rest->remove_prefix(cut.size());
  return cut;
}

size_t Length(std::string_view* rest) {
  const std::string_view cut = Cut(rest, 1);
  return cut.empty() ? 0 : uint8_t(cut[0]);
}

void SetChecksum(std::string* value, std::string_view data) {
  thalweg::proto::BundleEntryProto entry;
  if (!entry.ParseFromString(*value)) return;
  const uint64_t offset = uint64_t(entry.offset()), size = uint64_t(entry.size());
  if (offset > data.size() || size > data.size() - offset) return;
  entry.set_crc32c(MaskedCrc(data.substr(offset, size)));
  *value = entry.SerializeAsString();
}

void Write(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), std::streamsize(bytes.size()));
}

void Look(tw_checkpoint* c, const char* name) {
  uint32_t dtype = 0;
  tw_shape shape;
  uint64_t bytes = 0;
  if (Take(tw_checkpoint_describe(c, name, &dtype, &shape, &bytes)) != TW_OK) Broken("a listed tensor cannot be described");
  for (int32_t i = 0; i < shape.rank; ++i) {
    if (shape.dims[i] < 0) Broken("a stored tensor has an unknown size");
  }
  tw_status* unsound = tw_checkpoint_verify(c, name);
  const std::string why = tw_status_message(unsound);
  const bool sound = Take(unsound) == TW_OK;
  tw_tensor* t = nullptr;
  const uint32_t code = Take(tw_checkpoint_read(c, name, &t));
  if ((code == TW_OK) != (t != nullptr)) Broken("a read and its tensor disagree about its success");
  // A tensor without elements needs no piece.
  if (tw_tensor_count(t) > 0 && !sound) Broken("a tensor is read that does not verify: " + why);
  tw_buffer* text = nullptr;
  if (t) Take(tw_tensor_text(t, 8, &text));
  tw_buffer_release(text);
  tw_tensor_release(t);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1 || size > kMostBytes) return -1;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const size_t mode = Length(&rest) % 3;
  std::string index;
  if (mode == 0) {
    const size_t high = Length(&rest), low = Length(&rest);
    index = Cut(&rest, high << 8 | low);
  } else {
    // The header is fixed: without a valid header, no other entry would be read.
    std::map<std::string, std::string> entries = {{"", std::string("\x08\x01\x1a\x02\x08\x01", 6)}};
    while (size_t n = Length(&rest)) {
      const std::string key(Cut(&rest, n));
      entries[key] = Cut(&rest, Length(&rest));
    }
    for (auto& [key, value] : entries) {
      if (mode == 2 && !key.empty()) SetChecksum(&value, rest);
    }
    index = Table(entries);
  }
  Write(Prefix() + ".index", index);
  Write(Prefix() + ".data-00000-of-00001", rest);
  tw_checkpoint* c = nullptr;
  if (Take(tw_checkpoint_open(Prefix().c_str(), &c)) == TW_OK) {
    for (uint32_t i = 0; i < tw_checkpoint_count(c); ++i) Look(c, tw_checkpoint_name(c, i));
    Take(tw_checkpoint_verify(c, nullptr));
  } else if (c) {
    Broken("a failed opening made something");
  }
  tw_checkpoint_close(c);
  return 0;
}
