// BodyRoom: the memory that bodies of requests have which others send, from their first byte until they were read: there is a limit for all
// together, and one for each client, so that none of them keeps the others out. Threads: any.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace thalweg::distributed {

class BodyRoom : public std::enable_shared_from_this<BodyRoom> {
 public:
  BodyRoom(uint64_t most, uint64_t most_of_one) : most_(most), most_of_one_(most_of_one) {}
  // What one body has of it, for as long as it lives.
  class Share {
   public:
    Share(std::shared_ptr<BodyRoom> room, std::string client, uint64_t bytes);
    ~Share();

   private:
    const std::shared_ptr<BodyRoom> room_;
    const std::string client_;
    const uint64_t bytes_;
  };
  // client: empty: nobody's in particular. NULL: there is no room for so many bytes now.
  std::unique_ptr<Share> Take(const std::string& client, uint64_t bytes);

 private:
  void Give(const std::string& client, uint64_t bytes);
  const uint64_t most_, most_of_one_;
  std::mutex mu_;
  uint64_t taken_ = 0;
  std::map<std::string, uint64_t> of_client_;
};

}  // namespace thalweg::distributed
