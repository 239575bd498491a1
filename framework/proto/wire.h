// Protocol Buffers' wire format, one field at a time: for messages of which parts must be kept byte
// for byte, or that would take too much memory as objects. Threads: values, no sharing.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace thalweg {

struct WireField {
  enum Type { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  uint32_t number = 0;
  Type type = kVarint;
  uint64_t value = 0;      // kVarint
  std::string_view bytes;  // kBytes
  std::string_view raw;    // the whole field
};

class WireReader {
 public:
  explicit WireReader(std::string_view message) : begin_(message.data()), p_(begin_), end_(begin_ + message.size()) {}
  // Returns false at the end and if the bytes are no field (obsolete groups count as such); ok()
  // distinguishes the two.
  bool Next(WireField* field);
  bool ok() const { return ok_; }
  // Offset of the field that Next returns next, or could not read.
  uint64_t offset() const { return uint64_t(p_ - begin_); }

 private:
  const char* begin_;
  const char* p_;
  const char* end_;
  bool ok_ = true;
};

void PutVarint(uint64_t v, std::string* to);
// Returns false at the end of the bytes and beyond 64 bits; *p is then meaningless.
bool GetVarint(const char** p, const char* end, uint64_t* out);
void PutVarintField(uint32_t number, uint64_t v, std::string* to);
void PutBytesField(uint32_t number, std::string_view bytes, std::string* to);

}  // namespace thalweg
