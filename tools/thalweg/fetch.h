// Bytes from a folder or a web server, and other programs that a sub-command runs.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace thalweg::cli {

// A program of PATH that runs to its end.
struct Program {
  std::vector<std::string> words;  // its name and arguments
  std::string remedy;              // ends the error if the program cannot be started
  std::string input;               // the file that becomes its standard input; "" for an empty one
  bool quiet = false;              // discards its standard error
  uint64_t most = 1 << 20;         // bytes of standard output

  // Returns the exit status; *said receives the standard output. Throws std::runtime_error if it
  // cannot be started, if a signal ends it, or if it writes more than `most` bytes; then it is killed.
  int Run(std::string* said) const;
};

// A folder or an http(s) address that holds files.
class Source {
 public:
  explicit Source(std::string place);
  const std::string& place() const { return place_; }
  // Returns the bytes of a file. Throws std::runtime_error if there is none, or if it has more than
  // `most` bytes.
  std::string Fetch(const std::string& name, uint64_t most) const;

 private:
  std::string place_;
  bool remote_;
};

}  // namespace thalweg::cli
