// The parts of a tokenizer, as tokenizer.json names them: normalizers change a text, splitters
// (pre-tokenizers) cut it into words, a model turns words into tokens, decoders turn tokens into a
// text. Threads: many users of one part.
#ifndef THALWEG_PLUGINS_TEXT_TOKENIZER_PARTS_H_
#define THALWEG_PLUGINS_TEXT_TOKENIZER_PARTS_H_

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "../common/json_value.h"
#include "chars.h"
#include "unigram.h"

namespace thalweg::text {

using common::JsonValue;

// A value of the file, and where it is, for errors.
class Config {
 public:
  Config(const JsonValue& value, std::string path) : value_(value), path_(std::move(path)) {}
  const JsonValue& value() const { return value_; }
  const std::string& path() const { return path_; }
  explicit operator bool() const { return !value_.null(); }

  Config operator[](std::string_view key) const { return {value_[key], path_ + "." + std::string(key)}; }
  Config operator[](size_t i) const { return {value_.items()[i], path_ + "[" + std::to_string(i) + "]"}; }
  size_t size() const { return value_.items().size(); }

  // Values of this type, or `otherwise` where there is none, or null. Throw INVALID_ARGUMENT for
  // another type.
  bool yes(std::string_view key, bool otherwise) const;
  std::string text(std::string_view key, std::string_view otherwise) const;
  int64_t whole(std::string_view key, int64_t otherwise) const;
  // This value as a whole number of a token.
  int32_t id() const;
  std::string text() const;
  std::string type() const { return text("type", ""); }
  // Throws unless this is a list or an object.
  const Config& want(JsonValue::Kind type) const;
  [[noreturn]] void Fail(const std::string& what) const { Invalid("'model': " + path_ + " " + what); }
  // For a type or an option that is not supported.
  [[noreturn]] void Unsupported(const std::string& what, const std::string& known) const;

 private:
  const JsonValue& value_;
  const std::string path_;
};

// Texts of tokens by number, and back.
struct Vocabulary {
  static constexpr int64_t kMost = int64_t{1} << 24;
  std::unordered_map<std::string, int32_t> ids;
  std::vector<std::string> texts;  // by number
  std::vector<uint8_t> there, special;
  // Adds a token. Throws INVALID_ARGUMENT for a text or a number that is there already, with
  // another number or text.
  void Add(const std::string& text, int32_t id, const std::string& path);
  int32_t Find(const std::string& text) const;  // -1: none
  bool Has(int32_t id) const { return id >= 0 && size_t(id) < there.size() && there[size_t(id)]; }
};

struct Span {
  uint32_t begin, end;
};
// A text that is cut into words.
struct Words {
  explicit Words(const Chars::allocator_type& allocator) : chars(allocator), spans(allocator) {}
  Chars chars;
  tw::TempVector<Span> spans;  // in order; what is between them is left out
};

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void Apply(Chars* text) const = 0;
};
class Splitter {
 public:
  virtual ~Splitter() = default;
  virtual void Apply(Words* words) const = 0;
};
class Model {
 public:
  virtual ~Model() = default;
  // Appends the tokens of a word; their places count characters of `chars`.
  virtual void Encode(const Chars& chars, Span word, Parts* to) const = 0;
};
using Texts = tw::TempVector<tw::TempString>;
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual void Apply(Texts* texts) const = 0;
};

// Each returns nullptr for a value of null, and throws INVALID_ARGUMENT for what is damaged or not
// supported.
std::unique_ptr<Normalizer> MakeNormalizer(tw::Payer payer, const Config& config);
std::unique_ptr<Splitter> MakeSplitter(tw::Payer payer, const Config& config);
std::unique_ptr<Decoder> MakeDecoder(tw::Payer payer, const Config& config);
// Fills the vocabulary, which must outlive the model. held: pays for the model.
std::unique_ptr<Model> MakeModel(tw::Payer payer, const Config& config, Vocabulary* vocabulary, tw::Holding* held);

// The character of the alphabet of GPT-2 that stands for a byte, and back; -1: it stands for none.
uint32_t CharOfByte(uint8_t byte);
int ByteOfChar(uint32_t c);
// Returns the byte that a token such as <0x0A> stands for, or -1; and its token.
int ByteOfToken(std::string_view token);
std::string TokenOfByte(uint8_t byte);

}  // namespace thalweg::text

#endif  // THALWEG_PLUGINS_TEXT_TOKENIZER_PARTS_H_
