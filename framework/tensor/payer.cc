#include "framework/tensor/payer.h"

#include <utility>

#include "framework/tensor/memory_budget.h"

namespace thalweg {
namespace {

thread_local MemoryBudget* payer = nullptr;

}  // namespace

MemoryBudget* PayerOfThread() { return payer; }
MemoryBudget* SetPayerOfThread(MemoryBudget* budget) { return std::exchange(payer, budget); }

PaysFor::PaysFor(MemoryBudget* budget) : before_(SetPayerOfThread(budget)) {}
PaysFor::~PaysFor() { payer = before_; }

PaidBytes::PaidBytes() : budget_(payer) {
  if (budget_) budget_->Retain();
}

PaidBytes::~PaidBytes() {
  if (!budget_) return;
  budget_->Give(bytes_);
  budget_->Release();
}

Status PaidBytes::Take(uint64_t bytes) {
  if (!budget_) return Status();
  RETURN_IF_ERROR(budget_->Take(bytes));
  bytes_ += bytes;
  return Status();
}

}  // namespace thalweg
