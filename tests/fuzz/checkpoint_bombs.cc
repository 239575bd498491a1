// Bombs in a checkpoint's index file, a LevelDB table: its blocks may be compressed, and an index
// block gives their places.
#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "tests/fuzz/bombs.h"
#include "tests/fuzz/broken.h"
#include "tests/fuzz/masked_crc.h"
#include "thalweg/checkpoint.h"

namespace thalweg::fuzz {
namespace {

// Writes the index beside an empty data file, and opens the checkpoint.
std::string Open(const std::string& index) {
  char folder[] = "/dev/shm/bombs_test_XXXXXX";
  if (!mkdtemp(folder)) Broken("cannot make a folder in /dev/shm");
  const std::string prefix = std::string(folder) + "/c";
  std::ofstream(prefix + ".index", std::ios::binary).write(index.data(), std::streamsize(index.size()));
  std::ofstream(prefix + ".data-00000-of-00001");
  tw_checkpoint* c = nullptr;
  const std::string told = Told(tw_checkpoint_open(prefix.c_str(), &c));
  tw_checkpoint_close(c);
  std::filesystem::remove_all(folder);
  return told;
}

// ---- A table, part by part ----

std::string Varint(uint64_t n) {
  std::string out;
  for (; n >= 0x80; n >>= 7) out += char(n | 0x80);
  return out + char(n);
}
std::string Fixed16(uint32_t n) { return {char(n), char(n >> 8)}; }
std::string Fixed32(uint32_t n) { return {char(n), char(n >> 8), char(n >> 16), char(n >> 24)}; }

// An entry that shares nothing with the previous key, and a block of entries with one restart
// point.
std::string TableEntry(std::string_view key, const std::string& value) {
  return Varint(0) + Varint(key.size()) + Varint(value.size()) + std::string(key) + value;
}
std::string Block(const std::string& entries) { return entries + Fixed32(0) + Fixed32(1); }

class TableBytes {
 public:
  // Adds a block and returns its handle. kind: 0 uncompressed, 1 compressed.
  std::string Add(const std::string& block, char kind) {
    const std::string handle = Varint(bytes_.size()) + Varint(block.size());
    const std::string with_kind = block + kind;
    bytes_ += with_kind + Fixed32(MaskedCrc(with_kind));
    return handle;
  }
  std::string Finish(const std::string& index_block) {
    const std::string meta = Add(Block(""), 0), index = Add(index_block, 0);
    std::string footer = meta + index;
    footer.resize(40);
    return bytes_ + footer + "\x57\xfb\x80\x8b\x24\x75\x47\xdb";
  }

 private:
  std::string bytes_;
};

// Compresses `before`, `zeros` zeros (a multiple of 64, plus one) and `after` with Snappy. The
// zeros become copies of 64 bytes, three bytes each.
std::string Snappy(const std::string& before, size_t zeros, const std::string& after) {
  const auto literal = [](const std::string& s) { return s.empty() ? "" : '\xf4' + Fixed16(uint32_t(s.size() - 1)) + s; };
  std::string out = Varint(before.size() + zeros + after.size()) + literal(before + '\0');
  for (size_t i = 1; i < zeros; i += 64) out += std::string("\xfe\x01\0", 3);
  return out + literal(after);
}

constexpr std::string_view kHeader("\x08\x01\x1a\x02\x08\x01", 6);  // one data file, version 1

// The header and one entry of that many bytes, in one compressed block.
std::string OneLargeEntry(size_t bytes) {
  const std::string before = TableEntry("", std::string(kHeader)) + Varint(0) + Varint(1) + Varint(bytes) + "t";
  const std::string block = Snappy(before, bytes, Block(""));
  TableBytes table;
  const std::string handle = table.Add(block, 1);
  return table.Finish(Block(TableEntry("u", handle)));
}

std::string Claims(uint32_t bytes) {
  TableBytes table;
  const std::string handle = table.Add(Varint(bytes) + "\x01z", 1);
  return table.Finish(Block(TableEntry("u", handle)));
}

// Two blocks without entries, only restart points, referenced alternately under many names: LevelDB
// does not reread a block that it has.
std::string EmptyBlocks(int n, size_t bytes, bool compressed) {
  TableBytes table;
  const std::string first = table.Add(Block(TableEntry("", std::string(kHeader))), 0), count = Fixed32(uint32_t(bytes / 4));
  const std::string block = compressed ? Snappy(std::string(3, '\0'), bytes - 3, count) : std::string(bytes, '\0') + count;
  const std::string handles[] = {table.Add(block, compressed), table.Add(block, compressed)};
  std::string index = TableEntry(std::string_view("\0", 1), first);
  for (int i = 0; i < n; ++i) index += TableEntry("k" + std::to_string(100000 + i), handles[i % 2]);
  return table.Finish(Block(index));
}

std::string ATensorNameOf16MB() {
  TableBytes table;
  const std::string name(16 << 20, 'n');
  const std::string handle = table.Add(Block(TableEntry("", std::string(kHeader)) + TableEntry(name, "\xff")), 0);
  return table.Finish(Block(TableEntry("u", handle)));
}

}  // namespace

std::vector<Bomb> CheckpointBombs() {
  return {
      {"ABlockThatUnfoldsTo256MB", [] { return OneLargeEntry((256 << 20) + 1); }, "compressed blocks unfold to 268435", Open},
      {"ABlockThatClaims4GB", [] { return Claims(UINT32_MAX); }, "unfold to 4294967295 bytes or more", Open},
      {"ABlockOf20MBUnder100000Names", [] { return EmptyBlocks(100000, (20 << 20) + 4, true); }, "the same block in more than one place",
       Open},
      {"ABlockOf1MBUnder100000Names", [] { return EmptyBlocks(100000, 1 << 20, false); }, "the same block in more than one place", Open},
      {"ATensorNameOf16MB", ATensorNameOf16MB, "nnn... (16777216 bytes)': its entry is no BundleEntryProto", Open},
  };
}

}  // namespace thalweg::fuzz
