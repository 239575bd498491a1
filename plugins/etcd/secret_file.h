// Files that hold secrets. Threads: any.
#pragma once
#include <string>

struct stat;

namespace thalweg::etcd {

// Throws INVALID_ARGUMENT unless the path is a file that belongs to this process's user or to root,
// and that no other user may read or write.
void MustBeSecret(const std::string& path, const struct stat& s);
// Returns the first line; empty if there is no such file. Throws as above, also if the file cannot
// be read.
std::string ReadSecretLine(const std::string& path);

}  // namespace thalweg::etcd
