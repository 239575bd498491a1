// A model of SentencePiece: texts to pieces and back. Follows the library of that name (0.2.3) in
// every result; the bytes of a model may be damaged. Threads: many readers.
#ifndef THALWEG_PLUGINS_TEXT_SENTENCEPIECE_H_
#define THALWEG_PLUGINS_TEXT_SENTENCEPIECE_H_

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "charsmap.h"
#include "merge.h"
#include "trie.h"
#include "unigram.h"

namespace thalweg::text {

class SentencePiece {
 public:
  static constexpr char kResource[] = "org.thalweg.sentencepiece";
  // A piece of a text. Its text is [text, text + size) of the row's `normalized`, or that of the
  // vocabulary.
  struct Piece {
    int32_t id;
    uint32_t begin, end;  // bytes of the original text
    uint32_t text, size;
    bool own;  // the text is that of the vocabulary
  };
  struct Row {
    explicit Row(tw::Frame f) : normalized(f), pieces(f) {}
    tw::TempString normalized;
    tw::TempVector<Piece> pieces;
  };
  struct Options {
    bool bos = false, eos = false, reverse = false;
  };
  using Rows = std::vector<Row>;

  // Reads a serialized ModelProto. Throws INVALID_ARGUMENT, or RESOURCE_EXHAUSTED if the payer may
  // not hold that much.
  SentencePiece(tw::Payer payer, std::string_view model);

  int32_t size() const { return int32_t(pieces_.size()); }
  bool Has(int32_t id) const { return id >= 0 && id < size(); }
  // What follows "is 9" in the error of a number that is that of no piece.
  std::string RefusalOfId() const { return "; the model has pieces 0 to " + std::to_string(size() - 1); }
  // REQUIRES: Has(id).
  const std::string& text(int32_t id) const { return pieces_[size_t(id)].text; }
  // Returns the number of a piece; that of the unknown piece if there is none of this text.
  int32_t Find(std::string_view piece) const;
  // Throws INVALID_ARGUMENT if the model lacks a piece that the options ask for.
  void Check(const Options& options) const;

  // The best split of a text.
  Row Encode(tw::Frame f, std::string_view text, const Options& options) const;
  // Appends the n best splits, the best first.
  void EncodeBest(tw::Frame f, std::string_view text, size_t n, const Options& options, Rows* to) const;
  // A random split: by the probability of the n best; of all for n < 0, where a model of byte pairs
  // leaves out merges with probability alpha.
  Row Sample(tw::Frame f, std::string_view text, int32_t n, double alpha, uint64_t seed, const Options& options) const;
  // Returns the text of pieces, which are numbers or texts. REQUIRES: numbers are those of pieces.
  struct Given {
    int32_t id;
    std::string_view text;
  };
  tw::TempString Decode(tw::Frame f, const tw::TempVector<Given>& pieces, const Options& options) const;

  // Counts the calls that draw, so that no two draw the same.
  uint64_t NextDraw() const { return draws_++; }

 private:
  enum Type : uint8_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };
  enum class Kind : uint32_t { kUnigram = 1, kPairs, kWord, kChar };
  struct Entry {
    std::string text;
    float score = 0;
    uint8_t type = kNormal;
  };
  struct Rules {  // of normalization
    Charsmap map;
    bool dummy_prefix = true, remove_extra = true, escape = true;
  };
  struct Normalized {
    explicit Normalized(tw::Frame f) : text(f), origin(f) {}
    tw::TempString text;
    tw::TempVector<uint32_t> origin;  // of each byte, and of the end
  };

  void Read(std::string_view model);
  void ReadPiece(std::string_view message);
  void ReadTrainer(std::string_view message);
  static void ReadRules(std::string_view message, Rules* to, uint64_t* map_bytes);
  void Index();
  void CheckPieces() const;
  bool Is(int32_t id, Type type) const { return pieces_[size_t(id)].type == type; }

  Normalized Normalize(tw::Frame f, std::string_view text, const Rules& rules, bool space_behind) const;
  // The text that a normalized text begins with, and the bytes that it takes the place of.
  std::string_view Prefix(std::string_view text, const Rules& rules, size_t* size) const;
  void Split(std::string_view normalized, Parts* to) const;
  void SplitPairs(std::string_view normalized, double dropout, Random* random, Parts* to) const;
  void SplitWords(std::string_view normalized, Parts* to) const;
  void SplitChars(std::string_view normalized, Parts* to) const;
  size_t SymbolSize(std::string_view text, bool* out_defined) const;
  Unigram<float> unigram() const;
  Row Finish(tw::Frame f, Normalized n, const Parts& parts, size_t text_size, const Options& options) const;

  Kind kind_ = Kind::kUnigram;
  std::vector<Entry> pieces_;
  std::unordered_map<std::string_view, int32_t> normal_, reserved_;  // reserved: unknown, control, byte
  Trie trie_;                                                        // of normal_; for unigram models
  Trie defined_;                                                     // pieces that users defined
  std::vector<float> scores_;
  std::vector<bool> is_defined_, is_unused_;
  int32_t bytes_[256];  // the pieces of bytes, or -1
  float min_score_ = 0;
  int32_t unknown_ = -1;
  bool byte_fallback_ = false, space_behind_ = false, denormalizes_ = false;
  std::string unknown_text_ = " \xe2\x81\x87 ", unknown_piece_ = "<unk>", bos_ = "<s>", eos_ = "</s>";
  Rules rules_, back_;  // back_: of decoded texts
  mutable std::atomic<uint64_t> draws_{0};
  tw::Holding held_;
};

}  // namespace thalweg::text

#endif  // THALWEG_PLUGINS_TEXT_SENTENCEPIECE_H_
