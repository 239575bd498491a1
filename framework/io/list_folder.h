// The names in a folder. std::filesystem's iterator ends the process where it finds no memory.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/io/local_file.h"

namespace thalweg {

// Bytes that a name takes in a list, about.
inline uint64_t BytesOfName(const std::string& name) { return 64 + name.size(); }
// Appends the name of everything in `folder`, in no order, without "." and "..". Answers the system's error number; 0: none. refused: not
// NULL: who pays on this thread pays meanwhile for the names; where there are too many, ENOMEM, and *refused says for whom.
int ListFolder(const std::string& folder, std::vector<std::string>* names, Status* refused = nullptr);
// The same for an open folder.
int ListFolder(Descriptor folder, std::vector<std::string>* names, Status* refused = nullptr);

}  // namespace thalweg
