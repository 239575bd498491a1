#include "outbox.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "connection.h"

namespace thalweg::grpc_transport {

void Outbox::PackNotes(Package* package) {
  uint64_t whole = 0;  // bytes of the whole frames that fit
  while (whole < notes_.size()) {
    Frame f;
    std::memcpy(&f, notes_.data() + whole, sizeof f);
    if (whole + sizeof f + f.head > package->room()) break;
    whole += sizeof f + f.head;
  }
  if (whole == 0) return;
  package->Copy(notes_.data(), whole);
  notes_.erase(0, whole);
}

void Outbox::Pack(Package* package, std::vector<std::shared_ptr<Exchange>>* out_answers) {
  constexpr uint64_t kLeast = sizeof(Frame) + TW_MESSAGE_HEAD + 1;  // a part of any message fits there
  ++packed_;
  PackNotes(package);
  while (notes_.empty() && !ready_.empty() && package->room() >= kLeast) {
    const std::shared_ptr<Exchange> x = std::move(ready_.front());
    ready_.pop_front();
    if (x->end != End::kNone) {  // nobody waits for the rest
      if (!x->shared) waiting_ -= x->out.bytes - x->sent;
      continue;
    }
    const tw_message& m = x->out;
    Frame f = {Kind::kPiece, 0, 0, 0, x->id, m.bytes};
    if (!x->begun) {
      f.kind = x->mine ? Kind::kRequest : Kind::kAnswer;
      f.head = uint16_t(x->out_head.size());
    }
    f.here = x->shared ? 0 : uint32_t(std::min(m.bytes - x->sent, package->room() - sizeof f - f.head));
    package->Copy(&f, sizeof f);
    if (f.head) package->Copy(x->out_head.data(), f.head);
    if (f.here) package->Body(x, static_cast<const char*>(m.body) + x->sent, f.here);
    x->begun = true;
    x->sent += f.here;
    waiting_ -= f.here;
    if (x->shared && !connection_->ShareNow(x.get())) {
      connection_->Share(x);
    } else if (x->sent < m.bytes) {
      ready_.push_back(x);
    } else if (!x->mine) {
      out_answers->push_back(x);
    }
  }
}

}  // namespace thalweg::grpc_transport
