// Files in object stores that speak S3, under paths s3://bucket/key.
#include "thalweg/cpp/plugin.hpp"

#include <memory>
#include <set>
#include <string>

#include "address.h"
#include "fail.h"
#include "move.h"
#include "reader.h"
#include "store.h"
#include "thalweg/cpp/memory.hpp"
#include "writer.h"

namespace {

using thalweg::s3::Address;
using thalweg::s3::Fail;
using thalweg::s3::ParseFile;
using thalweg::s3::ParseFolder;
using thalweg::s3::Reader;
using thalweg::s3::Store;
using thalweg::s3::Writer;

constexpr size_t kMostNames = 10'000'000;

Store* StoreOf(void* user) { return static_cast<Store*>(user); }
Writer* WriterOf(void* file) { return static_cast<Writer*>(file); }
Reader* ReaderOf(void* file) { return static_cast<Reader*>(file); }

tw_status* Create(const tw_host* h, void* user, const tw_file_request* r, void** out_file) {
  return tw::guard(h, [&] { *out_file = new Writer(StoreOf(user), ParseFile({r->path, r->path_len})); });
}

tw_status* Append(const tw_host* h, void* file, const void* bytes, uint64_t n) {
  return tw::guard(h, [&] { WriterOf(file)->Append(bytes, n); });
}

tw_status* Sync(const tw_host* h, void* file) {
  return tw::guard(h, [&] { WriterOf(file)->Sync(); });
}

tw_status* Close(const tw_host* h, void* file) {
  return tw::guard(h, [&] {
    const std::unique_ptr<Writer> writer(WriterOf(file));
    writer->Close();
  });
}

tw_status* Open(const tw_host* h, void* user, const tw_file_request* r, void** out_file, uint64_t* out_bytes) {
  return tw::guard(h, [&] {
    auto reader = std::make_unique<Reader>(StoreOf(user), ParseFile({r->path, r->path_len}));
    *out_bytes = reader->size();
    *out_file = reader.release();
  });
}

tw_status* Read(const tw_host* h, void* file, uint64_t offset, void* to, uint64_t n) {
  return tw::guard(h, [&] { ReaderOf(file)->Read(offset, to, n); });
}

void Release(const tw_host*, void* file) { delete ReaderOf(file); }

tw_status* Identify(const tw_host* h, void* file, tw_sink* to) {
  return tw::guard(h, [&] {
    const std::string identity = ReaderOf(file)->Identity();
    tw::check(to->put(to, identity.data(), identity.size()));
  });
}

tw_status* Rename(const tw_host* h, void* user, const char* from, uint64_t from_len, const char* to, uint64_t to_len) {
  return tw::guard(h, [&] { Move(StoreOf(user), ParseFile({from, from_len}), ParseFile({to, to_len})); });
}

tw_status* Remove(const tw_host* h, void* user, const char* path, uint64_t len) {
  return tw::guard(h, [&] {
    const Address at = ParseFile({path, len});
    auto& objects = StoreOf(user)->here().objects;
    thalweg::s3::Seen seen;  // S3 reports no error for a name that is not there
    if (!objects.Look(at, 1, &seen)) Fail(TW_NOT_FOUND, at.text() + ": there is no such object");
    objects.Remove(at);
  });
}

// The key of an object may be a folder's name, too; such a name is listed once. Keys with empty parts
// have no path, and are left out.
tw_status* List(const tw_host* h, void* user, const char* folder, uint64_t len, tw_sink* to) {
  return tw::guard(h, [&] {
    const Address at = ParseFolder({folder, len});
    tw::Charge memory{tw::Payer(h)};
    std::set<std::string> names;
    const auto add = [&](std::string_view key, bool is_folder) {
      if (!key.starts_with(at.key)) Fail(TW_DATA_LOSS, at.text() + ": the store lists keys that do not begin with the folder's name");
      key.remove_prefix(at.key.size());
      if (is_folder && key.ends_with('/')) key.remove_suffix(1);
      if (key.empty() || key == "." || key == ".." || key.find_first_of(std::string_view("/\0", 2)) != key.npos) return;
      memory.add(key.size() + 96);  // a node of the set and its text
      names.insert(std::string(key));
      if (names.size() > kMostNames)
        Fail(TW_RESOURCE_EXHAUSTED, at.text() + ": the folder has more than 10,000,000 names; name a smaller one");
    };
    StoreOf(user)->here().objects.List(at, [&](const auto& keys, const auto& prefixes) {
      for (const std::string& key : keys) add(key, false);
      for (const std::string& prefix : prefixes) add(prefix, true);
    });
    for (const std::string& name : names) tw::check(to->put(to, name.c_str(), name.size() + 1));
  });
}

}  // namespace

TW_CPP_PLUGIN_WITH("org.thalweg.s3", "0.1.0", Store, p, store) {
  store.Open(p.h);
  tw_file_system_def def = {TW_SIZED(tw_file_system_def), TW_S("s3")};
  def.user = &store;
  def.create = Create;
  def.append = Append;
  def.sync = Sync;
  def.close = Close;
  def.open = Open;
  def.read = Read;
  def.release = Release;
  def.rename = Rename;
  def.remove = Remove;
  def.list = List;
  def.identify = Identify;
  // Folders need not be created, names are durable at once, and the runtime locks within the process.
  tw::check(tw_add_file_system(p.r, &def));
}
