// Models: WordPiece, byte pairs, unigrams, whole words.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "merge.h"
#include "tokenizer_parts.h"

namespace thalweg::text {
namespace {

// Characters of a word as UTF-8, and the number of each byte's character. `begins`: at the first
// byte of a character.
struct Bytes {
  Bytes(const Chars& chars, Span word) : text(chars.get_allocator()), at(chars.get_allocator()) {
    for (uint32_t i = word.begin; i < word.end; ++i) {
      AppendChar(chars[i].c, &text);
      at.resize(text.size(), i);
    }
    at.push_back(word.end);
  }
  bool begins(size_t byte) const { return byte == 0 || at[byte] != at[byte - 1]; }
  tw::TempString text;
  tw::TempVector<uint32_t> at;
};

void ReadVocabulary(const Config& config, Vocabulary* to) {
  config.want(JsonValue::Kind::kObject);
  for (size_t i = 0; i < config.size(); ++i) {
    const std::string& token = config.value().keys()[i];
    to->Add(token, Config(config.value().items()[i], config.path() + "[" + Quoted(token) + "]").id(), config.path());
  }
}

// Finds the token that an option names. Throws if the option is there and the token is not.
int32_t Named(const Config& config, std::string_view option, const Vocabulary& vocabulary) {
  const std::string token = config.text(option, "");
  if (token.empty()) return -1;
  const int32_t id = vocabulary.Find(token);
  if (id < 0) config[option].Fail("is " + Quoted(token) + ", which the vocabulary does not have");
  return id;
}

// The tokens of bytes, if the vocabulary has all of them.
class ByteTokens {
 public:
  ByteTokens(bool wanted, const Vocabulary& vocabulary) {
    for (size_t byte = 0; wanted && byte < 256; ++byte) ids_[byte] = vocabulary.Find(TokenOfByte(uint8_t(byte)));
    there_ = wanted;
  }
  // Calls add(id) for each byte of the text. Returns false, without a call, if a token is missing.
  template <class F>
  bool Each(std::string_view text, const F& add) const {
    if (!there_ || std::any_of(text.begin(), text.end(), [this](char c) { return ids_[uint8_t(c)] < 0; })) return false;
    for (const char c : text) add(ids_[uint8_t(c)]);
    return true;
  }

 private:
  bool there_;
  std::array<int32_t, 256> ids_{};
};

// The longest token of the vocabulary that begins a word, and again for the rest, whose tokens
// begin with a prefix.
class WordPiece final : public Model {
 public:
  WordPiece(tw::Payer payer, const Config& config, Vocabulary* vocabulary, tw::Holding* held)
      : most_(config.whole("max_input_chars_per_word", 100)) {
    ReadVocabulary(config["vocab"], vocabulary);
    unknown_ = Named(config, "unk_token", *vocabulary);
    if (unknown_ < 0) config.Fail("has no 'unk_token'");
    const std::string prefix = config.text("continuing_subword_prefix", "##");
    std::vector<Trie::Key> keys;
    uint64_t bytes = 0;
    for (const auto& [text, id] : vocabulary->ids) {
      if (text.empty() || text.size() > Trie::kLongest) continue;  // no word has this part
      keys.emplace_back(text, id);
      bytes += text.size();
    }
    held->add(payer, Trie::HeapFor(bytes));
    trie_ = Trie(std::move(keys));
    for (const char c : prefix) {
      if (rest_ != Trie::kNone) rest_ = trie_.Child(rest_, c);
    }
  }
  void Encode(const Chars& chars, Span word, Parts* to) const override {
    const Bytes bytes(chars, word);
    const size_t before = to->size();
    bool known = int64_t(word.end - word.begin) <= most_;
    for (size_t begin = 0; known && begin < bytes.text.size();) {
      uint32_t node = begin == 0 ? uint32_t(Trie::kRoot) : rest_;
      size_t end = begin;
      int32_t id = -1;
      for (size_t i = begin; i < bytes.text.size() && node != Trie::kNone;) {
        node = trie_.Child(node, bytes.text[i++]);
        if (node == Trie::kNone || trie_.value(node) < 0 || !bytes.begins(i)) continue;
        end = i;
        id = trie_.value(node);
      }
      known = id >= 0;
      if (known) to->push_back({id, bytes.at[begin], bytes.at[end]});
      begin = end;
    }
    if (known) return;
    to->resize(before);
    to->push_back({unknown_, word.begin, word.end});
  }

 private:
  const int64_t most_;
  int32_t unknown_ = -1;
  Trie trie_;
  uint32_t rest_ = Trie::kRoot;  // the node behind the prefix
};

// Byte pairs: characters are merged to tokens, in the order of a list of pairs.
class Pairs final : public Model {
 public:
  Pairs(tw::Payer payer, const Config& config, Vocabulary* vocabulary, tw::Holding* held)
      : vocabulary_(vocabulary),
        prefix_(config.text("continuing_subword_prefix", "")),
        suffix_(config.text("end_of_word_suffix", "")),
        fuses_(config.yes("fuse_unk", false)),
        whole_(config.yes("ignore_merges", false)) {
    const Config dropout = config["dropout"];
    if (dropout && dropout.value().number() != 0) dropout.Unsupported("a dropout", "null or 0");
    ReadVocabulary(config["vocab"], vocabulary);
    unknown_ = Named(config, "unk_token", *vocabulary);
    bytes_.emplace(config.yes("byte_fallback", false), *vocabulary);
    for (uint32_t c = 0; c < kDirect; ++c) direct_.push_back(IdOf(c, false, false));
    const Config merges = config["merges"];
    merges.want(JsonValue::Kind::kArray);
    held->add(payer, merges.size() * (sizeof(std::pair<uint64_t, Merged>) + 4 * sizeof(void*)));
    merges_.reserve(merges.size());
    for (size_t i = 0; i < merges.size(); ++i) AddMerge(merges[i], i);
  }

  void Encode(const Chars& chars, Span word, Parts* to) const override {
    if (whole_) {
      const Bytes bytes(chars, word);
      if (const int32_t id = vocabulary_->Find(std::string(bytes.text)); id >= 0) {
        to->push_back({id, word.begin, word.end});
        return;
      }
    }
    Symbols symbols(to->get_allocator());
    tw::TempVector<Span> units(to->get_allocator());  // the characters of each symbol
    const auto add = [&](int32_t id, uint32_t begin, uint32_t end) {
      const auto i = uint32_t(units.size());
      AppendSymbol(id, i, i + 1, false, &symbols);
      units.push_back({begin, end});
    };
    bool after_unknown = false;
    for (uint32_t i = word.begin; i < word.end; ++i) {
      const int32_t id = IdOf(chars[i].c, i > word.begin, i + 1 == word.end);
      const bool known = id >= 0 || AddBytes(chars[i].c, [&](int32_t byte) { add(byte, i, i + 1); });
      if (id >= 0) {
        add(id, i, i + 1);
      } else if (!known && after_unknown && fuses_) {
        units.back().end = i + 1;
      } else if (!known && unknown_ >= 0) {
        add(unknown_, i, i + 1);
      }
      after_unknown = !known && unknown_ >= 0;
    }
    const auto find = [this](const Symbol& left, const Symbol& right, Merged* merged) {
      const auto at = merges_.find(KeyOf(left.id, right.id));
      if (at == merges_.end()) return false;
      *merged = at->second;
      return true;
    };
    MergePairs(&symbols, find, [] { return false; });
    EachSymbol(symbols, [&](const Symbol& s) { to->push_back({s.id, units[s.begin].begin, units[s.end - 1].end}); });
  }

 private:
  static constexpr uint32_t kDirect = 0x180;  // characters whose tokens need no search: all of the alphabet of GPT-2

  static uint64_t KeyOf(int32_t left, int32_t right) { return uint64_t(uint32_t(left)) << 32 | uint32_t(right); }

  // Returns the token of a character, or -1.
  int32_t IdOf(uint32_t c, bool continues, bool ends) const {
    const bool marked = (continues && !prefix_.empty()) || (ends && !suffix_.empty());
    if (!marked && c < direct_.size()) return direct_[c];
    std::string token = continues ? prefix_ : "";
    AppendChar(c, &token);
    if (ends) token += suffix_;
    return vocabulary_->Find(token);
  }
  template <class F>
  bool AddBytes(uint32_t c, const F& add) const {
    std::string text;
    AppendChar(c, &text);
    return bytes_->Each(text, add);
  }

  void AddMerge(const Config& config, size_t i) {
    std::string left, right;
    if (config.value().is(JsonValue::Kind::kArray) && config.size() == 2) {
      left = config[size_t{0}].text();
      right = config[size_t{1}].text();
    } else {
      const std::string both = config.text();
      const size_t space = both.find(' ');
      if (space == both.npos || both.find(' ', space + 1) != both.npos) config.Fail("is " + Quoted(both) + "; it must be two tokens");
      left = both.substr(0, space);
      right = both.substr(space + 1);
    }
    const auto find = [&](const std::string& token) {
      const int32_t id = vocabulary_->Find(token);
      if (id < 0) config.Fail("merges " + Quoted(left) + " and " + Quoted(right) + ", but the vocabulary has no " + Quoted(token));
      return id;
    };
    const bool continues = !prefix_.empty() && right.substr(0, prefix_.size()) == prefix_;
    const std::string whole = left + (continues ? right.substr(prefix_.size()) : right);
    merges_.insert_or_assign(KeyOf(find(left), find(right)), Merged{double(i), find(whole)});
  }

  const Vocabulary* const vocabulary_;
  const std::string prefix_, suffix_;
  const bool fuses_, whole_;
  int32_t unknown_ = -1;
  std::optional<ByteTokens> bytes_;
  std::vector<int32_t> direct_;
  std::unordered_map<uint64_t, Merged> merges_;
};

// The unigram model, with scores in double precision.
class Unigrams final : public Model {
 public:
  Unigrams(tw::Payer payer, const Config& config, Vocabulary* vocabulary, tw::Holding* held) : fuses_(config.yes("fuse_unk", true)) {
    const Config list = config["vocab"];
    list.want(JsonValue::Kind::kArray);
    double least = std::numeric_limits<double>::infinity();
    uint64_t bytes = 0;
    for (size_t i = 0; i < list.size(); ++i) {
      const Config entry = list[i];
      if (!entry.value().is(JsonValue::Kind::kArray) || entry.size() != 2 || !entry.value().items()[1].is(JsonValue::Kind::kNumber))
        entry.Fail("must be a token and its score");
      const std::string token = entry[size_t{0}].text();
      if (token.empty() || token.size() > Trie::kLongest)
        entry.Fail("has a token of " + std::to_string(token.size()) + " bytes; it must be from 1 to " + std::to_string(Trie::kLongest));
      const double score = entry.value().items()[1].number();
      if (!std::isfinite(score)) entry.Fail("has a score that is no finite number");
      if (i >= size_t(Vocabulary::kMost)) list.Fail("has more than 2^24 tokens");
      vocabulary->Add(token, int32_t(i), list.path());
      scores_.push_back(score);
      least = std::min(least, score);
      bytes += token.size();
    }
    if (scores_.empty()) list.Fail("is empty");
    const Config unknown = config["unk_id"];
    if (unknown) unknown_ = unknown.id();
    if (unknown_ >= int32_t(scores_.size())) unknown.Fail("is " + std::to_string(unknown_) + ", which is no token of the vocabulary");
    bytes_.emplace(config.yes("byte_fallback", false), *vocabulary);
    held->add(payer, Trie::HeapFor(bytes) + scores_.capacity() * sizeof(double));
    std::vector<Trie::Key> keys;
    for (const auto& [text, id] : vocabulary->ids) keys.emplace_back(text, id);
    trie_ = Trie(std::move(keys));
    model_ = {&trie_, &scores_, nullptr, nullptr, least - 10, kUnknown};
  }
  void Encode(const Chars& chars, Span word, Parts* to) const override {
    const Bytes bytes(chars, word);
    Parts parts(to->get_allocator());
    BestSplit(model_, bytes.text, &parts);
    for (size_t i = 0; i < parts.size();) {
      Part p = parts[i++];
      const bool known = p.id != kUnknown && p.id != unknown_;
      while (!known && fuses_ && i < parts.size() && (parts[i].id == kUnknown || parts[i].id == unknown_)) p.end = parts[i++].end;
      const uint32_t first = bytes.at[p.begin], behind = bytes.at[p.end];
      if (known) {
        to->push_back({p.id, first, behind});
        continue;
      }
      const std::string_view text = std::string_view(bytes.text).substr(p.begin, p.end - p.begin);
      if (bytes_->Each(text, [&](int32_t id) { to->push_back({id, first, behind}); })) continue;
      if (unknown_ < 0) {
        throw tw::Error{TW_INVALID_ARGUMENT,
                        "the tokenizer has no token for " + Quoted(text) + " and no unknown token; replace this text, or add an 'unk_id'"};
      }
      to->push_back({unknown_, first, behind});
    }
  }

 private:
  static constexpr int32_t kUnknown = -2;

  const bool fuses_;
  int32_t unknown_ = -1;
  std::vector<double> scores_;
  Trie trie_;
  std::optional<ByteTokens> bytes_;
  Unigram<double> model_{};
};

class WholeWords final : public Model {
 public:
  WholeWords(const Config& config, Vocabulary* vocabulary) : vocabulary_(vocabulary) {
    ReadVocabulary(config["vocab"], vocabulary);
    unknown_ = Named(config, "unk_token", *vocabulary);
  }
  void Encode(const Chars& chars, Span word, Parts* to) const override {
    const Bytes bytes(chars, word);
    const int32_t id = vocabulary_->Find(std::string(bytes.text));
    if (id < 0 && unknown_ < 0) {
      throw tw::Error{TW_INVALID_ARGUMENT, "the tokenizer has no token for " + Quoted(bytes.text) +
                                               " and no unknown token; replace this "
                                               "text, or add an 'unk_token'"};
    }
    to->push_back({id < 0 ? unknown_ : id, word.begin, word.end});
  }

 private:
  const Vocabulary* const vocabulary_;
  int32_t unknown_ = -1;
};

// Returns the type of a model; old files do not have it.
std::string TypeOf(const Config& config) {
  if (config["type"]) return config.type();
  if (config["merges"]) return "BPE";
  if (config["vocab"].value().is(JsonValue::Kind::kArray)) return "Unigram";
  return config["continuing_subword_prefix"] ? "WordPiece" : "WordLevel";
}

}  // namespace

std::unique_ptr<Model> MakeModel(tw::Payer payer, const Config& config, Vocabulary* vocabulary, tw::Holding* held) {
  config.want(JsonValue::Kind::kObject);
  const std::string type = TypeOf(config);
  if (type == "WordPiece") return std::make_unique<WordPiece>(payer, config, vocabulary, held);
  if (type == "BPE") return std::make_unique<Pairs>(payer, config, vocabulary, held);
  if (type == "Unigram") return std::make_unique<Unigrams>(payer, config, vocabulary, held);
  if (type == "WordLevel") return std::make_unique<WholeWords>(config, vocabulary);
  config.Unsupported("the model " + Quoted(type), "WordPiece, BPE, Unigram, WordLevel");
}

// The printable characters of Latin 1 stand for themselves; the other bytes have the characters
// from U+0100 on, in order.
uint32_t CharOfByte(uint8_t byte) {
  if (byte <= 32) return 256u + byte;
  if (byte >= 127 && byte <= 160) return 289u + (byte - 127u);
  return byte == 173 ? 323 : byte;
}
int ByteOfChar(uint32_t c) {
  if (c >= 256 && c <= 288) return int(c - 256);
  if (c >= 289 && c <= 322) return int(c - 289 + 127);
  if (c == 323) return 173;
  return c < 256 && CharOfByte(uint8_t(c)) == c ? int(c) : -1;
}

int ByteOfToken(std::string_view token) {
  if (token.size() != 6 || token.substr(0, 3) != "<0x" || token[5] != '>') return -1;
  int byte = 0;
  for (const char c : token.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return -1;
    byte = byte * 16 + digit;
  }
  return byte;
}
std::string TokenOfByte(uint8_t byte) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  return {'<', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15], '>'};
}

}  // namespace thalweg::text
