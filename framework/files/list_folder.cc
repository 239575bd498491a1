#include "framework/files/list_folder.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include "framework/tensor/payer.h"

namespace thalweg {
namespace {

using Stream = std::unique_ptr<DIR, int (*)(DIR*)>;

int ReadAll(const Stream& stream, std::vector<std::string>* names, Status* refused) {
  constexpr uint64_t kPiece = 64 << 10;  // so that the account is asked rarely
  PaidBytes paid;
  uint64_t room = 0;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (!entry) return errno;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (const uint64_t bytes = 64 + name.size(); refused && bytes > room) {
      if (Status s = paid.Take(kPiece); !s.ok()) {
        *refused = std::move(s);
        return ENOMEM;
      }
      room += kPiece;
    }
    room -= std::min<uint64_t>(room, 64 + name.size());
    names->emplace_back(name);
  }
}

}  // namespace

int ListFolder(const std::string& folder, std::vector<std::string>* names, Status* refused) {
  const Stream stream(::opendir(folder.c_str()), ::closedir);
  return stream ? ReadAll(stream, names, refused) : errno;
}

int ListFolder(Descriptor folder, std::vector<std::string>* names, Status* refused) {
  const Stream stream(::fdopendir(folder.get()), ::closedir);
  if (!stream) return errno;
  folder.release();  // the stream closes it
  return ReadAll(stream, names, refused);
}

}  // namespace thalweg
