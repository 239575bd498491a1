// The memory of requests in flight: one budget in bytes for all of them, and what each of them holds of it. Bytes are charged before they
// are allocated, from the body of a request to the last byte of its answer.
// Threads: any for RequestBudget and RequestMemory; one at a time for a Charge.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace thalweg::cli::serve {

// The bytes that all requests together may hold. REQUIRES: it outlives every RequestMemory.
class RequestBudget {
 public:
  explicit RequestBudget(uint64_t limit) : limit_(limit) {}
  RequestBudget(const RequestBudget&) = delete;
  RequestBudget& operator=(const RequestBudget&) = delete;

  uint64_t limit() const { return limit_; }
  uint64_t held() const { return held_; }
  bool Take(uint64_t bytes);  // false, and nothing is taken, beyond the limit
  void Give(uint64_t bytes) { held_ -= bytes; }

 private:
  const uint64_t limit_;
  std::atomic<uint64_t> held_{0};
};

// The bytes that one request holds. Its charges share it, so that bytes which outlive the request, in a batch that still runs, stay
// charged.
class RequestMemory {
 public:
  explicit RequestMemory(RequestBudget* budget) : budget_(budget) {}
  ~RequestMemory() { budget_->Give(held_); }
  RequestMemory(const RequestMemory&) = delete;
  RequestMemory& operator=(const RequestMemory&) = delete;

  // Throws HttpError, and takes nothing: 413 if the request by itself needs more than the budget, 429 if other requests hold it.
  void Take(uint64_t bytes);
  void Give(uint64_t bytes);

 private:
  RequestBudget* const budget_;
  std::atomic<uint64_t> held_{0};
};

// The bytes that are charged for one thing of a request, until the destructor.
class Charge {
 public:
  Charge() = default;  // of no request: holds nothing. REQUIRES: Add is not called
  explicit Charge(std::shared_ptr<RequestMemory> request) : request_(std::move(request)) {}
  Charge(Charge&& other) noexcept : request_(std::move(other.request_)), used_(other.used_), taken_(other.taken_) {
    other.used_ = other.taken_ = 0;
  }
  Charge& operator=(Charge&& other) noexcept {
    std::swap(request_, other.request_);
    std::swap(used_, other.used_);
    std::swap(taken_, other.taken_);
    return *this;
  }
  ~Charge() {
    if (taken_) request_->Give(taken_);
  }

  // Call it before the bytes are allocated. Throws as RequestMemory::Take; the charge stays as it was then.
  void Add(uint64_t bytes) {
    if (bytes > taken_ - used_) Grow(bytes);
    used_ += bytes;
  }
  // Call it after they were freed. REQUIRES: they are charged.
  void Remove(uint64_t bytes);

  uint64_t bytes() const { return used_; }
  const std::shared_ptr<RequestMemory>& request() const { return request_; }

 private:
  void Grow(uint64_t bytes);

  std::shared_ptr<RequestMemory> request_;
  uint64_t used_ = 0, taken_ = 0;  // whole pages are taken, so that small additions cost little
};

}  // namespace thalweg::cli::serve
