#include "framework/planner/compilers/artefacts.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include <sys/stat.h>

#include "framework/base/crc32c.h"
#include "framework/base/sha256.h"
#include "framework/files/list_folder.h"
#include "framework/files/local_file.h"
#include "framework/files/whole_file.h"
#include "framework/registry/plugin_writers.h"

namespace thalweg {
namespace {

constexpr std::string_view kMagic = "thalweg part 1\n", kEnd = ".part";
constexpr uint64_t kMostBytes = uint64_t{1} << 32;

// File names: one start per compiler and part, one name per tag.
std::string Start(const ArtefactKey& key) { return Sha256(StrCat(key.compiler, "\n", key.part)).substr(0, 32) + "-"; }
std::string Name(const ArtefactKey& key) { return StrCat(Start(key), Sha256(key.tag).substr(0, 16), kEnd); }

void PutText(std::string_view text, std::string* to) {
  const uint64_t n = text.size();
  to->append(reinterpret_cast<const char*>(&n), sizeof n);
  to->append(text);
}

bool TakeText(std::string_view* from, std::string* text) {
  uint64_t n = 0;
  if (from->size() < sizeof n) return false;
  std::memcpy(&n, from->data(), sizeof n);
  from->remove_prefix(sizeof n);
  if (n > from->size()) return false;
  *text = from->substr(0, n);
  from->remove_prefix(n);
  return true;
}

Status NoArtefact(const std::string& path, std::string_view why) { return NotFound("'", path, "' ", why); }

// Reads a file that only the user, or root, may have written.
StatusOr<std::string> ReadOwn(const std::string& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (fd.get() < 0) return NoArtefact(path, "cannot be opened");
  struct stat st;
  if (::fstat(fd.get(), &st) < 0 || !S_ISREG(st.st_mode)) return NoArtefact(path, "is no regular file");
  if ((st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & (S_IWGRP | S_IWOTH)) || st.st_nlink != 1) {
    return NoArtefact(path, "may be somebody else's");
  }
  if (uint64_t(st.st_size) > kMostBytes) return NoArtefact(path, "is too large");
  std::string bytes(size_t(st.st_size), '\0');
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t got = ::read(fd.get(), bytes.data() + at, bytes.size() - at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return NoArtefact(path, "cannot be read");
    at += size_t(got);
  }
  return bytes;
}

}  // namespace

StatusOr<std::unique_ptr<ArtefactCache>> ArtefactCache::Open(const std::string& folder) {
  RETURN_IF_ERROR(CheckPath(folder));
  const std::string parts = StrCat(folder, "/parts");
  for (const std::string& path : {folder, parts}) {
    if (::mkdir(path.c_str(), 0700) < 0 && errno != EEXIST) return SystemError(errno, "make folder", path);
  }
  std::string real, fix;
  RETURN_IF_ERROR(CheckPluginWriters(parts, &real, &fix));
  struct stat st;
  if (::stat(real.c_str(), &st) < 0 || !S_ISDIR(st.st_mode)) return InvalidArgument("'", parts, "' is no folder; name one");
  if (st.st_mode & (S_IWGRP | S_IWOTH)) {
    return Error(absl::StatusCode::kPermissionDenied, "others could write to folder '", parts, "'; run: chmod go-w '", parts, "'");
  }
  return std::unique_ptr<ArtefactCache>(new ArtefactCache(std::move(real)));
}

StatusOr<std::string> ArtefactCache::ReadFile(const std::string& name, const ArtefactKey& key, std::string* tag) const {
  const std::string path = StrCat(folder_, "/", name);
  ASSIGN_OR_RETURN(const std::string bytes, ReadOwn(path));
  std::string_view rest = bytes;
  if (!rest.starts_with(kMagic)) return NoArtefact(path, "is nothing that this runtime wrote");
  uint32_t crc = 0;
  if (rest.size() < kMagic.size() + sizeof crc) return NoArtefact(path, "is torn");
  rest.remove_suffix(sizeof crc);
  std::memcpy(&crc, rest.data() + rest.size(), sizeof crc);
  if (ExtendCrc32c(0, rest.data(), rest.size()) != crc) return NoArtefact(path, "is torn");
  rest.remove_prefix(kMagic.size());
  std::string compiler, part, content;
  if (!TakeText(&rest, &compiler) || !TakeText(&rest, &part) || !TakeText(&rest, tag) || !TakeText(&rest, &content) || !rest.empty()) {
    return NoArtefact(path, "is torn");
  }
  if (compiler != key.compiler || part != Sha256(key.part)) return NoArtefact(path, "belongs to another part");
  return content;
}

StatusOr<std::string> ArtefactCache::Read(const ArtefactKey& key, const std::function<bool(std::string_view)>& usable) const {
  std::string tag;
  auto exact = ReadFile(Name(key), key, &tag);
  if (exact.ok() && tag == key.tag) return exact;
  std::vector<std::string> names;
  if (ListFolder(folder_, &names) != 0) return exact.ok() ? NotFound("no artefact") : exact.status();
  for (const std::string& name : names) {
    if (!name.starts_with(Start(key)) || !name.ends_with(kEnd)) continue;
    auto other = ReadFile(name, key, &tag);
    if (other.ok() && usable(tag)) return other;
  }
  return NotFound("folder '", folder_, "' has nothing of that part");
}

Status ArtefactCache::Write(const ArtefactKey& key, std::string_view bytes) const {
  std::string all(kMagic);
  PutText(key.compiler, &all);
  PutText(Sha256(key.part), &all);
  PutText(key.tag, &all);
  PutText(bytes, &all);
  const uint32_t crc = ExtendCrc32c(0, all.data(), all.size());
  all.append(reinterpret_cast<const char*>(&crc), sizeof crc);
  const std::string path = StrCat(folder_, "/", Name(key)), temporary = TemporaryName(path, "new");
  const Descriptor fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (fd.get() < 0) return SystemError(errno, "create", temporary);
  Status s = WriteTo(Descriptor(::dup(fd.get())), temporary)->Append(all.data(), all.size());
  if (s.ok() && ::rename(temporary.c_str(), path.c_str()) < 0) s = SystemError(errno, "rename to", path);
  if (!s.ok()) ::unlink(temporary.c_str());
  return s;
}

}  // namespace thalweg
