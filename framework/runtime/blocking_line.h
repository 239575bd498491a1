// BlockingLine: limits how many of a pool's threads for blocking work a set of guests may use, in
// total and per guest. Excess work waits: each guest's work is in FIFO order, and the guests take
// turns. Work in a line must not wait for work behind it; kernels that block, for which a run
// waits, therefore use another line than the runs. Threads: any.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "framework/runtime/thread_pool.h"

namespace thalweg {

class BlockingLine : public std::enable_shared_from_this<BlockingLine> {
 public:
  // pool: must outlive the work in the line. most: threads of all guests, at least one.
  static std::shared_ptr<BlockingLine> Create(ThreadPool* pool, uint32_t most) {
    return std::shared_ptr<BlockingLine>(new BlockingLine(pool, most));
  }

  class Guest : public std::enable_shared_from_this<Guest> {
   public:
    // Runs f, which must not throw, on a thread that may block, now or later. If the limits allow
    // it now, this is ThreadPool::Blocking.
    void Run(std::function<void()> f);

   private:
    friend class BlockingLine;
    Guest(std::shared_ptr<BlockingLine> line, uint32_t most) : line_(std::move(line)), most_(most) {}
    const std::shared_ptr<BlockingLine> line_;
    const uint32_t most_;
    // Guarded by the line's mutex.
    std::deque<std::function<void()>> waiting_;
    uint32_t running_ = 0;
    bool listed_ = false;
  };
  // most: threads of this guest, at least one.
  std::shared_ptr<Guest> MakeGuest(uint32_t most) { return std::shared_ptr<Guest>(new Guest(shared_from_this(), most)); }
  uint32_t running() const;
  uint64_t waiting() const;  // queued functions

 private:
  BlockingLine(ThreadPool* pool, uint32_t most) : pool_(pool), most_(most) {}
  void List(const std::shared_ptr<Guest>& g);
  std::shared_ptr<Guest> TakeNext(std::function<void()>* out);
  void Work(std::shared_ptr<Guest> g, std::function<void()> f);
  std::shared_ptr<Guest> Ended(Guest* g, std::function<void()>* out);

  ThreadPool* const pool_;
  const uint32_t most_;
  mutable std::mutex mu_;
  uint32_t running_ = 0;
  uint64_t waiting_ = 0;
  std::deque<std::shared_ptr<Guest>> ready_;  // guests with work that only `most` keeps from running
};

}  // namespace thalweg
