// The names in a folder. std::filesystem's iterator ends the process where it finds no memory.
#pragma once
#include <string>
#include <vector>

#include "framework/io/local_file.h"

namespace thalweg {

// Appends the name of everything in `folder`, in no order, without "." and "..". Answers the system's error number; 0: none.
int ListFolder(const std::string& folder, std::vector<std::string>* names);
// The same for an open folder.
int ListFolder(Descriptor folder, std::vector<std::string>* names);

}  // namespace thalweg
