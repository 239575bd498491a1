// FileSystem: the file operations that checkpoints need, as an interface, so that tests can make
// any call fail. LocalFiles() is the machine's own. Errors name the path and carry the system's
// text and number.
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
  virtual ~WritableFile() = default;  // closes; drops an error, so call Close first if errors matter
  virtual Status Append(const void* bytes, uint64_t n) = 0;
  // When it returns, the appended bytes survive a power failure (the file's name may not: see
  // SyncFolderOf).
  virtual Status Sync() = 0;
  virtual Status Close() = 0;
};

class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  // Bytes that the file had when it was opened.
  virtual uint64_t size() const = 0;
  // Reads exactly n bytes; DATA_LOSS if the file ends before.
  virtual Status ReadAt(uint64_t offset, void* to, uint64_t n) const = 0;
  // Returns true if the path still leads to this file: it was neither replaced nor removed.
  virtual StatusOr<bool> IsAt(const std::string& path) const = 0;
  // Equal for all objects opened of one file, under whatever names, and different for two files; ""
  // if unknown.
  virtual std::string identity() const { return {}; }
  // Maps the whole file read-only; the caller unmaps size() bytes with munmap. NULL: it cannot be
  // mapped, so read it.
  virtual const void* Map() const { return nullptr; }
};

// Locks a folder for as long as the object lives.
class FolderLock {
 public:
  virtual ~FolderLock() = default;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // Creates a new file; ALREADY_EXISTS if the name is taken, also by a link.
  virtual StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;
  // INVALID_ARGUMENT if it is no regular file; NOT_FOUND if it does not exist.
  virtual StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) = 0;
  // Replaces `to` atomically.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  virtual Status Remove(const std::string& path) = 0;
  // Returns the names in a folder, in no order.
  virtual StatusOr<std::vector<std::string>> List(const std::string& folder) = 0;
  // Succeeds if the folder exists; its parent must exist, and is synced.
  virtual Status MakeFolder(const std::string& folder) = 0;
  // Removes an empty folder.
  virtual Status RemoveFolder(const std::string& folder) = 0;
  // Makes names that were created, changed or removed in the folder of `path` survive a power
  // failure.
  virtual Status SyncFolderOf(const std::string& path) = 0;
  // Locks out other savers, in this and other processes, from the folder of `path`. Waits;
  // UNAVAILABLE after half a minute.
  virtual StatusOr<std::unique_ptr<FolderLock>> LockFolderOf(const std::string& path) = 0;
};

FileSystem& LocalFiles();

// "mem" for "mem://x", which is no path of the machine; "" for a path of the machine.
std::string_view SchemeOf(std::string_view path);
// Returns true if the path leads to the same file wherever it is used: it begins at the root, or
// has a scheme.
bool IsAbsolute(std::string_view path);
// Returns the folder of `path`; "." if it names none.
std::string FolderOf(const std::string& path);

}  // namespace thalweg
