// The identity of a file's contents, and the cheap signs that they have not changed since.
// Threads: any.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "framework/base/status.h"

namespace thalweg {

// What the system says of a file. One that was changed gets another (the time of change cannot be set back).
struct FileStamp {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t modified_ns = 0, changed_ns = 0;
  bool operator==(const FileStamp&) const = default;
};
bool StampOf(const std::string& path, FileStamp* out);

// SHA-256 (FIPS 180-4), in hexadecimal.
std::string Sha256(std::string_view bytes);
// Of a file's contents. UNAVAILABLE if it is being written to.
StatusOr<std::string> Sha256OfFile(const std::string& path, FileStamp* out_stamp);

}  // namespace thalweg
