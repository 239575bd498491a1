// Level 5: transports, between two endpoints of one process and with a process that is killed.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <thread>

#include <sys/wait.h>

#include "tools/conformance/endpoint.h"
#include "tools/conformance/levels.h"

namespace thalweg::conformance {
namespace {

using Code = absl::StatusCode;
using std::chrono::milliseconds;

constexpr int64_t kMs = 1000000;

// Two endpoints that know each other. Peers go first.
struct Pair {
  std::unique_ptr<Endpoint> a, b;
  std::unique_ptr<Peer> to_b, to_a;  // a's of b, b's of a
};
StatusOr<Pair> Meet(const TransportRole& role, uint64_t window = 0) {
  Pair p;
  ASSIGN_OR_RETURN(p.a, Endpoint::Listen(role, window));
  ASSIGN_OR_RETURN(p.b, Endpoint::Listen(role, window));
  ASSIGN_OR_RETURN(p.to_b, p.a->Connect(p.b->address()));
  ASSIGN_OR_RETURN(p.to_a, p.b->Connect(p.a->address()));
  return p;
}

Outcome Wants(const Status& s, Code code, std::string_view what) {
  if (s.code() == code) return {};
  return Fail(what, ": ", s.ok() ? "no error" : s.ToString(), " instead of ", absl::StatusCodeToString(code));
}

Outcome Arrived(const Parcel& got, const Parcel& sent, std::string_view what) {
  if (!got.Over()) return Fail(what, " did not arrive within ", kSoon.count(), " ms");
  if (!got.how().ok()) return Fail(what, ": ", Message(got.how()));
  if (std::string s = Difference(got.head, sent.head); !s.empty()) return Fail("the head of ", what, ": ", s);
  if (std::string s = Difference(got.data, sent.data); !s.empty()) return Fail(what, ": ", s);
  if (!sent.Over()) return Fail("the sender of ", what, " was never told that it is over");
  return sent.how();
}

Outcome SaysWhereItIs(const TransportRole& role) {
  ASSIGN_OR_RETURN(auto a, Endpoint::Listen(role));
  ASSIGN_OR_RETURN(auto b, Endpoint::Listen(role));
  if (a->address().empty()) return Fail("nothing went to `bound`");
  if (a->address() == b->address()) return Fail("two endpoints have one address, '", a->address(), "'");
  return {};
}

Outcome FindsNobody(const TransportRole& role) {
  ASSIGN_OR_RETURN(auto a, Endpoint::Listen(role));
  std::string address;
  {
    ASSIGN_OR_RETURN(auto gone, Endpoint::Listen(role));
    address = gone->address();
  }
  void* handle = nullptr;
  Status s = a->ConnectOnce(address, &handle);
  if (!s.ok()) return Wants(s, Code::kUnavailable, "connecting to nobody");
  Peer peer(a.get(), handle);
  Answer answer;
  s = peer.Call("echo", {}, a->now() + 3000 * kMs, &answer);
  if (!s.ok()) return Wants(s, Code::kUnavailable, "calling nobody");
  if (!answer.Wait()) return Fail("a call to nobody was never answered");
  return Wants(answer.status, Code::kUnavailable, "calling nobody");
}

Outcome Delivers(const TransportRole& role) {
  ASSIGN_OR_RETURN(Pair p, Meet(role));
  constexpr uint32_t kMessages = 60;
  std::deque<Parcel> sent(kMessages), got(kMessages);
  auto key = [](uint32_t i) { return StrCat("key ", i % 20); };
  auto step = [](uint32_t i) { return uint64_t{1} + i / 20; };
  for (uint32_t i = 0; i < kMessages; ++i) sent[i].data = Pattern(100 + i, i);
  for (uint32_t i = 0; i < kMessages; i += 2) RETURN_IF_ERROR(p.to_a->Receive(step(i), key(i), &got[i]));
  for (uint32_t i = kMessages; i-- > 0;) RETURN_IF_ERROR(p.to_b->Send(step(i), key(i), &sent[i]));
  std::this_thread::sleep_for(kAWhile);
  for (uint32_t i = 1; i < kMessages; i += 2) RETURN_IF_ERROR(p.to_a->Receive(step(i), key(i), &got[i]));
  for (uint32_t i = 0; i < kMessages; ++i) RETURN_UNLESS_PASSED(Arrived(got[i], sent[i], StrCat("message ", key(i), " of step ", step(i))));
  return {};
}

Outcome CarriesAllSizes(const TransportRole& role, bool full) {
  ASSIGN_OR_RETURN(Pair p, Meet(role));
  std::vector<uint64_t> sizes = {0, 1, 4096, 70001, 8 << 20};
  if (full) sizes.push_back(256 << 20);
  for (uint64_t bytes : sizes) {
    for (uint64_t head : {0, 40, 4096}) {
      Parcel sent, got;
      sent.data = Pattern(bytes, 1);
      sent.head = Pattern(head, 2);
      RETURN_IF_ERROR(p.to_a->Receive(bytes, StrCat("sized", head), &got));
      RETURN_IF_ERROR(p.to_b->Send(bytes, StrCat("sized", head), &sent));
      RETURN_UNLESS_PASSED(Arrived(got, sent, StrCat("a message of ", bytes, " bytes and a head of ", head)));
    }
  }
  return {};
}

// Far more is sent than the window takes, and nobody asks for it.
Outcome HoldsTheWindow(const TransportRole& role) {
  constexpr uint64_t kWindow = 1 << 20, kEach = 1 << 20, kMost = 32 << 20;  // kMost: with all buffers on the way
  constexpr uint32_t kMessages = 64;
  ASSIGN_OR_RETURN(Pair p, Meet(role, kWindow));
  std::deque<Parcel> sent(kMessages), got(kMessages);
  for (uint32_t i = 0; i < kMessages; ++i) {
    sent[i].data = Pattern(kEach, i);
    RETURN_IF_ERROR(p.to_b->Send(1, StrCat("unasked", i), &sent[i]));
  }
  std::this_thread::sleep_for(5 * kAWhile);
  uint64_t taken = 0;
  for (const Parcel& s : sent) {
    if (!s.how().ok()) return Fail("a message that nobody asked for yet failed: ", Message(s.how()));
    if (s.line->value() >= 1) taken += kEach;
  }
  if (taken > kMost) return Fail(taken, " bytes were taken from the sender, with a window of ", kWindow, " and nobody who asks for them");
  for (uint32_t i = 0; i < kMessages; ++i) RETURN_IF_ERROR(p.to_a->Receive(1, StrCat("unasked", i), &got[i]));
  for (uint32_t i = 0; i < kMessages; ++i) RETURN_UNLESS_PASSED(Arrived(got[i], sent[i], StrCat("message ", i, ", beyond the window")));
  return {};
}

Outcome EndsReceives(const TransportRole& role) {
  ASSIGN_OR_RETURN(Pair p, Meet(role));
  Parcel got;
  const int64_t deadline = p.b->now() + 60 * kMs;
  RETURN_IF_ERROR(p.to_a->Receive(1, "never sent", &got, deadline));
  if (!got.Over()) return Fail("it waits on");
  if (p.b->now() < deadline) return Fail("it ended ", (deadline - p.b->now()) / kMs, " ms before its deadline");
  RETURN_UNLESS_PASSED(Wants(got.how(), Code::kDeadlineExceeded, "a receive past its deadline"));
  Parcel sent, next;  // the peer is none the worse for it
  sent.data = Pattern(10, 1);
  RETURN_IF_ERROR(p.to_a->Receive(2, "sent", &next));
  RETURN_IF_ERROR(p.to_b->Send(2, "sent", &sent));
  return Arrived(next, sent, "the next message");
}

Outcome AbortsSteps(const TransportRole& role) {
  ASSIGN_OR_RETURN(Pair p, Meet(role));
  Parcel here, there, other, later, sent;
  RETURN_IF_ERROR(p.to_b->Receive(7, "k", &here));
  RETURN_IF_ERROR(p.to_a->Receive(7, "k", &there));
  RETURN_IF_ERROR(p.to_a->Receive(8, "k", &other));
  p.a->Abort(7, Error(Code::kAborted, "the kit aborts the step"));
  if (!here.Over() || here.how().ok()) return Fail("a receive of the step goes on where it was aborted");
  if (!there.Over() || there.how().ok()) return Fail("a receive of the step goes on at the peer");
  Status s = p.to_b->Receive(7, "later", &later);
  if (s.ok() && (!later.Over() || later.how().ok())) return Fail("a later receive of the step waits");
  sent.data = Pattern(10, 1);
  RETURN_IF_ERROR(p.to_b->Send(8, "k", &sent));
  return Arrived(other, sent, "a message of another step");
}

// ---- a peer that is lost ----

// This very program as another process, with an endpoint of its own; see ServePeer.
class Stranger {
 public:
  static StatusOr<std::unique_ptr<Stranger>> Start(const std::string& file, const std::string& scheme) {
    int ends[2];
    if (pipe(ends) != 0) return Internal("no pipe");
    const pid_t child = fork();
    if (child == 0) {
      dup2(ends[1], 1);
      execl("/proc/self/exe", "thalweg-conformance", "--serve-peer", file.c_str(), scheme.c_str(), nullptr);
      _exit(127);
    }
    close(ends[1]);
    std::unique_ptr<Stranger> s(new Stranger(child));
    for (char c; read(ends[0], &c, 1) == 1 && c != '\n';) s->address += c;
    close(ends[0]);
    if (s->address.empty()) return Internal("the other process did not come up");
    return s;
  }
  ~Stranger() { Kill(); }
  void Kill() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    child_ = 0;
  }
  std::string address;

 private:
  explicit Stranger(pid_t child) : child_(child) {}
  pid_t child_;
};

Outcome NoticesLoss(const std::string& file, const TransportRole& role) {
  ASSIGN_OR_RETURN(auto stranger, Stranger::Start(file, role.name));
  ASSIGN_OR_RETURN(auto a, Endpoint::Listen(role));
  ASSIGN_OR_RETURN(auto peer, a->Connect(stranger->address));
  Answer echo, kept;
  RETURN_IF_ERROR(peer->Call("echo", Pattern(9, 1), 0, &echo));
  if (!echo.Wait()) return Fail("a call between two processes was not answered");
  RETURN_IF_ERROR(echo.status);
  Parcel got;
  RETURN_IF_ERROR(peer->Receive(1, "k", &got));
  RETURN_IF_ERROR(peer->Call("keep", {}, 0, &kept));
  std::this_thread::sleep_for(kAWhile);
  stranger->Kill();
  if (!kept.Wait()) return Fail("a call to a process that was killed waits on");
  RETURN_UNLESS_PASSED(Wants(kept.status, Code::kUnavailable, "a call to a process that was killed"));
  if (!got.Over()) return Fail("a receive from a process that was killed waits on");
  return Wants(got.how(), Code::kUnavailable, "a receive from a process that was killed");
}

// ---- calls ----

Outcome AnswersCalls(const TransportRole& role, bool full) {
  ASSIGN_OR_RETURN(Pair p, Meet(role));
  constexpr size_t kThreads = 4;
  const size_t each = full ? 5000 : 250;
  std::vector<std::string> wrong(kThreads);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < each && wrong[t].empty(); ++i) {
        const bool refused = i % 10 == 9;
        const Bytes request = Pattern(i % 300, uint32_t(t * 10000 + i));
        auto* a = new Answer;  // stays, for a second answer to be noticed rather than to crash
        Status s = p.to_b->Call(refused ? "refuse" : "echo", request, 0, a);
        if (s.ok() && !a->Wait()) s = Internal("no answer came");
        if (s.ok() && refused)
          s = a->status.code() == Code::kNotFound ? Status() : Internal("an error came back as ", a->status.ToString());
        else if (s.ok())
          s = a->status;
        if (s.ok() && !refused) wrong[t] = Difference(a->body, request);
        if (!s.ok()) wrong[t] = StrCat("call ", i, ": ", Message(s));
        if (a->times != 1 && s.ok()) wrong[t] = StrCat("call ", i, " was answered ", a->times, " times");
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::string& w : wrong) {
    if (!w.empty()) return Fail(w);
  }
  return {};
}

Outcome EndsCalls(const TransportRole& role) {
  auto answer = std::make_unique<Answer>();
  ASSIGN_OR_RETURN(Pair p, Meet(role));
  const int64_t deadline = p.a->now() + 60 * kMs;
  RETURN_IF_ERROR(p.to_b->Call("keep", Pattern(3, 1), deadline, answer.get()));
  if (!answer->Wait()) return Fail("it waits on");
  if (p.a->now() < deadline) return Fail("it ended before its deadline");
  RETURN_UNLESS_PASSED(Wants(answer->status, Code::kDeadlineExceeded, "a call past its deadline"));
  return answer->times == 1 ? Outcome() : Fail("it was answered ", answer->times, " times");
}

Outcome ClosesPeers(const TransportRole& role) {
  auto answer = std::make_unique<Answer>();
  ASSIGN_OR_RETURN(Pair p, Meet(role));
  Parcel got;
  RETURN_IF_ERROR(p.to_b->Receive(1, "k", &got));
  RETURN_IF_ERROR(p.to_b->Call("keep", {}, 0, answer.get()));
  p.to_b->Close();
  if (got.line->value() < 1) return Fail("close_peer returned while a receive was under way");
  RETURN_UNLESS_PASSED(Wants(got.how(), Code::kCancelled, "a receive whose peer was closed"));
  if (answer->times != 1) return Fail("close_peer returned, and a call was answered ", answer->times, " times");
  return Wants(answer->status, Code::kCancelled, "a call whose peer was closed");
}

Outcome AcceptsRefusals(const TransportRole& role) {
  ASSIGN_OR_RETURN(Pair p, Meet(role));
  Parcel refused, sent, next, fine;
  refused.refuse = true;
  sent.data = Pattern(70000, 1);
  fine.data = Pattern(300, 2);
  RETURN_IF_ERROR(p.to_a->Receive(1, "refused", &refused));
  RETURN_IF_ERROR(p.to_b->Send(1, "refused", &sent));
  if (!refused.Over()) return Fail("the receive waits on");
  RETURN_UNLESS_PASSED(Wants(refused.how(), Code::kFailedPrecondition, "a receive whose place refused"));
  if (!sent.Over()) return Fail("the sender waits on");
  RETURN_IF_ERROR(p.to_a->Receive(1, "fine", &next));
  RETURN_IF_ERROR(p.to_b->Send(1, "fine", &fine));
  return Arrived(next, fine, "the next message");
}

}  // namespace

void CheckTransports(Run& run, World& world) {
  const bool full = run.options().full;
  if (!world.play().name.empty() && !full) return;
  for (const auto& role : world.registry().RolesOf<TransportRole>()) {
    if (role->plugin != world.id()) continue;
    const std::string& name = role->name;
    run.Check(501, name, [&] { return SaysWhereItIs(*role); });
    run.Check(502, name, [&] { return FindsNobody(*role); });
    run.Check(503, name, [&] { return Delivers(*role); });
    run.Check(504, name, [&] { return CarriesAllSizes(*role, full); });
    run.Check(505, name, [&] { return HoldsTheWindow(*role); });
    run.Check(506, name, [&] { return EndsReceives(*role); });
    run.Check(507, name, [&] { return AbortsSteps(*role); });
    run.Check(508, name, [&] { return NoticesLoss(run.options().file, *role); });
    run.Check(509, name, [&] { return AnswersCalls(*role, full); });
    run.Check(510, name, [&] { return EndsCalls(*role); });
    run.Check(511, name, [&] { return ClosesPeers(*role); });
    run.Check(512, name, [&] { return AcceptsRefusals(*role); });
  }
}

int ServePeer(const std::string& file, const std::string& scheme) {
  auto library = Library::Open(file);
  if (!library.ok()) return 1;
  auto world = World::Make(**library, Play());
  if (!world.ok()) return 1;
  for (const auto& role : (*world)->registry().RolesOf<TransportRole>(scheme)) {
    auto endpoint = Endpoint::Listen(*role);
    if (!endpoint.ok()) return 1;
    const std::string line = (*endpoint)->address() + "\n";
    if (write(1, line.data(), line.size()) != ssize_t(line.size())) return 1;
    for (;;) pause();
  }
  return 1;
}

}  // namespace thalweg::conformance
