#include "framework/io/list_folder.h"

#include <dirent.h>

#include <cerrno>
#include <memory>
#include <string_view>

namespace thalweg {

int ListFolder(const std::string& folder, std::vector<std::string>* names) {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()), closedir);
  if (!dir) return errno;
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(dir.get());
    if (!entry) return errno;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names->emplace_back(name);
  }
}

}  // namespace thalweg
