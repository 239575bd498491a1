#include "reader.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "digest.h"
#include "fail.h"

namespace thalweg::s3 {
namespace {

constexpr uint64_t kHead = 64 << 10;
constexpr uint64_t kFirstWindow = 256 << 10;
// A read continues the last one if it begins so close to its end: readers of records read the record
// again that their buffer has cut, and leave out those that they do not want.
constexpr uint64_t kNear = 256 << 10;
// Longer reads are cut, so that their pieces come over several connections.
constexpr uint64_t kPiece = 8 << 20;

}  // namespace

struct Reader::Block {
  Store& store;
  const uint64_t offset, size;
  std::mutex mu;
  std::condition_variable changed;
  enum { kReading, kRead, kFailed } state = kReading;  // guarded by mu
  std::unique_ptr<char[]> bytes;                       // constant once it is read

  // REQUIRES: the memory was taken.
  Block(Store* s, uint64_t o, uint64_t n) : store(*s), offset(o), size(n) {}
  ~Block() { store.GiveMemory(size); }
  bool Has(uint64_t at) const { return at >= offset && at - offset < size; }
  bool Wait() {
    std::unique_lock lock(mu);
    changed.wait(lock, [&] { return state != kReading; });
    return state == kRead;
  }
};

Reader::Reader(Store* store, Address at) : store_(*store), window_(std::min(kFirstWindow, store->settings().read_ahead)) {
  Object o = {std::move(at), {}};
  if (!store_.here().objects.Look(o.at, kHead, &o.seen)) Fail(TW_NOT_FOUND, o.at.text() + ": there is no such object");
  object_ = std::make_shared<const Object>(std::move(o));
}

// A failure is no error of any read yet: the one that needs the bytes reads them again.
void Reader::Fill(Store* store, const Object& object, Block* block) noexcept {
  bool read = false;
  try {
    block->bytes.reset(new char[block->size]);
    store->here().objects.Read(object.at, object.seen, block->offset, block->bytes.get(), block->size);
    read = true;
  } catch (const tw::Error&) {
  } catch (const std::exception&) {
  }
  std::lock_guard lock(block->mu);
  block->state = read ? Block::kRead : Block::kFailed;
  block->changed.notify_all();
}

// REQUIRES: mu_ is held.
std::shared_ptr<Reader::Block> Reader::Find(uint64_t offset) const {
  for (const auto& block : blocks_) {
    if (block->Has(offset)) return block;
  }
  return nullptr;
}

// Adds a block that begins there, and forgets the older one of two. Returns NULL if there is no memory
// to read ahead. REQUIRES: mu_ is held, and offset < size().
std::shared_ptr<Reader::Block> Reader::Enter(uint64_t offset, uint64_t n) {
  n = std::min(n, size() - offset);
  if (!store_.TakeMemory(n)) return nullptr;
  std::shared_ptr<Block> block;
  try {
    block = std::make_shared<Block>(&store_, offset, n);
  } catch (...) {
    store_.GiveMemory(n);
    throw;
  }
  if (blocks_.size() == 2) blocks_.erase(blocks_.begin());
  blocks_.push_back(block);
  window_ = std::min(2 * window_, std::max(store_.settings().read_ahead, window_));
  return block;
}

// Has a thread read the block after this one. REQUIRES: mu_ is held.
void Reader::ReadNext(const Block& block) {
  const uint64_t end = block.offset + block.size;
  if (end >= size() || Find(end)) return;
  const std::shared_ptr<Block> next = Enter(end, window_);
  if (!next) return;
  bool queued = false;
  try {
    queued = store_.here().workers.Offer([store = &store_, object = object_, next] { Fill(store, *object, next.get()); });
  } catch (const std::bad_alloc&) {
  }
  if (!queued) std::erase(blocks_, next);
}

// Returns the block that has the byte at `offset`, of which the next n are wanted; NULL if it is to be
// read directly.
std::shared_ptr<Reader::Block> Reader::BlockAt(uint64_t offset, uint64_t n, bool sequential) {
  const uint64_t most = store_.settings().read_ahead;
  std::shared_ptr<Block> block;
  {
    std::lock_guard lock(mu_);
    block = Find(offset);
    if (block) {
      if (sequential) ReadNext(*block);
      return block;
    }
    if (sequential && n <= most / 2) block = Enter(offset, std::min(most, std::max(window_, 2 * n)));
  }
  if (block) Fill(&store_, *object_, block.get());
  return block;
}

void Reader::ReadDirectly(uint64_t offset, char* to, uint64_t n) {
  Process& process = store_.here();
  process.workers.ForAll((n + kPiece - 1) / kPiece, [&](uint64_t i) {
    const uint64_t at = i * kPiece;
    process.objects.Read(object_->at, object_->seen, offset + at, to + at, std::min(kPiece, n - at));
  });
}

std::string Reader::Identity() const {
  const Seen& seen = object_->seen;
  if (seen.tag.empty()) return {};
  return Hex(Sha256(object_->at.text() + "\n" + seen.tag + "\n" + std::to_string(seen.size)));  // a key alone may be longer than allowed
}

void Reader::Read(uint64_t offset, void* to, uint64_t n) {
  if (offset > size() || n > size() - offset) {
    Fail(TW_OUT_OF_RANGE, "the object has " + std::to_string(size()) + " bytes, not " + std::to_string(offset) + " + " + std::to_string(n));
  }
  // In a forked child nobody completes the parent's blocks, and the lock may be held for ever.
  const bool ahead = origin_.here() && store_.settings().read_ahead > 0;
  bool sequential = false;
  if (ahead) {
    std::lock_guard lock(mu_);
    const uint64_t before = std::exchange(next_, offset + n);
    sequential = offset + kNear >= before && offset <= before + kNear;
  }
  char* out = static_cast<char*>(to);
  const auto copy = [&](const char* from, uint64_t k) {
    std::memcpy(out, from, k);
    out += k;
    offset += k;
    n -= k;
  };
  const std::string& head = object_->seen.head;
  if (n > 0 && offset < head.size()) copy(head.data() + offset, std::min(n, head.size() - offset));
  while (n > 0) {
    const std::shared_ptr<Block> block = ahead ? BlockAt(offset, n, sequential) : nullptr;
    if (!block) return ReadDirectly(offset, out, n);
    if (!block->Wait()) {
      {
        std::lock_guard lock(mu_);
        std::erase(blocks_, block);
      }
      return ReadDirectly(offset, out, n);
    }
    const uint64_t from = offset - block->offset;
    copy(block->bytes.get() + from, std::min(n, block->size - from));
  }
}

}  // namespace thalweg::s3
