#include "framework/registry/plugin_entry.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>

#include "framework/registry/own_cpu.h"
#include "framework/registry/plugin_file.h"
#include "framework/registry/registrar.h"

namespace thalweg {
namespace {

constexpr const char* kEntry = "tw_plugin_query_v0";

// The size of the members that never move in any epoch; they suffice for a refusal.
constexpr uint32_t kFrozenBytes = offsetof(tw_plugin, floor_adds_len) + sizeof(uint64_t);

std::string_view TextOr(const char* text, uint64_t len, std::string_view otherwise) {
  constexpr uint64_t kLongest = 4096;  // an uninitialised length is probably larger
  return text && len && len <= kLongest ? std::string_view(text, len) : otherwise;
}

// Returns the value of a key in "key=value; key=value"; "" if the key is missing.
std::string BuildValue(std::string_view build, std::string_view key) {
  while (!build.empty()) {
    size_t end = std::min(build.find(';'), build.size());
    std::string_view entry = build.substr(0, end);
    build.remove_prefix(std::min(end + 1, build.size()));
    while (!entry.empty() && entry.front() == ' ') entry.remove_prefix(1);
    size_t equals = entry.find('=');
    if (equals != entry.npos && entry.substr(0, equals) == key) return std::string(entry.substr(equals + 1));
  }
  return "";
}

// Returns a remedy for a known dlerror text.
std::string FixFor(std::string_view reason) {
  if (reason.find("libthalweg.so") != reason.npos) {
    return "link it without -lthalweg; a plugin gets everything of the runtime from the host table";
  }
  if (reason.find("undefined symbol") != reason.npos) {
    return "link what it needs into it; from the runtime a plugin may use only what the host table offers";
  }
  if (reason.find("cannot open shared object file") != reason.npos) return "install the library that it names, or put it beside the plugin";
  if (reason.find("version `") != reason.npos) return "rebuild it on this system, or upgrade the library that it names";
  return "rebuild or reinstall it";
}

std::string SanitizerFix(std::string_view sanitizer) {
  return StrCat("build it without -fsanitize=", sanitizer, ", or the program that loads it with the same");
}

// Formats "epoch 1, minors 0 to 3".
std::string VersionText(uint32_t epoch, uint32_t from, uint32_t to) {
  return StrCat("epoch ", epoch, from == to ? ", minor " : ", minors ", from, from == to ? std::string() : StrCat(" to ", to));
}

// Compares epoch and minors. Everything that the error quotes is in members that never move.
Status Agree(const tw_plugin& p, PluginRecord* record) {
  std::string both =
      StrCat("it needs ABI ", VersionText(p.epoch, p.floor, p.target), " (", TextOr(p.floor_adds, p.floor_adds_len, "no reason given"),
             "), this runtime offers ", VersionText(TW_EPOCH, 0, TW_MINOR));
  if (p.epoch != TW_EPOCH) {
    return Refuse(record, FailedPrecondition(both),
                  p.epoch < TW_EPOCH ? "rebuild the plugin against this runtime's headers, with tw_add_op(r, &d) for r->op(r, &d), "
                                       "and so on for other roles"
                                     : "upgrade the runtime, or rebuild the plugin against its headers");
  }
  if (p.floor > p.target)
    return Refuse(record, InvalidArgument(both, "; its floor is above its target"),
                  "set THALWEG_FLOOR_MINOR at most to THALWEG_TARGET_MINOR");
  record->minor = std::min<uint32_t>(TW_MINOR, p.target);
  if (record->minor < p.floor && p.target > p.header) {
    return Refuse(record, FailedPrecondition(both, "; its headers declare minors up to ", p.header),
                  StrCat("rebuild it with THALWEG_TARGET_MINOR and THALWEG_FLOOR_MINOR at most ", p.header, ", or with newer headers"));
  }
  if (record->minor < p.floor) {
    return Refuse(record, FailedPrecondition(both),
                  "upgrade the runtime, or rebuild the plugin with a lower THALWEG_TARGET_MINOR or THALWEG_FLOOR_MINOR");
  }
  return Status();
}

// Ids are used in messages, options and caches.
bool IsId(std::string_view id) {
  return !id.empty() && std::all_of(id.begin(), id.end(), [](char c) { return c > ' ' && c != 0x7f; });
}

}  // namespace

Status SanitizerClash(PluginRecord* record, std::string_view sanitizer) {
  std::string_view host = HostSanitizer();
  if (sanitizer.empty() || sanitizer == host) return Status();
  return Refuse(record,
                FailedPrecondition("it is built with the ", sanitizer, " sanitizer, this runtime with ",
                                   host.empty() ? std::string_view("none") : host),
                SanitizerFix(sanitizer));
}

StatusOr<void*> OpenPluginLibrary(const std::string& path, PluginRecord* record) {
  if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  const char* why = dlerror();
  std::string reason = why ? why : "dlopen gives no reason";
  return Refuse(record, FailedPrecondition(reason), FixFor(reason));
}

StatusOr<tw_query_fn> FindPluginQuery(void* library, PluginRecord* record) {
  if (auto query = reinterpret_cast<tw_query_fn>(dlsym(library, kEntry))) return query;
  const bool newer = dlsym(library, "tw_plugin_query_v1") != nullptr;
  return Refuse(record, InvalidArgument("it does not export ", kEntry, newer ? " but tw_plugin_query_v1, of a later ABI" : ""),
                newer ? "upgrade the runtime, or rebuild the plugin against its headers"
                      : "if it is a plugin, export the symbol with TW_PLUGIN; if not, take it out of the folder");
}

StatusOr<const tw_plugin*> AskPlugin(tw_query_fn query, PluginRecord* record) {
  tw_host_info info = {TW_SIZED(tw_host_info), TW_EPOCH, TW_MINOR, TW_S("Thalweg")};
  const tw_plugin* d = nullptr;
  try {
    d = query(&info);
  } catch (...) {
    return Refuse(record, Internal(kEntry, " threw a C++ exception"), "report it to the plugin's author");
  }
  if (!d) return Refuse(record, FailedPrecondition(kEntry, " answered NULL"), "report it to the plugin's author");
  if (d->size < kFrozenBytes) {
    return Refuse(record, InvalidArgument("its descriptor has ", d->size, " bytes; at least ", kFrozenBytes, " are needed"),
                  "fill it with TW_PLUGIN of thalweg/plugin/plugin.h");
  }
  record->epoch = d->epoch;
  record->id = TextOr(d->id, d->id_len, "");
  record->version = TextOr(d->version, d->version_len, "");
  if (IsId(record->id)) return d;
  record->id.clear();
  return Refuse(record, InvalidArgument("its descriptor has no id, or one that cannot be true"), "give it a reverse-DNS id");
}

Status AgreeWithPlugin(const tw_plugin& d, PluginRecord* record, tw_plugin* sealed) {
  RETURN_IF_ERROR(Agree(d, record));
  // The descriptor grows behind the frozen members; the part that it does not cover is zero.
  *sealed = tw_plugin{};
  std::memcpy(static_cast<void*>(sealed), &d, std::min<size_t>(d.size / 8 * 8, sizeof *sealed));
  record->build = TextOr(sealed->build, sealed->build_len, "");
  if (d.flags != 0)
    return Refuse(record, InvalidArgument("its descriptor has flags ", d.flags, ", unknown to this runtime"), "upgrade the runtime");
  RETURN_IF_ERROR(SanitizerClash(record, BuildValue(record->build, "sanitizer")));
  if (const std::string missing = MissingOnThisCpu(BuildValue(record->build, "cpu")); !missing.empty()) {
    return Refuse(record, FailedPrecondition("it is built for a CPU with ", missing, ", which this machine's CPU lacks"),
                  "build it without -march=native, or for this CPU");
  }
  if (sealed->init) return Status();
  return Refuse(record, InvalidArgument("its descriptor has no init"), "fill it with TW_PLUGIN of thalweg/plugin/plugin.h");
}

Status CheckSomethingIsLeft(const Registration& r, PluginRecord* record) {
  if (r.left_out.empty() || !r.empty()) return Status();
  return Refuse(record, FailedPrecondition("this runtime can use nothing of it: ", r.left_out[0].why), r.left_out[0].fix);
}

void DescribeLeftOut(const Registration& r, PluginRecord* record) {
  if (r.read_later) return;  // the manifest has said it
  record->left_out.clear();
  for (const Registration::LeftOut& l : r.left_out) {
    record->left_out.push_back(StrCat(l.why, l.count == 1 ? "" : StrCat(" (", l.count, " definitions)"), "; ", l.fix));
  }
}

Status InitPlugin(const tw_plugin& sealed, const tw_host* host, Registration* r, void** instance, bool* started, PluginRecord* record) {
  Registrar registrar(host, record->id, r);
  constexpr std::string_view kReport = "report it to the plugin's author";
  Status s;
  try {
    s = FromC(sealed.init(host, registrar.c(), instance));
  } catch (const std::exception& e) {
    return Refuse(record, Internal("its init threw a C++ exception: ", e.what()), kReport);
  } catch (...) {
    return Refuse(record, Internal("its init threw a C++ exception"), kReport);
  }
  *started = s.ok();
  if (!r->status.ok()) return Refuse(record, r->status, kReport);
  if (!s.ok()) return Refuse(record, Prefix(s, "its init failed:"), "put that right, or leave the plugin out");
  DescribeLeftOut(*r, record);
  return CheckSomethingIsLeft(*r, record);
}

}  // namespace thalweg
