// Tensors from the command line: a file, or a literal value.
//
//   FILE.npy           NumPy's format
//   FILE.npz[MEMBER]   one array of an archive; without [MEMBER], the array with the value's name, or the only one
//   FILE.csv           comma-separated values, one row per line: [rows, columns]
//   FILE.csv[R,C]      a part of it; R and C as in Python: 3, 0:5, ::5, -1; an index removes its axis
//   [[1, 2], [3, 4]]   numbers, true, false, or quoted strings; a string may be bare if the graph expects a string
//   @FILE              always a file: one of the above or, if the graph expects a string, its bytes
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::cli {

// Reads the value `name` of the graph from `text` as `dtype`. Throws std::runtime_error with the
// reason.
tw::Tensor ReadFeed(const tw::Runtime& runtime, const std::string& name, const std::string& text, uint32_t dtype);

// Reads all arrays of an archive, in its order, by name. Throws std::runtime_error with the reason.
std::vector<std::pair<std::string, tw::Tensor>> ReadArchive(const std::string& path);

// The destination of a tensor: FILE.npy, FILE.npz, FILE.npz[MEMBER] or FILE.csv.
struct OutFile {
  std::string path, member;
};
// member: the archive member to write if `text` names none. Throws UsageError for another kind of
// file.
OutFile ParseOutFile(const std::string& text, const std::string& member);

// Writes .npy and .csv files of one tensor each, and archives of several tensors. Throws
// std::runtime_error.
void WriteTensors(const std::vector<std::pair<OutFile, tw::Tensor>>& tensors);

// Splits FILE.npz[x] into {FILE.npz, x}, for file names with the extension `end`. Returns false if
// `text` is no such name.
bool SplitPart(const std::string& text, const char* end, std::string* path, std::string* part);

}  // namespace thalweg::cli
