// The framing of TFRecord and event files: each record is its length and its bytes, each followed by
// a masked CRC32C. Threads: any.
#pragma once
#include <string>
#include <string_view>

namespace thalweg {

// Appends the record to `to`: 8 bytes of length, 4 of its checksum, the bytes, 4 of their checksum.
void AppendRecord(std::string_view bytes, std::string* to);

}  // namespace thalweg
