#include "client.h"

#include <algorithm>
#include <random>
#include <utility>

#include "digest.h"
#include "fail.h"
#include "refusal.h"

namespace thalweg::s3 {
namespace {

// A store that has never answered may have a wrong address, which no patience helps.
constexpr uint32_t kAttemptsToReach = 5;
// Something between this machine and the store may answer, and always so.
constexpr uint32_t kDamagedAnswers = 5;

// Full jitter: any time up to the limit, which doubles with each attempt.
std::chrono::milliseconds Pause(const Settings& s, uint32_t attempt) {
  const auto most = std::min(s.longest_backoff, s.backoff * (int64_t{1} << std::min(attempt - 1, 20u)));
  std::random_device random;
  return std::chrono::milliseconds(std::uniform_int_distribution<int64_t>(0, most.count())(random));
}

// The result of an attempt.
struct Verdict {
  enum { kDone, kAgain, kFinal, kOtherKey } kind = kDone;
  uint32_t code = TW_UNAVAILABLE;
  std::string why;
};

Verdict Judge(const Call& call, const Answer& a, const Credential& key) {
  if (a.failure == Answer::Failure::kRefused) return {Verdict::kFinal, a.code, a.why};
  if (a.failure != Answer::Failure::kNone) return {Verdict::kAgain, TW_UNAVAILABLE, a.why};
  bool late = false;
  try {
    late = call.may_fail_late && a.ok() && IsError(a.body);
  } catch (const tw::Error& e) {
    return {Verdict::kAgain, e.code, e.text};
  }
  if (a.ok() && !late) {
    const std::string damage = call.damage ? call.damage(a) : "";
    return damage.empty() ? Verdict() : Verdict{Verdict::kAgain, TW_DATA_LOSS, damage};
  }
  ErrorText error = ParseError(a.body);
  if (error.region.empty()) error.region = a.Header("x-amz-bucket-region");
  // A store could send back what it has received.
  for (const std::string* secret : {&key.key.secret, &key.key.token}) {
    for (std::string* said : {&error.code, &error.message, &error.region}) {
      if (!secret->empty() && said->find(*secret) != said->npos) said->clear();
    }
  }
  // S3 reports some errors of an answer that has begun with the status 200.
  const Refusal refusal = Explain(late ? 500 : a.status, error, call.address, a.Header("date"), key.origin);
  const bool accepted = std::find(call.accepts.begin(), call.accepts.end(), a.status) != call.accepts.end();
  if (accepted && error.code != "NoSuchBucket") return {};
  if (refusal.stale_key) return {Verdict::kOtherKey, refusal.code, refusal.text};
  return {refusal.again ? Verdict::kAgain : Verdict::kFinal, refusal.code, refusal.text};
}

// Returns true if the store may have done what an attempt without success asked for.
bool MayHaveArrived(const Answer& a) { return a.failure == Answer::Failure::kBroken || a.ok() || (a.status >= 500 && a.status != 503); }

}  // namespace

Request Client::Signed(const Call& call, const Target& target, const std::string& payload, const Credential& key,
                       Clock::time_point deadline) const {
  const std::string query = CanonicalQuery(call.query);
  Request r;
  r.method = call.method;
  r.url = (place_.endpoint.tls ? "https://" : "http://") + target.host + target.path + (query.empty() ? "" : "?" + query);
  if (key.anonymous) {
    r.headers = call.headers;
    r.headers.emplace_back("host", target.host);
  } else {
    const Unsigned request = {call.method, target.host, target.path, query, call.headers, payload};
    r.headers = Sign(request, key.key, place_.region, time(nullptr));
  }
  r.body = call.body;
  r.to = call.to;
  r.room = call.room;
  r.most_bytes = call.most_bytes;
  r.direct = !place_.endpoint.tls && place_.endpoint.loopback();
  r.once = call.doubt_after_loss;
  r.deadline = deadline;
  return r;
}

Answer Client::Send(const Call& call) {
  const auto begin = Clock::now(), deadline = begin + (call.patience.count() > 0 ? call.patience : settings_.patience);
  const Target target = TargetOf(place_.endpoint, call.address, IsVirtualHosted(place_, call.address.bucket));
  const std::string payload = Hex(Sha256(call.body));
  const std::string what = call.method + " " + (place_.endpoint.tls ? "https://" : "http://") + target.host + target.path + ": ";
  bool renewed = false, doubt = false;
  uint32_t damaged = 0;
  Verdict last;
  const auto looks = [&](auto for_a_key) {
    try {
      return for_a_key();
    } catch (tw::Error& e) {
      if (call.doubt_after_loss && doubt) e.code = TW_UNAVAILABLE;
      throw;
    }
  };
  for (uint32_t attempt = 1;; ++attempt) {
    const Credential key = looks([&] { return credentials_.Get(); });
    Answer a = http_.Send(Signed(call, target, payload, key, deadline));
    if (a.failure == Answer::Failure::kNone) reached_ = true;
    Verdict v = Judge(call, a, key);
    if (v.kind == Verdict::kDone) return a;
    damaged += a.ok() && v.code == TW_DATA_LOSS;
    if (call.doubt_after_loss && doubt && v.kind != Verdict::kAgain) v.why += "; an earlier attempt may have taken effect";
    doubt |= MayHaveArrived(a);
    if (call.doubt_after_loss && doubt) v.code = TW_UNAVAILABLE;
    // The end of the time cut this attempt off; the one before says more.
    if (a.failure == Answer::Failure::kBroken && !last.why.empty() && Clock::now() >= deadline) v = last;
    if (v.kind == Verdict::kOtherKey && !std::exchange(renewed, true) && looks([&] { return credentials_.Renew(key); })) continue;
    if (v.kind != Verdict::kAgain) Fail(v.code, what + v.why);
    const auto pause = Pause(settings_, attempt);
    const bool unreachable = a.failure == Answer::Failure::kUnreachable && !reached_ && attempt >= kAttemptsToReach;
    const bool hopeless = damaged >= kDamagedAnswers;
    if (unreachable || hopeless || Clock::now() + pause >= deadline) {
      const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      std::string after = std::to_string(seconds);
      after.resize(after.find('.') + 2);
      Fail(v.code, what + v.why + " (attempt " + std::to_string(attempt) + ", after " + after + " s" +
                       (unreachable ? "; check the endpoint)"
                        : hopeless  ? "; check what stands between this machine and the store)"
                                    : "; plugin.org.thalweg.s3.patience_ms is the limit)"));
    }
    last = std::move(v);
    if (!http_.Pause(pause)) Fail(TW_CANCELLED, what + "the runtime ends");
  }
}

}  // namespace thalweg::s3
