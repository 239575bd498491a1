// Level 5: transports, between two endpoints of one process, and with a process that is killed.
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

// Two endpoints; a calls b. The parcels of calls must outlive it.
struct Pair {
  std::unique_ptr<Endpoint> a, b;
  std::unique_ptr<Peer> to_b;
};
StatusOr<Pair> Meet(const TransportRole& role) {
  Pair p;
  ASSIGN_OR_RETURN(p.a, Endpoint::Listen(role));
  ASSIGN_OR_RETURN(p.b, Endpoint::Listen(role));
  ASSIGN_OR_RETURN(p.to_b, p.a->Connect(p.b->address()));
  return p;
}

Outcome Wants(const Status& s, Code code, std::string_view what) {
  if (s.code() == code) return {};
  return Fail(what, ": ", s.ok() ? "no error" : s.ToString(), " instead of ", absl::StatusCodeToString(code));
}
Outcome Ended(Parcel& p, Code code, std::string_view what) {
  if (!p.done.Reaches(1)) return Fail(what, " waits on");
  RETURN_UNLESS_PASSED(Wants(p.how, code, what));
  return p.done.count() == 1 ? Outcome() : Fail(what, " was done ", p.done.count(), " times");
}

Bytes Head(char kind, uint64_t bytes = 1) {
  Bytes head = Pattern(bytes, 5);
  head[0] = static_cast<unsigned char>(kind);
  return head;
}
// Checks that the answer repeats the request.
Outcome Answered(Parcel& p, std::string_view what) {
  RETURN_UNLESS_PASSED(Ended(p, Code::kOk, what));
  if (p.placed != 1) return Fail("place was called ", p.placed, " times for the answer to ", what);
  if (std::string s = Difference(p.answer_head, p.head); !s.empty()) return Fail("the head of the answer to ", what, ": ", s);
  if (std::string s = Difference(p.answer_body, p.body); !s.empty()) return Fail("the body of the answer to ", what, ": ", s);
  return {};
}
// Checks that the connection still works.
Outcome StillTalks(Peer& peer, uint64_t id) {
  Parcel p;
  p.head = Head('e');
  RETURN_IF_ERROR(peer.Call(id, &p));
  return Answered(p, "the next call");
}

Outcome SaysWhereItIs(const TransportRole& role) {
  ASSIGN_OR_RETURN(auto a, Endpoint::Listen(role));
  ASSIGN_OR_RETURN(auto b, Endpoint::Listen(role));
  if (a->address().empty()) return Fail("nothing went to `bound`");
  if (a->address() == b->address()) return Fail("two endpoints have one address, '", a->address(), "'");
  return {};
}

Outcome FindsNobody(const TransportRole& role) {
  Parcel p;
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
  p.head = Head('e');
  s = peer.Call(1, &p);
  if (!s.ok()) return Wants(s, Code::kUnavailable, "calling nobody");
  return Ended(p, Code::kUnavailable, "a call to nobody");
}

Outcome AnswersCalls(const TransportRole& role, bool full) {
  constexpr size_t kThreads = 4;
  const size_t each = full ? 5000 : 250;
  std::deque<Parcel> parcels(kThreads * each);
  std::vector<std::string> wrong(kThreads);
  ASSIGN_OR_RETURN(Pair p, Meet(role));
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = t * each; i < (t + 1) * each && wrong[t].empty(); ++i) {
        parcels[i].head = Head('e', 1 + i % 50);
        parcels[i].body = Pattern(i % 300, uint32_t(i));
        Status s = p.to_b->Call(i + 1, &parcels[i]);
        wrong[t] = s.ok() ? Answered(parcels[i], StrCat("call ", i)).why : Message(s);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::string& w : wrong) {
    if (!w.empty()) return Fail(w);
  }
  p.b->Close();
  if (p.b->finished.count() != p.b->replied.count())
    return Fail(p.b->replied.count(), " answers were done ", p.b->finished.count(), " times");
  return {};
}

Outcome CarriesAllSizes(const TransportRole& role, bool full) {
  std::deque<Parcel> parcels;
  ASSIGN_OR_RETURN(Pair p, Meet(role));
  std::vector<uint64_t> sizes = {0, 1, 4096, 70001, 8 << 20};
  if (full) sizes.push_back(256 << 20);
  for (uint64_t bytes : sizes) {
    for (uint64_t head : {1, 40, int(TW_MESSAGE_HEAD)}) {
      Parcel& parcel = parcels.emplace_back();
      parcel.head = Head('e', head);
      parcel.body = Pattern(bytes, 1);
      RETURN_IF_ERROR(p.to_b->Call(parcels.size(), &parcel));
      RETURN_UNLESS_PASSED(Answered(parcel, StrCat("a request of ", bytes, " bytes with a head of ", head)));
    }
  }
  return {};
}

Outcome AnswersInAnyOrder(const TransportRole& role) {
  constexpr uint32_t kCalls = 500;
  std::deque<Parcel> kept(kCalls);
  ASSIGN_OR_RETURN(Pair p, Meet(role));
  for (uint32_t i = 0; i < kCalls; ++i) {
    kept[i].head = Head('k', 2 + i % 9);
    kept[i].body = Pattern(i, i);
    RETURN_IF_ERROR(p.to_b->Call(i + 1, &kept[i]));
  }
  if (!p.b->kept.Reaches(kCalls)) return Fail("of ", kCalls, " requests that wait for their answers, ", p.b->kept.count(), " came");
  RETURN_UNLESS_PASSED(StillTalks(*p.to_b, 1000));
  for (Parcel& parcel : kept) {
    if (parcel.done.count()) return Fail("a call was done before it was answered");
  }
  p.b->Release();
  for (uint32_t i = 0; i < kCalls; ++i) RETURN_UNLESS_PASSED(Answered(kept[i], StrCat("call ", i)));
  return {};
}

Outcome Cancels(const TransportRole& role) {
  Parcel kept, over;
  ASSIGN_OR_RETURN(Pair p, Meet(role));
  kept.head = Head('k');
  RETURN_IF_ERROR(p.to_b->Call(1, &kept));
  if (!p.b->kept.Reaches(1)) return Fail("a request did not come");
  p.to_b->Cancel(2);  // there is no such call
  p.to_b->Cancel(1);
  RETURN_UNLESS_PASSED(Ended(kept, Code::kCancelled, "a call that was cancelled"));
  if (!p.b->gone.Reaches(1)) return Fail("the peer was not told that a call was cancelled");
  over.head = Head('e');
  RETURN_IF_ERROR(p.to_b->Call(3, &over));
  RETURN_UNLESS_PASSED(Answered(over, "a call"));
  p.to_b->Cancel(3);
  p.to_b->Cancel(1);
  RETURN_UNLESS_PASSED(StillTalks(*p.to_b, 4));
  if (kept.done.count() + over.done.count() != 2) return Fail("a call that was over was done once more when it was cancelled");
  return {};
}

// Cancels calls while any part of a body is in transit. Nothing may be written to a call's memory
// after its end.
Outcome CancelsHalfWay(const TransportRole& role) {
  constexpr uint64_t kBytes = 4 << 20;
  std::deque<Parcel> parcels(40);
  ASSIGN_OR_RETURN(Pair p, Meet(role));
  for (uint32_t i = 0; i < parcels.size(); ++i) {
    Parcel& parcel = parcels[i];
    parcel.head = Head('e');
    parcel.body = Pattern(kBytes, i);
    RETURN_IF_ERROR(p.to_b->Call(2 * i + 1, &parcel));
    std::this_thread::sleep_for(std::chrono::microseconds(i * 100));
    p.to_b->Cancel(2 * i + 1);
    if (!parcel.done.Reaches(1)) return Fail("a call that was cancelled half way waits on");
    if (!parcel.how.ok()) RETURN_UNLESS_PASSED(Wants(parcel.how, Code::kCancelled, "a call that was cancelled half way"));
    if (parcel.how.ok()) RETURN_UNLESS_PASSED(Answered(parcel, "a call"));
    parcel.answer_body.assign(parcel.answer_body.size(), 0xA5);
    RETURN_UNLESS_PASSED(StillTalks(*p.to_b, 2 * i + 2));
  }
  std::this_thread::sleep_for(kAWhile);
  for (Parcel& parcel : parcels) {
    if (parcel.done.count() != 1) return Fail("a call that was cancelled half way was done ", parcel.done.count(), " times");
    if (std::string s = Difference(parcel.answer_body, Bytes(parcel.answer_body.size(), 0xA5)); !s.empty())
      return Fail("memory of a call that was over was written to: ", s);
  }
  return {};
}

// ---- a peer that is lost ----

// Runs this program as another process with its own endpoint; see ServePeer.
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
  Parcel echo, kept, late;
  ASSIGN_OR_RETURN(auto stranger, Stranger::Start(file, role.name));
  ASSIGN_OR_RETURN(auto a, Endpoint::Listen(role));
  ASSIGN_OR_RETURN(auto peer, a->Connect(stranger->address));
  echo.head = Head('e');
  echo.body = Pattern(100000, 1);
  RETURN_IF_ERROR(peer->Call(1, &echo));
  RETURN_UNLESS_PASSED(Answered(echo, "a call between two processes"));
  kept.head = Head('k');
  RETURN_IF_ERROR(peer->Call(2, &kept));
  std::this_thread::sleep_for(kAWhile);
  stranger->Kill();
  RETURN_UNLESS_PASSED(Ended(kept, Code::kUnavailable, "a call to a process that was killed"));
  if (kept.how.message().find(stranger->address) == std::string_view::npos)
    return Fail("it is not said who was lost, '", stranger->address, "', but: ", Message(kept.how));
  late.head = Head('e');
  Status s = peer->Call(3, &late);
  return s.ok() ? Ended(late, Code::kUnavailable, "a later call") : Wants(s, Code::kUnavailable, "a later call");
}

Outcome DropsWhatIsNotWanted(const TransportRole& role) {
  Parcel refused, unwanted;
  ASSIGN_OR_RETURN(Pair p, Meet(role));
  refused.head = Head('n');
  refused.body = unwanted.body = Pattern(8 << 20, 1);
  RETURN_IF_ERROR(p.to_b->Call(1, &refused));
  RETURN_UNLESS_PASSED(Ended(refused, Code::kOk, "a request whose body nobody wanted"));
  if (refused.answer_bytes) return Fail("an empty answer came with ", refused.answer_bytes, " bytes");
  unwanted.head = Head('e');
  unwanted.wanted = false;
  RETURN_IF_ERROR(p.to_b->Call(2, &unwanted));
  RETURN_UNLESS_PASSED(Ended(unwanted, Code::kOk, "an answer whose body nobody wanted"));
  if (unwanted.answer_bytes != unwanted.body.size()) return Fail("place was told of ", unwanted.answer_bytes, " bytes");
  return StillTalks(*p.to_b, 3);
}

Outcome ClosesPeers(const TransportRole& role) {
  Parcel kept, other;
  ASSIGN_OR_RETURN(Pair p, Meet(role));
  ASSIGN_OR_RETURN(auto again, p.a->Connect(p.b->address()));
  kept.head = other.head = Head('k');
  RETURN_IF_ERROR(p.to_b->Call(1, &kept));
  RETURN_IF_ERROR(again->Call(1, &other));
  if (!p.b->kept.Reaches(2)) return Fail("requests did not come");
  p.to_b->Close();
  RETURN_UNLESS_PASSED(Ended(kept, Code::kCancelled, "a call whose peer was closed"));
  if (!p.b->gone.Reaches(1)) return Fail("the other side was not told that nobody waits");
  if (other.done.count()) return Fail("a call to another peer ended");
  p.b->Release();
  return Answered(other, "a call to another peer");
}

Outcome ClosesEndpoints(const TransportRole& role) {
  Parcel kept, mine;
  ASSIGN_OR_RETURN(Pair p, Meet(role));
  ASSIGN_OR_RETURN(auto to_a, p.b->Connect(p.a->address()));
  kept.head = mine.head = Head('k');
  RETURN_IF_ERROR(p.to_b->Call(1, &kept));
  RETURN_IF_ERROR(to_a->Call(1, &mine));
  if (!p.b->kept.Reaches(1) || !p.a->kept.Reaches(1)) return Fail("requests did not come");
  p.b->Close();
  to_a->Forget();
  if (mine.done.count() != 1) return Fail("close returned, and a call was done ", mine.done.count(), " times");
  RETURN_UNLESS_PASSED(Wants(mine.how, Code::kCancelled, "a call whose endpoint was closed"));
  if (p.b->gone.count() != 1) return Fail("close told ", p.b->gone.count(), " times that nobody waits for a request");
  if (p.b->finished.count() != 1) return Fail("close returned, and an answer was done ", p.b->finished.count(), " times");
  return Ended(kept, Code::kUnavailable, "a call to an endpoint that was closed");
}

// Hosts hold locks when they call the transport. The transport must therefore report the end of a call
// from another thread, not from inside a function that the host calls.
Outcome CallsBackFromOutside(const TransportRole& role) {
  std::deque<Parcel> parcels(60);
  ASSIGN_OR_RETURN(Pair p, Meet(role));
  for (uint32_t i = 0; i < parcels.size(); ++i) {
    parcels[i].head = Head(i % 2 ? 'e' : 'k');
    RETURN_IF_ERROR(p.to_b->Call(i + 1, &parcels[i]));
    if (i % 4 == 0) p.to_b->Cancel(i + 1);
  }
  p.to_b->Close();
  for (Parcel& parcel : parcels) {
    if (!parcel.done.Reaches(1)) return Fail("a call whose peer was closed waits on");
    if (parcel.inside) return Fail("place or done was called from inside call, cancel, answer or close_peer");
  }
  return {};
}

// ---- lent threads ----

// A transport that has no use for a lent thread returns from `poll` at once; its own threads then do
// all work.
Outcome TakesThreads(const TransportRole& role) {
  constexpr uint64_t kLong = 2 * std::chrono::nanoseconds(kSoon).count();
  constexpr uint64_t kShort = std::chrono::nanoseconds(kAWhile).count();
  struct Wait {
    std::atomic<bool> over{false};
    Counter ended;
    static uint32_t Over(void* arg) { return static_cast<Wait*>(arg)->over; }
  };
  std::deque<Parcel> parcels(200);
  Wait early, woken, timed;
  ASSIGN_OR_RETURN(Pair p, Meet(role));
  const auto poll = [&](Wait* w, uint64_t ns) {
    return std::thread([&p, w, ns] {
      p.a->Poll(ns, Wait::Over, w);
      w->ended.Add();
    });
  };
  for (uint32_t i = 0; i < parcels.size(); ++i) {
    parcels[i].head = Head('e');
    parcels[i].body = Pattern(i, i);
    RETURN_IF_ERROR(p.to_b->Call(i + 1, &parcels[i]));
    p.a->Poll(kLong, [](void* arg) -> uint32_t { return static_cast<Parcel*>(arg)->done.count() > 0; }, &parcels[i]);
    RETURN_UNLESS_PASSED(Answered(parcels[i], StrCat("call ", i, " of a thread that is lent")));
  }
  early.over = true;
  std::thread(poll(&early, kLong)).join();
  std::thread brief = poll(&timed, kShort);
  const bool in_time = timed.ended.Reaches(1);
  brief.join();
  if (!in_time) return Fail("a thread was lent for ", kShort / 1'000'000, " ms and kept for longer");
  std::thread lent = poll(&woken, kLong);
  std::this_thread::sleep_for(kAWhile);
  std::thread(poll(&early, kLong)).join();  // while the other thread is lent
  std::this_thread::sleep_for(kAWhile);     // any effect of that call is over
  woken.over = true;
  p.a->Wake();
  const bool went_on = woken.ended.Reaches(1);
  lent.join();
  if (!went_on) return Fail("wake did not end the wait of a thread that was lent");
  return StillTalks(*p.to_b, 1000);
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
    run.Check(503, name, [&] { return AnswersCalls(*role, full); });
    run.Check(504, name, [&] { return CarriesAllSizes(*role, full); });
    run.Check(505, name, [&] { return AnswersInAnyOrder(*role); });
    run.Check(506, name, [&] { return Cancels(*role); });
    run.Check(507, name, [&] { return CancelsHalfWay(*role); });
    run.Check(508, name, [&] { return NoticesLoss(run.options().path, *role); });
    run.Check(509, name, [&] { return DropsWhatIsNotWanted(*role); });
    run.Check(510, name, [&] { return ClosesPeers(*role); });
    run.Check(511, name, [&] { return ClosesEndpoints(*role); });
    run.Check(512, name, [&] { return CallsBackFromOutside(*role); });
    run.Check(513, name, [&] { return TakesThreads(*role); });
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
