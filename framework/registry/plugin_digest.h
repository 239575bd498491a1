// The identity of a file's contents, and a cheap check that they have not changed. Threads: any.
#pragma once
#include <cstdint>
#include <string>

#include "framework/base/status.h"

namespace thalweg {

// The system's metadata of a file. A changed file gets another stamp (the time of change cannot be
// set back).
struct FileStamp {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t modified_ns = 0, changed_ns = 0;
  bool operator==(const FileStamp&) const = default;
};
bool StampOf(const std::string& path, FileStamp* out);

// Returns the SHA-256 of a file's contents, in hexadecimal. UNAVAILABLE if the file cannot be read or
// is being written.
StatusOr<std::string> Sha256OfFile(const std::string& path, FileStamp* out_stamp);

}  // namespace thalweg
