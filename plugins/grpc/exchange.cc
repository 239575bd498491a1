#include "exchange.h"

#include "connection.h"

namespace thalweg::grpc_transport {

void Exchange::Released() {
  auto self = shared_from_this();
  if (held.fetch_sub(1) != 1 || !awaits_release.load()) return;
  chores->Add([self] {
    if (auto c = self->connection.lock()) c->Settle(self);
  });
}

}  // namespace thalweg::grpc_transport
