// Lists the names in a folder. The iterator of std::filesystem ends the process if it runs out of
// memory.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/files/local_file.h"

namespace thalweg {

// Approximate bytes of a name in a list.
inline uint64_t BytesOfName(const std::string& name) { return 64 + name.size(); }
// Appends the names of all entries of `folder`, in no order, without "." and "..". Returns the
// system's error number; 0 if there is none. refused: if not NULL, the payer of this thread is
// charged for the names during the call; if it has too little memory, returns ENOMEM, and *refused
// names the payer.
int ListFolder(const std::string& folder, std::vector<std::string>* names, Status* refused = nullptr);
// The same for an open folder.
int ListFolder(Descriptor folder, std::vector<std::string>* names, Status* refused = nullptr);

}  // namespace thalweg
