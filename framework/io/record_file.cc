#include "framework/io/record_file.h"

#include <cstdint>

#include "framework/base/crc32c.h"

namespace thalweg {
namespace {

void AppendLittleEndian(uint64_t n, int bytes, std::string* to) {
  for (int i = 0; i < bytes; ++i) *to += char(n >> 8 * i);
}

}  // namespace

void AppendRecord(std::string_view bytes, std::string* to) {
  const size_t head = to->size();
  AppendLittleEndian(bytes.size(), 8, to);
  AppendLittleEndian(MaskCrc(ExtendCrc32c(0, to->data() + head, 8)), 4, to);
  to->append(bytes);
  AppendLittleEndian(MaskCrc(ExtendCrc32c(0, bytes.data(), bytes.size())), 4, to);
}

}  // namespace thalweg
