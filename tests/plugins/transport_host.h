// A host's end of a transport: an endpoint of a runtime with a mailbox, and the results of its
// calls.
// Threads: any.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "framework/base/strings.h"
#include "framework/runtime/runtime.h"
#include "tests/plugins/mailbox.h"

namespace thalweg {

using Bytes = std::vector<char>;

inline tw_status* Append(tw_sink* s, const void* bytes, uint64_t n) {
  static_cast<std::string*>(s->user)->append(static_cast<const char*>(bytes), n);
  return nullptr;
}

// A call in progress.
struct Call : Delivery {
  std::string question;
  Bytes body;
  uint64_t id = 0;
};
using Calls = std::vector<std::shared_ptr<Call>>;

// An endpoint of a runtime with a mailbox, and its peers by address. The first letter of a
// request's head selects the action: r requests a message from the mailbox, a aborts a step, e
// echoes the request, k keeps the request, n provides no memory for the body.
class Host {
 public:
  explicit Host(std::shared_ptr<Runtime> runtime, std::string_view at = "", const char* scheme = "unix", std::string_view credential = "",
                uint32_t flags = 0)
      : runtime_(std::move(runtime)) {
    auto roles = runtime_->registry().RolesOf<TransportRole>(scheme);
    EXPECT_EQ(roles.size(), 1u);
    role_ = roles[0];
    mailbox_ = std::make_unique<Mailbox>(*role_);
    tw_sink sink = {TW_SIZED(tw_sink), &address, Append};
    tw_endpoint_config c = {
        TW_SIZED(tw_endpoint_config), at.data(), at.size(), credential.data(), credential.size(), 0, this, Place, Serve, Gone};
    c.flags = flags;
    opened = FromC(role_->def.listen(role_->host, role_->def.user, &c, &sink, &endpoint_));
  }
  ~Host() { Close(); }
  void Close() {
    if (endpoint_) role_->def.close(role_->host, endpoint_);
    endpoint_ = nullptr;
    std::lock_guard lock(mu_);
    EXPECT_TRUE(bodies_.empty() && kept_.empty());
    for (auto& c : made_) EXPECT_TRUE(c->over());
  }
  Status Connect(const std::string& to) {
    void* peer = nullptr;
    RETURN_IF_ERROR(FromC(role_->def.connect(role_->host, endpoint_, to.data(), to.size(), &peer)));
    peers_[to] = peer;
    return Status();
  }
  void ClosePeer(const std::string& to) {
    role_->def.close_peer(role_->host, peers_.at(to));
    peers_.erase(to);
  }
  std::shared_ptr<Call> Ask(const std::string& to, std::string_view head, Bytes body = {}, bool wanted = true) {
    auto c = std::make_shared<Call>();
    c->question = head;
    c->body = std::move(body);
    c->wanted = wanted;
    c->id = ++ids_;
    {
      std::lock_guard lock(mu_);
      made_.push_back(c);
    }
    tw_message m = {TW_SIZED(tw_message),
                    c->question.data(),
                    c->question.size(),
                    c->body.data(),
                    c->body.size(),
                    nullptr,
                    static_cast<Delivery*>(c.get()),
                    Delivery::Place,
                    Delivery::Done};
    Status s = FromC(role_->def.call(role_->host, peers_.at(to), c->id, &m));
    if (!s.ok()) c->End(s);
    return c;
  }
  void Cancel(const std::string& to, const Call& c) { role_->def.cancel(role_->host, peers_.at(to), c.id); }
  // Returns the answer's head, or the error of the call.
  std::string Answer(const std::string& to, std::string_view head) {
    auto c = Ask(to, head);
    Status s = c->Wait();
    return s.ok() ? c->head : s.ToString();
  }
  std::shared_ptr<Delivery> Send(uint64_t step, const std::string& key, Bytes bytes, std::string_view head = "") {
    auto d = std::make_shared<Delivery>();
    d->bytes = std::move(bytes);
    d->head = head;
    {
      std::lock_guard lock(mu_);
      sent_.push_back(d);
    }
    mailbox_->Send({step, key}, d.get());
    return d;
  }
  std::shared_ptr<Call> Receive(const std::string& from, uint64_t step, const std::string& key) {
    return Ask(from, Mailbox::Ask({step, key}));
  }
  // Aborts the step here and at a peer.
  void Abort(uint64_t step, const std::string& why, const std::string& peer) {
    mailbox_->Abort(step, absl::AbortedError(why));
    (void)Ask(peer, "a" + Mailbox::Ask({step, why}))->Wait();
  }
  // Answers the kept requests.
  void Release() {
    std::vector<const tw_incoming*> calls;
    {
      std::lock_guard lock(mu_);
      for (auto& [id, c] : kept_) calls.push_back(c);
      kept_.clear();
    }
    for (const tw_incoming* c : calls) Reply(c, "late");
  }
  // Lends this thread to the endpoint; see tw_transport_def.
  uint32_t Poll(uint64_t ns, uint32_t (*over)(void* arg), void* arg) { return role_->def.poll(role_->host, endpoint_, ns, over, arg); }
  void Wake() { role_->def.wake(role_->host, endpoint_); }
  size_t kept() {
    std::lock_guard lock(mu_);
    return kept_.size();
  }

  std::string address;
  Status opened;
  std::atomic<int> gone{0};

 private:
  static void Place(void* arg, const tw_incoming* m, tw_placing* to) {
    auto* h = static_cast<Host*>(arg);
    if (m->bytes == 0 || *static_cast<const char*>(m->head) == 'n') return;
    std::lock_guard lock(h->mu_);
    Bytes& b = h->bodies_[m->id];
    b.resize(m->bytes);
    tw_put_place(to, b.data());
  }
  static void Serve(void* arg, const tw_incoming* c) {
    auto* h = static_cast<Host*>(arg);
    const std::string head(static_cast<const char*>(c->head), c->head_bytes);
    if (head[0] == 'r') return h->mailbox_->Serve(c);
    if (head[0] == 'k') {
      std::lock_guard lock(h->mu_);
      h->kept_[c->id] = c;
      return;
    }
    if (head[0] == 'a') {
      const auto [step, why] = Mailbox::Asked(head.substr(1));
      h->mailbox_->Abort(step, absl::AbortedError(why));
    }
    h->Reply(c, head[0] == 'p' ? std::string(c->peer, c->peer_len) : head[0] == 'n' ? StrCat(c->bytes, c->body != nullptr) : head);
  }
  static void Gone(void* arg, uint64_t id) {
    auto* h = static_cast<Host*>(arg);
    ++h->gone;
    h->mailbox_->Gone(id);
    const tw_incoming* kept = nullptr;
    {
      std::lock_guard lock(h->mu_);
      if (h->kept_.count(id)) kept = h->kept_[id];
      h->kept_.erase(id);
      if (!kept) h->bodies_.erase(id);  // not served, or already answered: `done` then finds nothing to free
    }
    if (kept) h->Reply(kept, "nobody waits");
  }
  struct Reply_ {
    Host* host;
    uint64_t id;
    Bytes body;
  };
  void Reply(const tw_incoming* c, const std::string& head) {
    auto* r = new Reply_{this, c->id, {}};
    {
      std::lock_guard lock(mu_);
      if (auto it = bodies_.find(c->id); it != bodies_.end()) r->body = std::move(it->second), bodies_.erase(it);
    }
    auto done = [](void* arg, tw_status* s) {
      (void)FromC(s);
      delete static_cast<Reply_*>(arg);
    };
    tw_message m = {TW_SIZED(tw_message), head.data(), head.size(), r->body.data(), r->body.size(), nullptr, r, nullptr, done};
    role_->def.answer(role_->host, c->self, &m);
  }
  std::shared_ptr<Runtime> runtime_;
  std::shared_ptr<const TransportRole> role_;
  std::unique_ptr<Mailbox> mailbox_;
  void* endpoint_ = nullptr;
  std::map<std::string, void*> peers_;
  std::atomic<uint64_t> ids_{0};
  std::mutex mu_;
  Calls made_;
  std::vector<std::shared_ptr<Delivery>> sent_;
  std::map<uint64_t, Bytes> bodies_;
  std::map<uint64_t, const tw_incoming*> kept_;
};

}  // namespace thalweg
