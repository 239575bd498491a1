// A tokenizer that a file tokenizer.json describes. Follows the library that writes these files, in
// every result; the text of a file may be damaged. Threads: many readers.
#ifndef THALWEG_PLUGINS_TEXT_TOKENIZER_H_
#define THALWEG_PLUGINS_TEXT_TOKENIZER_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer_parts.h"
#include "trie.h"

namespace thalweg::text {

class Tokenizer {
 public:
  static constexpr char kResource[] = "org.thalweg.tokenizer";

  // Throws INVALID_ARGUMENT, UNIMPLEMENTED for a part that is not supported, or RESOURCE_EXHAUSTED
  // if the session may not hold that much.
  Tokenizer(tw::Frame f, std::string_view model);

  // Appends the tokens of a text, with the bytes of the text that they stand for. special: with the
  // tokens that the file puts around texts.
  void Encode(tw::Frame f, std::string_view text, bool special, Parts* to) const;
  // Returns the text of tokens. skip: without those that are special. REQUIRES: Has(id) for each.
  tw::TempString Decode(tw::Frame f, const int32_t* ids, size_t n, bool skip) const;

  int32_t size() const { return int32_t(vocabulary_.texts.size()); }  // the largest number of a token, plus 1
  bool Has(int32_t id) const { return vocabulary_.Has(id); }
  // What follows "is 9" in the error of a number that is that of no token.
  std::string RefusalOfId() const { return ", which is the number of no token; numbers are from 0 to " + std::to_string(size() - 1); }
  const std::string& text(int32_t id) const { return vocabulary_.texts[size_t(id)]; }
  int32_t Find(std::string_view text) const { return vocabulary_.Find(std::string(text)); }  // -1: there is none

 private:
  // A token that is found in texts as it is, before the text is cut into words.
  struct Added {
    int32_t id;
    bool left, right, whole_word;  // left, right: takes the spaces there, too
  };
  // Those that are found in texts before they are normalized, and those that are found afterwards.
  struct Finder {
    std::vector<Added> tokens;
    Trie trie;
  };

  void ReadAdded(tw::Frame f, const Config& list);
  void ReadAround(const Config& config);
  void ReadTemplate(const Config& config);
  int32_t Around(const Config& pair) const;  // the token of ["[CLS]", 101]
  static Finder MakeFinder(tw::Payer payer, const std::vector<std::pair<std::string, Added>>& tokens, tw::Holding* held);

  // Calls visit(span, token) for all parts of the text; token is nullptr for what is between those
  // that are found.
  template <class F>
  static void EachPart(const Chars& chars, const Finder& finder, const F& visit);
  void EncodeText(Chars text, Parts* to) const;
  void EncodeWords(Words words, Parts* to) const;

  Vocabulary vocabulary_;
  std::unique_ptr<Normalizer> normalizer_;
  std::unique_ptr<Splitter> splitter_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Decoder> decoder_;
  Finder raw_, normal_;
  std::vector<int32_t> before_, behind_;  // the tokens around a text
  bool trims_ = false;                    // places do not count spaces at the ends of tokens
  tw::Holding held_;
};

}  // namespace thalweg::text

#endif  // THALWEG_PLUGINS_TEXT_TOKENIZER_H_
