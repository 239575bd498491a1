#include "array_file.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace thalweg::data {
namespace {

constexpr uint64_t kMostHead = 1 << 16, kMostRank = 32;
constexpr std::string_view kNpyMark("\x93NUMPY", 6);

// Adds what follows from dtype and the sizes of the whole array.
void Finish(StoredArray* a, const std::vector<uint64_t>& sizes, uint64_t each) {
  if (sizes.empty()) Invalid(a->what + "the array is a scalar, which has no rows");
  a->rows = sizes[0];
  a->row_bytes = each;
  uint64_t whole = 0;
  for (size_t k = 1; k < sizes.size(); ++k) {
    if (sizes[k] > INT64_MAX || __builtin_mul_overflow(a->row_bytes, sizes[k], &a->row_bytes))
      Fail(TW_DATA_LOSS, a->what + "the sizes of the array are too large");
    a->dims.push_back(int64_t(sizes[k]));
  }
  if (__builtin_mul_overflow(a->rows, a->row_bytes, &whole) || whole > UINT64_MAX - a->begin)
    Fail(TW_DATA_LOSS, a->what + "the sizes of the array are too large");
  // The size of packed contents is known at their end only, but deflate has no more than 1,032 bytes in one.
  constexpr uint64_t kMostUnpacked = 1032;
  if (a->in->packed() && whole / kMostUnpacked > a->in->size())
    Fail(TW_DATA_LOSS, a->what + "the array has " + std::to_string(whole) + " bytes, and so many cannot be in the " +
                           std::to_string(a->in->size()) + " bytes of its compressed data");
  if (!a->in->packed() && a->in->size() - std::min(a->begin, a->in->size()) < whole) {
    Fail(TW_DATA_LOSS, a->what + "the array has " + std::to_string(whole) + " bytes, and the file only " + std::to_string(a->in->size()) +
                           " with its head; it was cut off, or is still being written");
  }
}

// ---- .npy ----

// Reads the dict of a .npy file's head.
class NpyHead {
 public:
  NpyHead(std::string_view text, const std::string& what) : left_(text), what_(what) {
    Want('{');
    bool has_order = false, has_shape = false;
    while (!Have('}')) {
      const std::string key = Text();
      Want(':');
      if (key == "descr" && descr.empty()) {
        descr = Text();
      } else if (key == "fortran_order" && !has_order) {
        const std::string_view word = Word();
        if (word != "True" && word != "False") Bad();
        has_order = true;
        fortran = word == "True";
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        Shape();
      } else {
        Bad();
      }
      if (!Have(',')) {
        Want('}');
        break;
      }
    }
    if (descr.empty() || !has_order || !has_shape) Bad();
  }
  std::string descr;
  bool fortran = false;
  std::vector<uint64_t> sizes;

 private:
  [[noreturn]] void Bad() const { Fail(TW_DATA_LOSS, what_ + "the head of the array cannot be read"); }
  void Blank() {
    while (!left_.empty() && (left_[0] == ' ' || left_[0] == '\n' || left_[0] == '\t')) left_.remove_prefix(1);
  }
  bool Have(char c) {
    Blank();
    if (left_.empty() || left_[0] != c) return false;
    left_.remove_prefix(1);
    return true;
  }
  void Want(char c) {
    if (!Have(c)) Bad();
  }
  std::string Text() {
    Blank();
    if (!left_.empty() && left_[0] == '[') Invalid(what_ + "the array has elements of several fields; save each field as an array");
    if (left_.empty() || (left_[0] != '\'' && left_[0] != '"')) Bad();
    const size_t end = left_.find(left_[0], 1);
    if (end == left_.npos) Bad();
    std::string text(left_.substr(1, end - 1));
    left_.remove_prefix(end + 1);
    return text;
  }
  std::string_view Word() {
    Blank();
    const size_t n = std::min(left_.find_first_of(" ,}"), left_.size());
    const std::string_view word = left_.substr(0, n);
    left_.remove_prefix(n);
    return word;
  }
  void Shape() {
    Want('(');
    while (!Have(')')) {
      Blank();
      uint64_t n = 0;
      const auto [stop, error] = std::from_chars(left_.data(), left_.data() + left_.size(), n);
      if (error != std::errc() || sizes.size() == kMostRank) Bad();
      left_.remove_prefix(size_t(stop - left_.data()));
      if (Have('L')) {
      }  // of Python 2
      sizes.push_back(n);
      if (!Have(',')) {
        Want(')');
        break;
      }
    }
  }
  std::string_view left_;
  const std::string& what_;
};

struct NamedType {
  std::string_view name;  // NumPy's, without the order of bytes
  uint32_t dtype;
};
constexpr NamedType kNpyTypes[] = {{"b1", TW_BOOL},  {"i1", TW_INT8},   {"i2", TW_INT16},     {"i4", TW_INT32},      {"i8", TW_INT64},
                                   {"u1", TW_UINT8}, {"u2", TW_UINT16}, {"u4", TW_UINT32},    {"u8", TW_UINT64},     {"f2", TW_HALF},
                                   {"f4", TW_FLOAT}, {"f8", TW_DOUBLE}, {"c8", TW_COMPLEX64}, {"c16", TW_COMPLEX128}};

// Reads the head of the .npy contents of a->in.
void ReadNpyHead(StoredArray* a) {
  FileReader& in = *a->in;
  const auto number = [&](uint64_t bytes) {
    const std::string_view b = in.Read(bytes);
    if (b.size() < bytes) Fail(TW_DATA_LOSS, a->what + "the head of the array is cut off");
    uint64_t n = 0;
    for (uint64_t i = 0; i < bytes; ++i) n |= uint64_t(uint8_t(b[i])) << 8 * i;
    return n;
  };
  if (in.Read(kNpyMark.size()) != kNpyMark) Fail(TW_DATA_LOSS, a->what + "this is no .npy file");
  const uint64_t major = number(1);
  number(1);
  if (major < 1 || major > 3) Invalid(a->what + "version " + std::to_string(major) + " of .npy files is not known");
  const uint64_t length = number(major == 1 ? 2 : 4);
  if (length > kMostHead) Fail(TW_DATA_LOSS, a->what + "the head of the array has " + std::to_string(length) + " bytes");
  const std::string text(in.Read(length));
  if (text.size() < length) Fail(TW_DATA_LOSS, a->what + "the head of the array is cut off");
  const NpyHead head(text, a->what);
  a->begin = in.offset();
  if (head.fortran && head.sizes.size() > 1)
    Invalid(a->what + "the array is stored column by column, so it has no rows; save numpy.ascontiguousarray(array)");
  const char order = head.descr[0];
  const auto found =
      std::find_if(std::begin(kNpyTypes), std::end(kNpyTypes), [&](const NamedType& t) { return t.name == head.descr.substr(1); });
  if (found == std::end(kNpyTypes) || (order != '<' && order != '>' && order != '|'))
    Invalid(a->what + "the array has the type '" + head.descr.substr(0, 40) + "'; there are truth values and numbers");
  a->dtype = found->dtype;
  const uint64_t each = ElementBytes(a->dtype);
  if (order == '>') a->swapped = head.descr[1] == 'c' ? each / 2 : each;
  Finish(a, head.sizes, each);
}

// ---- .npz ----

constexpr uint64_t kEndHead = 22, kMostComment = 65535, kEntryHead = 46, kLocalHead = 30, kMostDirectory = 64 << 20;
constexpr uint64_t kLongEndHead = 56, kLocatorHead = 20;

uint64_t Little(std::string_view b, uint64_t at, uint64_t bytes) {
  uint64_t n = 0;
  for (uint64_t i = 0; i < bytes; ++i) n |= uint64_t(uint8_t(b[at + i])) << 8 * i;
  return n;
}

class Archive {
 public:
  Archive(FileReader& in, const std::string& what) : in_(in), what_(what) {
    const uint64_t tail = std::min(in.size(), kEndHead + kMostComment);
    const std::string end = Bytes(in.size() - tail, tail);
    const size_t at = end.rfind("PK\x05\x06");
    if (at == end.npos || end.size() - at < kEndHead) Bad("it has no directory; this is no .npz file, or it was cut off");
    uint64_t bytes = Little(end, at + 12, 4), from = Little(end, at + 16, 4);
    if (bytes == UINT32_MAX || from == UINT32_MAX) {
      if (at < kLocatorHead || end.substr(at - kLocatorHead, 4) != "PK\x06\x07") Bad("its directory cannot be found");
      const std::string longer = Bytes(Little(end, at - kLocatorHead + 8, 8), kLongEndHead);
      if (longer.substr(0, 4) != "PK\x06\x06") Bad("its directory cannot be found");
      bytes = Little(longer, 40, 8);
      from = Little(longer, 48, 8);
    }
    if (bytes > kMostDirectory) Bad("its directory has " + std::to_string(bytes) + " bytes");
    directory_ = Bytes(from, bytes);
  }

  // Returns where the contents of a member are.
  FilePart Find(const std::string& member) {
    std::string others;
    std::string_view found_entry, found_extra;
    for (uint64_t at = 0; at < directory_.size();) {
      const std::string_view entry = std::string_view(directory_).substr(at);
      if (entry.size() < kEntryHead || entry.substr(0, 4) != "PK\x01\x02") Bad("its directory is damaged");
      const uint64_t name = Little(entry, 28, 2), extra = Little(entry, 30, 2), whole = kEntryHead + name + extra + Little(entry, 32, 2);
      if (entry.size() < whole) Bad("its directory is damaged");
      const std::string_view found = entry.substr(kEntryHead, name);
      if (found == member) {
        if (!found_entry.empty()) Bad("it has several members '" + member + "'");
        found_entry = entry;
        found_extra = entry.substr(kEntryHead + name, extra);
      }
      if (others.size() < 400 && found.ends_with(".npy"))
        others += (others.empty() ? "'" : ", '") + std::string(found.substr(0, name - 4)) + "'";
      at += whole;
    }
    if (!found_entry.empty()) return Part(found_entry, found_extra, member);
    Invalid(what_ + "the archive has no array '" + member.substr(0, member.size() - 4) + "'; it has " + (others.empty() ? "none" : others));
  }

 private:
  [[noreturn]] void Bad(const std::string& why) const { Fail(TW_DATA_LOSS, what_ + "the archive is damaged: " + why); }
  std::string Bytes(uint64_t from, uint64_t n) {
    if (from > in_.size() || n > in_.size() - from) Bad("it names bytes behind the end of the file");
    in_.Seek(from);
    return std::string(in_.Read(n));
  }
  FilePart Part(std::string_view entry, std::string_view extra, const std::string& member) {
    const uint64_t flags = Little(entry, 8, 2), method = Little(entry, 10, 2);
    uint64_t packed = Little(entry, 20, 4), size = Little(entry, 24, 4), local = Little(entry, 42, 4);
    // The field of kind 1 has the numbers that need more than 32 bits, in this order.
    while (extra.size() >= 4) {
      const uint64_t kind = Little(extra, 0, 2), bytes = Little(extra, 2, 2);
      if (bytes > extra.size() - 4) Bad("its directory is damaged");
      std::string_view field = extra.substr(4, bytes);
      for (uint64_t* n : {&size, &packed, &local}) {
        if (kind != 1 || *n != UINT32_MAX) continue;
        if (field.size() < 8) Bad("its directory is damaged");
        *n = Little(field, 0, 8);
        field.remove_prefix(8);
      }
      extra.remove_prefix(4 + bytes);
    }
    if ((flags & 1) != 0) Invalid(what_ + "member '" + member + "' is encrypted; save it without");
    if (method != 0 && method != 8)
      Invalid(what_ + "member '" + member + "' is compressed by method " + std::to_string(method) + "; there are stored and deflate");
    if (method == 0 && packed != size)
      Bad("its directory says that member '" + member + "' has " + std::to_string(size) + " bytes in " + std::to_string(packed));
    const std::string head = Bytes(local, kLocalHead);
    const uint64_t name = Little(head, 26, 2);
    if (head.substr(0, 4) != "PK\x03\x04" || Bytes(local + kLocalHead, name) != member)
      Bad("member '" + member + "' is not where the directory says");
    const uint64_t from = local + kLocalHead + name + Little(head, 28, 2);
    if (from > in_.size() || packed > in_.size() - from) Bad("member '" + member + "' ends behind the end of the file");
    return {from, packed, method == 8 ? Compression::kDeflate : Compression::kNone, size, uint32_t(Little(entry, 16, 4))};
  }

  FileReader& in_;
  const std::string& what_;
  std::string directory_;
};

// ---- IDX ----

struct IdxType {
  uint8_t code;
  uint32_t dtype;
};
constexpr IdxType kIdxTypes[] = {{0x08, TW_UINT8}, {0x09, TW_INT8},  {0x0B, TW_INT16},
                                 {0x0C, TW_INT32}, {0x0D, TW_FLOAT}, {0x0E, TW_DOUBLE}};

}  // namespace

void StoredArray::Take(const Ref& row) {
  const uint64_t at = in->offset();
  char* const to = static_cast<char*>(row.view().data);
  if (const uint64_t got = in->ReadTo(to, row_bytes); got < row_bytes)
    Fail(TW_DATA_LOSS, what + "the array ends at byte " + std::to_string(at + got) + " within row " +
                           std::to_string((at - begin) / row_bytes) + " of " + std::to_string(rows));
  if (swapped > 1)
    for (uint64_t i = 0; i < row_bytes; i += swapped) std::reverse(to + i, to + i + swapped);
  if (dtype == TW_BOOL)
    for (uint64_t i = 0; i < row_bytes; ++i) to[i] = to[i] != 0;
}

StoredArray OpenNpy(const Call& c, const std::string& path, uint64_t piece, Compression compression) {
  StoredArray a;
  a.in = std::make_unique<FileReader>(c, path, piece, compression);
  a.what = "'" + path + "': ";
  ReadNpyHead(&a);
  return a;
}

std::vector<StoredArray> OpenNpz(const Call& c, const std::string& path, uint64_t piece, const std::vector<std::string>& names) {
  FileReader in(c, path, piece);
  const std::string what = "'" + path + "': ";
  Archive archive(in, what);
  std::vector<StoredArray> all;
  for (const std::string& name : names) {
    StoredArray& a = all.emplace_back();
    a.in = std::make_unique<FileReader>(c, path, piece, archive.Find(name + ".npy"));
    a.what = what + "array '" + name + "': ";
    ReadNpyHead(&a);
    if (a.rows != all[0].rows)
      Invalid(what + "array '" + names[0] + "' has " + std::to_string(all[0].rows) + " rows and array '" + name + "' " +
              std::to_string(a.rows) + "; arrays whose rows make elements must have equally many");
  }
  return all;
}

StoredArray OpenIdx(const Call& c, const std::string& path, uint64_t piece, Compression compression) {
  StoredArray a;
  a.in = std::make_unique<FileReader>(c, path, piece, compression);
  a.what = "'" + path + "': ";
  const std::string head(a.in->Read(4));
  if (head.size() < 4 || head[0] != 0 || head[1] != 0)
    Fail(TW_DATA_LOSS, a.what + "this is no IDX file; it does not begin with two bytes of 0");
  const auto code = uint8_t(head[2]), rank = uint8_t(head[3]);
  const auto found = std::find_if(std::begin(kIdxTypes), std::end(kIdxTypes), [&](const IdxType& t) { return t.code == code; });
  if (found == std::end(kIdxTypes))
    Fail(TW_DATA_LOSS, a.what + "this is no IDX file; byte 2 is " + std::to_string(code) + ", which is no type");
  if (rank > kMostRank) Fail(TW_DATA_LOSS, a.what + "the array has " + std::to_string(rank) + " axes");
  const std::string_view sizes = a.in->Read(4 * uint64_t(rank));
  if (sizes.size() < 4 * size_t(rank)) Fail(TW_DATA_LOSS, a.what + "the head of the file is cut off");
  std::vector<uint64_t> all;
  for (size_t k = 0; k < rank; ++k) {
    uint64_t n = 0;
    for (size_t i = 0; i < 4; ++i) n = n << 8 | uint8_t(sizes[4 * k + i]);
    all.push_back(n);
  }
  a.begin = a.in->offset();
  a.dtype = found->dtype;
  const uint64_t each = ElementBytes(a.dtype);
  a.swapped = each;
  Finish(&a, all, each);
  return a;
}

}  // namespace thalweg::data
