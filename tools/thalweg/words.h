// Values as they are spelled on the command line and in text files, and the tensors that they mean.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::cli {

// Row-major; `words` has as many entries as dims say.
struct Words {
  std::vector<int64_t> dims;
  std::vector<std::string> words;
  bool quoted = false;  // some word stood in quotes, so that it is a text even if it looks like a number
  // Of words from a file: its name, and line and column (from 1) of each.
  std::string file;
  std::vector<std::pair<uint32_t, uint32_t>> places;
};

// [[1, 2], [3, 4]], 7, ["a", "b"]. Throws std::runtime_error naming the column.
Words ParseLiteral(const std::string& text);

// Each word as an element of `dtype`; whole numbers stay exact. Throws std::runtime_error for a word that is none, with its place.
tw::Tensor ToTensor(const tw::Runtime& runtime, const Words& words, uint32_t dtype);

// Each element as it is spelled, so that it reads back as the same value; strings as they are.
std::vector<std::string> ElementTexts(const tw::Tensor& tensor);

// The same values as another element type; through the op Cast.
tw::Tensor Cast(const tw::Runtime& runtime, const tw::Tensor& tensor, uint32_t dtype);

}  // namespace thalweg::cli
