// Tensors from the command line: a file or a value spelled out.
//
//   FILE.npy           NumPy's format
//   FILE.npz[MEMBER]   one array of an archive; without [MEMBER], the one called as the value is, or the only one
//   FILE.csv           values separated by commas, a row a line: [rows, columns]
//   FILE.csv[R,C]      a part of it, each of R and C as in Python: 3, 0:5, ::5, -1; an index takes its axis away
//   [[1, 2], [3, 4]]   numbers, true, false, or texts in quotes; a text may be bare where the graph wants a string
//   @FILE              a file in any case: one of these or, where the graph wants a string, its bytes
#pragma once
#include <string>

#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::cli {

// What `text` says about the value `name` of the graph, as `dtype`. Throws std::runtime_error saying what is wrong with it.
tw::Tensor ReadFeed(const tw::Runtime& runtime, const std::string& name, const std::string& text, uint32_t dtype);

// Where a tensor is to be written: FILE.npy, FILE.npz, FILE.npz[MEMBER] or FILE.csv.
struct OutFile {
  std::string path, member;
};
// member: for an archive, where the text names none. Throws UsageError for another kind of file.
OutFile ParseOutFile(const std::string& text, const std::string& member);

// Writes files of one tensor each and archives of several. Throws std::runtime_error.
void WriteTensors(const std::vector<std::pair<OutFile, tw::Tensor>>& tensors);

// FILE.npz[x] in {FILE.npz, x}: what stands in brackets behind a file name that ends so. False if `text` is no such name.
bool SplitPart(const std::string& text, const char* end, std::string* path, std::string* part);

}  // namespace thalweg::cli
