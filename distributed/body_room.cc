#include "distributed/body_room.h"

#include <utility>

namespace thalweg::distributed {

BodyRoom::Share::Share(std::shared_ptr<BodyRoom> room, std::string client, uint64_t bytes)
    : room_(std::move(room)), client_(std::move(client)), bytes_(bytes) {}

BodyRoom::Share::~Share() { room_->Give(client_, bytes_); }

std::unique_ptr<BodyRoom::Share> BodyRoom::Take(const std::string& client, uint64_t bytes) {
  {
    std::lock_guard lock(mu_);
    if (bytes > most_ - taken_) return nullptr;
    if (!client.empty()) {
      auto it = of_client_.find(client);
      if (bytes > most_of_one_ - (it == of_client_.end() ? 0 : it->second)) return nullptr;
      of_client_[client] += bytes;
    }
    taken_ += bytes;
  }
  return std::make_unique<Share>(shared_from_this(), client, bytes);
}

void BodyRoom::Give(const std::string& client, uint64_t bytes) {
  std::lock_guard lock(mu_);
  taken_ -= bytes;
  auto it = of_client_.find(client);
  if (it != of_client_.end() && (it->second -= bytes) == 0) of_client_.erase(it);
}

}  // namespace thalweg::distributed
