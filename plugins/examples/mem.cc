// A file system in C++: `mem://` paths name files in memory, which belong to one runtime and end
// with it. Needs only the public headers:
//
//     c++ -std=c++17 -shared -fPIC -I<prefix>/include mem.cc -o libmem.so
//
// The runtime option plugin.org.example.mem.capacity=BYTES limits the size of all files. A folder
// is the part of a name before a slash; folders need not be created.
#include <charconv>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>

#define THALWEG_FILE_SYSTEM_TARGET 1  // for `identify`, which older hosts ignore
#include "thalweg/cpp/plugin.hpp"

namespace {

// The contents of a file that was created, under whatever name. changes: counts writes.
struct Contents : std::string {
  uint64_t number = 0, changes = 0;
};
using Bytes = std::shared_ptr<Contents>;

struct Files {
  std::mutex mu;
  uint64_t created = 0;
  std::map<std::string, Bytes, std::less<>> by_path;
  uint64_t capacity = UINT64_MAX;

  const Bytes& Find(std::string_view path) {
    auto it = by_path.find(path);
    if (it == by_path.end()) throw tw::Error{TW_NOT_FOUND, "there is no such file"};
    return it->second;
  }
};

// An open file. It remains after its name is removed. A reader sees the bytes that were there when
// it opened the file.
struct Open {
  Files* files;
  Bytes bytes;
  uint64_t changes;  // of `bytes`, when the file was opened
};

// Runs body under the lock and returns what it throws as a status.
template <class F>
tw_status* With(const tw_host* h, Files* files, F&& body) {
  return tw::guard(h, [&] {
    std::lock_guard lock(files->mu);
    body();
  });
}
Files* Of(void* user) { return static_cast<Files*>(user); }
Open* File(void* file) { return static_cast<Open*>(file); }

tw_status* Create(const tw_host* h, void* user, const tw_file_request* r, void** out) {
  return With(h, Of(user), [&] {
    auto [it, is_new] = Of(user)->by_path.try_emplace({r->path, r->path_len}, std::make_shared<Contents>());
    if (!is_new) throw tw::Error{TW_ALREADY_EXISTS, "there is a file of that name"};
    it->second->number = ++Of(user)->created;
    *out = new Open{Of(user), it->second, 0};
  });
}
tw_status* Append(const tw_host* h, void* file, const void* bytes, uint64_t n) {
  Files& all = *File(file)->files;
  return With(h, &all, [&] {
    uint64_t used = 0;
    for (const auto& [path, held] : all.by_path) used += held->size();
    if (used > all.capacity || n > all.capacity - used) throw tw::Error{TW_RESOURCE_EXHAUSTED, "the memory for files is full"};
    File(file)->bytes->append(static_cast<const char*>(bytes), n);
    ++File(file)->bytes->changes;
  });
}
tw_status* Sync(const tw_host*, void*) { return nullptr; }
void Release(const tw_host*, void* file) { delete File(file); }
tw_status* Close(const tw_host*, void* file) { return delete File(file), nullptr; }
tw_status* OpenFile(const tw_host* h, void* user, const tw_file_request* r, void** out, uint64_t* out_bytes) {
  return With(h, Of(user), [&] {
    const Bytes& found = Of(user)->Find({r->path, r->path_len});
    *out_bytes = found->size();
    *out = new Open{Of(user), found, found->changes};
  });
}
tw_status* Read(const tw_host* h, void* file, uint64_t offset, void* to, uint64_t n) {
  return With(h, File(file)->files, [&] {
    const std::string& bytes = *File(file)->bytes;
    if (offset > bytes.size() || n > bytes.size() - offset) throw tw::Error{TW_OUT_OF_RANGE, "the file ends before"};
    bytes.copy(static_cast<char*>(to), n, offset);
  });
}
// A file keeps its number when it is renamed. A new file of an old name has another one.
tw_status* Identify(const tw_host* h, void* file, tw_sink* to) {
  const Open& open = *File(file);
  return With(h, open.files, [&] {
    const std::string text = std::to_string(open.bytes->number) + "." + std::to_string(open.changes);
    tw::check(to->put(to, text.data(), text.size()));
  });
}
tw_status* Rename(const tw_host* h, void* user, const char* from, uint64_t from_len, const char* to, uint64_t to_len) {
  return With(h, Of(user), [&] {
    Files& all = *Of(user);
    const std::string_view old(from, from_len), name(to, to_len);
    const Bytes moved = all.Find(old);
    if (old == name) return;
    all.by_path[std::string(name)] = moved;  // first, because it may fail
    all.by_path.erase(all.by_path.find(old));
  });
}
tw_status* Remove(const tw_host* h, void* user, const char* path, uint64_t len) {
  return With(h, Of(user), [&] {
    Of(user)->Find({path, len});
    Of(user)->by_path.erase(std::string(path, len));
  });
}
tw_status* List(const tw_host* h, void* user, const char* folder, uint64_t len, tw_sink* to) {
  return With(h, Of(user), [&] {
    std::string start(folder, len);
    if (start.back() != '/') start += '/';
    std::set<std::string> names;
    for (const auto& [path, bytes] : Of(user)->by_path) {
      if (path.compare(0, start.size(), start) == 0) names.insert(path.substr(start.size(), path.find('/', start.size()) - start.size()));
    }
    for (const std::string& name : names) tw::check(to->put(to, name.c_str(), name.size() + 1));
  });
}

tw_status* Put(tw_sink* s, const void* bytes, uint64_t n) {
  static_cast<std::string*>(s->user)->append(static_cast<const char*>(bytes), n);
  return nullptr;
}
// Reads the setting. The default is no limit.
uint64_t Capacity(const tw_host* h) {
  std::string text;
  uint64_t bytes = 0;
  tw_sink sink = {TW_SIZED(tw_sink), &text, Put};
  if (tw_status* s = h->setting(h, TW_S("capacity"), &sink)) {
    if (h->status->code(s) != TW_NOT_FOUND) throw tw::Raised{s};
    h->status->release(s);
    return UINT64_MAX;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error != std::errc() || end != text.data() + text.size())
    throw tw::Error{TW_INVALID_ARGUMENT, "setting 'capacity' is '" + text + "'; it must be a number of bytes"};
  return bytes;
}

}  // namespace

TW_CPP_PLUGIN_WITH("org.example.mem", "1.0", Files, p, files) {
  files.capacity = Capacity(p.h);
  const tw_file_system_def def = {TW_SIZED(tw_file_system_def),
                                  TW_S("mem"),
                                  &files,
                                  Create,
                                  Append,
                                  Sync,
                                  Close,
                                  OpenFile,
                                  Read,
                                  Release,
                                  Rename,
                                  Remove,
                                  List,
                                  nullptr,
                                  nullptr,
                                  nullptr,
                                  nullptr,
                                  nullptr,
                                  Identify};
  tw::check(tw_add_file_system(p.r, &def));
}
