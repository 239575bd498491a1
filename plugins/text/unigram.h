// The unigram language model of SentencePiece (Kudo, 2018): a text is split into the pieces whose
// scores have the largest sum. Threads: pure functions.
#ifndef THALWEG_PLUGINS_TEXT_UNIGRAM_H_
#define THALWEG_PLUGINS_TEXT_UNIGRAM_H_

#include <algorithm>
#include <cmath>
#include <string_view>
#include <type_traits>
#include <vector>

#include "chars.h"
#include "trie.h"

namespace thalweg::text {

// A model seen by the functions below. Score: the type that sums are rounded to.
template <class Score>
struct Unigram {
  const Trie* trie;
  const std::vector<Score>* scores;       // by number of the piece
  const std::vector<bool>* user_defined;  // pieces that are always chosen; nullptr: none
  const std::vector<bool>* unused;        // pieces that are never chosen; nullptr: none
  Score unknown_score;                    // of a character that no piece begins with
  int32_t unknown;

  Score ScoreOf(int32_t id, size_t length) const {
    const auto i = size_t(id);
    return user_defined && (*user_defined)[i] ? Score(0.1 * double(length - 1)) : (*scores)[i];
  }
  bool Skips(int32_t id) const { return unused && (*unused)[size_t(id)]; }
};

// The part [begin, end) of a text, in bytes.
struct Part {
  int32_t id;
  uint32_t begin, end;
};
using Parts = tw::TempVector<Part>;

constexpr float kLargeSum = 100'000;  // that of SentencePiece

// Returns the bytes of the character whose first byte this is.
inline size_t CharSize(char first) {
  const auto byte = uint8_t(first);
  return byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

// Appends the best split of the text. Each unknown character is a part. Of splits whose rounded sums
// are equal, the one whose last part is the longest stays, as in SentencePiece since 0.2.2.
template <class Score>
void BestSplit(const Unigram<Score>& model, std::string_view text, Parts* to) {
  struct Best {  // of the splits that end here
    Score score = 0;
    uint32_t begin = 0;
    int32_t id = -1;
    bool there = false;
  };
  tw::TempVector<Best> best(text.size() + 1, Best(), to->get_allocator());
  const auto offer = [&best](size_t end, Score score, size_t begin, int32_t id) {
    if (Best& b = best[end]; !b.there || score > b.score) b = {score, uint32_t(begin), id, true};
  };
  size_t furthest = 0;  // no part found so far ends behind it
  for (size_t begin = 0; begin < text.size();) {
    const size_t size = std::min(CharSize(text[begin]), text.size() - begin);
    // Sums of float that become large lose digits, so SentencePiece subtracts them from those ahead.
    if (std::is_same_v<Score, float> && std::abs(best[begin].score) > kLargeSum) {
      const Score offset = best[begin].score;
      for (size_t i = begin; i <= furthest; ++i) best[i].score -= offset;
    }
    const Score till_here = best[begin].score;
    bool single = false;
    uint32_t node = Trie::kRoot;
    for (size_t end = begin; end < text.size();) {
      node = model.trie->Child(node, text[end++]);
      if (node == Trie::kNone) break;
      const int32_t id = model.trie->value(node);
      if (id < 0 || model.Skips(id)) continue;
      offer(end, model.ScoreOf(id, end - begin) + till_here, begin, id);
      furthest = std::max(furthest, end);
      single |= end - begin == size;
    }
    if (!single) offer(begin + size, model.unknown_score + till_here, begin, model.unknown);
    furthest = std::max(furthest, begin + size);
    begin += size;
  }
  const size_t first = to->size();
  for (size_t end = text.size(); end > 0; end = best[end].begin) to->push_back({best[end].id, best[end].begin, uint32_t(end)});
  std::reverse(to->begin() + std::ptrdiff_t(first), to->end());
}

// Numbers of a SplitMix64 sequence.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  // Returns a number in [0, 1).
  double Next() {
    uint64_t x = state_ += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return double((x ^ x >> 31) >> 11) * 0x1p-53;
  }

 private:
  uint64_t state_;
};

// The splits of a text.
class Lattice {
 public:
  Lattice(const Unigram<float>& model, std::string_view text, const tw::TempAllocator<char>& allocator);
  // Appends the n best splits, the best first, with their scores; fewer if there are fewer.
  void Best(size_t n, std::vector<std::pair<Parts, double>>* to) const;
  // Appends a split that is drawn with the probability in proportion to exp(alpha * score).
  void Sample(double alpha, Random* random, Parts* to) const;

 private:
  struct Node {
    int32_t id;
    uint32_t begin, end;
    float score, best;  // best: the best score of a split that ends with this node
  };
  // Calls visit(node) for the nodes that end at a place.
  template <class F>
  void EachEnding(size_t end, const F& visit) const {
    for (uint32_t i = first_[end]; i < first_[end + 1]; ++i) visit(i, nodes_[i]);
  }

  size_t size_;
  tw::TempVector<Node> nodes_;      // in the order of their ends, of equals in that of their beginnings
  tw::TempVector<uint32_t> first_;  // [end]: the first node that ends there
};

}  // namespace thalweg::text

#endif  // THALWEG_PLUGINS_TEXT_UNIGRAM_H_
