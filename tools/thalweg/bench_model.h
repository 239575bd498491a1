// `thalweg bench model`: times a network of bindings/python/examples/models by its name.
#pragma once
#include <string>
#include <vector>

namespace thalweg::cli {

// Replaces this process by Python with the program bench.py of those networks. words: the arguments
// behind `model`. The environment variable THALWEG_PYTHON may name the Python. Throws std::runtime_error if the networks are not installed
// or Python cannot be started.
[[noreturn]] void BenchModel(const std::vector<std::string>& words);

}  // namespace thalweg::cli
