// The program that runs here, also once another file stands in its place.
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
  // What a child executes: the path while it leads here, because `top` shows its last part.
  std::string Executable() const;

 private:
  int file_;
  std::string path_;
};

}  // namespace thalweg::cli
