// Values as written on the command line and in text files, and their conversion to tensors.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::cli {

// Row-major; `words` has one entry per element of dims.
struct Words {
  std::vector<int64_t> dims;
  std::vector<std::string> words;
  bool quoted = false;  // some word was quoted, so it is a string even if it looks like a number
  // For words from a file: its name, and the line and column (from 1) of each word.
  std::string file;
  std::vector<std::pair<uint32_t, uint32_t>> places;
};

// Parses [[1, 2], [3, 4]], 7, ["a", "b"]. Throws std::runtime_error naming the column.
Words ParseLiteral(const std::string& text);

// Converts each word to an element of `dtype`; integers stay exact. Throws std::runtime_error for
// an invalid word, with its place.
tw::Tensor ToTensor(const tw::Runtime& runtime, const Words& words, uint32_t dtype);

// Formats each element so that it reads back as the same value; strings stay unchanged.
std::vector<std::string> ElementTexts(const tw::Tensor& tensor);

// Converts the values to another element type with the op Cast.
tw::Tensor Cast(const tw::Runtime& runtime, const tw::Tensor& tensor, uint32_t dtype);

}  // namespace thalweg::cli
