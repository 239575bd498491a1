#include "tools/conformance/guarded.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <mutex>

#include <sys/mman.h>

namespace thalweg::conformance {
namespace {

constexpr uint64_t kPage = 4096, kChunk = 4 * kPage, kGap = kTail;

// Keeps the pages of ended calls. The pages of a hasty host stay unreadable for a while, so that
// their addresses are not reused soon.
class Graveyard {
 public:
  char* Take(uint64_t bytes) {
    std::lock_guard lock(mu_);
    if (bytes != kChunk || spare_.empty()) return nullptr;
    char* at = spare_.back();
    spare_.pop_back();
    return at;
  }
  void Bury(char* at, uint64_t bytes) {
    std::lock_guard lock(mu_);
    mprotect(at, bytes, PROT_NONE);
    madvise(at, bytes, MADV_DONTNEED);
    graves_.push_back({at, bytes});
    if (graves_.size() <= 256) return;
    munmap(graves_.front().first, graves_.front().second);
    graves_.pop_front();
  }
  void Spare(char* at, uint64_t bytes) {
    std::lock_guard lock(mu_);
    if (bytes == kChunk)
      spare_.push_back(at);
    else
      munmap(at, bytes);
  }

 private:
  std::mutex mu_;
  std::deque<std::pair<char*, uint64_t>> graves_;
  std::vector<char*> spare_;
};
Graveyard& TheGraveyard() {
  static auto* it = new Graveyard;
  return *it;
}

}  // namespace

Guarded::~Guarded() {
  Close();
  for (const Chunk& c : chunks_) TheGraveyard().Spare(c.at, c.bytes);
}

void* Guarded::Bytes(uint64_t n) {
  n = (n + 15) / 16 * 16 + kGap;
  if (chunks_.empty() || chunks_.back().bytes - used_ < n) {
    const uint64_t bytes = std::max(kChunk, (n + kPage - 1) / kPage * kPage);
    void* p = TheGraveyard().Take(bytes);
    if (!p) p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) std::abort();
    std::memset(p, kPoison, bytes);
    chunks_.push_back({static_cast<char*>(p), bytes});
    used_ = 0;
  }
  void* at = chunks_.back().at + used_;
  used_ += n;
  return at;
}

const tw_attr* Guarded::Attrs(const tw_attr* attrs, uint32_t n) {
  tw_attr* out = Array(attrs, n);
  for (uint32_t i = 0; i < n; ++i) {
    out[i].name = Text({attrs[i].name, attrs[i].name_len});
    const uint32_t count = attrs[i].count;
    switch (attrs[i].kind) {
      case TW_ATTR_INT: out[i].data = Array(static_cast<const int64_t*>(attrs[i].data), count); break;
      case TW_ATTR_FLOAT: out[i].data = Array(static_cast<const double*>(attrs[i].data), count); break;
      case TW_ATTR_BOOL: out[i].data = Array(static_cast<const uint8_t*>(attrs[i].data), count); break;
      case TW_ATTR_TYPE: out[i].data = Array(static_cast<const uint32_t*>(attrs[i].data), count); break;
      case TW_ATTR_SHAPE: out[i].data = Shapes(static_cast<const tw_shape*>(attrs[i].data), count); break;
      case TW_ATTR_TENSOR: out[i].data = Array(static_cast<tw_tensor* const*>(attrs[i].data), count); break;
      default: {
        tw_string* strings = Array(static_cast<const tw_string*>(attrs[i].data), count);
        for (uint32_t k = 0; k < count; ++k) strings[k].data = Text({strings[k].data, strings[k].size});
        out[i].data = strings;
      }
    }
  }
  return out;
}

const tw_shape* Guarded::Shapes(const tw_shape* shapes, uint64_t n) {
  tw_shape* out = Array(shapes, n);
  for (uint64_t i = 0; i < n; ++i) {
    if (out[i].rank > 0) out[i].dims = Array(shapes[i].dims, uint64_t(shapes[i].rank));
  }
  return out;
}

void Guarded::Close() {
  if (closed_) return;
  closed_ = true;
  if (!hasty_) return;
  for (const Chunk& c : chunks_) TheGraveyard().Bury(c.at, c.bytes);
  chunks_.clear();
}

}  // namespace thalweg::conformance
