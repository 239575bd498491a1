// Arrays in files: .npy files, members of .npz archives, IDX files. A StoredArray is where the rows
// of one array are. Files are not trusted: all numbers are checked against the size of the file.
// Threads: one for each reader.
#ifndef THALWEG_PLUGINS_DATA_ARRAY_FILE_H_
#define THALWEG_PLUGINS_DATA_ARRAY_FILE_H_

#include <memory>
#include <string>
#include <vector>

#include "file.h"

namespace thalweg::data {

struct StoredArray {
  std::unique_ptr<FileReader> in;
  std::string what;    // "'path': " or "'path': array 'x': ", for messages
  uint64_t begin = 0;  // of the first row, in the contents of `in`
  uint64_t rows = 0, row_bytes = 0;
  uint32_t dtype = 0;
  std::vector<int64_t> dims;  // of a row
  uint64_t swapped = 0;       // bytes of a number whose highest byte is first; 0: none is to be swapped

  // Moves to a row. REQUIRES: row <= rows.
  void Seek(uint64_t row) { in->Seek(begin + row * row_bytes); }
  // Reads the next row into a tensor of dtype and dims. Throws DATA_LOSS if the file ends before.
  void Take(const Ref& row);
  // Behind the last row: throws DATA_LOSS if the checksum of an archive's member is wrong.
  void CheckWhole() { in->CheckWhole(what); }
};

// Each opens a file. Throws DATA_LOSS for damaged files, INVALID_ARGUMENT for types, orders and
// names that cannot be read, naming the file.
StoredArray OpenNpy(const Call& c, const std::string& path, uint64_t piece, Compression compression);
StoredArray OpenIdx(const Call& c, const std::string& path, uint64_t piece, Compression compression);
// The arrays of an archive, one reader each, in the order of the names.
std::vector<StoredArray> OpenNpz(const Call& c, const std::string& path, uint64_t piece, const std::vector<std::string>& names);

}  // namespace thalweg::data

#endif  // THALWEG_PLUGINS_DATA_ARRAY_FILE_H_
