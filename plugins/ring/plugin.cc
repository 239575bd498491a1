// The collective engines "ring" and "levels": members of several hosts, over TCP.
#include <memory>

#include "../common/collective_engine.h"
#include "level_group.h"
#include "on_demand.h"

namespace {

namespace common = thalweg::common;
namespace ring = thalweg::ring;

// The hub of a runtime exists while there are groups.
using SharedHub = ring::OnDemand<ring::Hub>;

std::shared_ptr<ring::Hub> HubOf(SharedHub* shared, const tw_host* h) {
  return shared->Get([h] { return std::make_shared<ring::Hub>(h, ring::SettingsOf(h)); });
}

// An engine whose groups use the hub.
template <class Group>
struct HubEngine {
  class Member {
   public:
    Member(const tw_host* h, SharedHub* shared, const tw_group_config& c) : shared_(shared) {
      try {
        group_ = std::make_unique<Group>(HubOf(shared, h), c);
      } catch (...) {
        shared->Release();
        throw;
      }
      shared->Release();  // members on one host need no hub
    }
    ~Member() {
      group_.reset();
      shared_->Release();
    }
    bool forked() const { return group_->forked(); }
    void Start(common::Operation operation, const tw_collective_call& c) { group_->Start(operation, c); }
    void Abort(const tw_status* why) { group_->Abort(why); }

   private:
    SharedHub* const shared_;
    std::unique_ptr<Group> group_;
  };

  static Member* Create(const tw_host* h, void* user, const tw_group_config& c) { return new Member(h, static_cast<SharedHub*>(user), c); }
  static void Destroy(Member* m) {
    if (!m->forked()) delete m;  // in the child of a fork, its memory stays, because its sockets are the parent's
  }
};

tw_status* Init(const tw_host* h, tw_registrar* r, void** out_instance) {
  return tw::guard(h, [&] {
    auto shared = std::make_unique<SharedHub>();
    tw::check(common::AddEngine<HubEngine<ring::Group>>(r, "ring", shared.get()));
    tw::check(common::AddEngine<HubEngine<ring::LevelGroup>>(r, "levels", shared.get()));
    *out_instance = shared.release();
  });
}

void Shutdown(const tw_host*, void* instance) { delete static_cast<SharedHub*>(instance); }

}  // namespace

TW_PLUGIN_WITH("org.thalweg.ring", "0.1.0", Init, Shutdown)
