#include "framework/io/list_folder.h"

#include <dirent.h>

#include <cerrno>
#include <memory>
#include <string_view>

namespace thalweg {
namespace {

using Stream = std::unique_ptr<DIR, int (*)(DIR*)>;

int ReadAll(const Stream& stream, std::vector<std::string>* names) {
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (!entry) return errno;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names->emplace_back(name);
  }
}

}  // namespace

int ListFolder(const std::string& folder, std::vector<std::string>* names) {
  const Stream stream(::opendir(folder.c_str()), ::closedir);
  return stream ? ReadAll(stream, names) : errno;
}

int ListFolder(Descriptor folder, std::vector<std::string>* names) {
  const Stream stream(::fdopendir(folder.get()), ::closedir);
  if (!stream) return errno;
  folder.release();  // the stream closes it
  return ReadAll(stream, names);
}

}  // namespace thalweg
