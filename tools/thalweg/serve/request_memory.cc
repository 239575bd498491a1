#include "request_memory.h"

#include <string>

#include "http_error.h"

namespace thalweg::cli::serve {
namespace {

constexpr uint64_t kPage = 4096;

}  // namespace

bool RequestBudget::Take(uint64_t bytes) {
  uint64_t held = held_;
  do {
    if (bytes > limit_ - held) return false;
  } while (!held_.compare_exchange_weak(held, held + bytes));
  return true;
}

void RequestMemory::Take(uint64_t bytes) {
  if (budget_->Take(bytes)) {
    held_ += bytes;
    return;
  }
  const uint64_t limit = budget_->limit(), own = held_;
  if (bytes > limit - own) {
    throw HttpError(413, "the request holds " + std::to_string(own) + " bytes of memory and needs " + std::to_string(bytes) +
                             " more; all requests in flight together may hold " + std::to_string(limit) +
                             " (--request-memory). Send fewer values, or binary tensor data in place of JSON");
  }
  throw HttpError(429, "the requests in flight hold " + std::to_string(budget_->held()) + " of " + std::to_string(limit) +
                           " bytes of memory (--request-memory), and this one needs " + std::to_string(bytes) + " more; try again");
}

void RequestMemory::Give(uint64_t bytes) {
  held_ -= bytes;
  budget_->Give(bytes);
}

void Charge::Grow(uint64_t bytes) {
  const uint64_t missing = bytes - (taken_ - used_);
  const uint64_t pages = missing > UINT64_MAX - kPage ? missing : (missing + kPage - 1) / kPage * kPage;
  request_->Take(pages);
  taken_ += pages;
}

void Charge::Remove(uint64_t bytes) {
  used_ -= bytes;
  const uint64_t spare = (taken_ - used_) / kPage * kPage;
  if (spare < 16 * kPage) return;
  request_->Give(spare);
  taken_ -= spare;
}

}  // namespace thalweg::cli::serve
