#include "trie.h"

#include <algorithm>
#include <iterator>

namespace thalweg::text {

Trie::Trie(std::vector<Key> keys) {
  std::sort(keys.begin(), keys.end());
  std::fill(std::begin(first_), std::end(first_), kNone);
  // Nodes are made level by level; ranges[i] are the keys below node i.
  struct KeyRange {
    size_t begin, end, depth;
  };
  std::vector<KeyRange> ranges = {{0, keys.size(), 0}};
  nodes_.push_back({0, -1, 0, 0});
  for (size_t node = 0; node < nodes_.size(); ++node) {
    auto [begin, end, depth] = ranges[node];
    while (begin < end && keys[begin].first.size() == depth) nodes_[node].value = keys[begin++].second;
    nodes_[node].child = uint32_t(nodes_.size());
    while (begin < end) {
      const char byte = keys[begin].first[depth];
      size_t behind = begin + 1;
      while (behind < end && keys[behind].first[depth] == byte) ++behind;
      if (node == kRoot) first_[uint8_t(byte)] = uint32_t(nodes_.size());
      nodes_.push_back({0, -1, 0, uint8_t(byte)});
      ranges.push_back({begin, behind, depth + 1});
      ++nodes_[node].children;
      begin = behind;
    }
  }
  nodes_.shrink_to_fit();
}

uint32_t Trie::Child(uint32_t node, char byte) const {
  if (node == kRoot) return first_[uint8_t(byte)];
  const Node *begin = nodes_.data() + nodes_[node].child, *end = begin + nodes_[node].children;
  const Node* found = end - begin < 8 ? std::find_if(
                                            begin, end, [byte](const Node& n) { return n.byte == uint8_t(byte); })
                                      : std::lower_bound(begin, end, uint8_t(byte), [](const Node& n, uint8_t b) { return n.byte < b; });
  return found != end && found->byte == uint8_t(byte) ? uint32_t(found - nodes_.data()) : kNone;
}

size_t Trie::Longest(std::string_view text, int32_t* out_value) const {
  size_t longest = 0;
  uint32_t node = kRoot;
  for (size_t i = 0; i < text.size(); ++i) {
    node = Child(node, text[i]);
    if (node == kNone) break;
    if (value(node) < 0) continue;
    longest = i + 1;
    if (out_value) *out_value = value(node);
  }
  return longest;
}

}  // namespace thalweg::text
