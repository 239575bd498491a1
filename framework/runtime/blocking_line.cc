#include "framework/runtime/blocking_line.h"

#include <utility>

namespace thalweg {

uint32_t BlockingLine::running() const {
  std::lock_guard lock(mu_);
  return running_;
}

uint64_t BlockingLine::waiting() const {
  std::lock_guard lock(mu_);
  return waiting_;
}

// REQUIRES: mu_.
void BlockingLine::List(const std::shared_ptr<Guest>& g) {
  if (g->listed_ || g->waiting_.empty() || g->running_ >= g->most_) return;
  ready_.push_back(g);
  g->listed_ = true;
}

// Takes the next function and returns its guest; NULL if nothing can begin now. REQUIRES: mu_ is
// held.
std::shared_ptr<BlockingLine::Guest> BlockingLine::TakeNext(std::function<void()>* out) {
  if (ready_.empty() || running_ >= most_) return nullptr;
  auto g = std::move(ready_.front());
  ready_.pop_front();
  g->listed_ = false;
  *out = std::move(g->waiting_.front());
  g->waiting_.pop_front();
  --waiting_;
  ++g->running_;
  ++running_;
  List(g);
  return g;
}

void BlockingLine::Guest::Run(std::function<void()> f) {
  BlockingLine& line = *line_;
  {
    std::lock_guard lock(line.mu_);
    if (line.running_ >= line.most_ || running_ >= most_) {
      waiting_.push_back(std::move(f));
      ++line.waiting_;
      return line.List(shared_from_this());
    }
    ++running_;
    ++line.running_;
  }
  try {
    line.pool_->Blocking([own = line_, g = shared_from_this(), f = std::move(f)]() mutable { own->Work(std::move(g), std::move(f)); });
  } catch (...) {  // no memory to hand it over: let other waiting work go on
    std::function<void()> next;
    if (auto other = line.Ended(this, &next)) line.Work(std::move(other), std::move(next));
    throw;
  }
}

// Runs f and then further work: each end makes room for at most one function, so this thread runs
// it.
void BlockingLine::Work(std::shared_ptr<Guest> g, std::function<void()> f) {
  while (g) {
    f();
    f = nullptr;  // destroys its captures before others learn that there is room
    g = Ended(g.get(), &f);
  }
}

std::shared_ptr<BlockingLine::Guest> BlockingLine::Ended(Guest* g, std::function<void()>* out) {
  std::lock_guard lock(mu_);
  --g->running_;
  --running_;
  List(g->shared_from_this());
  return TakeNext(out);
}

}  // namespace thalweg
