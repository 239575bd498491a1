#include "framework/runtime/host/memory_set.h"

#include "framework/runtime/step/frame.h"
#include "framework/tensor/memory_budget.h"
#include "framework/tensor/payer.h"

namespace thalweg {
namespace {

tw_account* ToC(MemoryBudget* b) { return reinterpret_cast<tw_account*>(b); }
MemoryBudget* Of(tw_account* a) { return reinterpret_cast<MemoryBudget*>(a); }

tw_account* AccountOf(const tw_frame* f) { return ToC(f ? KernelFrame::Of(f)->step->budget : PayerOfThread()); }

void Retain(tw_account* a) { Of(a)->Retain(); }

void Release(tw_account* a) {
  if (a) Of(a)->Release();
}

tw_status* Take(tw_account* a, uint64_t bytes) {
  if (!a) return nullptr;
  return Guard([&] { return Of(a)->Take(bytes); });
}

void Give(tw_account* a, uint64_t bytes) {
  if (a) Of(a)->Give(bytes);
}

tw_account* Pays(tw_account* a) { return ToC(SetPayerOfThread(Of(a))); }

constexpr tw_memory_api kApi = {TW_SIZED(tw_memory_api), AccountOf, Retain, Release, Take, Give, Pays};

}  // namespace

const tw_memory_api* MemorySet() { return &kApi; }

}  // namespace thalweg
