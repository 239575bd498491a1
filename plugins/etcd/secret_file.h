// Files that hold what proves who somebody is. Threads: any.
#pragma once
#include <string>

struct stat;

namespace thalweg::etcd {

// Throws INVALID_ARGUMENT unless it is a file that belongs to this process's user or to root, and that nobody else may read or write.
void MustBeSecret(const std::string& path, const struct stat& s);
// The first line; empty: there is no such file. Throws as above, also where it cannot be read.
std::string ReadSecretLine(const std::string& path);

}  // namespace thalweg::etcd
