// pipes://FOLDER: a transport between processes of one user on one machine, over named pipes. Written
// from plugins/roles.md, the README of `thalweg new transport` and the public headers alone.
//
// An endpoint is a folder of its owner with the pipe `inbox`. Who connects makes two pipes in the folder
// of its own endpoint and writes their name into the inbox; calls go up one of them, answers come down
// the other. Bodies travel in pieces, so that one message does not hold up another, and a cancelled one
// ends after its current piece. A lost process closes its ends, which the kernel tells the other side.
//
// One thread per endpoint owns all state. The entries only hand it commands, so no entry waits and no
// callback comes from inside one.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sys/eventfd.h>
#include <sys/stat.h>

#include "thalweg/cpp/plugin.hpp"

namespace {

constexpr uint32_t kPiece = 1 << 16;              // bytes of a body that travel as one frame
constexpr size_t kGreeting = 512;                 // bytes of a greeting: so few are written whole or not at all
constexpr auto kFlush = std::chrono::seconds(2);  // how long close waits for a peer that takes nothing

enum Kind : uint32_t { kWelcome = 1, kRequest, kAnswer, kRequestPiece, kAnswerPiece, kCancel };

// Every frame begins with this.
struct Header {
  uint32_t kind, bytes;  // bytes: of the frame behind the header
  uint64_t id, total;    // total: bytes of the body, in kRequest and kAnswer
};

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~Descriptor() { Close(); }
  void Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

// Whether the descriptor is a pipe of this user, which others can neither read nor write.
bool IsOurs(const Descriptor& d) {
  struct stat st;
  return fstat(d.get(), &st) == 0 && S_ISFIFO(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 077) == 0;
}

// A message on its way out. Its body is borrowed until done is called.
struct Outgoing {
  Kind kind;
  uint64_t id;
  std::string head;
  const char* body;
  uint64_t bytes, sent = 0;
  bool begun = false;
  void* arg;
  tw_place_fn place;
  void (*done)(void* arg, tw_status* s);
};

// A call that waits for its answer.
struct Call {
  void* arg;
  tw_place_fn place;
  void (*done)(void* arg, tw_status* s);
  char* body = nullptr;  // of the answer, once its head has come
  uint64_t bytes = 0, have = 0;
};

struct Endpoint;
struct Link;

// A request of a peer, from its head to its answer.
struct Request {
  Endpoint* endpoint;
  Link* link;           // NULL: nobody waits for the answer any more. The thread's.
  uint64_t id, number;  // of the endpoint's life; the peer's number of the call
  std::string head;
  char* body = nullptr;
  uint64_t bytes = 0, have = 0;
  bool served = false;
  tw_incoming record{};  // as served; the host keeps it until it answers
};

// One of the two pairs of pipes with a peer: of calls (ours go up) or of requests (theirs come in). For calls it is the peer of the ABI.
struct Link {
  Endpoint* endpoint;
  bool calls;
  std::string address;  // of the peer
  std::string pipes;    // the pipes' name without its end, until the peer has opened them
  Descriptor inbox;     // the peer's, until it has welcomed us
  Descriptor in, out;
  std::string buffer, output;  // bytes that came and are no whole frame yet; bytes that the pipe did not take yet
  size_t written = 0;          // of output
  std::deque<Outgoing> queue;
  std::unordered_map<uint64_t, Call> open;         // by id
  std::unordered_map<uint64_t, Request*> serving;  // by the peer's number
  bool welcome = false, lost = false, closed = false;
};

struct Command {
  enum What { kConnect, kCall, kCancelCall, kAnswerRequest, kClosePeer, kClose } what;
  Link* link = nullptr;
  Request* request = nullptr;
  Outgoing message{};
};

struct Endpoint {
  const tw_host* host;
  tw_endpoint_config config;
  std::string folder;
  bool made_folder = false, made_inbox = false;
  std::string user = "user " + std::to_string(geteuid());  // the only one who can reach the pipes
  Descriptor inbox, wake;
  std::atomic<uint64_t> pairs{0};
  std::mutex mutex;
  std::vector<Command> commands;  // guarded by mutex
  std::thread thread;

  // The thread's own.
  std::vector<std::unique_ptr<Link>> links;
  uint64_t requests = 0, last_id = 0;  // requests: that wait for the host's answer
  bool closing = false;

  ~Endpoint() {
    if (made_inbox) unlink((folder + "/inbox").c_str());
    if (made_folder) rmdir(folder.c_str());  // fails if somebody else keeps files there, which then stay
  }

  void Tell(Command c) {
    {
      const std::lock_guard lock(mutex);
      commands.push_back(std::move(c));
    }
    const uint64_t one = 1;
    (void)!write(wake.get(), &one, sizeof one);  // fails only if it is awake already
  }

  tw_status* Status(uint32_t code, const std::string& text) const { return tw_fail(host, code, text.data(), text.size()); }
  tw_status* Lost(const Link& l) const { return Status(TW_UNAVAILABLE, "pipes: the peer '" + l.address + "' is lost"); }
  tw_status* Cancelled() const { return Status(TW_CANCELLED, "pipes: the call was cancelled"); }

  // ---- The ends of things ----

  // Nobody waits for the request's answer. Frees it if the host has not been served.
  void Drop(Request* r) {
    r->link = nullptr;
    config.gone(config.arg, r->id);
    if (!r->served) delete r;
  }

  // Ends a link whose peer is lost, or that is closed; every message of it is done.
  void End(Link* l, uint32_t code) {
    if (l->lost) return;
    l->lost = true;
    const auto why = [&] { return code == TW_CANCELLED ? Cancelled() : Lost(*l); };
    for (auto& [id, call] : std::exchange(l->open, {})) call.done(call.arg, why());
    for (const Outgoing& m : std::exchange(l->queue, {})) {
      if (m.kind == kAnswer) m.done(m.arg, why());
    }
    for (auto& [number, r] : std::exchange(l->serving, {})) Drop(r);
    l->output.clear();
    l->written = 0;
    l->in.Close();
    l->out.Close();
    l->inbox.Close();
    Unlink(l);
  }

  void Unlink(Link* l) {
    if (l->pipes.empty()) return;
    unlink((l->pipes + ".up").c_str());
    unlink((l->pipes + ".down").c_str());
    l->pipes.clear();
  }

  // ---- Out ----

  void Frame(Link* l, Kind kind, uint64_t id, uint64_t total, const char* bytes, uint64_t n) {
    const Header header = {kind, uint32_t(n), id, total};
    l->output.append(reinterpret_cast<const char*>(&header), sizeof header);
    l->output.append(bytes, n);
  }

  // Puts the next frame into the output, of each message in turn. Returns 0 if there is none.
  bool Next(Link* l) {
    if (l->queue.empty()) return false;
    Outgoing m = std::move(l->queue.front());
    l->queue.pop_front();
    if (!m.begun) {
      m.begun = true;
      Frame(l, m.kind, m.id, m.bytes, m.head.data(), m.head.size());
    } else {
      const uint64_t n = std::min<uint64_t>(kPiece, m.bytes - m.sent);
      Frame(l, m.kind == kRequest ? kRequestPiece : kAnswerPiece, m.id, 0, m.body + m.sent, n);
      m.sent += n;
    }
    if (m.sent < m.bytes) {
      l->queue.push_back(std::move(m));
    } else if (m.kind == kAnswer) {
      m.done(m.arg, nullptr);
    }
    return true;
  }

  // Nobody reads what we write. The last answers of a peer may still be in the other pipe, which then ends.
  void Unread(Link* l) {
    if (!l->calls) return End(l, TW_UNAVAILABLE);
    l->out.Close();
  }

  void Write(Link* l) {
    if (!l->out) return;
    for (;;) {
      if (l->written == l->output.size()) {
        l->output.clear();
        l->written = 0;
        if (!Next(l)) return;
      }
      const ssize_t n = write(l->out.get(), l->output.data() + l->written, l->output.size() - l->written);
      if (n > 0) l->written += size_t(n);
      if (n >= 0 || errno == EINTR) continue;
      if (errno == EAGAIN) return;
      return Unread(l);
    }
  }

  // ---- In ----

  void Piece(char* body, uint64_t* have, const char* bytes, uint64_t n) {
    if (body) std::memcpy(body + *have, bytes, n);
    *have += n;
  }

  tw_incoming Incoming(uint64_t id, const char* head, uint64_t head_bytes, const void* body, uint64_t bytes, void* self) const {
    return {TW_SIZED(tw_incoming), id, user.data(), user.size(), head, head_bytes, body, bytes, self, TW_PEER_ANY, 0};
  }

  void Serve(Request* r) {
    r->served = true;
    ++requests;
    r->record = Incoming(r->id, r->head.data(), r->head.size(), r->body, r->bytes, r);
    config.serve(config.arg, &r->record);
  }

  void Finish(Link* l, uint64_t id) {
    const Call call = l->open.at(id);
    l->open.erase(id);
    call.done(call.arg, nullptr);
  }

  // Takes one frame. Returns 0 for one that no peer of this kind sends.
  bool Take(Link* l, const Header& f, const char* bytes) {
    void *data = nullptr, *region = nullptr;
    switch (f.kind) {
      case kWelcome: return l->calls && Welcome(l);
      case kRequest: {
        if (l->calls || f.bytes > TW_MESSAGE_HEAD || l->serving.count(f.id)) return false;
        auto* r = new Request{this, l, ++last_id, f.id, std::string(bytes, f.bytes)};
        l->serving[f.id] = r;
        r->bytes = f.total;
        const tw_incoming in = Incoming(r->id, r->head.data(), r->head.size(), nullptr, r->bytes, r);
        tw_ask_place(config.place, config.arg, &in, &data, &region);
        r->body = static_cast<char*>(data);
        if (r->bytes == 0) Serve(r);
        return true;
      }
      case kRequestPiece: {
        const auto at = l->serving.find(f.id);
        if (l->calls || at == l->serving.end() || f.bytes == 0 || f.bytes > at->second->bytes - at->second->have) return false;
        Request* r = at->second;
        Piece(r->body, &r->have, bytes, f.bytes);
        if (r->have == r->bytes) Serve(r);
        return true;
      }
      case kAnswer: {
        if (!l->calls || f.bytes > TW_MESSAGE_HEAD) return false;
        const auto at = l->open.find(f.id);
        if (at == l->open.end()) return true;  // it was cancelled
        Call& call = at->second;
        if (call.bytes > 0) return false;
        call.bytes = f.total;
        const tw_incoming in = Incoming(f.id, bytes, f.bytes, nullptr, f.total, nullptr);
        tw_ask_place(call.place, call.arg, &in, &data, &region);
        call.body = static_cast<char*>(data);
        if (call.bytes == 0) Finish(l, f.id);
        return true;
      }
      case kAnswerPiece: {
        if (!l->calls) return false;
        const auto at = l->open.find(f.id);
        if (at == l->open.end()) return true;
        Call& call = at->second;
        if (f.bytes == 0 || f.bytes > call.bytes - call.have) return false;
        Piece(call.body, &call.have, bytes, f.bytes);
        if (call.have == call.bytes) Finish(l, f.id);
        return true;
      }
      case kCancel: {
        const auto at = l->serving.find(f.id);
        if (l->calls) return false;
        if (at == l->serving.end()) return true;  // its answer is on its way
        Request* r = at->second;
        l->serving.erase(at);
        Drop(r);
        return true;
      }
      default: return false;
    }
  }

  void Read(Link* l) {
    char bytes[kPiece];
    for (int turn = 0; turn < 16 && l->in; ++turn) {  // others have their turn, too
      const ssize_t n = read(l->in.get(), bytes, sizeof bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) return End(l, TW_UNAVAILABLE);
      l->buffer.append(bytes, size_t(n));
      size_t at = 0;
      Header f;
      while (!l->lost && l->buffer.size() - at >= sizeof f) {
        std::memcpy(&f, l->buffer.data() + at, sizeof f);
        if (f.bytes > kPiece) return End(l, TW_UNAVAILABLE);
        if (l->buffer.size() - at < sizeof f + f.bytes) break;
        at += sizeof f;
        if (!Take(l, f, l->buffer.data() + at)) return End(l, TW_UNAVAILABLE);
        at += f.bytes;
      }
      l->buffer.erase(0, at);
    }
  }

  // ---- How two endpoints meet ----

  // The peer has opened both pipes, which need no names from now on.
  bool Welcome(Link* l) {
    if (l->welcome) return false;
    l->out = Descriptor(open((l->pipes + ".up").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    Unlink(l);
    l->inbox.Close();
    l->welcome = bool(l->out);
    return l->welcome;
  }

  // Greetings are the names of pairs of pipes, filled up with zeros.
  void ReadInbox() {
    char text[kGreeting];
    for (ssize_t n; (n = read(inbox.get(), text, sizeof text)) != -1 || errno == EINTR;) {
      if (n != ssize_t(sizeof text) || closing) continue;
      text[sizeof text - 1] = 0;
      auto l = std::make_unique<Link>();
      l->endpoint = this;
      l->calls = false;
      l->address = text;
      l->in = Descriptor(open((l->address + ".up").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
      l->out = Descriptor(open((l->address + ".down").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
      if (!l->in || !l->out || !IsOurs(l->in) || !IsOurs(l->out)) continue;  // it is gone already, or it is not of our user
      Frame(l.get(), kWelcome, 0, 0, "", 0);
      links.push_back(std::move(l));
    }
  }

  void Greet(Link* l) {
    char text[kGreeting] = {};
    l->pipes.copy(text, sizeof text - 1);
    ssize_t n;
    do {
      n = write(l->inbox.get(), text, sizeof text);
    } while (n < 0 && errno == EINTR);
    if (n != ssize_t(sizeof text)) End(l, TW_UNAVAILABLE);
  }

  // ---- The thread ----

  void Do(Command& c) {
    Link* l = c.link;
    switch (c.what) {
      case Command::kConnect:
        links.emplace_back(l);
        Greet(l);
        return;
      case Command::kCall: {
        Outgoing& m = c.message;
        if (l->lost) return m.done(m.arg, Lost(*l));
        l->open[m.id] = {m.arg, m.place, m.done};
        l->queue.push_back(std::move(m));
        return;
      }
      case Command::kCancelCall: {
        const auto at = l->open.find(c.message.id);
        if (at == l->open.end()) return;
        const Call call = at->second;
        l->open.erase(at);
        const auto out = std::find_if(l->queue.begin(), l->queue.end(), [&](const Outgoing& m) { return m.id == c.message.id; });
        const bool begun = out == l->queue.end() || out->begun;
        if (out != l->queue.end()) l->queue.erase(out);
        if (begun) Frame(l, kCancel, c.message.id, 0, "", 0);
        call.done(call.arg, Cancelled());
        return;
      }
      case Command::kAnswerRequest: {
        Request* r = c.request;
        Outgoing& m = c.message;
        --requests;
        Link* to = r->link;
        if (to) to->serving.erase(r->number);
        m.id = r->number;
        delete r;
        if (!to) return m.done(m.arg, Cancelled());
        to->queue.push_back(std::move(m));
        return;
      }
      case Command::kClosePeer:
        End(l, TW_CANCELLED);
        l->closed = true;
        return;
      case Command::kClose:
        closing = true;
        inbox.Close();
        for (const auto& link : links) {
          if (link->calls) End(link.get(), TW_CANCELLED);
          for (auto& [number, r] : std::exchange(link->serving, {})) Drop(r);
          link->in.Close();
        }
        return;
    }
  }

  bool IsBusy() const {
    return requests > 0 || std::any_of(links.begin(), links.end(),
                                       [](const auto& l) { return l->out && (!l->queue.empty() || l->written < l->output.size()); });
  }

  void Wait(int timeout) {
    std::vector<pollfd> fds = {{wake.get(), POLLIN, 0}, {inbox.get(), POLLIN, 0}};
    for (const auto& l : links) {
      fds.push_back({l->in.get(), POLLIN, 0});
      fds.push_back({l->out.get(), short(l->queue.empty() && l->written == l->output.size() ? 0 : POLLOUT), 0});
      fds.push_back({l->inbox.get(), 0, 0});  // an error of its own accord: nobody reads it any more
    }
    if (poll(fds.data(), fds.size(), timeout) <= 0) return;
    uint64_t count;
    if (fds[0].revents) (void)!read(wake.get(), &count, sizeof count);
    if (fds[1].revents) ReadInbox();
    for (size_t i = 0; i < (fds.size() - 2) / 3; ++i) {
      Link* l = links[i].get();  // new links are behind these
      const pollfd* of = &fds[2 + 3 * i];
      if (of[0].revents) Read(l);
      if (l->out && (of[1].revents & POLLERR) != 0) Unread(l);
      if (!l->lost && of[2].revents && l->inbox) End(l, TW_UNAVAILABLE);
    }
  }

  void Work() {
    // A pipe without a reader is an error of write here, and no signal.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    std::chrono::steady_clock::time_point flush_until = std::chrono::steady_clock::time_point::max();
    for (;;) {
      std::vector<Command> now;
      {
        const std::lock_guard lock(mutex);
        now.swap(commands);
      }
      for (Command& c : now) Do(c);
      for (const auto& l : links) Write(l.get());
      links.erase(std::remove_if(links.begin(), links.end(), [](const auto& l) { return l->lost && (l->closed || !l->calls); }),
                  links.end());
      if (closing && flush_until == std::chrono::steady_clock::time_point::max()) flush_until = std::chrono::steady_clock::now() + kFlush;
      if (closing && std::chrono::steady_clock::now() > flush_until) {
        for (const auto& l : links) End(l.get(), TW_UNAVAILABLE);
      }
      if (closing && !IsBusy()) break;
      Wait(closing ? 100 : -1);
    }
    for (const auto& l : links) End(l.get(), TW_CANCELLED);
    links.clear();
  }
};

// ---- The entries ----

std::string Why(const std::string& what) { return "pipes: " + what + ": " + std::generic_category().message(errno); }

tw_status* Listen(const tw_host* h, void*, const tw_endpoint_config* c, tw_sink* bound, void** out_endpoint) {
  return tw::guard(h, [&] {
    auto e = std::make_unique<Endpoint>();
    e->host = h;
    e->config = *c;
    e->folder.assign(c->address, c->address_len);
    if (e->folder.empty()) {
      const char* place = std::getenv("XDG_RUNTIME_DIR");
      e->folder = std::string(place && *place ? place : "/tmp") + "/pipes.XXXXXX";
      e->made_folder = mkdtemp(e->folder.data()) != nullptr;
      if (!e->made_folder) throw tw::Error{TW_UNAVAILABLE, Why("no folder '" + e->folder + "'")};
    } else if (e->folder.size() > kGreeting - 64 || e->folder.front() != '/') {
      throw tw::Error{TW_INVALID_ARGUMENT, "pipes: the address '" + e->folder + "' is no absolute path of at most 448 bytes"};
    } else {
      e->made_folder = mkdir(e->folder.c_str(), 0700) == 0;
      if (!e->made_folder && errno != EEXIST) throw tw::Error{TW_INVALID_ARGUMENT, Why("no folder '" + e->folder + "'")};
    }
    struct stat st;
    if (lstat(e->folder.c_str(), &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022) != 0)
      throw tw::Error{TW_PERMISSION_DENIED, "pipes: others can write to '" + e->folder + "', or it is no folder of this user"};
    const std::string inbox = e->folder + "/inbox";
    // A pipe that somebody reads is another endpoint's; one that nobody reads was left by a process that died.
    if (const Descriptor other(open(inbox.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)); other)
      throw tw::Error{TW_UNAVAILABLE, "pipes: the address '" + e->folder + "' is in use; give another one"};
    unlink(inbox.c_str());
    if (mkfifo(inbox.c_str(), 0600) != 0) throw tw::Error{TW_UNAVAILABLE, Why("no pipe '" + inbox + "'")};
    e->made_inbox = true;
    e->inbox = Descriptor(open(inbox.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
    e->wake = Descriptor(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (!e->inbox || !e->wake) throw tw::Error{TW_RESOURCE_EXHAUSTED, Why("no endpoint '" + e->folder + "'")};
    tw::check(bound->put(bound, e->folder.data(), e->folder.size()));
    e->thread = std::thread([p = e.get()] { p->Work(); });
    *out_endpoint = e.release();
  });
}

tw_status* Connect(const tw_host* h, void* endpoint, const char* address, uint64_t len, void** out_peer) {
  return tw::guard(h, [&] {
    auto* e = static_cast<Endpoint*>(endpoint);
    auto l = std::make_unique<Link>();
    l->endpoint = e;
    l->calls = true;
    l->address.assign(address, len);
    if (l->address.empty() || l->address.front() != '/' || l->address.find('\0') != std::string::npos)
      throw tw::Error{TW_INVALID_ARGUMENT, "pipes: the address '" + l->address + "' is no absolute path"};
    l->inbox = Descriptor(open((l->address + "/inbox").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
    if (!l->inbox) {
      const bool denied = errno == EACCES || errno == EPERM;
      throw tw::Error{denied ? uint32_t(TW_PERMISSION_DENIED) : uint32_t(TW_UNAVAILABLE), Why("nobody is at '" + l->address + "'")};
    }
    if (!IsOurs(l->inbox))
      throw tw::Error{TW_PERMISSION_DENIED, "pipes: '" + l->address + "' belongs to another user, or others may use it"};
    l->pipes = e->folder + "/" + std::to_string(++e->pairs);
    if (mkfifo((l->pipes + ".up").c_str(), 0600) == 0 && mkfifo((l->pipes + ".down").c_str(), 0600) == 0)
      l->in = Descriptor(open((l->pipes + ".down").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
    if (!l->in) {
      const std::string why = Why("no pipes '" + l->pipes + "'");
      e->Unlink(l.get());
      throw tw::Error{TW_RESOURCE_EXHAUSTED, why};
    }
    Command c{Command::kConnect};
    c.link = l.get();
    e->Tell(std::move(c));
    *out_peer = l.release();
  });
}

Outgoing Message(Kind kind, uint64_t id, const tw_message* m) {
  Outgoing out{};
  out.kind = kind;
  out.id = id;
  out.head.assign(static_cast<const char*>(m->head), m->head_bytes);
  out.body = static_cast<const char*>(m->body);
  out.bytes = m->bytes;
  out.arg = m->arg;
  out.place = m->place;
  out.done = m->done;
  return out;
}

tw_status* MakeCall(const tw_host* h, void* peer, uint64_t id, const tw_message* m) {
  return tw::guard(h, [&] {
    Command c{Command::kCall};
    c.link = static_cast<Link*>(peer);
    c.message = Message(kRequest, id, m);
    c.link->endpoint->Tell(std::move(c));
  });
}

void Cancel(const tw_host*, void* peer, uint64_t id) {
  Command c{Command::kCancelCall};
  c.link = static_cast<Link*>(peer);
  c.message.id = id;
  c.link->endpoint->Tell(std::move(c));
}

void Answer(const tw_host*, void* self, const tw_message* m) {
  Command c{Command::kAnswerRequest};
  c.request = static_cast<Request*>(self);
  c.message = Message(kAnswer, 0, m);
  c.request->endpoint->Tell(std::move(c));
}

void ClosePeer(const tw_host*, void* peer) {
  Command c{Command::kClosePeer};
  c.link = static_cast<Link*>(peer);
  c.link->endpoint->Tell(std::move(c));
}

void Close(const tw_host*, void* endpoint) {
  const std::unique_ptr<Endpoint> e(static_cast<Endpoint*>(endpoint));
  e->Tell(Command{Command::kClose});
  e->thread.join();
}

}  // namespace

TW_CPP_PLUGIN("org.example.pipes", "1.0", p) {
  tw_transport_def d{};
  d.size = sizeof d;
  d.scheme = "pipes";
  d.scheme_len = std::strlen(d.scheme);
  d.security = TW_TRANSPORT_SAME_HOST;
  d.listen = Listen;
  d.connect = Connect;
  d.call = MakeCall;
  d.cancel = Cancel;
  d.answer = Answer;
  d.close_peer = ClosePeer;
  d.close = Close;
  tw::check(tw_add_transport(p.r, &d));
}
