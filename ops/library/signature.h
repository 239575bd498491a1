// The signature of a step over lists that must outlive it. Threads: a value.
#pragma once
#include <span>

#include "thalweg/session.h"

namespace thalweg::library {

inline tw_signature SignatureOf(std::span<const tw_output> feeds, std::span<const tw_output> fetches,
                                std::span<const tw_operation* const> targets = {}) {
  tw_signature what = {};
  what.size = sizeof what;
  what.feeds = feeds.data();
  what.n_feeds = uint32_t(feeds.size());
  what.fetches = fetches.data();
  what.n_fetches = uint32_t(fetches.size());
  what.targets = targets.data();
  what.n_targets = uint32_t(targets.size());
  return what;
}

}  // namespace thalweg::library
