// The transport `ucx` alone, without sessions: a process answers each call with a body, as a
// parameter server answers a request for a large value.
// usage: ucx_worker THREADS
#include <signal.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <sys/prctl.h>

#include "framework/registry/role.h"
#include "framework/runtime/runtime.h"

extern "C" {
#include "worker.h"
}

namespace thalweg {
namespace {

constexpr uint64_t kMost = uint64_t{64} << 20;

std::string TextOf(const Status& s) { return std::string(s.message()); }

// An endpoint, with UCX's shared memory or, if `tcp`, without it.
class End {
 public:
  explicit End(bool tcp) : body_(kMost, 'x') {
    RuntimeOptions options;
    options.threads = 1;
    options.disabled_plugins = {"*opencl*", "*libucx.so"};
    options.plugin_settings["plugin.org.thalweg.ucx.shared_memory"] = tcp ? "0" : "1";
    auto runtime = Runtime::Create(options);
    if (!runtime.ok()) worker_fail("%s", TextOf(runtime.status()).c_str());
    runtime_ = *std::move(runtime);
    if (const Status s = runtime_->LoadPlugin(UCX_TRANSPORT); !s.ok()) worker_fail("%s", TextOf(s).c_str());
    role_ = runtime_->registry().RolesOf<TransportRole>("ucx").at(0);
    const std::string at = tcp ? "127.0.0.1:0" : "";
    tw_sink bound = {TW_SIZED(tw_sink), &address, [](tw_sink* s, const void* bytes, uint64_t n) -> tw_status* {
                       static_cast<std::string*>(s->user)->append(static_cast<const char*>(bytes), n);
                       return nullptr;
                     }};
    tw_endpoint_config c = {TW_SIZED(tw_endpoint_config), at.data(), at.size(), nullptr, 0, kMost, this, PlaceRequest, Serve, Gone};
    c.flags = tcp ? uint32_t{TW_ENDPOINT_OPEN} : 0;
    if (const Status s = FromC(role_->def.listen(role_->host, role_->def.user, &c, &bound, &endpoint_)); !s.ok())
      worker_fail("%s", TextOf(s).c_str());
  }

  void Connect(const std::string& to) {
    if (const Status s = FromC(role_->def.connect(role_->host, endpoint_, to.data(), to.size(), &peer_)); !s.ok())
      worker_fail("%s", TextOf(s).c_str());
  }

  // Calls the peer, which answers with so many bytes, and waits.
  void Ask(uint64_t bytes) {
    over_ = false;
    const tw_message m = {TW_SIZED(tw_message), &bytes, sizeof bytes, nullptr, 0, nullptr, this, PlaceAnswer, Done};
    if (const Status s = FromC(role_->def.call(role_->host, peer_, ++calls_, &m)); !s.ok()) worker_fail("%s", TextOf(s).c_str());
    const auto over = [](void* arg) -> uint32_t {
      auto* e = static_cast<End*>(arg);
      std::lock_guard l(e->mu_);
      return e->over_;
    };
    while (!over(this)) {
      if (role_->def.poll && role_->def.poll(role_->host, endpoint_, 1'000'000'000, over, this)) continue;
      std::unique_lock l(mu_);
      changed_.wait(l, [&] { return over_; });
    }
    if (!how_.ok()) worker_fail("a call failed: %s", TextOf(how_).c_str());
    if (bytes != arrived_) worker_fail("%llu bytes came", static_cast<unsigned long long>(arrived_));
  }

  std::string address;

 private:
  static void PlaceRequest(void*, const tw_incoming*, tw_placing*) {}
  static void Serve(void* arg, const tw_incoming* request) {
    auto* e = static_cast<End*>(arg);
    uint64_t bytes = 0;
    if (request->head_bytes == sizeof bytes) std::memcpy(&bytes, request->head, sizeof bytes);
    const tw_message m = {
        TW_SIZED(tw_message), "", 0, e->body_.data(), bytes <= kMost ? bytes : 0, nullptr, nullptr, nullptr, [](void*, tw_status* s) {
          (void)FromC(s);
        }};
    e->role_->def.answer(e->role_->host, request->self, &m);
  }
  static void Gone(void*, uint64_t) {}
  static void PlaceAnswer(void* arg, const tw_incoming* m, tw_placing* to) {
    auto* e = static_cast<End*>(arg);
    e->arrived_ = m->bytes;
    if (m->bytes > 0 && m->bytes <= kMost) tw_put_place(to, e->body_.data());
  }
  static void Done(void* arg, tw_status* s) {
    auto* e = static_cast<End*>(arg);
    std::lock_guard l(e->mu_);
    e->how_ = FromC(s);
    e->over_ = true;
    e->changed_.notify_all();
  }

  std::vector<char> body_;
  std::shared_ptr<Runtime> runtime_;
  std::shared_ptr<const TransportRole> role_;
  void *endpoint_ = nullptr, *peer_ = nullptr;
  uint64_t calls_ = 0, arrived_ = 0;
  std::mutex mu_;
  std::condition_variable changed_;
  bool over_ = false;
  Status how_;
};

// The servers are forked before this process has threads. Each waits until it is needed.
struct Server {
  int ask[2], answer[2];
};
Server servers[2];

void StartServers() {
  for (int tcp = 0; tcp < 2; ++tcp) {
    Server& s = servers[tcp];
    if (pipe(s.ask) != 0 || pipe(s.answer) != 0) worker_fail("no pipe");
    const pid_t pid = fork();
    if (pid < 0) worker_fail("cannot fork");
    if (pid > 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char go;
    if (read(s.ask[0], &go, 1) != 1) _exit(0);
    End end(tcp == 1);
    const std::string line = end.address + "\n";
    if (write(s.answer[1], line.data(), line.size()) != ssize_t(line.size())) _exit(1);
    for (;;) pause();
  }
}

End* EndOf(bool tcp) {
  static std::map<bool, std::unique_ptr<End>> ends;
  std::unique_ptr<End>& end = ends[tcp];
  if (end) return end.get();
  Server& s = servers[tcp];
  std::string address;
  if (write(s.ask[1], "g", 1) != 1) worker_fail("a server has ended");
  for (char c; read(s.answer[0], &c, 1) == 1 && c != '\n';) address += c;
  if (address.empty()) worker_fail("a server did not come up");
  end = std::make_unique<End>(tcp);
  end->Connect(address);
  return end.get();
}

// "shm|tcp BYTES SAMPLES".
void AnswerCall(const char* argument) {
  char way[8];
  int samples;
  static std::pair<End*, uint64_t> what;
  long long bytes;
  if (std::sscanf(argument, "%7s %lld %d", way, &bytes, &samples) != 3) worker_fail("shm|tcp BYTES SAMPLES");
  what = {EndOf(std::strcmp(way, "tcp") == 0), uint64_t(bytes)};
  worker_reply_time([](void*) { what.first->Ask(what.second); }, nullptr, samples, 1, 1);
}

}  // namespace
}  // namespace thalweg

int main() {
  static const worker_command commands[] = {{"call", thalweg::AnswerCall}, {nullptr, nullptr}};
  thalweg::StartServers();
  worker_serve(commands);
  _exit(0);
}
