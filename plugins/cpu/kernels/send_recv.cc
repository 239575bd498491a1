// _Send and _Recv: send values to another process and receive values from one. Neither holds a
// thread.
#include "kernels/register.h"
#include "thalweg/plugin/rendezvous.h"

namespace thalweg::cpu {
namespace {

class Meeting {
 public:
  explicit Meeting(const tw::Node& n)
      : set_(static_cast<const tw_rendezvous_api*>(n.host()->query(n.host(), TW_S(TW_RENDEZVOUS_SET), 1))), key_(n.s("tensor_name")) {
    if (!set_) throw tw::Error{TW_UNIMPLEMENTED, "this runtime has no rendezvous"};
  }

 protected:
  const tw_rendezvous_api* set_;
  std::string key_;
};

class Send : Meeting {
 public:
  using Meeting::Meeting;
  void operator()(tw::Frame f, tw::In<tw::Any>) const {
    tw_tensor* value = nullptr;
    tw::check(f.f->host->tensor->keep(f.f, 0, &value));
    tw::check(set_->send(f.f, key_.data(), key_.size(), value));
  }
};

class Recv : Meeting {
 public:
  using Meeting::Meeting;
  void operator()(tw::Frame f, tw::Out<tw::Any>) const { tw::check(set_->receive(f.f, key_.data(), key_.size(), 0)); }
};

}  // namespace

void register_send_recv(tw::Plugin& p) {
  p.kernel<Send>("_Send @CPU; keep tensor");
  p.kernel<Recv>("_Recv @CPU; async; gives tensor");
}

}  // namespace thalweg::cpu
