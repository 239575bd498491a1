// The precompiled rules by which SentencePiece normalizes texts: a double-array trie (Aoe, 1989, in
// the form of Darts-clone) of texts, each with the place of the text that replaces it. The bytes
// may be damaged: every access is checked. Threads: many readers.
#ifndef THALWEG_PLUGINS_TEXT_CHARSMAP_H_
#define THALWEG_PLUGINS_TEXT_CHARSMAP_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace thalweg::text {

class Charsmap {
 public:
  Charsmap() = default;  // no rules
  // Throws INVALID_ARGUMENT for bytes that cannot be rules.
  explicit Charsmap(std::string_view blob);

  // Returns the length of the longest rule that begins the text, or 0. *out_text: what replaces it,
  // valid while this lives.
  size_t Longest(std::string_view text, std::string_view* out_text) const;

 private:
  std::vector<uint32_t> units_;
  std::string texts_;  // each ends with a zero byte
};

}  // namespace thalweg::text

#endif  // THALWEG_PLUGINS_TEXT_CHARSMAP_H_
