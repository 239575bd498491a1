// The path of the running program, valid even after its file is replaced.
#pragma once

#include <string>

namespace thalweg::cli {

class OwnProgram {
 public:
  OwnProgram();
  ~OwnProgram();
  OwnProgram(const OwnProgram&) = delete;
  OwnProgram& operator=(const OwnProgram&) = delete;

  const std::string& path() const { return path_; }
  // Returns the file that a child executes: the path while it still names this program, because
  // `top` shows its last part.
  std::string Executable() const;

 private:
  int file_;
  std::string path_;
};

}  // namespace thalweg::cli
