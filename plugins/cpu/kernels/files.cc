// ReadFile, WriteFile and MatchingFiles. They use only the host's set of files, which reaches the
// file systems of plugins and may confine the node to a folder.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <sys/mman.h>

#include "kernels/common/temp.h"
#include "kernels/common/text.h"
#include "kernels/glob.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

const tw_files_api& Files(const tw_host* h) {
  auto* api = static_cast<const tw_files_api*>(h->query(h, TW_S(TW_FILES_SET), 1));
  if (!api) throw tw::Error{TW_UNIMPLEMENTED, "this runtime offers no files"};
  return *api;
}

// n zero bytes that take up addresses but no memory.
class Zeros {
 public:
  explicit Zeros(uint64_t n) : n_(n) {
    if (n == 0) return;
    data_ = mmap(nullptr, n, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data_ == MAP_FAILED)
      throw tw::Error{TW_RESOURCE_EXHAUSTED, "a file of " + std::to_string(n) + " bytes is more than there is room for"};
  }
  ~Zeros() {
    if (n_ > 0) munmap(data_, n_);
  }
  Zeros(const Zeros&) = delete;
  Zeros& operator=(const Zeros&) = delete;
  std::string_view view() const { return {static_cast<const char*>(data_), n_}; }

 private:
  uint64_t n_;
  void* data_ = nullptr;
};

void Read(tw::Frame f, tw::In<tw_string> filename, tw::Out<tw_string> contents) {
  const tw_host* h = f.f->host;
  struct Open {
    const tw_files_api& api;
    tw_file* file = nullptr;
    ~Open() { api.close(file); }
  } open{Files(h)};
  tw::check(open.api.open(h, filename[0].data, filename[0].size, &open.file));
  const uint64_t size = open.api.bytes(open.file);
  // The output is allocated first, and the host refuses that if it exceeds the session's limit.
  // Then the file is read into the output.
  contents.set(0, Zeros(size).view());
  if (size > 0) tw::check(open.api.read(open.file, 0, const_cast<char*>(contents[0].data), size));
}

// Returns the folder that contains the path, or an empty text if the path names none: "mem://a/b"
// is in "mem://a", which is in none.
std::string_view FolderOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == path.npos || slash == 0 || (slash >= 2 && path.substr(slash - 2, 2) == ":/")) return {};
  return path.substr(0, slash);
}

class FileWriter {
 public:
  explicit FileWriter(const tw_host* h) : h_(h), api_(Files(h)) {}

  void Write(std::string_view path, std::string_view contents) const {
    const auto write = [&] { return api_.write(h_, path.data(), path.size(), contents.data(), contents.size()); };
    if (!IsNotFound(write())) return;
    MakeFolder(FolderOf(path));
    tw::check(write());
  }

 private:
  // Makes the folder and its missing parents. Starts at the lowest folder, because the parents may
  // be out of bounds.
  void MakeFolder(std::string_view folder) const {
    std::vector<std::string_view> missing;
    while (!folder.empty() && IsNotFound(Make(folder))) {
      missing.push_back(folder);
      folder = FolderOf(folder);
    }
    for (; !missing.empty(); missing.pop_back()) tw::check(Make(missing.back()));
  }
  tw_status* Make(std::string_view folder) const { return api_.make_folder(h_, folder.data(), folder.size()); }

  // Returns true for NOT_FOUND; raises every other failure.
  bool IsNotFound(tw_status* s) const {
    if (!s) return false;
    if (h_->status->code(s) != TW_NOT_FOUND) throw tw::Raised{s};
    h_->status->release(s);
    return true;
  }

  const tw_host* h_;
  const tw_files_api& api_;
};

void Write(tw::Frame f, tw::In<tw_string> filename, tw::In<tw_string> contents) {
  FileWriter(f.f->host).Write(View(filename[0]), View(contents[0]));
}

// Lists the names in folders.
class Lister {
 public:
  explicit Lister(const tw_frame* f) : f_(f), api_(Files(f->host)) {}

  // found_out: a pattern found the folder's name. If such an entry cannot be listed (a file, or a
  // link that leads outside), that is not the caller's mistake.
  std::optional<Names> operator()(const std::string& folder, bool found_out) const {
    tw::check(f_->host->run->cancelled(f_));
    Listed names(f_);
    const tw::PaysHere pays(f_);
    tw_status* s = api_.list(f_->host, folder.data(), folder.size(), &names.c);
    if (!s) return Split(names.bytes);
    const uint32_t code = f_->host->status->code(s);
    const bool none = code == TW_NOT_FOUND || code == TW_FAILED_PRECONDITION;
    if (!none && !(found_out && (code == TW_PERMISSION_DENIED || code == TW_INVALID_ARGUMENT))) throw tw::Raised{s};
    f_->host->status->release(s);
    return std::nullopt;
  }

 private:
  struct Listed {
    explicit Listed(const tw_frame* f) : host(f->host), bytes(f) {}
    tw_sink c{TW_SIZED(tw_sink), nullptr, &Put};
    const tw_host* host;
    tw::TempString bytes;
    static tw_status* Put(tw_sink* s, const void* bytes, uint64_t n) {
      auto* self = reinterpret_cast<Listed*>(s);
      return tw::guard(self->host, [&] { self->bytes.append(static_cast<const char*>(bytes), n); });
    }
  };
  Names Split(const tw::TempString& bytes) const {
    Names all;
    const auto count = size_t(std::count(bytes.begin(), bytes.end(), '\0'));
    all.paid = std::make_shared<tw::Charge>(f_, count * (sizeof(std::string) + tw::kHeapBlock) + bytes.size());
    all.names.reserve(count);
    for (size_t at = 0; at < bytes.size(); at += all.names.back().size() + 1) all.names.emplace_back(bytes.c_str() + at);
    return all;
  }

  const tw_frame* f_;
  const tw_files_api& api_;
};

void Matching(tw::Frame f, tw::In<tw_string> pattern, tw::Out<tw_string> filenames) {
  const Lister lister(f.f);
  tw::Charge paid(f);
  std::vector<std::string> found;
  for (uint64_t i = 0; i < pattern.size(); ++i) {
    std::vector<std::string> more = Glob(View(pattern[i]), lister, [&](uint64_t bytes) { paid.add(bytes); });
    std::move(more.begin(), more.end(), std::back_inserter(found));
  }
  std::sort(found.begin(), found.end());
  const auto n = int64_t(found.size());
  Allocate(filenames, &n, 1);
  for (size_t k = 0; k < found.size(); ++k) filenames.set(k, found[k]);
}

}  // namespace

void register_files(tw::Plugin& p) {
  p.kernel<Read>("ReadFile @CPU; may_block");
  p.kernel<Write>("WriteFile @CPU; may_block");
  p.kernel<Matching>("MatchingFiles @CPU; may_block");
}

}  // namespace thalweg::cpu
