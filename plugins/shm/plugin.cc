// The collective engine "shm": members of one host, over shared memory.
#include "../common/collective_engine.h"
#include "group.h"

namespace {

namespace shm = thalweg::shm;

struct ShmEngine {
  using Member = shm::Group;
  static Member* Create(const tw_host* h, void*, const tw_group_config& c) { return new Member(h, c, shm::SettingsOf(h)); }
  static void Destroy(Member* m) {
    if (!m->forked()) delete m;  // in the child of a fork, its memory stays, because its thread is the parent's
  }
};

tw_status* Init(const tw_host*, tw_registrar* r, void**) { return thalweg::common::AddEngine<ShmEngine>(r, "shm", nullptr); }

}  // namespace

TW_PLUGIN("org.thalweg.shm", "0.1.0", Init)
