// Member: a member of a cluster whose keys are in etcd. One thread renews its lease; each watch has
// a thread of its own. Threads: any.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "gateway_json.h"
#include "http.h"
#include "thalweg/plugin/plugin.h"

namespace thalweg::etcd {

class Member;

class Watch {
 public:
  Watch(Member* member, std::string prefix, void (*change)(void* arg, const tw_change* c), void* arg);
  // Nothing is reported after it returns.
  ~Watch();
  Member* member() const { return member_; }

 private:
  void Work();
  bool Hear(int64_t* heard);
  void TellAll();
  void Follow();
  void Tell(const std::string& key, const std::string* value, uint64_t revision);
  bool Rest(int64_t ns);

  Member* const member_;
  const std::string prefix_;
  void (*const change_)(void* arg, const tw_change* c);
  void* const arg_;
  std::map<std::string, uint64_t> told_;  // revisions of existing keys
  uint64_t seen_ = 0;                     // everything up to this revision was reported
  std::mutex mu_;
  std::condition_variable stopping_;
  bool stop_ = false;
  Exchange* reads_ = nullptr;  // the exchange that the thread waits at
  std::thread thread_;
};

class Member {
 public:
  // All methods throw Failed.
  Member(const tw_host* host, const tw_member_config& config, int64_t deadline);
  ~Member();
  // mine: the key ends with the lease. expected: see plugin/membership.h. Returns the revision.
  uint64_t Put(std::string_view key, std::string_view value, bool mine, uint64_t expected, int64_t deadline);
  std::string Get(std::string_view key, int64_t deadline, uint64_t* out_revision);
  void Remove(std::string_view key, uint64_t expected, int64_t deadline);
  Watch* AddWatch(std::string_view prefix, void (*change)(void* arg, const tw_change* c), void* arg);
  void EndWatch(Watch* watch);

  int64_t now() const { return host_->run->now(host_); }
  Now clock() const {
    return [this] { return now(); };
  }
  // Opens a connection to the store.
  Exchange Connect(int64_t deadline) const { return Exchange(at_, folder_, clock(), deadline); }
  int64_t lease() const { return lease_ns_; }
  std::string token() const {
    std::lock_guard lock(token_mu_);
    return token_;
  }
  // Converts between keys and stored keys, which are prefixed with the cluster's name.
  std::string Stored(std::string_view key) const { return cluster_ + "/" + std::string(key); }
  std::string Own(std::string_view stored) const { return std::string(stored.substr(cluster_.size() + 1)); }
  // Sends a request and returns the answer. Errors of the store carry its text. If the token is no
  // longer valid, fetches another one.
  JsonValue Ask(const std::string& path, const std::string& json, int64_t deadline);
  // Reports, once, that the lease is lost or that events no longer arrive.
  void Lost(const std::string& why);

 private:
  struct Answer {
    int status;
    JsonValue value;
  };
  Answer AskOnce(const std::string& path, const std::string& token, const std::string& json, int64_t deadline) const;
  JsonValue Good(Answer answer) const;
  void Authenticate(int64_t deadline);
  std::string TakeCredential(std::string_view credential);
  uint64_t Change(const std::string& request, const std::string& stored, uint64_t expected, int64_t deadline);
  void MayTellPassword() const;
  void Keep();
  bool Renew(int64_t* renewed);

  const tw_host* const host_;
  const Address at_;
  const std::string address_, cluster_;
  std::string folder_;  // of certificates
  const int64_t lease_ns_;
  void* const arg_;
  void (*const lost_)(void* arg, const tw_status* why);
  std::string who_;  // user:password; empty if etcd has no users
  mutable std::mutex token_mu_;
  std::string token_;
  std::string lease_;
  std::atomic<bool> told_lost_{false};
  std::mutex mu_;
  std::condition_variable stopping_;
  bool stop_ = false;
  std::set<std::unique_ptr<Watch>> watches_;
  std::thread keeper_;
};

}  // namespace thalweg::etcd
