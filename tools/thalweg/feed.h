// Tensors from the command line: a file or a value spelled out.
//
//   FILE.npy           NumPy's format
//   FILE.csv           numbers separated by commas, a row a line: [rows, columns]
//   FILE.csv[R,C]      a part of it, each of R and C as in Python: 3, 0:5, ::5, -1; an index takes its axis away
//   [[1, 2], [3, 4]]   numbers, true, false, or texts in quotes; a text may be bare where the graph wants a string
#pragma once
#include <string>

#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::cli {

// What `text` says, as `dtype`. Throws std::runtime_error saying what is wrong with it.
tw::Tensor ReadFeed(const tw::Runtime& runtime, const std::string& text, uint32_t dtype);

// The same values as another element type; through the op Cast.
tw::Tensor Cast(const tw::Runtime& runtime, const tw::Tensor& tensor, uint32_t dtype);

}  // namespace thalweg::cli
