#include "bench_model.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "helper_program.h"

namespace thalweg::cli {
namespace {

// Puts the Python package of this program before others. A wheel has none there: the Python that
// has installed it finds it.
void PreferPackage(const std::filesystem::path& prefix) {
  const std::string installed = FindHelper("python");
  const std::filesystem::path folder = installed.empty() ? prefix / "python" : std::filesystem::path(installed);
  if (!std::filesystem::exists(folder / "thalweg" / "__init__.py")) return;
  const char* others = std::getenv("PYTHONPATH");
  setenv("PYTHONPATH", (folder.string() + (others && *others ? std::string(":") + others : "")).c_str(), 1);
}

}  // namespace

void BenchModel(const std::vector<std::string>& words) {
  const std::filesystem::path prefix = std::filesystem::canonical("/proc/self/exe").parent_path().parent_path();
  const std::filesystem::path program = prefix / "share/doc/thalweg/bindings/python/examples/models/bench.py";
  if (!std::filesystem::exists(program)) {
    throw std::runtime_error(
        "model: the networks are written in Python and '" + program.string() +
        "' is not there; install the examples (in Debian the packages libthalweg-dev and python3-thalweg), or build the "
        "target thalweg_python");
  }
  PreferPackage(prefix);
  // A wheel names the Python that it is installed for, which need not be the first on PATH.
  const char* chosen = std::getenv("THALWEG_PYTHON");
  const std::string python = chosen && *chosen ? chosen : "python3";
  const std::string path = program.string();
  std::vector<char*> pointers = {const_cast<char*>(python.c_str()), const_cast<char*>("-B"), const_cast<char*>(path.c_str())};
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  std::fflush(stdout);
  execvp(pointers[0], pointers.data());
  throw std::runtime_error("model: " + python + " cannot be started: " + std::strerror(errno) +
                           "; install it, or name a Python in THALWEG_PYTHON");
}

}  // namespace thalweg::cli
