/* tw::signature_of: the record of a run (session.h) over lists. Threads: any. Since 0.1. */
#ifndef THALWEG_CPP_SIGNATURE_HPP
#define THALWEG_CPP_SIGNATURE_HPP
#include <cstdint>
#include <vector>

#include "thalweg/session.h"

namespace tw {

/* Returns a signature over three lists, which must outlive it: contiguous containers such as vectors
 * and spans, of tw_output, tw_output and const tw_operation*. The devices of feeds and fetches are
 * the host's. */
template <class Feeds, class Fetches, class Targets = std::vector<const tw_operation*>>
tw_signature signature_of(const Feeds& feeds, const Fetches& fetches, const Targets& targets = {}) {
  tw_signature what = {};
  what.size = sizeof(what);
  what.feeds = feeds.data();
  what.n_feeds = uint32_t(feeds.size());
  what.fetches = fetches.data();
  what.n_fetches = uint32_t(fetches.size());
  what.targets = targets.data();
  what.n_targets = uint32_t(targets.size());
  return what;
}

}  // namespace tw

#endif
