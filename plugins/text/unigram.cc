#include "unigram.h"

#include <cmath>
#include <limits>

namespace thalweg::text {
namespace {

// Returns log(exp(a) + exp(b)).
double LogSum(double a, double b) {
  const double high = std::max(a, b), low = std::min(a, b);
  return high == -std::numeric_limits<double>::infinity() ? high : high + std::log1p(std::exp(low - high));
}

// The search of Best holds at most kMostWaiting unfinished splits. If there are more, it goes on
// with the best of them.
constexpr size_t kMostWaiting = 100'000, kFewest = 512;

}  // namespace

Lattice::Lattice(const Unigram<float>& model, std::string_view text, const tw::TempAllocator<char>& allocator)
    : size_(text.size()), nodes_(allocator), first_(text.size() + 2, 0, allocator) {
  tw::TempVector<Node> found(allocator);  // in the order of beginnings
  for (size_t begin = 0; begin < text.size();) {
    const size_t size = std::min(CharSize(text[begin]), text.size() - begin);
    bool single = false;
    uint32_t node = Trie::kRoot;
    size_t length = 0, boundary = begin;  // characters that end at or before `end`
    for (size_t end = begin; end < text.size();) {
      node = model.trie->Child(node, text[end++]);
      if (node == Trie::kNone) break;
      while (boundary < end) {
        boundary += CharSize(text[boundary]);
        ++length;
      }
      const int32_t id = model.trie->value(node);
      if (id < 0 || model.Skips(id)) continue;
      found.push_back({id, uint32_t(begin), uint32_t(end), model.ScoreOf(id, length), 0});
      single |= end - begin == size;
    }
    if (!single) found.push_back({model.unknown, uint32_t(begin), uint32_t(begin + size), model.unknown_score, 0});
    begin += size;
  }
  // Counting sort by the ends keeps the order of beginnings.
  for (const Node& n : found) ++first_[n.end + 1];
  for (size_t end = 0; end <= size_; ++end) first_[end + 1] += first_[end];
  tw::TempVector<uint32_t> at(first_.begin(), first_.end(), allocator);
  nodes_.resize(found.size());
  for (const Node& n : found) nodes_[at[n.end]++] = n;
  tw::TempVector<float> best(size_ + 1, -std::numeric_limits<float>::infinity(), allocator);
  best[0] = 0;
  for (Node& n : nodes_) {
    n.best = best[n.begin] + n.score;
    best[n.end] = std::max(best[n.end], n.best);
  }
}

void Lattice::Best(size_t n, std::vector<std::pair<Parts, double>>* to) const {
  constexpr uint32_t kEnd = UINT32_MAX;
  // An unfinished split: the node that begins it and the rest, whose score is `rest`. bound: the
  // best score of a split with this rest.
  struct Open {
    uint32_t node, next;
    double rest, bound;
  };
  const auto allocator = nodes_.get_allocator();
  tw::TempVector<Open> opened(allocator);
  tw::TempVector<uint32_t> heap(allocator);
  const auto worse = [&opened](uint32_t a, uint32_t b) {
    return opened[a].bound != opened[b].bound ? opened[a].bound < opened[b].bound : a > b;
  };
  const auto extend = [&](size_t end, uint32_t next, double rest) {
    EachEnding(end, [&](uint32_t i, const Node& node) {
      opened.push_back({i, next, rest + double(node.score), rest + double(node.best)});
      heap.push_back(uint32_t(opened.size() - 1));
      std::push_heap(heap.begin(), heap.end(), worse);
    });
  };
  extend(size_, kEnd, 0);
  for (size_t done = 0; done < n && !heap.empty();) {
    const uint32_t top = heap.front();
    std::pop_heap(heap.begin(), heap.end(), worse);
    heap.pop_back();
    const Open open = opened[top];
    if (nodes_[open.node].begin > 0) {
      extend(nodes_[open.node].begin, top, open.rest);
      if (heap.size() > kMostWaiting) {
        const size_t kept = std::min(kFewest, n * 10);
        std::partial_sort(heap.begin(), heap.begin() + std::ptrdiff_t(kept), heap.end(),
                          [&](uint32_t a, uint32_t b) { return worse(b, a); });
        heap.resize(kept);
        std::make_heap(heap.begin(), heap.end(), worse);
      }
      continue;
    }
    Parts parts(allocator);
    for (uint32_t i = top; i != kEnd; i = opened[i].next) {
      const Node& node = nodes_[opened[i].node];
      parts.push_back({node.id, node.begin, node.end});
    }
    to->emplace_back(std::move(parts), open.rest);
    ++done;
  }
}

void Lattice::Sample(double alpha, Random* random, Parts* to) const {
  const auto allocator = nodes_.get_allocator();
  // sums[end]: the logarithm of the sum over all splits of the text up to `end`.
  tw::TempVector<double> sums(size_ + 1, -std::numeric_limits<double>::infinity(), allocator);
  sums[0] = 0;
  for (const Node& n : nodes_) sums[n.end] = LogSum(sums[n.end], sums[n.begin] + alpha * double(n.score));
  const size_t first = to->size();
  for (size_t end = size_; end > 0;) {
    double left = random->Next();
    const Node* drawn = nullptr;
    EachEnding(end, [&](uint32_t, const Node& n) {
      const double share = std::exp(sums[n.begin] + alpha * double(n.score) - sums[end]);
      if (left >= 0 && share > 0) drawn = &n;
      left -= share;
    });
    if (!drawn) throw tw::Error{TW_INVALID_ARGUMENT, "'alpha' is too large to draw from the scores of the model; use a smaller one"};
    to->push_back({drawn->id, drawn->begin, drawn->end});
    end = drawn->begin;
  }
  std::reverse(to->begin() + std::ptrdiff_t(first), to->end());
}

}  // namespace thalweg::text
