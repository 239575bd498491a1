// Reader: an object that is open for reading. The head was read when it was opened. Reads that follow
// each other get a window, which doubles up to the setting `read_ahead`, and the next window is read
// by a thread; other reads get what they ask for. Threads: any, several at once.
#ifndef THALWEG_PLUGINS_S3_READER_H_
#define THALWEG_PLUGINS_S3_READER_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "address.h"
#include "objects.h"
#include "store.h"

namespace thalweg::s3 {

class Reader {
 public:
  // Throws NOT_FOUND. store: must outlive this.
  Reader(Store* store, Address at);
  Reader(const Reader&) = delete;
  uint64_t size() const { return object_->seen.size; }
  // Returns text that is the same for two readers only if they read one object with one ETag; "" if the
  // store sent no ETag.
  std::string Identity() const;
  // Reads exactly n bytes. Throws OUT_OF_RANGE if the object ends before, and what Objects::Read throws.
  void Read(uint64_t offset, void* to, uint64_t n);

 private:
  struct Object {
    Address at;
    Seen seen;
  };
  // A window: bytes [offset, offset + n) of the object, or a part that is being read.
  struct Block;

  static void Fill(Store* store, const Object& object, Block* block) noexcept;
  std::shared_ptr<Block> Find(uint64_t offset) const;
  std::shared_ptr<Block> Enter(uint64_t offset, uint64_t n);
  void ReadNext(const Block& block);
  std::shared_ptr<Block> BlockAt(uint64_t offset, uint64_t n, bool sequential);
  void ReadDirectly(uint64_t offset, char* to, uint64_t n);

  Store& store_;
  const common::Origin origin_;
  std::shared_ptr<const Object> object_;  // shared with what is read meanwhile, which may end later
  std::mutex mu_;
  std::vector<std::shared_ptr<Block>> blocks_;  // guarded by mu_; at most two
  uint64_t next_ = 0;                           // guarded by mu_: where the last read ended
  uint64_t window_;                             // guarded by mu_: bytes of the next block
};

}  // namespace thalweg::s3

#endif  // THALWEG_PLUGINS_S3_READER_H_
