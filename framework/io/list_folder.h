// The names in a folder. std::filesystem's iterator ends the process where it finds no memory.
#pragma once
#include <string>
#include <vector>

namespace thalweg {

// Appends the name of everything in `folder`, in no order, without "." and "..". Answers the system's error number; 0: none.
int ListFolder(const std::string& folder, std::vector<std::string>* names);

}  // namespace thalweg
