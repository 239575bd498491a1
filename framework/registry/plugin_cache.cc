#include "framework/registry/plugin_cache.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>

#include <sys/stat.h>

#include "framework/base/crc32c.h"
#include "framework/base/sha256.h"
#include "framework/registry/plugin_file.h"
#include "framework/registry/plugin_writers.h"
#include "framework/registry/role.h"
#include "thalweg/plugin/abi.h"

namespace thalweg {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostBytes = 64 << 20;

// The head of the file. A cache of another build is not used, because that build judged plugins by
// other rules.
std::string Head() {
  std::string head = StrCat("thalweg-plugins 5 epoch ", TW_EPOCH, " minor ", TW_MINOR);
  for (const RoleVersion& r : RoleVersions()) head += StrCat(" ", r.name, " ", r.major, ".", r.minor);
  return StrCat(head, " sanitizer ", HostSanitizer(), "\n");
}

std::string StampText(const FileStamp& s) { return StrCat(s.device, " ", s.inode, " ", s.size, " ", s.modified_ns, " ", s.changed_ns); }

// Parses integers with a space between them. Returns false for a number too few, too many or too
// large.
template <typename... Numbers>
bool ParseNumbers(std::string_view text, Numbers*... numbers) {
  const char *at = text.data(), *end = at + text.size();
  auto take = [&](auto* out) {
    auto [after, error] = std::from_chars(at, end, *out);
    if (error != std::errc()) return false;
    at = after != end && *after == ' ' ? after + 1 : after;
    return true;
  };
  return (take(numbers) && ...) && at == end;
}

bool ParseStamp(std::string_view text, FileStamp* s) {
  return ParseNumbers(text, &s->device, &s->inode, &s->size, &s->modified_ns, &s->changed_ns);
}

bool ParseTimeouts(std::string_view text, CachedPlugin* p) { return ParseNumbers(text, &p->timeouts, &p->probe_at); }

bool IsDigest(std::string_view text) {
  auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == 64 && std::all_of(text.begin(), text.end(), hex);
}

// Returns false for a file that was changed within the last tick of the file system's clock: it may
// be changed again without getting a new stamp.
bool IsSettled(const FileStamp& s) {
  constexpr int64_t kTick = 10'000'000;
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec - s.changed_ns > kTick;
}

class File {
 public:
  File(const std::string& path, int flags) : fd_(open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600)) {}
  File(const File&) = delete;
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  bool ok() const { return fd_ >= 0; }
  bool ReadAll(std::string* text) const {
    struct stat st;
    if (fstat(fd_, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < 0 || size_t(st.st_size) > kMostBytes) return false;
    text->resize(size_t(st.st_size));
    for (size_t at = 0; at < text->size();) {
      const ssize_t n = read(fd_, text->data() + at, text->size() - at);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      at += size_t(n);
    }
    return true;
  }
  bool WriteAll(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t n = write(fd_, text.data(), text.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      text.remove_prefix(size_t(n));
    }
    return true;
  }

 private:
  int fd_;
};

bool OnlyOurs(const std::string& path) {
  std::string real, fix;
  return CheckPluginWriters(path, &real, &fix).ok();
}

}  // namespace

PluginCache::PluginCache(const std::string& folder, const std::vector<std::string>& searched) : folder_(folder) {
  if (folder.empty()) return;
  std::string set = Head();
  for (const std::string& f : searched) set += EscapeLine(f) + "\n";
  file_ = StrCat(folder, "/plugins-", Sha256(set).substr(0, 16));
  Read();
}

void PluginCache::Read() {
  std::string text;
  File file(file_, O_RDONLY | O_NONBLOCK);
  if (!file.ok()) return;
  if (!OnlyOurs(file_)) {
    file_.clear();
  } else if (!file.ReadAll(&text) || !Parse(text)) {
    by_path_.clear();
    changed_ = true;
  }
}

// Parses the head, the entries and the checksum.
bool PluginCache::Parse(std::string_view text) {
  const std::string head = Head();
  if (text.substr(0, head.size()) != head) return false;
  const size_t last = text.rfind("crc ");
  uint32_t crc = 0;
  if (last == text.npos || text.back() != '\n') return false;
  std::string_view number = text.substr(last + 4, text.size() - last - 5);
  if (std::from_chars(number.data(), number.data() + number.size(), crc).ptr != number.data() + number.size()) return false;
  if (number.empty() || crc != ExtendCrc32c(0, text.data(), last)) return false;
  text = text.substr(head.size(), last - head.size());
  for (std::string_view word, rest; TakeLine(&text, &word, &rest);) {
    std::string path;
    CachedPlugin p;
    if (word != "file" || !UnescapeLine(rest, &path)) return false;
    if (!TakeLine(&text, &word, &rest) || word != "stamp" || !ParseStamp(rest, &p.stamp)) return false;
    if (!TakeLine(&text, &word, &rest) || word != "digest" || !IsDigest(rest)) return false;
    p.digest = rest;
    if (!TakeLine(&text, &word, &rest) || word != "checked" || !UnescapeLine(rest, &p.checked_by)) return false;
    if (!TakeLine(&text, &word, &rest) || word != "quarantine" || !UnescapeLine(rest, &p.quarantine)) return false;
    if (p.quarantine.empty()) {
      if (!TakeManifest(&text, &p.manifest)) return false;
    } else {
      if (!TakeLine(&text, &word, &rest) || word != "timeouts" || !ParseTimeouts(rest, &p)) return false;
      if (!TakeLine(&text, &word, &rest) || !UnescapeLine(rest, &p.manifest.id)) return false;
    }
    by_path_.insert_or_assign(std::move(path), std::move(p));
  }
  return text.empty();
}

const CachedPlugin* PluginCache::Find(const std::string& path, const FileStamp& stamp) const {
  auto it = by_path_.find(path);
  return it != by_path_.end() && it->second.stamp == stamp ? &it->second : nullptr;
}

const CachedPlugin* PluginCache::FindContents(std::string_view digest) const {
  for (const auto& [path, p] : by_path_) {
    if (p.digest == digest) return &p;
  }
  return nullptr;
}

void PluginCache::Put(const std::string& path, CachedPlugin plugin) {
  if (!IsSettled(plugin.stamp)) plugin.stamp = FileStamp();  // identified by its contents only
  by_path_.insert_or_assign(path, std::move(plugin));
  changed_ = true;
}

void PluginCache::SetChecked(const std::string& path, const FileStamp& stamp, const std::string& build) {
  auto it = by_path_.find(path);
  if (it == by_path_.end() || !(it->second.stamp == stamp) || it->second.checked_by == build) return;
  it->second.checked_by = build;
  changed_ = true;
}

void PluginCache::Write() {
  if (!changed_ || file_.empty()) return;
  changed_ = false;
  std::string text = Head();
  for (const auto& [path, p] : by_path_) {
    FileStamp now;
    if (!StampOf(path, &now) || !(now == p.stamp)) continue;
    text += StrCat("file ", EscapeLine(path), "\nstamp ", StampText(p.stamp), "\ndigest ", p.digest, "\nchecked ", EscapeLine(p.checked_by),
                   "\nquarantine ", EscapeLine(p.quarantine), "\n");
    text += p.quarantine.empty() ? ManifestText(p.manifest)
                                 : StrCat("timeouts ", p.timeouts, " ", p.probe_at, "\nid ", EscapeLine(p.manifest.id), "\n");
  }
  text += StrCat("crc ", ExtendCrc32c(0, text.data(), text.size()), "\n");
  std::error_code error;
  const fs::path folder = folder_;
  if (!fs::is_directory(folder, error)) {
    fs::create_directories(folder.parent_path(), error);
    if (mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) return;
  }
  if (!OnlyOurs(folder_)) return;
  const std::string part = StrCat(file_, ".", getpid(), ".part");
  unlink(part.c_str());
  const File file(part, O_WRONLY | O_CREAT | O_EXCL);
  if (!file.ok()) return;
  if (!file.WriteAll(text) || rename(part.c_str(), file_.c_str()) != 0) unlink(part.c_str());
}

}  // namespace thalweg
