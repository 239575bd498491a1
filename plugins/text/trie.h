// A set of texts with numbers, which finds those that begin at a place of another text. Threads:
// many readers.
#ifndef THALWEG_PLUGINS_TEXT_TRIE_H_
#define THALWEG_PLUGINS_TEXT_TRIE_H_

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace thalweg::text {

class Trie {
 public:
  using Key = std::pair<std::string_view, int32_t>;
  // The longest key that users may add, in bytes. It bounds the time that a text takes: at most so
  // many steps for each of its bytes.
  static constexpr size_t kLongest = 4096;
  static constexpr uint32_t kRoot = 0, kNone = UINT32_MAX;

  Trie() : Trie(std::vector<Key>()) {}
  // keys: in any order; their texts are not kept. Values are at least 0; of equal keys the largest
  // value stays.
  explicit Trie(std::vector<Key> keys);

  // Returns the node that follows by a byte, or kNone.
  uint32_t Child(uint32_t node, char byte) const;
  // Returns the value of the key that ends at the node, or -1.
  int32_t value(uint32_t node) const { return nodes_[node].value; }
  // Returns the length of the longest key that begins the text, or 0. *out_value: its value.
  size_t Longest(std::string_view text, int32_t* out_value = nullptr) const;
  bool empty() const { return nodes_.size() == 1; }
  uint64_t heap() const { return nodes_.capacity() * sizeof(Node); }
  // An upper bound of the heap bytes that building takes, for keys of `bytes` bytes together.
  static uint64_t HeapFor(uint64_t bytes) { return (bytes + 1) * (2 * sizeof(Node) + 2 * 3 * sizeof(size_t)); }

 private:
  // Children are neighbours, in the order of their bytes.
  struct Node {
    uint32_t child;
    int32_t value;
    uint16_t children;
    uint8_t byte;
  };
  std::vector<Node> nodes_;
  uint32_t first_[256];  // children of the root
};

}  // namespace thalweg::text

#endif  // THALWEG_PLUGINS_TEXT_TRIE_H_
