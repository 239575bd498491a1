#include "framework/base/status.h"

#include <memory>
#include <new>

#include "framework/base/thread_reserve.h"
#include "framework/json/utf8.h"

namespace thalweg {
namespace {
constexpr std::string_view kOutOfMemory = "out of host memory";
}

Status MakeError(absl::StatusCode code, std::initializer_list<TextPart> parts) { return Status(code, AbslView(Joined(parts))); }

std::string_view Message(const Status& s) {
  // Thrown makes such a status without memory for a message.
  if (s.code() == absl::StatusCode::kResourceExhausted && s.message().empty()) return kOutOfMemory;
  return StdView(s.message());
}

Status WithMessage(const Status& s, std::string_view message) {
  Status out(s.code(), AbslView(message));
  s.ForEachPayload([&](absl::string_view url, const absl::Cord& value) { out.SetPayload(url, value); });
  return out;
}

Status Prefix(const Status& s, std::string_view where) { return s.ok() ? s : WithMessage(s, StrCat(where, " ", Message(s))); }

namespace {
constexpr char kNodePayload[] = "thalweg/node";
constexpr char kPlacePayload[] = "thalweg/place";
constexpr char kCallsPayload[] = "thalweg/calls";
constexpr char kCookiePayload[] = "thalweg/cookie";
}  // namespace

Status OfNode(std::string_view node, Status s) { return OfNode(node, {}, std::move(s)); }

Status OutOfCall(Status s) {
  const std::string calls = std::to_string(CallsLeft(s) + 1);
  s.SetPayload(kCallsPayload, absl::Cord(AbslView(calls)));
  return s;
}

uint32_t CallsLeft(const Status& s) {
  const auto calls = s.GetPayload(kCallsPayload);
  return calls ? uint32_t(std::stoul(std::string(*calls))) : 0;
}

Status WithCookie(Status s, uint64_t cookie) {
  if (cookie != 0) s.SetPayload(kCookiePayload, absl::Cord(AbslView(std::to_string(cookie))));
  return s;
}

uint64_t CookieOf(const Status& s) {
  const auto cookie = s.GetPayload(kCookiePayload);
  return cookie ? std::stoull(std::string(*cookie)) : 0;
}

Status OfNode(std::string_view node, std::string_view place, Status s) {
  if (s.ok() || node.empty() || s.GetPayload(kNodePayload)) return s;
  s.SetPayload(kNodePayload, absl::Cord(AbslView(node)));
  if (!place.empty()) s.SetPayload(kPlacePayload, absl::Cord(AbslView(place)));
  return s;
}

namespace {
// Returned if there is no memory for a status of its own; never freed. It needs no memory: its text
// fits std::string's inline storage.
tw_status* OutOfMemory() {
  static tw_status shared{Status(absl::StatusCode::kResourceExhausted, ""), "out of memory", "", ""};
  return &shared;
}
}  // namespace

tw_status* NoMemoryForThread() noexcept { return OutOfMemory(); }

namespace {
Status Told(std::string_view what) noexcept {
  try {
    return Internal("a C++ exception was thrown: ", what);
  } catch (...) {
    return Status(absl::StatusCode::kInternal, "");
  }
}
}  // namespace

Status Thrown() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return Status(absl::StatusCode::kResourceExhausted, "");
  } catch (const std::exception& e) {
    return Told(e.what());
  } catch (...) {
    return Told("of an unknown type");
  }
}

tw_status* ToC(Status s) noexcept {
  if (s.ok()) return nullptr;
  try {
    std::unique_ptr<tw_status> c(new tw_status{std::move(s), {}, {}, {}});
    // C reads up to the first NUL, and terminals obey control characters. Names and values from
    // hostile files may contain both.
    c->text = OneLine(Message(c->status));
    if (auto node = c->status.GetPayload(kNodePayload)) c->node = std::string(*node);
    if (auto place = c->status.GetPayload(kPlacePayload)) c->place = std::string(*place);
    c->cookie = CookieOf(c->status);
    return c.release();
  } catch (...) {
    return OutOfMemory();
  }
}

Status FromC(tw_status* s) {
  if (!s) return Status();
  Status out = s->status;
  if (s != OutOfMemory()) delete s;
  return out;
}

}  // namespace thalweg
