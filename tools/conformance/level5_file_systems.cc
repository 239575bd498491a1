// Level 5: file systems, in a folder that the check makes.
#include <unistd.h>

#include <algorithm>
#include <set>
#include <thread>

#include "framework/base/sink.h"
#include "tools/conformance/device_block.h"
#include "tools/conformance/levels.h"

namespace thalweg::conformance {
namespace {

using Code = absl::StatusCode;

// Calls the plugin's functions on paths in one folder.
class Files {
 public:
  Files(const FileSystemRole& role, std::string folder) : role_(role), folder_(std::move(folder)) {}
  const tw_file_system_def& def() const { return role_.def; }
  const tw_host* host() const { return role_.host; }
  std::string Path(std::string_view name) const { return StrCat(folder_, "/", name); }

  Status MakeFolder() const {
    Status s = FromC(def().make_folder(host(), def().user, folder_.data(), folder_.size()));
    return s.code() == Code::kAlreadyExists ? Status() : s;
  }
  Status Create(std::string_view name, void** out_file) const {
    const std::string path = Path(name);
    const tw_file_request request = {TW_SIZED(tw_file_request), path.data(), path.size()};
    return FromC(def().create(host(), def().user, &request, out_file));
  }
  // Writes a whole file in pieces of `piece` bytes.
  Status Write(std::string_view name, const Bytes& bytes, uint64_t piece) const {
    void* file = nullptr;
    RETURN_IF_ERROR(Create(name, &file));
    Status s;
    for (uint64_t at = 0; at < bytes.size() && s.ok(); at += piece) {
      s = FromC(def().append(host(), file, bytes.data() + at, std::min<uint64_t>(piece, bytes.size() - at)));
    }
    if (s.ok()) s = FromC(def().sync(host(), file));
    Status closed = FromC(def().close(host(), file));
    return s.ok() ? closed : s;
  }
  Status Rename(std::string_view from, std::string_view to) const {
    const std::string a = Path(from), b = Path(to);
    return FromC(def().rename(host(), def().user, a.data(), a.size(), b.data(), b.size()));
  }
  Status Remove(std::string_view name) const {
    const std::string path = Path(name);
    return FromC(def().remove(host(), def().user, path.data(), path.size()));
  }
  StatusOr<std::vector<std::string>> List() const {
    std::string text;
    tw_sink sink = {TW_SIZED(tw_sink), &text, [](tw_sink* to, const void* bytes, uint64_t n) -> tw_status* {
                      static_cast<std::string*>(to->user)->append(static_cast<const char*>(bytes), n);
                      return nullptr;
                    }};
    RETURN_IF_ERROR(FromC(def().list(host(), def().user, folder_.data(), folder_.size(), &sink)));
    std::vector<std::string> names;
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\0', at);
      if (end == text.npos) return Internal("the last name has no zero byte behind it");
      names.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  // A file that is open for reading.
  class Reader {
   public:
    explicit Reader(const Files& f) : f_(f) {}
    ~Reader() {
      if (file_) f_.def().release(f_.host(), file_);
    }
    Status Open(std::string_view name) {
      const std::string path = f_.Path(name);
      const tw_file_request request = {TW_SIZED(tw_file_request), path.data(), path.size()};
      return FromC(f_.def().open(f_.host(), f_.def().user, &request, &file_, &bytes_));
    }
    uint64_t bytes() const { return bytes_; }
    // REQUIRES: the plugin has `identify`.
    StatusOr<std::string> Identity() const {
      BytesSink to;
      RETURN_IF_ERROR(FromC(f_.def().identify(f_.host(), file_, &to.c)));
      RETURN_IF_ERROR(to.Whole());
      return to.bytes;
    }
    StatusOr<Bytes> Read(uint64_t offset, uint64_t n) const {
      Bytes out(n + 2, 7);
      RETURN_IF_ERROR(FromC(f_.def().read(f_.host(), file_, offset, out.data() + 1, n)));
      if (out.front() != 7 || out.back() != 7) return Internal("reading ", n, " bytes at ", offset, " wrote beside them");
      return Bytes(out.begin() + 1, out.end() - 1);
    }

   private:
    const Files& f_;
    void* file_ = nullptr;
    uint64_t bytes_ = 0;
  };
  StatusOr<Bytes> ReadAll(std::string_view name) const {
    Reader r(*this);
    RETURN_IF_ERROR(r.Open(name));
    return r.Read(0, r.bytes());
  }

 private:
  const FileSystemRole& role_;
  const std::string folder_;
};

Outcome Wants(const Status& s, Code code, std::string_view what) {
  if (s.code() == code) return {};
  return Fail(what, ": ", s.ok() ? "no error" : s.ToString(), " instead of ", absl::StatusCodeToString(code));
}

Outcome ReadsWhatWasWritten(const Files& f, bool full) {
  std::vector<uint64_t> sizes = {0, 1, 4096, 70001};
  if (full) sizes.push_back(64 << 20);
  for (uint64_t bytes : sizes) {
    const std::string name = StrCat("data", bytes);
    const Bytes want = Pattern(bytes, uint32_t(bytes));
    RETURN_IF_ERROR(f.Write(name, want, 1000));
    Files::Reader r(f);
    RETURN_IF_ERROR(r.Open(name));
    if (r.bytes() != bytes) return Fail("a file of ", bytes, " bytes opens with ", r.bytes());
    for (auto [offset, n] :
         std::vector<std::pair<uint64_t, uint64_t>>{{0, bytes}, {bytes / 2, bytes / 3}, {bytes, 0}, {bytes - bytes / 7, bytes / 7}}) {
      ASSIGN_OR_RETURN(Bytes got, r.Read(offset, n));
      const Bytes part(want.begin() + int64_t(offset), want.begin() + int64_t(offset + n));
      if (std::string s = Difference(got, part); !s.empty()) return Fail(n, " bytes at ", offset, " of ", bytes, ": ", s);
    }
    RETURN_IF_ERROR(f.Remove(name));
  }
  return {};
}

Outcome RefusesTakenNames(const Files& f) {
  RETURN_IF_ERROR(f.Write("taken", Pattern(10, 1), 10));
  void* file = nullptr;
  Status s = f.Create("taken", &file);
  if (s.ok()) f.def().close(f.host(), file);
  RETURN_UNLESS_PASSED(Wants(s, Code::kAlreadyExists, "creating a file that is there"));
  ASSIGN_OR_RETURN(Bytes got, f.ReadAll("taken"));
  if (std::string d = Difference(got, Pattern(10, 1)); !d.empty()) return Fail("the file that was there: ", d);
  return f.Remove("taken");
}

Outcome MissesWhatIsNotThere(const Files& f) {
  Files::Reader r(f);
  RETURN_UNLESS_PASSED(Wants(r.Open("nothing"), Code::kNotFound, "opening"));
  RETURN_UNLESS_PASSED(Wants(f.Remove("nothing"), Code::kNotFound, "removing"));
  RETURN_UNLESS_PASSED(Wants(f.Rename("nothing", "something"), Code::kNotFound, "renaming"));
  RETURN_IF_ERROR(f.Write("gone", Pattern(5, 1), 5));
  RETURN_IF_ERROR(f.Remove("gone"));
  Files::Reader again(f);
  return Wants(again.Open("gone"), Code::kNotFound, "opening what was removed");
}

Outcome EndsAtTheEnd(const Files& f) {
  RETURN_IF_ERROR(f.Write("short", Pattern(100, 1), 33));
  Files::Reader r(f);
  RETURN_IF_ERROR(r.Open("short"));
  for (auto [offset, n] : std::vector<std::pair<uint64_t, uint64_t>>{{0, 101}, {100, 1}, {99, 2}, {1000, 1}, {~uint64_t{0}, 2}}) {
    RETURN_UNLESS_PASSED(Wants(r.Read(offset, n).status(), Code::kOutOfRange, StrCat("reading ", n, " bytes at ", offset, " of 100")));
  }
  return f.Remove("short");
}

Outcome RenamesAtOnce(const Files& f) {
  const Bytes old = Pattern(3000, 1), fresh = Pattern(2000, 2);
  RETURN_IF_ERROR(f.Write("target", old, 3000));
  RETURN_IF_ERROR(f.Write("fresh", fresh, 2000));
  Files::Reader held(f);
  RETURN_IF_ERROR(held.Open("target"));
  RETURN_IF_ERROR(f.Rename("fresh", "target"));
  ASSIGN_OR_RETURN(Bytes got, f.ReadAll("target"));
  if (std::string s = Difference(got, fresh); !s.empty()) return Fail("after renaming over it: ", s);
  Files::Reader gone(f);
  RETURN_UNLESS_PASSED(Wants(gone.Open("fresh"), Code::kNotFound, "opening the old name"));
  ASSIGN_OR_RETURN(got, held.Read(0, held.bytes()));
  if (std::string s = Difference(got, old); !s.empty()) return Fail("who had it open before: ", s);
  return f.Remove("target");
}

Outcome ListsEachOnce(const Files& f) {
  const std::vector<std::string> want = {"a", "b.index", "c-00000-of-00001"};
  for (const std::string& name : want) RETURN_IF_ERROR(f.Write(name, Pattern(3, 1), 3));
  ASSIGN_OR_RETURN(std::vector<std::string> got, f.List());
  for (const std::string& name : want) {
    const auto n = std::count(got.begin(), got.end(), name);
    if (n != 1) return Fail("'", name, "' is listed ", n, " times");
  }
  for (const std::string& name : got) {
    if (name.find('/') != name.npos) return Fail("'", name, "' is listed with the path before it");
    if (std::find(want.begin(), want.end(), name) == want.end()) return Fail("'", name, "' is listed, which is not there");
  }
  for (const std::string& name : want) RETURN_IF_ERROR(f.Remove(name));
  ASSIGN_OR_RETURN(got, f.List());
  return got.empty() ? Outcome() : Fail("'", got[0], "' is listed after it was removed");
}

Outcome LocksOut(const Files& f) {
  if (!f.def().lock_folder_of) return None("it has no locks of its own");
  const std::string path = f.Path("model");
  void *first = nullptr, *second = nullptr;
  auto lock = [&](void** out) { return FromC(f.def().lock_folder_of(f.host(), f.def().user, path.data(), path.size(), out)); };
  RETURN_IF_ERROR(lock(&first));
  At("a second lock, which may wait, but not for ever");
  Status s = lock(&second);
  if (s.ok()) f.def().unlock(f.host(), second);
  RETURN_UNLESS_PASSED(Wants(s, Code::kUnavailable, "locking what is locked"));
  f.def().unlock(f.host(), first);
  RETURN_IF_ERROR(lock(&first));
  f.def().unlock(f.host(), first);
  return {};
}

StatusOr<std::string> IdentityOf(const Files& f, std::string_view name) {
  Files::Reader r(f);
  RETURN_IF_ERROR(r.Open(name));
  return r.Identity();
}

// A file with the same bytes as another is another file, and so is one with other bytes in its place.
Outcome IdentifiesFiles(const Files& f) {
  constexpr size_t kLongest = 256;
  if (!f.def().identify) return None("it has no identify");
  RETURN_IF_ERROR(f.Write("one", Pattern(1000, 1), 1000));
  RETURN_IF_ERROR(f.Write("twin", Pattern(1000, 1), 1000));
  Files::Reader held(f);
  RETURN_IF_ERROR(held.Open("one"));
  ASSIGN_OR_RETURN(const std::string one, held.Identity());
  ASSIGN_OR_RETURN(const std::string again, IdentityOf(f, "one"));
  ASSIGN_OR_RETURN(const std::string twin, IdentityOf(f, "twin"));
  if (one.size() > kLongest) return Fail("it identifies a file by ", one.size(), " bytes; at most ", kLongest, " are allowed");
  if (again != one) return Fail("a file that was opened twice without a change has two identities, '", one, "' and '", again, "'");
  if (!one.empty() && twin == one) return Fail("two files of equal contents have one identity, '", one, "'");
  RETURN_IF_ERROR(f.Remove("twin"));
  RETURN_IF_ERROR(f.Write("other", Pattern(1000, 2), 1000));
  RETURN_IF_ERROR(f.Rename("other", "one"));
  ASSIGN_OR_RETURN(const std::string replaced, IdentityOf(f, "one"));
  if (!one.empty() && replaced == one) return Fail("a file that was renamed over another has the identity of the other, '", one, "'");
  ASSIGN_OR_RETURN(const std::string kept, held.Identity());
  if (kept != one) return Fail("an open file has another identity, '", kept, "' instead of '", one, "', after its name was given away");
  return f.Remove("one");
}

Outcome ServesReaders(const Files& f) {
  const Bytes want = Pattern(50000, 4);
  RETURN_IF_ERROR(f.Write("shared", want, 7777));
  Files::Reader r(f);
  RETURN_IF_ERROR(r.Open("shared"));
  std::vector<std::string> wrong(4);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 100 && wrong[t].empty(); ++i) {
        const uint64_t offset = (i * 997 + t * 131) % 40000, n = 1 + (i * 37) % 9000;
        auto got = r.Read(offset, n);
        wrong[t] = got.ok() ? Difference(*got, Bytes(want.begin() + int64_t(offset), want.begin() + int64_t(offset + n)))
                            : std::string(Message(got.status()));
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::string& w : wrong) {
    if (!w.empty()) return Fail(w);
  }
  return f.Remove("shared");
}

}  // namespace

void CheckFileSystems(Run& run, World& world) {
  for (const auto& role : world.registry().RolesOf<FileSystemRole>()) {
    if (role->plugin != world.id()) continue;
    const std::string& at = run.options().at;
    const bool here = at.rfind(StrCat(role->name, "://"), 0) == 0;
    auto check = [&](int rule, Outcome (*body)(const Files&)) {
      run.Check(rule, role->name, [&]() -> Outcome {
        const Files files(*role, StrCat(here ? at : StrCat(role->name, "://"), here ? "/" : "", "conformance-", getpid(), "-", rule));
        RETURN_IF_ERROR(files.MakeFolder());
        return body(files);
      });
    };
    check(
        521, run.options().full ? [](const Files& f) { return ReadsWhatWasWritten(f, true); }
                                : [](const Files& f) { return ReadsWhatWasWritten(f, false); });
    check(522, RefusesTakenNames);
    check(523, MissesWhatIsNotThere);
    check(524, EndsAtTheEnd);
    check(525, RenamesAtOnce);
    check(526, ListsEachOnce);
    check(527, LocksOut);
    check(528, ServesReaders);
    check(529, IdentifiesFiles);
  }
}

}  // namespace thalweg::conformance
