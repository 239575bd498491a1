// Numbers from a file of comma-separated values.
#pragma once
#include <string>

#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::cli {

// Double [rows, columns]; `part` is "R,C" or "R", see feed.h, "" for all. Lines may differ in length only outside the columns asked for.
// Throws std::runtime_error naming file, line and column.
tw::Tensor ReadCsv(const std::string& path, const std::string& part);

}  // namespace thalweg::cli
