#include "tokenizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "unicode.h"

namespace thalweg::text {
namespace {

constexpr const char* kTypeNames[] = {"missing", "null", "a truth value", "a number", "a text", "a list", "an object"};
const char* NameOf(JsonValue::Kind type) { return kTypeNames[size_t(type)]; }

// Memory of a token in the vocabulary: two texts, an entry of the map and marks.
constexpr uint64_t kTokenBytes = 2 * sizeof(std::string) + 64;
// While a file is read, its vocabulary takes at most this much for each byte: a token has at least
// 8 bytes there.
constexpr uint64_t kMostPerByte = (kTokenBytes + 8) / 8;

JsonValue ParseModel(std::string_view model, tw::Charge* charge) {
  try {
    return JsonValue::Parse(model, [charge](uint64_t bytes) { charge->add(bytes); });
  } catch (const common::JsonError& e) {
    Invalid(std::string("'model': ") + e.what());
  }
}

}  // namespace

// ---- Config and Vocabulary ----

bool Config::yes(std::string_view key, bool otherwise) const {
  const JsonValue& v = value_[key];
  if (v.null()) return otherwise;
  if (!v.is(JsonValue::Kind::kBool)) (*this)[key].Fail(std::string("is ") + NameOf(v.kind()) + "; it must be true or false");
  return v.yes();
}

std::string Config::text(std::string_view key, std::string_view otherwise) const {
  return value_[key].null() ? std::string(otherwise) : (*this)[key].text();
}

int64_t Config::whole(std::string_view key, int64_t otherwise) const {
  const JsonValue& v = value_[key];
  if (v.null()) return otherwise;
  if (!v.is(JsonValue::Kind::kNumber) || v.number() != std::floor(v.number()) || std::abs(v.number()) > 1e15)
    (*this)[key].Fail("must be a whole number");
  return int64_t(v.number());
}

int32_t Config::id() const {
  const double v = value_.number();
  if (!value_.is(JsonValue::Kind::kNumber) || v != std::floor(v) || v < 0 || v >= double(Vocabulary::kMost))
    Fail("must be the number of a token, from 0 to 2^24 - 1");
  return int32_t(v);
}

std::string Config::text() const {
  want(JsonValue::Kind::kText);
  return value_.text();
}

const Config& Config::want(JsonValue::Kind type) const {
  if (!value_.is(type)) Fail(std::string("is ") + NameOf(value_.kind()) + "; it must be " + NameOf(type));
  return *this;
}

void Config::Unsupported(const std::string& what, const std::string& known) const {
  throw tw::Error{TW_UNIMPLEMENTED, "'model': " + path_ + " has " + what + ", which is not supported; known are " + known};
}

void Vocabulary::Add(const std::string& text, int32_t id, const std::string& path) {
  if (size_t(id) >= texts.size()) {
    texts.resize(size_t(id) + 1);
    there.resize(size_t(id) + 1);
    special.resize(size_t(id) + 1);
  }
  const auto [at, is_new] = ids.emplace(text, id);
  if (at->second != id)
    Invalid("'model': " + path + " has the token " + Quoted(text) + " twice, as " + std::to_string(at->second) + " and " +
            std::to_string(id));
  if (is_new && there[size_t(id)])
    Invalid("'model': " + path + " has the number " + std::to_string(id) + " twice, for " + Quoted(texts[size_t(id)]) + " and " +
            Quoted(text));
  texts[size_t(id)] = text;
  there[size_t(id)] = 1;
}

int32_t Vocabulary::Find(const std::string& text) const {
  const auto at = ids.find(text);
  return at == ids.end() ? -1 : at->second;
}

// ---- Reading a file ----

Tokenizer::Tokenizer(tw::Frame f, std::string_view model) {
  const tw::Payer payer(f);
  if (model.empty()) Invalid("'model' is empty; it must be the contents of a file tokenizer.json");
  tw::Charge charge(payer);
  const JsonValue json = ParseModel(model, &charge);
  if (!json.is(JsonValue::Kind::kObject)) Invalid("'model' is " + std::string(NameOf(json.kind())) + "; it must be an object");
  const Config config(json, "the tokenizer");
  const uint64_t most = kMostPerByte * model.size();
  held_.set(payer, most);
  normalizer_ = MakeNormalizer(payer, config["normalizer"]);
  splitter_ = MakeSplitter(payer, config["pre_tokenizer"]);
  decoder_ = MakeDecoder(payer, config["decoder"]);
  model_ = MakeModel(payer, config["model"], &vocabulary_, &held_);
  if (config["added_tokens"]) ReadAdded(f, config["added_tokens"]);
  if (config["post_processor"]) ReadAround(config["post_processor"]);
  uint64_t used = vocabulary_.texts.size() * kTokenBytes;
  for (const std::string& text : vocabulary_.texts) used += 2 * text.size();
  if (used < most) held_.sub(most - used);
  held_.add(payer, used > most ? used - most : 0);
}

void Tokenizer::ReadAdded(tw::Frame f, const Config& list) {
  list.want(JsonValue::Kind::kArray);
  std::vector<std::pair<std::string, Added>> raw, normal;
  for (size_t i = 0; i < list.size(); ++i) {
    const Config token = list[i];
    std::string text = token["content"].text();
    const Added added = {token["id"].id(), token.yes("lstrip", false), token.yes("rstrip", false), token.yes("single_word", false)};
    vocabulary_.Add(text, added.id, token.path());
    const bool special = token.yes("special", false);
    if (special) vocabulary_.special[size_t(added.id)] = 1;
    const bool normalized = token.yes("normalized", !special);
    if (normalized && normalizer_) {
      // Its text is looked for as the normalizer writes it.
      Chars chars(f);
      DecodeChars(text, &chars);
      normalizer_->Apply(&chars);
      text.clear();
      for (const Char& c : chars) AppendChar(c.c, &text);
    }
    if (text.size() > Trie::kLongest)
      token.Fail("has a 'content' of " + std::to_string(text.size()) + " bytes; at most " + std::to_string(Trie::kLongest) +
                 " are supported");
    if (!text.empty()) (normalized ? normal : raw).emplace_back(std::move(text), added);
  }
  raw_ = MakeFinder(f, raw, &held_);
  normal_ = MakeFinder(f, normal, &held_);
}

Tokenizer::Finder Tokenizer::MakeFinder(tw::Payer payer, const std::vector<std::pair<std::string, Added>>& tokens, tw::Holding* held) {
  Finder finder;
  std::vector<Trie::Key> keys;
  uint64_t bytes = 0;
  for (const auto& [text, added] : tokens) {
    keys.emplace_back(text, int32_t(finder.tokens.size()));
    finder.tokens.push_back(added);
    bytes += text.size();
  }
  held->add(payer, Trie::HeapFor(bytes) + tokens.size() * sizeof(Added));
  finder.trie = Trie(std::move(keys));
  return finder;
}

int32_t Tokenizer::Around(const Config& pair) const {
  if (!pair.value().is(JsonValue::Kind::kArray) || pair.size() != 2) pair.Fail("must be a token and its number");
  const int32_t id = pair[size_t{1}].id();
  if (!Has(id)) pair.Fail("has the number " + std::to_string(id) + ", which is that of no token");
  return id;
}

void Tokenizer::ReadAround(const Config& config) {
  const std::string type = config.type();
  if (type == "Sequence") {
    const Config list = config["processors"];
    for (size_t i = 0; i < list.want(JsonValue::Kind::kArray).size(); ++i) ReadAround(list[i]);
  } else if (type == "ByteLevel") {
    trims_ |= config.yes("trim_offsets", true);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    trims_ |= type == "RobertaProcessing" && config.yes("trim_offsets", true);
    before_.push_back(Around(config["cls"]));
    behind_.push_back(Around(config["sep"]));
  } else if (type == "TemplateProcessing") {
    ReadTemplate(config);
  } else {
    config.Unsupported("the post-processor " + Quoted(type), "Sequence, ByteLevel, BertProcessing, RobertaProcessing, TemplateProcessing");
  }
}

void Tokenizer::ReadTemplate(const Config& config) {
  const Config list = config["single"];
  size_t texts = 0;
  for (size_t i = 0; i < list.want(JsonValue::Kind::kArray).size(); ++i) {
    if (list[i]["Sequence"]) {
      ++texts;
      continue;
    }
    const std::string name = list[i]["SpecialToken"].text("id", "");
    const Config ids = config["special_tokens"][name]["ids"];
    for (size_t k = 0; k < ids.want(JsonValue::Kind::kArray).size(); ++k) {
      const int32_t id = ids[k].id();
      if (!Has(id)) ids[k].Fail("is " + std::to_string(id) + ", which is the number of no token");
      (texts ? behind_ : before_).push_back(id);
    }
  }
  if (texts != 1) list.Fail("has the text " + std::to_string(texts) + " times; it must have it once");
}

// ---- Texts to tokens ----

template <class F>
void Tokenizer::EachPart(const Chars& chars, const Finder& finder, const F& visit) {
  const auto size = uint32_t(chars.size());
  uint32_t done = 0;
  for (uint32_t i = 0; i < size && !finder.trie.empty();) {
    uint32_t end = i, node = Trie::kRoot;
    int32_t found = -1;
    for (uint32_t k = i; k < size && node != Trie::kNone;) {
      std::string bytes;  // at most 4
      AppendChar(chars[k++].c, &bytes);
      for (const char byte : bytes) {
        if (node != Trie::kNone) node = finder.trie.Child(node, byte);
      }
      if (node == Trie::kNone || finder.trie.value(node) < 0) continue;
      found = finder.trie.value(node);
      end = k;
    }
    if (found < 0) {
      ++i;
      continue;
    }
    const Added& token = finder.tokens[size_t(found)];
    uint32_t begin = i;
    i = end;
    if (token.whole_word && ((begin > 0 && IsWord(chars[begin - 1].c)) || (end < size && IsWord(chars[end].c)))) continue;
    while (token.left && begin > done && IsSpace(chars[begin - 1].c)) --begin;
    while (token.right && end < size && IsSpace(chars[end].c)) ++end;
    if (done < begin) visit(Span{done, begin}, nullptr);
    visit(Span{begin, end}, &token);
    i = done = end;
  }
  if (done < size) visit(Span{done, size}, nullptr);
}

void Tokenizer::Encode(tw::Frame f, std::string_view text, bool special, Parts* to) const {
  if (special) {
    for (const int32_t id : before_) to->push_back({id, 0, 0});
  }
  Chars chars(f);
  DecodeChars(text, &chars);
  EachPart(chars, raw_, [&](Span s, const Added* token) {
    if (token)
      to->push_back({token->id, chars[s.begin].begin, chars[s.end - 1].end});
    else
      EncodeText(Chars(chars.begin() + s.begin, chars.begin() + s.end, chars.get_allocator()), to);
  });
  if (special) {
    for (const int32_t id : behind_) to->push_back({id, 0, 0});
  }
}

void Tokenizer::EncodeText(Chars text, Parts* to) const {
  if (normalizer_) normalizer_->Apply(&text);
  EachPart(text, normal_, [&](Span s, const Added* token) {
    if (token) {
      to->push_back({token->id, text[s.begin].begin, text[s.end - 1].end});
      return;
    }
    Words words(text.get_allocator());
    words.chars.assign(text.begin() + s.begin, text.begin() + s.end);
    words.spans.push_back({0, s.end - s.begin});
    EncodeWords(std::move(words), to);
  });
}

void Tokenizer::EncodeWords(Words words, Parts* to) const {
  if (splitter_) splitter_->Apply(&words);
  const size_t first = to->size();
  for (const Span& s : words.spans) {
    if (s.begin < s.end) model_->Encode(words.chars, s, to);
  }
  constexpr uint32_t kSpace = 0x120;  // in the alphabet of GPT-2
  const auto is_space = [&words](uint32_t i) { return words.chars[i].c == kSpace || IsSpace(words.chars[i].c); };
  for (size_t i = first; i < to->size(); ++i) {
    Part& p = (*to)[i];
    const uint32_t end = words.chars[p.end - 1].end;
    while (trims_ && p.begin < p.end && is_space(p.begin)) ++p.begin;
    while (trims_ && p.begin < p.end && is_space(p.end - 1)) --p.end;
    const bool any = p.begin < p.end;
    p.begin = any ? words.chars[p.begin].begin : end;
    p.end = any ? words.chars[p.end - 1].end : end;
  }
}

// ---- Tokens to texts ----

tw::TempString Tokenizer::Decode(tw::Frame f, const int32_t* ids, size_t n, bool skip) const {
  Texts texts(f);
  for (size_t i = 0; i < n; ++i) {
    if (skip && vocabulary_.special[size_t(ids[i])]) continue;
    texts.emplace_back(text(ids[i]), f);
  }
  if (decoder_) decoder_->Apply(&texts);
  tw::TempString joined(f);
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0 && !decoder_) joined.push_back(' ');
    joined.append(texts[i]);
  }
  return joined;
}

}  // namespace thalweg::text
