// FileReader reads a file in large pieces, and unpacks it if it is compressed. FileDataset walks over the elements of several files.
// Threads: one for each reader.
#ifndef THALWEG_PLUGINS_DATA_FILE_H_
#define THALWEG_PLUGINS_DATA_FILE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "inflate.h"
#include "kernel.h"
#include "state.h"
#include "thalweg/plugin/file_system.h"

namespace thalweg::data {

// Bytes of a file, which may be compressed: a member of an archive.
struct FilePart {
  uint64_t from, bytes;
  Compression compression;
  uint64_t unpacked;  // bytes of the contents
  uint32_t crc;       // CRC-32 of the contents
};

// The size of a file, and a checksum of its first and last bytes. A saved position has the mark of
// its file, so that a file that was replaced or changed is noticed. A file that has grown since, as
// a log does, has the mark still.
struct FileMark {
  uint64_t bytes;
  uint32_t crc;
};

// The CRC-32 of the first bytes of a part.
struct FileSum {
  uint64_t bytes = 0;
  uint32_t crc = 0;
};

class FileReader {
 public:
  // Opens the file with the host of the call, which may confine it to a folder.
  FileReader(const Call& c, const std::string& path, uint64_t piece, Compression compression = Compression::kNone)
      : FileReader(c, path, piece, compression, nullptr) {}
  // As above; the contents are those of a part, which must lie within the file.
  FileReader(const Call& c, const std::string& path, uint64_t piece, const FilePart& part)
      : FileReader(c, path, piece, part.compression, &part) {}
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  // Offsets count the bytes of the contents, unpacked.
  uint64_t offset() const { return at_; }
  bool packed() const { return inflate_ != nullptr; }
  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }        // when it was opened; of a packed file: packed
  uint64_t fetched() const { return fetched_; }  // bytes read from the file so far, packed if it is
  void Seek(uint64_t offset);
  // Returns the next n bytes, or fewer at the end of the file. They stay until the next call.
  std::string_view Peek(uint64_t n);
  // As Peek, and moves behind them.
  std::string_view Read(uint64_t n);
  // Copies the next n bytes, or fewer at the end of the file, and moves behind them. Returns their number. The
  // reader needs no memory for them beyond a piece.
  uint64_t ReadTo(char* to, uint64_t n);
  // Returns the number of line feeds before byte `offset`, which must not lie behind offset(). The first call reads
  // the file from its start; those after it count on, so that all of them together read the file once more.
  uint64_t LinesBefore(uint64_t offset);
  // Returns true if there are n more bytes, without reading them unless the file is packed.
  bool Has(uint64_t n) { return packed() ? Peek(n).size() == n : n <= size_ - at_; }
  // Returns the mark of the file. The first call reads the bytes.
  FileMark Mark() const;
  // Throws DATA_LOSS if the file has another mark.
  void Check(const FileMark& mark) const;
  // Of a part: the sum of the bytes that were read without a gap. set_sum() continues one behind a
  // gap that Seek() left; it has no effect on a packed part, of which Seek() reads all bytes.
  FileSum sum() const { return sum_; }
  void set_sum(const FileSum& sum) {
    if (!packed()) sum_ = sum;
  }
  // Of a part: reads what is left and throws DATA_LOSS if the contents have another size than the
  // archive says, or another CRC-32. A sum with a gap is not compared. what: the part, for messages.
  void CheckWhole(const std::string& what);
  // "'path' at byte 12: "
  std::string Where(uint64_t offset) const { return "'" + path_ + "' at byte " + std::to_string(offset) + ": "; }

 private:
  FileReader(const Call& c, const std::string& path, uint64_t piece, Compression compression, const FilePart* part);
  const tw_files_api& api_;
  const std::string path_;
  std::unique_ptr<tw_file, void (*)(tw_file*)> file_;
  uint64_t file_bytes_ = 0;
  mutable FileMark mark_ = {};
  mutable bool marked_ = false;
  uint32_t MarkOf(uint64_t bytes) const;
  uint64_t base_ = 0;  // where the contents begin in the file
  uint64_t size_ = 0, at_ = 0, fetched_ = 0;
  std::vector<char> buffer_;
  uint64_t from_ = 0, filled_ = 0;  // bytes [from_, from_ + filled_) of the file are in the buffer
  const uint64_t piece_;

  // Moves behind n bytes that were read.
  void Pass(const char* bytes, uint64_t n);
  const uint64_t unpacked_ = 0;
  const uint32_t crc_ = 0;
  const bool summed_ = false;
  FileSum sum_;

  // Counting of lines. While counts_lines_, counted_ is not before from_, so nothing uncounted leaves the buffer.
  void CountTo(uint64_t offset);
  bool counts_lines_ = false;
  uint64_t counted_ = 0, lines_ = 0;  // there are lines_ line feeds in bytes [0, counted_)

  // Of a packed file.
  void Unpack(uint64_t n);
  const Compression compression_;
  std::unique_ptr<Inflate> inflate_;
  std::vector<char> packed_;
  uint64_t packed_at_ = 0, packed_from_ = 0;  // the next byte of the file to unpack; where packed_ begins
  uint64_t packed_filled_ = 0;                // bytes in packed_
};

// Facts that a format reads from the head of a file, such as the places of columns.
class FileFacts {
 public:
  virtual ~FileFacts() = default;
};

// A format: how the next element is read.
class Format {
 public:
  explicit Format(std::vector<uint32_t> element_types = {TW_STRING}) : types(std::move(element_types)) {}
  virtual ~Format() = default;
  // Moves the reader to the first element. Returns the facts that Read needs, or NULL.
  virtual std::unique_ptr<FileFacts> Start(FileReader&, Call&) const { return nullptr; }
  // Reads an element of these types; returns false at the end of the file. facts: of Start, for this
  // file. An error of the element leaves the reader behind the element.
  virtual bool Read(FileReader& in, const FileFacts* facts, Call& c, Element* out) const = 0;
  virtual void Describe(std::string* to) const = 0;

  const std::vector<uint32_t> types;
};

// "'path' line 3: ", of the line in which byte `offset` of the contents is. It is for errors, because the first
// call reads the file from its start (LinesBefore). It leaves the reader where it was.
std::string WhereLine(FileReader& in, uint64_t offset);

// How a saved position says whether a file is open: kMarkedFile is followed by its name and mark;
// kNamedFile, of older positions, by its name.
constexpr uint64_t kNoFile = 0, kNamedFile = 1, kMarkedFile = 2;
inline void WriteMark(StateWriter& w, const FileMark& mark) {
  w.Number(mark.bytes);
  w.Number(mark.crc);
}
inline FileMark ReadMark(StateReader& r) {
  const uint64_t bytes = r.Number();
  return {bytes, uint32_t(r.Number(UINT32_MAX))};
}

// Makes a dataset of the elements of the files, one file after the other. compression: "", GZIP
// or ZLIB. buffer: bytes of a piece; 0: the default.
DatasetPtr FilesOf(std::vector<std::string> files, std::shared_ptr<const Format> format, std::string_view compression, int64_t buffer);

}  // namespace thalweg::data

#endif  // THALWEG_PLUGINS_DATA_FILE_H_
