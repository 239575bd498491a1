// The signature of a step over lists that must outlive it; single values and empty lists may be given in braces. Threads: a value.
#pragma once
#include <span>

#include "thalweg/cpp/signature.hpp"

namespace thalweg::library {

inline tw_signature SignatureOf(std::span<const tw_output> feeds, std::span<const tw_output> fetches,
                                std::span<const tw_operation* const> targets = {}) {
  return tw::signature_of(feeds, fetches, targets);
}

}  // namespace thalweg::library
