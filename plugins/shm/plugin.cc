// The collective engine "shm": members of one host, over shared memory.
#include <charconv>
#include <memory>

#include "group.h"

using thalweg::shm::Group;
using thalweg::shm::Operation;
using thalweg::shm::Settings;

namespace {

tw_status* Append(tw_sink* to, const void* bytes, uint64_t n) {
  static_cast<std::string*>(to->user)->append(static_cast<const char*>(bytes), n);
  return nullptr;
}

// Returns false if the setting is not given.
bool Setting(const tw_host* h, const char* key, std::string* value) {
  tw_sink to = {TW_SIZED(tw_sink), value, Append};
  tw_status* s = h->setting(h, key, std::strlen(key), &to);
  if (!s) return true;
  const bool none = h->status->code(s) == TW_NOT_FOUND;
  if (!none) throw tw::Raised{s};
  h->status->release(s);
  return false;
}

Settings SettingsOf(const tw_host* h) {
  Settings settings;
  std::string folder, window;
  if (Setting(h, "folder", &folder)) settings.folder = folder;
  if (Setting(h, "window", &window)) {
    const auto [end, error] = std::from_chars(window.data(), window.data() + window.size(), settings.window);
    if (error != std::errc() || end != window.data() + window.size() || settings.window < 64 || settings.window > 1 << 30) {
      throw tw::Error{TW_INVALID_ARGUMENT, "setting 'window' is '" + window + "'; it must be a number of bytes from 64 to 2^30"};
    }
  }
  return settings;
}

tw_status* Create(const tw_host* h, void*, const tw_group_config* c, void** out_group) {
  return tw::guard(h, [&] { *out_group = new Group(h, *c, SettingsOf(h)); });
}

void Destroy(const tw_host*, void* group) { delete static_cast<Group*>(group); }

void Abort(const tw_host*, void* group, const tw_status* why) { static_cast<Group*>(group)->Abort(why); }

template <Operation kOperation>
tw_status* Start(const tw_host* h, void* group, const tw_collective_call* c) {
  return tw::guard(h, [&] { static_cast<Group*>(group)->Start(kOperation, *c); });
}

tw_status* Init(const tw_host*, tw_registrar* r, void**) {
  tw_collective_def d = {};
  d.size = sizeof d;
  d.name = "shm";
  d.name_len = 3;
  d.kind = "CPU";
  d.kind_len = 3;
  d.create = Create;
  d.destroy = Destroy;
  d.abort = Abort;
  d.all_reduce = Start<Operation::kAllReduce>;
  d.broadcast = Start<Operation::kBroadcast>;
  d.all_gather = Start<Operation::kAllGather>;
  d.reduce_scatter = Start<Operation::kReduceScatter>;
  d.all_to_all = Start<Operation::kAllToAll>;
  return tw_add_collective(r, &d);
}

}  // namespace

TW_PLUGIN("org.thalweg.shm", "0.1.0", Init)
