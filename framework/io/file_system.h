// Files as checkpoints need them, behind an interface so that tests can make any call fail. LocalFiles() is the machine's own.
// Errors name the path and carry the system's text and number.
// Threads: a FileSystem and ReadAt any; writing to one file one at a time. Every call may block.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"

namespace thalweg {

class WritableFile {
 public:
  virtual ~WritableFile() = default;  // closes; an error is lost then, so Close first where it matters
  virtual Status Append(const void* bytes, uint64_t n) = 0;
  // When it returns, what was appended survives a power failure (the file's name may not: see SyncFolderOf).
  virtual Status Sync() = 0;
  virtual Status Close() = 0;
};

class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  // Bytes it had when it was opened.
  virtual uint64_t size() const = 0;
  // Exactly n bytes; DATA_LOSS if the file ends before.
  virtual Status ReadAt(uint64_t offset, void* to, uint64_t n) const = 0;
  // The path still leads to this file: it was not replaced or removed since.
  virtual StatusOr<bool> IsAt(const std::string& path) const = 0;
  // The same for all that were opened of one file, whatever its names, and for no two files; "": cannot be told.
  virtual std::string identity() const { return {}; }
};

// Held as long as it lives.
class FolderLock {
 public:
  virtual ~FolderLock() = default;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // A new file; ALREADY_EXISTS if the name is taken, also by a link.
  virtual StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;
  // INVALID_ARGUMENT for what is no regular file, NOT_FOUND for what is not there.
  virtual StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) = 0;
  // Replaces `to`, atomically.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  virtual Status Remove(const std::string& path) = 0;
  // The names in a folder, in no order.
  virtual StatusOr<std::vector<std::string>> List(const std::string& folder) = 0;
  // Fine where the folder is there; the one above it must be, and is synced.
  virtual Status MakeFolder(const std::string& folder) = 0;
  // Of a folder that is empty.
  virtual Status RemoveFolder(const std::string& folder) = 0;
  // Names made, changed and removed in the folder that holds `path` survive a power failure.
  virtual Status SyncFolderOf(const std::string& path) = 0;
  // Keeps other savers, in this and other processes, out of the folder that holds `path`. Waits; UNAVAILABLE after half a minute.
  virtual StatusOr<std::unique_ptr<FolderLock>> LockFolderOf(const std::string& path) = 0;
};

FileSystem& LocalFiles();

// "mem" of "mem://x", which is no path of the machine's; "": it is one.
std::string_view SchemeOf(std::string_view path);
// Leads to one file wherever it is used: from the root on, or with a scheme.
bool IsAbsolute(std::string_view path);
// The folder that holds `path`: "." where it names none.
std::string FolderOf(const std::string& path);

}  // namespace thalweg
