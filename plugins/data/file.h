// FileReader reads a file in large pieces. FileDataset walks over the elements of several files.
// Threads: one for each reader.
#ifndef THALWEG_PLUGINS_DATA_FILE_H_
#define THALWEG_PLUGINS_DATA_FILE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernel.h"
#include "state.h"
#include "thalweg/plugin/file_system.h"

namespace thalweg::data {

class FileReader {
 public:
  // Opens the file with the host of the call, which may confine it to a folder.
  FileReader(const Call& c, const std::string& path, uint64_t piece);
  ~FileReader() { api_.close(file_); }
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  uint64_t offset() const { return at_; }
  uint64_t size() const { return size_; }  // when it was opened
  uint64_t left() const { return size_ - at_; }
  void Seek(uint64_t offset);
  // Returns the next n bytes, which stay until the next call. REQUIRES: n <= left().
  const char* Read(uint64_t n);
  // As Read, but goes on at the same place.
  std::string_view Peek(uint64_t n);
  // "'path' at byte 12: "
  std::string Where(uint64_t offset) const { return "'" + path_ + "' at byte " + std::to_string(offset) + ": "; }

 private:
  const tw_files_api& api_;
  const std::string path_;
  tw_file* file_ = nullptr;
  uint64_t size_ = 0, at_ = 0;
  std::vector<char> buffer_;
  uint64_t from_ = 0, filled_ = 0;  // bytes [from_, from_ + filled_) of the file are in the buffer
  const uint64_t piece_;
};

// A format: how the next element is read.
class Format {
 public:
  virtual ~Format() = default;
  // Moves the reader to the first element.
  virtual void Start(FileReader&) const {}
  // Reads an element into a scalar string; returns false at the end of the file.
  virtual bool Read(FileReader& in, Call& c, Ref* out) const = 0;
  virtual void Describe(std::string* to) const = 0;
};

// Makes a dataset of the elements of the files, one file after the other. compression: "" only.
// buffer: bytes of a piece; 0: the default.
DatasetPtr FilesOf(std::vector<std::string> files, std::shared_ptr<const Format> format, std::string_view compression, int64_t buffer);

}  // namespace thalweg::data

#endif  // THALWEG_PLUGINS_DATA_FILE_H_
