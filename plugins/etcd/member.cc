#include "member.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include <sys/stat.h>

#include "../common/setting.h"
#include "../common/thread.h"
#include "secret_file.h"

namespace thalweg::etcd {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kPatience = 5 * kSecond;  // for requests without a deadline
constexpr int64_t kLeave = 2 * kSecond;     // for the last request: without an answer the lease ends by itself

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}
std::string Bytes(std::string_view key, std::string_view bytes) { return Quoted(key) + ": " + Quoted(Base64(bytes)); }

// Returns the first key after all keys with the prefix; "\0" means that there is none.
std::string EndOf(std::string prefix) {
  while (!prefix.empty() && uint8_t(prefix.back()) == 255) prefix.pop_back();
  if (prefix.empty()) return std::string(1, '\0');
  ++prefix.back();
  return prefix;
}

}  // namespace

// ---- Member ----

Member::Member(const tw_host* host, const tw_member_config& c, int64_t deadline)
    : host_(host),
      at_(Address::Parse(std::string(c.address, size_t(c.address_len)))),
      address_(at_.text()),
      cluster_(c.cluster, size_t(c.cluster_len)),
      lease_ns_(std::max<int64_t>(c.lease, kSecond)),
      arg_(c.arg),
      lost_(c.lost) {
  if (!deadline) deadline = now() + kPatience;
  who_ = TakeCredential({c.credential, size_t(c.credential_len)});
  if (!who_.empty()) {
    MayTellPassword();
    Authenticate(deadline);
  }
  const JsonValue granted = Ask("/v3/lease/grant", "{\"TTL\": " + std::to_string((lease_ns_ + kSecond - 1) / kSecond) + "}", deadline);
  lease_ = granted["ID"].text();
  if (lease_.empty()) throw Failed(TW_UNAVAILABLE, "'" + address_ + "' grants no lease");
  keeper_ = common::StartThread([this] { Keep(); });
}

Member::~Member() {
  {
    std::lock_guard lock(mu_);
    stop_ = true;
    stopping_.notify_all();
  }
  keeper_.join();
  watches_.clear();
  try {
    Ask("/v3/lease/revoke", "{\"ID\": " + Quoted(lease_) + "}", now() + kLeave);
  } catch (const std::exception&) {  // the lease ends by itself
  }
}

// Interprets the credential. For a folder, uses its subfolder `etcd` if that exists. Otherwise the
// credential is the user's name and password. Returns these, or nothing.
std::string Member::TakeCredential(std::string_view credential) {
  if (credential.empty() || credential[0] != '/') return std::string(credential);
  folder_ = std::string(credential);
  struct stat s = {};
  const auto refuse = [](const std::string& path) {
    throw Failed(TW_INVALID_ARGUMENT, "'" + path + "' cannot be read: " + strerror(errno));
  };
  if (stat(folder_.c_str(), &s) != 0) refuse(folder_);
  if (!S_ISDIR(s.st_mode)) throw Failed(TW_INVALID_ARGUMENT, "'" + folder_ + "' is no folder");
  if (stat((folder_ + "/etcd").c_str(), &s) == 0) {
    if (S_ISDIR(s.st_mode)) folder_ += "/etcd";
  } else if (errno != ENOENT) {
    refuse(folder_ + "/etcd");
  }
  return ReadSecretLine(folder_ + "/user");
}

void Member::MayTellPassword() const {
  if (at_.tls) return;
  const std::string said = common::Setting(host_, "plain_password");
  if (said == "1" || said == "true") return;
  throw Failed(TW_PERMISSION_DENIED, "'" + address_ + "' would be told the password of '" + who_.substr(0, who_.find(':')) +
                                         "' in plain text; give https://" + address_ +
                                         ", or set the runtime option plugin.org.thalweg.etcd.plain_password=1");
}

void Member::Authenticate(int64_t deadline) {
  const size_t at = who_.find(':');
  if (at == who_.npos) throw Failed(TW_INVALID_ARGUMENT, "a credential is user:password");
  const std::string who = "{\"name\": " + Quoted(who_.substr(0, at)) + ", \"password\": " + Quoted(who_.substr(at + 1)) + "}";
  const std::string token = Good(AskOnce("/v3/auth/authenticate", "", who, deadline))["token"].text();
  std::lock_guard lock(token_mu_);
  token_ = token;
}

Member::Answer Member::AskOnce(const std::string& path, const std::string& token, const std::string& json, int64_t deadline) const {
  Exchange x = Connect(deadline);
  x.Ask(path, token, json);
  JsonValue value = ParseAnswer(x.Rest());
  return {x.status(), std::move(value)};
}

JsonValue Member::Good(Answer answer) const {
  const JsonValue& error = answer.value["error"];
  if (answer.status == 200 && error.is(JsonValue::Kind::kMissing)) return std::move(answer.value);
  const bool denied = answer.status == 401 || answer.status == 403;
  const std::string& text = error.items().empty() ? error.text() : error["message"].text();
  throw Failed(denied ? TW_PERMISSION_DENIED : TW_UNAVAILABLE,
               "'" + address_ + "' answers: " + (text.empty() ? std::to_string(answer.status) : text));
}

// Tokens end after some minutes without use, and with the etcd that issued them.
JsonValue Member::Ask(const std::string& path, const std::string& json, int64_t deadline) {
  if (!deadline) deadline = now() + kPatience;
  const std::string used = token();
  Answer answer = AskOnce(path, used, json, deadline);
  if (answer.status == 401 && !who_.empty()) {
    if (token() == used) Authenticate(deadline);  // unless another thread has done so meanwhile
    answer = AskOnce(path, token(), json, deadline);
  }
  return Good(std::move(answer));
}

// request: "\"request_put\": {...}", executed only if the key has the expected revision.
uint64_t Member::Change(const std::string& request, const std::string& stored, uint64_t expected, int64_t deadline) {
  std::string json = "{\"success\": [{" + request + "}]";
  if (expected != UINT64_MAX) {
    json += ", \"compare\": [{\"result\": \"EQUAL\", \"target\": \"MOD\", " + Bytes("key", stored) +
            ", \"mod_revision\": " + Quoted(std::to_string(expected)) + "}]";
  }
  const JsonValue answer = Ask("/v3/kv/txn", json + "}", deadline);
  if (!answer["succeeded"].yes()) throw Failed(TW_ABORTED, "'" + Own(stored) + "' has another revision; get it again");
  return NumberIn(answer["header"]["revision"]);
}

uint64_t Member::Put(std::string_view key, std::string_view value, bool mine, uint64_t expected, int64_t deadline) {
  const std::string stored = Stored(key);
  std::string put = "\"request_put\": {" + Bytes("key", stored) + ", " + Bytes("value", value);
  if (mine) put += ", \"lease\": " + Quoted(lease_);
  return Change(put + "}", stored, expected, deadline);
}

std::string Member::Get(std::string_view key, int64_t deadline, uint64_t* out_revision) {
  const JsonValue answer = Ask("/v3/kv/range", "{" + Bytes("key", Stored(key)) + "}", deadline);
  if (answer["kvs"].items().empty()) throw Failed(TW_NOT_FOUND, "there is no key '" + std::string(key) + "'");
  const JsonValue& kv = answer["kvs"].items()[0];
  if (out_revision) *out_revision = NumberIn(kv["mod_revision"]);
  return BytesIn(kv["value"]);
}

void Member::Remove(std::string_view key, uint64_t expected, int64_t deadline) {
  const std::string stored = Stored(key);
  Change("\"request_delete_range\": {" + Bytes("key", stored) + "}", stored, expected, deadline);
}

// A third of the lease leaves time for two more tries. The thread survives exceptions: without
// memory it tries again.
void Member::Keep() {
  int64_t renewed = now();
  std::unique_lock lock(mu_);
  while (!stopping_.wait_for(lock, std::chrono::nanoseconds(lease_ns_ / 3), [this] { return stop_; })) {
    lock.unlock();
    bool over = false;
    try {
      over = Renew(&renewed);
    } catch (const std::exception&) {
    }
    if (over) return;
    lock.lock();
  }
}

// Returns true if the lease is lost and that has been reported.
bool Member::Renew(int64_t* renewed) {
  std::string why;
  try {
    const int64_t asked = now();
    const JsonValue answer = Ask("/v3/lease/keepalive", "{\"ID\": " + Quoted(lease_) + "}", asked + lease_ns_ / 3);
    if (NumberIn(answer["result"]["TTL"]) == 0) why = "the store has ended the lease";
    *renewed = asked;
  } catch (const std::exception& e) {
    if (now() - *renewed > lease_ns_) why = e.what();
  }
  if (why.empty()) return false;
  Lost("the lease could not be renewed in time: " + why);
  return true;
}

void Member::Lost(const std::string& why) {
  if (!lost_) return;
  const std::string text = "etcd membership: " + why;  // may throw: then the next attempt reports it
  if (told_lost_.exchange(true)) return;
  tw_status* status = host_->status->make(host_, TW_UNAVAILABLE, text.data(), text.size(), nullptr);
  lost_(arg_, status);
  host_->status->release(status);
}

Watch* Member::AddWatch(std::string_view prefix, void (*change)(void* arg, const tw_change* c), void* arg) {
  auto watch = std::make_unique<Watch>(this, std::string(prefix), change, arg);
  Watch* self = watch.get();
  std::lock_guard lock(mu_);
  watches_.insert(std::move(watch));
  return self;
}

void Member::EndWatch(Watch* watch) {
  std::unique_ptr<Watch> ended;  // joins its thread outside the lock
  std::lock_guard lock(mu_);
  const auto it = std::find_if(watches_.begin(), watches_.end(), [&](const auto& w) { return w.get() == watch; });
  if (it != watches_.end()) ended = std::move(watches_.extract(it).value());
}

// ---- Watch ----

Watch::Watch(Member* member, std::string prefix, void (*change)(void* arg, const tw_change* c), void* arg)
    : member_(member), prefix_(member->Stored(prefix)), change_(change), arg_(arg), thread_(common::StartThread([this] { Work(); })) {}

Watch::~Watch() {
  {
    std::lock_guard lock(mu_);
    stop_ = true;
    if (reads_) reads_->Hang();
    stopping_.notify_all();
  }
  thread_.join();
}

// Returns true if the watch is to end.
bool Watch::Rest(int64_t ns) {
  std::unique_lock lock(mu_);
  return stopping_.wait_for(lock, std::chrono::nanoseconds(ns), [this] { return stop_; });
}

// The thread survives exceptions: a change that it could not report for lack of memory is reported
// after the next request.
void Watch::Work() {
  int64_t heard = member_->now();
  for (int64_t pause = kSecond / 100;; pause = std::min(2 * pause, kSecond)) {
    try {
      if (Hear(&heard)) pause = kSecond / 100;
    } catch (const std::exception&) {
    }
    if (Rest(pause)) return;
  }
}

// Returns true if everything was reported, including changes until the connection broke. A lease is
// renewed without a token; so a member that may no longer read would keep its lease and learn of no
// changes.
bool Watch::Hear(int64_t* heard) {
  bool all = false;
  std::string why;
  try {
    TellAll();
    all = true;
    Follow();
  } catch (const std::exception& e) {  // the store is away, or memory is short: it is asked again
    why = e.what();
  }
  const int64_t now = member_->now();
  if (all) *heard = now;
  if (now - *heard > member_->lease()) member_->Lost("a watch has failed for longer than a lease: " + why);
  return all;
}

// Reports all existing keys, and those that have gone since the last report.
void Watch::TellAll() {
  const JsonValue all = member_->Ask(
      "/v3/kv/range",
      "{" + Bytes("key", prefix_) + ", " + Bytes("range_end", EndOf(prefix_)) + ", \"sort_order\": \"ASCEND\", \"sort_target\": \"MOD\"}",
      0);
  const uint64_t revision = NumberIn(all["header"]["revision"]);
  std::set<std::string> there;
  for (const JsonValue& kv : all["kvs"].items()) there.insert(BytesIn(kv["key"]));
  for (auto it = told_.begin(); it != told_.end();) {
    const std::string key = (it++)->first;
    if (!there.count(key)) Tell(key, nullptr, revision);
  }
  for (const JsonValue& kv : all["kvs"].items()) {
    const std::string key = BytesIn(kv["key"]), value = BytesIn(kv["value"]);
    const uint64_t at = NumberIn(kv["mod_revision"]);
    auto it = told_.find(key);
    if (it == told_.end() || it->second != at) Tell(key, &value, at);
  }
  seen_ = std::max(seen_, revision);
}

void Watch::Follow() {
  Exchange x = member_->Connect(member_->now() + kPatience);
  {
    std::lock_guard lock(mu_);
    if (stop_) return;
    reads_ = &x;
  }
  struct Done {
    Watch* self;
    ~Done() {
      std::lock_guard lock(self->mu_);
      self->reads_ = nullptr;
    }
  } done{this};
  x.Ask("/v3/watch", member_->token(),
        "{\"create_request\": {" + Bytes("key", prefix_) + ", " + Bytes("range_end", EndOf(prefix_)) +
            ", \"start_revision\": " + Quoted(std::to_string(seen_ + 1)) + "}}");
  x.set_deadline(0);
  for (std::string line; x.NextLine(&line);) {
    if (line.empty()) continue;
    const JsonValue message = ParseAnswer(line);
    const JsonValue& result = message["result"];
    if (result.is(JsonValue::Kind::kMissing) || result["canceled"].yes())
      return;  // for example for compacted revisions: everything is read again
    for (const JsonValue& e : result["events"].items()) {
      const std::string key = BytesIn(e["kv"]["key"]), value = BytesIn(e["kv"]["value"]);
      const uint64_t at = NumberIn(e["kv"]["mod_revision"]);
      Tell(key, e["type"].text() == "DELETE" ? nullptr : &value, at);
      seen_ = std::max(seen_, at);
    }
  }
}

void Watch::Tell(const std::string& key, const std::string* value, uint64_t revision) {
  {
    std::lock_guard lock(mu_);
    if (stop_) return;
  }
  const std::string own = member_->Own(key);  // operations that may throw come before the change counts as reported
  if (value) {
    told_[key] = revision;
  } else if (told_.erase(key) == 0) {
    return;
  }
  tw_change c = {};
  c.size = sizeof c;
  c.key = own.data();
  c.key_len = own.size();
  c.value = value ? value->data() : nullptr;
  c.bytes = value ? value->size() : 0;
  c.revision = revision;
  change_(arg_, &c);
}

}  // namespace thalweg::etcd
