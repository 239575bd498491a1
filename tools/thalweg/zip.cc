#include "zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>

namespace thalweg::cli {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kEntry = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr uint32_t kStored = 0, kDeflated = 8;
constexpr uint64_t kWide = 0xffffffff;         // the size is in the extra field
constexpr uint64_t kMostDeflation = 1032;      // the largest ratio of inflated to deflated bytes
constexpr uint32_t kDate = 33, kVersion = 20;  // 1980-01-01, the earliest date; version 2.0

[[noreturn]] void Wrong(const std::string& why) { throw std::runtime_error("damaged archive: " + why); }

// Reads little-endian numbers of a file with bounds checks.
class Bytes {
 public:
  explicit Bytes(const std::string& file) : file_(file) {}
  uint64_t Number(uint64_t at, uint32_t n) const {
    if (at > file_.size() || file_.size() - at < n) Wrong("it ends early");
    uint64_t value = 0;
    for (uint32_t i = 0; i < n; ++i) value |= uint64_t(static_cast<unsigned char>(file_[at + i])) << (8 * i);
    return value;
  }
  uint16_t Short(uint64_t at) const { return uint16_t(Number(at, 2)); }
  uint32_t Word(uint64_t at) const { return uint32_t(Number(at, 4)); }
  std::string Text(uint64_t at, uint64_t n) const {
    if (at > file_.size() || file_.size() - at < n) Wrong("it ends early");
    return file_.substr(at, n);
  }

 private:
  const std::string& file_;
};

struct Directory {
  uint64_t entries = 0, at = 0;
};

// Finds the record at the end of the archive; only a comment may follow it.
Directory FindDirectory(const std::string& archive) {
  const Bytes bytes(archive);
  constexpr uint64_t kSize = 22;
  const uint64_t furthest = archive.size() > kSize + 65535 ? archive.size() - kSize - 65535 : 0;
  for (uint64_t at = archive.size() < kSize ? 0 : archive.size() - kSize + 1; at-- > furthest;) {
    if (bytes.Number(at, 4) != kEnd) continue;
    Directory d{bytes.Short(at + 10), bytes.Word(at + 16)};
    if ((d.at == kWide || d.entries == 65535) && at >= 20 && bytes.Word(at - 20) == kEnd64Locator) {
      const uint64_t end64 = bytes.Number(at - 12, 8);
      if (bytes.Word(end64) != kEnd64) Wrong("no directory");
      d = {bytes.Number(end64 + 32, 8), bytes.Number(end64 + 48, 8)};
    }
    return d;
  }
  throw std::runtime_error("not a zip archive, or cut short");
}

// Sizes that do not fit 32 bits are in extra field 1, in this order; only the sizes that need it
// are there.
void ReadWideSizes(const Bytes& bytes, uint64_t at, uint64_t n, ZipMember* m) {
  for (const uint64_t end = at + n; at + 4 <= end; at += 4 + bytes.Short(at + 2)) {
    if (bytes.Short(at) != 1) continue;
    uint64_t next = at + 4;
    for (uint64_t* size : {&m->bytes, &m->packed, &m->header}) {
      if (*size != kWide) continue;
      *size = bytes.Number(next, 8);
      next += 8;
    }
    return;
  }
}

std::string Inflate(const char* data, const ZipMember& m) {
  if (m.bytes > m.packed * kMostDeflation + 64) Wrong("'" + m.name + "' claims more bytes than it can hold");
  std::string out(m.bytes, '\0');
  z_stream z = {};
  if (inflateInit2(&z, -MAX_WBITS) != Z_OK) throw std::runtime_error("out of memory");
  constexpr uint64_t kMost = std::numeric_limits<uInt>::max();
  uint64_t in = 0, made = 0;
  char nothing = 0;
  int state = Z_OK;
  while (state == Z_OK) {
    const uint64_t give = std::min(kMost, m.packed - in), room = std::min(kMost, m.bytes - made);
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data + in));
    z.avail_in = uInt(give);
    z.next_out = reinterpret_cast<Bytef*>(room ? out.data() + made : &nothing);
    z.avail_out = uInt(room);
    state = inflate(&z, Z_NO_FLUSH);
    in += give - z.avail_in;
    made += room - z.avail_out;
  }
  inflateEnd(&z);
  if (state != Z_STREAM_END || made != m.bytes) Wrong("'" + m.name + "' does not unpack");
  return out;
}

uint32_t Crc(const std::string& bytes) { return uint32_t(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size())); }

// Appends a little-endian number; writes zeros beyond the value's eight bytes.
void Put(std::string* to, uint64_t value, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i, value >>= 8) to->push_back(char(value));
}

// Writes the fields that a member's header and its directory entry share.
void PutDescription(std::string* to, const std::string& name, uint32_t crc, uint64_t bytes) {
  Put(to, kVersion, 2);
  Put(to, 1 << 11, 2);  // marks the name as UTF-8
  Put(to, kStored, 2);
  Put(to, 0, 2);
  Put(to, kDate, 2);
  Put(to, crc, 4);
  Put(to, bytes, 4);
  Put(to, bytes, 4);
  Put(to, name.size(), 2);
  Put(to, 0, 2);
}

}  // namespace

std::vector<ZipMember> ListZip(const std::string& archive) {
  const Bytes bytes(archive);
  const Directory directory = FindDirectory(archive);
  std::vector<ZipMember> members;
  uint64_t at = directory.at;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    if (bytes.Word(at) != kEntry) Wrong("its directory is not whole");
    const uint64_t name = bytes.Short(at + 28), extra = bytes.Short(at + 30), comment = bytes.Short(at + 32);
    if (bytes.Short(at + 8) & 1) throw std::runtime_error("the archive is encrypted");
    ZipMember m{bytes.Text(at + 46, name), bytes.Word(at + 42), bytes.Word(at + 20), bytes.Word(at + 24)};
    m.method = bytes.Short(at + 10);
    m.crc = bytes.Word(at + 16);
    ReadWideSizes(bytes, at + 46 + name, extra, &m);
    members.push_back(std::move(m));
    at += 46 + name + extra + comment;
  }
  return members;
}

std::string ReadMember(const std::string& archive, const ZipMember& m) {
  const Bytes bytes(archive);
  if (bytes.Word(m.header) != kLocalHeader) Wrong("'" + m.name + "' is not where the directory says");
  const uint64_t at = m.header + 30 + bytes.Short(m.header + 26) + bytes.Short(m.header + 28);
  if (at > archive.size() || archive.size() - at < m.packed) Wrong("'" + m.name + "' ends early");
  std::string out;
  if (m.method == kStored && m.bytes == m.packed)
    out = archive.substr(at, m.packed);
  else if (m.method == kDeflated)
    out = Inflate(archive.data() + at, m);
  else
    throw std::runtime_error("'" + m.name + "' is packed by method " + std::to_string(m.method) + "; only stored and deflated can be read");
  if (Crc(out) != m.crc) Wrong("the checksum of '" + m.name + "' does not match its bytes");
  return out;
}

std::string MakeZip(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string archive, directory;
  for (const auto& [name, bytes] : members) {
    if (archive.size() + bytes.size() >= kWide - 65536 || name.size() > 65535 || members.size() >= 65535) {
      throw std::runtime_error("too large for an archive; write .npy files");
    }
    const uint32_t crc = Crc(bytes);
    const uint64_t at = archive.size();
    Put(&archive, kLocalHeader, 4);
    PutDescription(&archive, name, crc, bytes.size());
    archive += name + bytes;
    Put(&directory, kEntry, 4);
    Put(&directory, kVersion, 2);
    PutDescription(&directory, name, crc, bytes.size());
    Put(&directory, 0, 10);  // comment, disk, attributes
    Put(&directory, at, 4);
    directory += name;
  }
  const uint64_t at = archive.size();
  archive += directory;
  Put(&archive, kEnd, 4);
  Put(&archive, 0, 4);  // disks
  Put(&archive, members.size(), 2);
  Put(&archive, members.size(), 2);
  Put(&archive, directory.size(), 4);
  Put(&archive, at, 4);
  Put(&archive, 0, 2);
  return archive;
}

}  // namespace thalweg::cli
