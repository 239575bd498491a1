// Runs a program of C API calls in any order with any arguments. Every exported function is called.
// No call may crash, leak or hang; every failure has one line of text; and a failed call creates
// nothing.
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <random>

#include "tests/fuzz/c_api/program.h"

namespace {

using thalweg::fuzz::Program;

constexpr size_t kMostBytes = 8 << 10, kMostLines = 100;

// The folder for all files.
const std::string& Folder() {
  // Never destroyed, because the function that removes the folder runs at exit.
  static const auto* folder = new std::string([] {
    char name[] = "/dev/shm/c_api_fuzz_XXXXXX";
    if (!mkdtemp(name)) thalweg::fuzz::Broken("cannot make a folder in /dev/shm");
    std::atexit([] { std::filesystem::remove_all(Folder()); });
    return std::string(name);
  }());
  return *folder;
}

std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < text.size();) {
    const size_t end = std::min(text.find('\n', i), text.size());
    lines.emplace_back(text.substr(i, end - i));
    i = end + 1;
  }
  return lines;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  setenv("THALWEG_OPTIONS", "threads=2;memory_limit.CPU=16M;disabled_plugins=org.thalweg.opencl", 1);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > kMostBytes) return -1;
  Program program(Folder());
  const std::vector<std::string> lines = Lines({reinterpret_cast<const char*>(data), size});
  for (size_t i = 0; i < lines.size() && i < kMostLines; ++i) program.Line(lines[i]);
  return 0;
}

// ---- Mutations that keep the input a valid program ----

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) __attribute__((weak));

namespace {

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}
  uint64_t Below(uint64_t n) { return n ? random_() % n : 0; }

  void Mutate(std::vector<std::string>* lines) {
    const size_t at = size_t(Below(lines->size()));
    switch (lines->empty() ? 0 : Below(5)) {
      case 0: lines->insert(lines->begin() + ptrdiff_t(Below(lines->size() + 1)), Call()); break;
      case 1: lines->erase(lines->begin() + ptrdiff_t(at)); break;
      case 2: std::swap((*lines)[at], (*lines)[size_t(Below(lines->size()))]); break;
      default: MutateWord(&(*lines)[at]);
    }
  }

 private:
  std::string Word() {
    static constexpr const char* kWords[] = {"0",
                                             "1",
                                             "2",
                                             "3",
                                             "4",
                                             "7",
                                             "9",
                                             "23",
                                             "-1",
                                             "-2",
                                             "100",
                                             "4096",
                                             "4294967295",
                                             "1099511627776",
                                             "9223372036854775807",
                                             "-9223372036854775808",
                                             "18446744073709551615",
                                             "0.5",
                                             "nan",
                                             "-",
                                             "( v1 ) 1",
                                             "( v1 v2 ) 2",
                                             "( 2 3 ) 2",
                                             "( 1 ) 1",
                                             "( ) 0",
                                             "( -1 ) 1",
                                             "\"\"",
                                             "\"x\"",
                                             "\"a/b\"",
                                             "\"Add\"",
                                             "\"MatMul\"",
                                             "\"Const\"",
                                             "\"Identity\"",
                                             "\"VarHandleOp\"",
                                             "\"Placeholder\"",
                                             "\"dtype\"",
                                             "\"value\"",
                                             "\"T\"",
                                             "\"x:0\"",
                                             "\"CPU:0\"",
                                             "\"FAKE:0\"",
                                             "\"fake\"",
                                             "\"socket_transport\"",
                                             "\"{'ps': ['unix:ps']}\"",
                                             "\"ps\"",
                                             "\"threads=1\"",
                                             "\"engine=counted\"",
                                             "\"container=c\"",
                                             "\"no such\"",
                                             "\"save\"",
                                             "\"Concat\"",
                                             "\"Split\"",
                                             "\"Sum\""};
    if (Below(3) == 0) return "v" + std::to_string(1 + Below(12));
    return kWords[Below(std::size(kWords))];
  }
  std::string Call() {
    const auto& functions = thalweg::fuzz::Functions();
    std::string line(std::next(functions.begin(), ptrdiff_t(Below(functions.size())))->first);
    for (uint64_t i = 0, n = Below(7); i < n; ++i) line += " " + Word();
    return line;
  }
  void MutateWord(std::string* line) {
    std::vector<size_t> spaces;
    for (size_t i = 0; i < line->size(); ++i) {
      if ((*line)[i] == ' ') spaces.push_back(i);
    }
    if (spaces.empty()) {
      *line += " " + Word();
      return;
    }
    const size_t begin = spaces[size_t(Below(spaces.size()))] + 1, end = std::min(line->find(' ', begin), line->size());
    line->replace(begin, end - begin, Word());
  }

  std::minstd_rand random_;
};

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  Mutator mutator(seed);
  if (mutator.Below(20) == 0) return LLVMFuzzerMutate(data, size, max_size);
  std::vector<std::string> lines = Lines({reinterpret_cast<const char*>(data), size});
  for (uint64_t i = 0, n = 1 + mutator.Below(4); i < n; ++i) mutator.Mutate(&lines);
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  if (text.size() > max_size) text.resize(max_size);
  text.copy(reinterpret_cast<char*>(data), text.size());
  return text.size();
}

// Called by the replay after the whole corpus. The corpus must call every function, and each
// function that can succeed must have done so once.
extern "C" int ReplayEnded() {
  int missing = 0;
  for (const auto& [name, run] : thalweg::fuzz::Functions()) {
    const auto it = thalweg::fuzz::Counts().find(name);
    if (it != thalweg::fuzz::Counts().end() && it->second.succeeded > 0) continue;
    std::printf("%.*s is never %s by the corpus; add a line to a program in tests/fuzz/corpus/c_api\n", int(name.size()), name.data(),
                it == thalweg::fuzz::Counts().end() ? "called" : "made to succeed");
    ++missing;
  }
  return missing;
}
