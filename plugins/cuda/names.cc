// Names the functions of programs: a name contains a hash of the program text.
#include <cstdint>
#include <cstdio>
#include <sstream>

#include "modules.h"

namespace thalweg::cuda {
namespace {

uint64_t Hash(const std::string& text) {  // FNV-1a
  uint64_t hash = 14695981039346656037u;
  for (unsigned char c : text) hash = (hash ^ c) * 1099511628211u;
  return hash;
}

}  // namespace

size_t ShardOf(const std::string& text) { return size_t(Hash(text) >> 32) % kShards; }

std::string FunctionName(const std::string& text, const char* name) {
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(Hash(text)));
  return std::string(name) + "_" + hash;
}

std::string ProgramSource(const std::string& text, const std::set<std::string>& names) {
  const std::string mark = FunctionName(text, "");
  std::string out =
      "#define KERNEL(name) EXPORTED(JOIN(name, " + mark + "))\nnamespace program" + mark + " {\n" + text + "}\n#undef KERNEL\n";
  std::istringstream lines(text);
  std::set<std::string> defined;
  for (std::string line; std::getline(lines, line);)
    if (line.compare(0, 8, "#define ") == 0) defined.insert(line.substr(8, line.find_first_of(" (", 8) - 8));
  for (const std::string& d : defined) out += "#undef " + d + "\n";
  for (const std::string& name : names) out += "HOST_FUNCTION(program" + mark + ", " + FunctionName(text, name.c_str()) + ")\n";
  return out;
}

}  // namespace thalweg::cuda
