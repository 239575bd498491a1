// Membership by etcd, over its JSON gateway.
#include "member.h"

using thalweg::etcd::Failed;
using thalweg::etcd::Member;
using thalweg::etcd::Watch;

namespace {

// Converts exceptions to a status.
template <typename F>
tw_status* Guarded(const tw_host* h, F f) {
  uint32_t code = TW_RESOURCE_EXHAUSTED;
  std::string text;
  try {
    return f(), nullptr;
  } catch (const Failed& e) {
    code = e.code;
    text = std::string("etcd membership: ") + e.what();
  } catch (const std::exception& e) {
    text = std::string("etcd membership: ") + e.what();
  }
  return h->status->make(h, code, text.data(), text.size(), nullptr);
}

Member& Of(void* member) { return *static_cast<Member*>(member); }

tw_status* Join(const tw_host* h, void*, const tw_member_config* c, int64_t deadline, void** out_member) {
  return Guarded(h, [&] { *out_member = new Member(h, *c, deadline); });
}

void Leave(const tw_host*, void* member) { delete static_cast<Member*>(member); }

tw_status* Put(const tw_host* h, void* member, const tw_put* p, uint64_t* out_revision) {
  return Guarded(h, [&] {
    const std::string_view value(static_cast<const char*>(p->value), size_t(p->bytes));
    const uint64_t at = Of(member).Put({p->key, size_t(p->key_len)}, value, p->mine != 0, p->expected, p->deadline);
    if (out_revision) *out_revision = at;
  });
}

tw_status* Get(const tw_host* h, void* member, const char* key, uint64_t key_len, int64_t deadline, tw_sink* to, uint64_t* out_revision) {
  tw_status* written = nullptr;
  tw_status* s = Guarded(h, [&] {
    const std::string value = Of(member).Get({key, size_t(key_len)}, deadline, out_revision);
    written = to->put(to, value.data(), value.size());
  });
  return s ? s : written;
}

tw_status* Remove(const tw_host* h, void* member, const char* key, uint64_t key_len, uint64_t expected, int64_t deadline) {
  return Guarded(h, [&] { Of(member).Remove({key, size_t(key_len)}, expected, deadline); });
}

tw_status* AddWatch(const tw_host* h, void* member, const char* prefix, uint64_t len, void (*change)(void* arg, const tw_change* c),
                    void* arg, void** out_watch) {
  return Guarded(h, [&] { *out_watch = Of(member).AddWatch({prefix, size_t(len)}, change, arg); });
}

void EndWatch(const tw_host*, void* watch) {
  auto* w = static_cast<Watch*>(watch);
  w->member()->EndWatch(w);
}

tw_status* Init(const tw_host*, tw_registrar* r, void**) {
  tw_membership_def d = {};
  d.size = sizeof d;
  d.scheme = "etcd";
  d.scheme_len = 4;
  d.join = Join;
  d.leave = Leave;
  d.put = Put;
  d.get = Get;
  d.remove = Remove;
  d.watch = AddWatch;
  d.unwatch = EndWatch;
  return tw_add_membership(r, &d);
}

}  // namespace

TW_PLUGIN("org.thalweg.etcd", "0.1.0", Init)
