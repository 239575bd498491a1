#include "framework/base/status.h"

#include <new>

#include "framework/json/utf8.h"

namespace thalweg {

std::string_view Message(const Status& s) { return StdView(s.message()); }

Status Prefix(const Status& s, std::string_view where) {
  if (s.ok()) return s;
  Status out(s.code(), AbslView(StrCat(where, " ", Message(s))));
  s.ForEachPayload([&](absl::string_view url, const absl::Cord& value) { out.SetPayload(url, value); });
  return out;
}

namespace {
constexpr char kNodePayload[] = "thalweg/node";
}

Status OfNode(std::string_view node, Status s) {
  if (!s.ok() && !node.empty() && !s.GetPayload(kNodePayload)) s.SetPayload(kNodePayload, absl::Cord(AbslView(node)));
  return s;
}

namespace {
// Handed out when there is no memory for a status of its own; never freed.
tw_status* OutOfMemory() {
  static tw_status shared{Status(absl::StatusCode::kResourceExhausted, "out of host memory"), "out of host memory", ""};
  return &shared;
}
}  // namespace

Status Thrown() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return Status(absl::StatusCode::kResourceExhausted, "out of host memory");
  } catch (const std::exception& e) {
    return Status(absl::StatusCode::kInternal, StrCat("a C++ exception was thrown: ", e.what()));
  } catch (...) {
    return Status(absl::StatusCode::kInternal, "a C++ exception was thrown");
  }
}

tw_status* ToC(Status s) noexcept {
  if (s.ok()) return nullptr;
  try {
    auto* c = new tw_status{std::move(s), {}, {}};
    // C reads up to the first zero, terminals obey control characters: names and values out of hostile files may hold both.
    c->text = OneLine(Message(c->status));
    if (auto node = c->status.GetPayload(kNodePayload)) c->node = std::string(*node);
    return c;
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
