// WordpieceTokenizeWithOffsets: the longest pieces of a vocabulary that make up each word. The
// vocabulary is a hash table, whose keys this plugin holds; plugins/text has the other tokenizers.
#include <algorithm>
#include <vector>

#include "kernels/common/temp.h"
#include "kernels/common/text.h"
#include "kernels/lookup_table.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// Pieces are looked up from the longest to the shortest, so a word takes time in proportion to the
// cube of its length.
constexpr int64_t kLongestWord = 1024;

// Returns the bytes of the UTF-8 character that begins the text, or 1 if none does.
size_t CharacterSize(std::string_view text) {
  const auto first = uint8_t(text[0]);
  const size_t n = first < 0xc2 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 1;
  for (size_t i = 1; i < n; ++i) {
    if (i >= text.size() || (uint8_t(text[i]) & 0xc0) != 0x80) return 1;
  }
  return n;
}

class Wordpiece {
 public:
  explicit Wordpiece(const tw::Node& n)
      : indicator_(n.s("suffix_indicator")),
        unknown_(n.s("unknown_token")),
        most_bytes_(n.i("max_bytes_per_word")),
        most_chars_(n.i("max_chars_per_token")),
        replaces_(n.b("use_unknown_token")),
        splits_(n.b("split_unknown_characters")),
        by_splits_(n.s("output_row_partition_type") == "row_splits") {}

  void operator()(tw::Frame f, tw::In<tw_string> words, tw::Var<tw::Any> handle, tw::Out<tw_string> values, tw::Out<int64_t> rows,
                  tw::Out<int64_t> starts, tw::Out<int64_t> limits) const {
    const auto& table = *static_cast<const LookupTable*>(handle.handle());
    if (table.about().initializable && !table.initialized)
      throw tw::Error{TW_FAILED_PRECONDITION, "the table 'vocab_lookup_table' is not initialised; run its initializer first"};
    if (table.about().key_dtype != TW_STRING || !table.about().key_shape.empty())
      Invalid("the keys of 'vocab_lookup_table' are " + TypeText(table.about().key_dtype) + " " +
              tw::text(table.about().key_shape.data(), int32_t(table.about().key_shape.size())) + "; they must be single texts");
    tw::TempVector<Piece> pieces(f);
    const auto n = int64_t(words.size()), entries = by_splits_ ? n + 1 : n;
    Allocate(rows, &entries, 1);
    if (by_splits_) rows[0] = 0;
    for (uint64_t i = 0; i < words.size(); ++i) {
      const size_t before = pieces.size();
      Split(f, table, View(words[i]), i, &pieces);
      rows[by_splits_ ? i + 1 : i] = int64_t(by_splits_ ? pieces.size() : pieces.size() - before);
    }
    const auto size = int64_t(pieces.size());
    Allocate(values, &size, 1);
    Allocate(starts, &size, 1);
    Allocate(limits, &size, 1);
    tw::TempString text(f);
    for (size_t k = 0; k < pieces.size(); ++k) {
      const Piece& p = pieces[k];
      text.assign(p.begin > 0 ? std::string_view(indicator_) : std::string_view());
      text.append(p.known || !replaces_ ? View(words[p.word]).substr(p.begin, p.end - p.begin) : std::string_view(unknown_));
      values.set(k, text);
      starts[k] = int64_t(p.begin);
      limits[k] = int64_t(p.limit);
    }
  }

 private:
  struct Piece {
    uint64_t word;
    size_t begin, end, limit;  // the bytes that it is made of, and the end that is told
    bool known;
  };

  void Split(tw::Frame f, const LookupTable& table, std::string_view word, uint64_t i, tw::TempVector<Piece>* to) const {
    if (int64_t(word.size()) > most_bytes_) {
      to->push_back({i, 0, word.size(), replaces_ ? unknown_.size() : word.size(), false});
      return;
    }
    if (int64_t(word.size()) > kLongestWord) {
      Invalid("'input_values'[" + std::to_string(i) + "] has " + std::to_string(word.size()) + " bytes; words may have at most " +
              std::to_string(kLongestWord) + "; set 'max_bytes_per_word' to that, so that longer ones are unknown");
    }
    const size_t before = to->size();
    tw::TempVector<size_t> ends(f);  // of the characters that a piece may have
    tw::TempString key(f);
    for (size_t begin = 0; begin < word.size();) {
      ends.clear();
      for (size_t at = begin; at < word.size() && (most_chars_ <= 0 || int64_t(ends.size()) < most_chars_);)
        ends.push_back(at += CharacterSize(word.substr(at)));
      size_t k = ends.size();
      for (bool known = false; k > 0; --k) {
        key.assign(begin > 0 ? std::string_view(indicator_) : std::string_view());
        key.append(word.substr(begin, ends[k - 1] - begin));
        known = table.Find(key) >= 0;
        if (!known && !(k == 1 && splits_)) continue;
        to->push_back({i, begin, ends[k - 1], ends[k - 1], known});
        break;
      }
      if (k == 0) {  // the word as a whole is unknown
        to->resize(before);
        to->push_back({i, 0, word.size(), word.size(), false});
        return;
      }
      begin = ends[k - 1];
    }
  }

  const std::string indicator_, unknown_;
  const int64_t most_bytes_, most_chars_;
  const bool replaces_, splits_, by_splits_;
};

}  // namespace

void register_wordpiece(tw::Plugin& p) { p.kernel<Wordpiece>("WordpieceTokenizeWithOffsets @CPU; read vocab_lookup_table"); }

}  // namespace thalweg::cpu
