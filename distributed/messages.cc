#include "distributed/messages.h"

#include <algorithm>
#include <concepts>
#include <type_traits>

#include "thalweg/plugin/transport.h"

namespace thalweg::distributed {
namespace {

constexpr uint8_t kConsequence = 1;
constexpr size_t kMostText = 2000;  // of a failure, so that it fits into a head

uint8_t CodeOf(const Status& s) { return uint8_t(s.code()); }
bool IsCode(uint8_t code) { return code <= uint8_t(absl::StatusCode::kUnauthenticated); }

Status MakeStatus(uint8_t code, std::string_view text) { return Error(static_cast<absl::StatusCode>(code), text); }

}  // namespace

std::string PutRequest(Method method, uint64_t incarnation, const WireWriter& fields) {
  WireWriter w;
  w.Number(kProtocol);
  w.Number(uint8_t(method));
  w.Number(incarnation);
  w.Raw(fields.bytes().data(), fields.bytes().size());
  return w.Take();
}

StatusOr<RequestHead> GetRequest(std::string_view head) {
  WireReader r(head);
  const auto version = r.Number<uint8_t>();
  RequestHead out;
  const auto method = r.Number<uint8_t>();
  out.method = Method(method);
  out.incarnation = r.Number<uint64_t>();
  out.fields = r.rest();
  if (!r.ok()) return InvalidArgument("a request is cut short");
  if (version != kProtocol) {
    return FailedPrecondition("a request of protocol version ", int(version), ", but this runtime speaks ", int(kProtocol),
                              "; use one version of the runtime in all processes");
  }
  if (method < uint8_t(Method::kHello) || method > uint8_t(Method::kReset)) {
    return InvalidArgument("a request for method ", int(method), ", which there is not");
  }
  return out;
}

std::string PutAnswer(const WireWriter& fields) {
  WireWriter w;
  w.Number(uint8_t{0});
  w.Number(uint8_t{0});
  w.Raw(fields.bytes().data(), fields.bytes().size());
  return w.Take();
}

std::string PutFailure(const Outcome& outcome) {
  WireWriter w;
  w.Number(CodeOf(outcome.status));
  w.Number(uint8_t(outcome.consequence ? kConsequence : 0));
  w.Text(Message(outcome.status).substr(0, kMostText));
  return w.Take();
}

StatusOr<Outcome> GetAnswer(std::string_view head, std::string_view* fields) {
  WireReader r(head);
  const auto code = r.Number<uint8_t>();
  const auto flags = r.Number<uint8_t>();
  *fields = {};
  if (!r.ok() || !IsCode(code)) return InvalidArgument("an answer has no code");
  if (code == 0) {
    *fields = r.rest();
    return Outcome();
  }
  const std::string_view text = r.Text();
  if (!r.ok()) return InvalidArgument("the text of a failure is cut short");
  return Outcome{MakeStatus(code, text), (flags & kConsequence) != 0};
}

// ---- Messages: their fields, in the order of their bytes ----

namespace {

template <class T, class M>
concept Is = std::same_as<std::remove_const_t<T>, M>;

void Each(auto* wire, Is<Hello> auto& m) { wire->Fields(m.job, m.index, m.incarnation, m.version, m.steps, m.sessions); }
void Each(auto* wire, Is<OpenRequest> auto& m) { wire->Fields(m.session, m.options); }
void Each(auto* wire, Is<SessionRequest> auto& m) { wire->Fields(m.session); }
void Each(auto* wire, Is<ResetRequest> auto& m) { wire->Fields(m.container); }
void Each(auto* wire, Is<ResetAnswer> auto& m) { wire->Fields(m.count); }
void Each(auto* wire, Is<HandleMessage> auto& m) { wire->Fields(m.session, m.handle); }
void Each(auto* wire, Is<RunRequest> auto& m) { wire->Fields(m.session, m.handle, m.step, m.oldest, m.time_left); }
void Each(auto* wire, Is<ReceiveRequest> auto& m) { wire->Fields(m.session, m.step, m.key, m.owner); }
void Each(auto* wire, Is<PushRequest> auto& m) { wire->Fields(m.session, m.step, m.owner); }

template <class M>
StatusOr<M> Whole(std::string_view fields, std::string_view what) {
  WireReader r(fields);
  M m;
  Each(&r, m);
  RETURN_IF_ERROR(r.End(what));
  return m;
}

}  // namespace

void Hello::Put(WireWriter* to) const {
  Each(to, *this);
  if (features) to->Number(features);
}
StatusOr<Hello> Hello::Get(std::string_view fields) {
  WireReader r(fields);
  Hello m;
  Each(&r, m);
  if (r.ok() && !r.rest().empty()) r.Fields(m.features);
  RETURN_IF_ERROR(r.End("what a task says of itself"));
  return m;
}

void OpenRequest::Put(WireWriter* to) const { Each(to, *this); }
StatusOr<OpenRequest> OpenRequest::Get(std::string_view fields) { return Whole<OpenRequest>(fields, "a request to open a session"); }

void SessionRequest::Put(WireWriter* to) const { Each(to, *this); }
StatusOr<SessionRequest> SessionRequest::Get(std::string_view fields) { return Whole<SessionRequest>(fields, "a request about a session"); }

void ResetRequest::Put(WireWriter* to) const { Each(to, *this); }
StatusOr<ResetRequest> ResetRequest::Get(std::string_view fields) { return Whole<ResetRequest>(fields, "a request to reset a container"); }

void ResetAnswer::Put(WireWriter* to) const { Each(to, *this); }
StatusOr<ResetAnswer> ResetAnswer::Get(std::string_view fields) { return Whole<ResetAnswer>(fields, "the answer to a reset"); }

void HandleMessage::Put(WireWriter* to) const { Each(to, *this); }
StatusOr<HandleMessage> HandleMessage::Get(std::string_view fields) { return Whole<HandleMessage>(fields, "the name of a signature"); }

void RunRequest::Put(WireWriter* to) const { Each(to, *this); }
StatusOr<RunRequest> RunRequest::Get(std::string_view fields) {
  ASSIGN_OR_RETURN(RunRequest m, Whole<RunRequest>(fields, "a request to run"));
  m.time_left = std::clamp<int64_t>(m.time_left, 0, INT64_MAX / 2);  // it is added to a time
  return m;
}

void ReceiveRequest::Put(WireWriter* to) const { Each(to, *this); }
StatusOr<ReceiveRequest> ReceiveRequest::Get(std::string_view fields) { return Whole<ReceiveRequest>(fields, "a request for a value"); }

void PushRequest::Put(WireWriter* to) const { Each(to, *this); }
StatusOr<PushRequest> PushRequest::Get(std::string_view fields) { return Whole<PushRequest>(fields, "a request that brings values"); }

Status PutPushed(const std::vector<PushedValue>& values, WireWriter* to) {
  to->Number(uint32_t(values.size()));
  for (const PushedValue& v : values) {
    to->Text(v.key);
    to->Number(uint8_t(v.state));
    if (v.state == PushedValue::kHere) RETURN_IF_ERROR(PutTensor(v.value, to));
  }
  return Status();
}
StatusOr<std::vector<PushedValue>> GetPushed(WireReader* from, MemoryBudget* budget, std::vector<std::string>* refused) {
  std::vector<PushedValue> all;
  const uint32_t n = from->Room(&all, sizeof(uint32_t) + 1);
  for (uint32_t i = 0; i < n; ++i) {
    PushedValue& v = all.emplace_back();
    v.key = from->KeptText();
    const auto state = from->Number<uint8_t>();
    if (!from->ok() || state > PushedValue::kAsk) return from->Bad("values that were sent are cut short, or of no known kind");
    v.state = PushedValue::State(state);
    if (v.state != PushedValue::kHere) continue;
    auto value = GetTensor(from, budget);
    if (refused && from->ok() && value.status().code() == absl::StatusCode::kResourceExhausted) {
      v.state = PushedValue::kAsk;
      refused->push_back(v.key);
      continue;
    }
    RETURN_IF_ERROR(value.status());
    v.value = *std::move(value);
  }
  return all;
}

uint64_t CarriedBytes(const std::vector<CarriedValues>& all) {
  uint64_t bytes = sizeof(uint32_t);
  for (const CarriedValues& c : all) {
    bytes += sizeof c.incarnation + sizeof(uint32_t);
    for (const PushedValue& v : c.values) {
      bytes += sizeof(uint32_t) + v.key.size() + 1 + (v.state == PushedValue::kHere ? WireBytes(v.value) : 0);
    }
  }
  return bytes;
}
Status PutCarried(const std::vector<CarriedValues>& all, WireWriter* to) {
  to->Number(uint32_t(all.size()));
  for (const CarriedValues& c : all) {
    to->Number(c.incarnation);
    RETURN_IF_ERROR(PutPushed(c.values, to));
  }
  return Status();
}
StatusOr<std::vector<CarriedValues>> GetCarried(std::string_view bytes) {
  WireReader r(bytes);
  std::vector<CarriedValues> all;
  const uint32_t n = r.Count(sizeof(uint64_t) + sizeof(uint32_t));
  for (uint32_t i = 0; i < n; ++i) {
    CarriedValues& c = all.emplace_back();
    c.incarnation = r.Number<uint64_t>();
    ASSIGN_OR_RETURN(c.values, GetPushed(&r));
  }
  RETURN_IF_ERROR(r.End("values that came with an answer"));
  return all;
}

void AbortRequest::Put(WireWriter* to) const {
  to->Number(session);
  to->Number(step);
  to->Number(CodeOf(why));
  to->Text(Message(why).substr(0, kMostText));
}
StatusOr<AbortRequest> AbortRequest::Get(std::string_view fields) {
  WireReader r(fields);
  AbortRequest m;
  m.session = r.Number<uint64_t>();
  m.step = r.Number<uint64_t>();
  const auto code = r.Number<uint8_t>();
  const std::string_view text = r.Text();
  RETURN_IF_ERROR(r.End("a request to end a step"));
  if (code == 0 || !IsCode(code)) return InvalidArgument("a request to end a step has code ", int(code));
  m.why = MakeStatus(code, text);
  return m;
}

}  // namespace thalweg::distributed
