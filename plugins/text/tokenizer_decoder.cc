// Decoders.
#include <algorithm>
#include <utility>

#include "tokenizer_parts.h"

namespace thalweg::text {
namespace {

// Replaces each text by change(text, is_first, is_last, &changed).
template <class F>
void Each(Texts* texts, const F& change) {
  for (size_t i = 0; i < texts->size(); ++i) {
    tw::TempString changed(texts->get_allocator());
    change(std::string_view((*texts)[i]), i == 0, i + 1 == texts->size(), &changed);
    (*texts)[i] = std::move(changed);
  }
}

void ReplaceAll(std::string_view text, std::string_view from, std::string_view to, tw::TempString* out) {
  size_t at = 0;
  for (size_t found = text.find(from); found != text.npos; found = text.find(from, at)) {
    out->append(text.substr(at, found - at)).append(to);
    at = found + from.size();
  }
  out->append(text.substr(at));
}

void JoinAll(Texts* texts) {
  tw::TempString joined(texts->get_allocator());
  for (const tw::TempString& t : *texts) joined.append(t);
  texts->clear();
  texts->push_back(std::move(joined));
}

// Appends a text, with U+FFFD for what is no UTF-8.
void AppendValid(std::string_view text, tw::TempString* to) {
  for (size_t at = 0; at < text.size();) AppendChar(NextChar(text, &at), to);
}

class DecoderSequence final : public Decoder {
 public:
  DecoderSequence(tw::Payer payer, const Config& list) {
    for (size_t i = 0; i < list.want(JsonValue::Kind::kArray).size(); ++i) {
      if (auto one = MakeDecoder(payer, list[i])) all_.push_back(std::move(one));
    }
  }
  void Apply(Texts* texts) const override {
    for (const auto& one : all_) one->Apply(texts);
  }

 private:
  std::vector<std::unique_ptr<Decoder>> all_;
};

class ByteLevelDecoder final : public Decoder {
 public:
  void Apply(Texts* texts) const override {
    tw::TempString bytes(texts->get_allocator()), text(texts->get_allocator());
    for (const tw::TempString& t : *texts) {
      const size_t before = bytes.size();
      for (size_t at = 0; at < t.size();) {
        const int byte = ByteOfChar(NextChar(t, &at));
        if (byte < 0) {  // a token outside the alphabet stands for itself
          bytes.resize(before);
          bytes.append(t);
          break;
        }
        bytes.push_back(char(byte));
      }
    }
    AppendValid(bytes, &text);
    texts->clear();
    texts->push_back(std::move(text));
  }
};

class WordPieceDecoder final : public Decoder {
 public:
  explicit WordPieceDecoder(const Config& config) : prefix_(config.text("prefix", "##")), cleans_(config.yes("cleanup", true)) {}
  void Apply(Texts* texts) const override {
    Each(texts, [this](std::string_view text, bool first, bool, tw::TempString* to) {
      if (!first && text.substr(0, prefix_.size()) == prefix_)
        text.remove_prefix(prefix_.size());
      else if (!first)
        to->push_back(' ');
      to->append(text);
      if (cleans_) Clean(to);
    });
  }

 private:
  static void Clean(tw::TempString* text) {
    static constexpr std::pair<const char*, const char*> kRules[] = {{" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
                                                                     {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
                                                                     {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (const auto& [from, to] : kRules) {
      if (text->find(from) == text->npos) continue;
      tw::TempString changed(text->get_allocator());
      ReplaceAll(*text, from, to, &changed);
      *text = std::move(changed);
    }
  }

  const std::string prefix_;
  const bool cleans_;
};

class MetaspaceDecoder final : public Decoder {
 public:
  explicit MetaspaceDecoder(const Config& config)
      : space_(config.text("replacement", "\xe2\x96\x81")),
        drops_(config.text("prepend_scheme", config.yes("add_prefix_space", true) ? "always" : "never") != "never") {
    if (space_.empty()) config["replacement"].Fail("must be one character");
  }
  void Apply(Texts* texts) const override {
    Each(texts,
         [this](std::string_view text, bool first, bool, tw::TempString* to) { ReplaceAll(text, space_, first && drops_ ? "" : " ", to); });
  }

 private:
  const std::string space_;
  const bool drops_;
};

class SuffixDecoder final : public Decoder {
 public:
  explicit SuffixDecoder(const Config& config) : suffix_(config.text("suffix", "</w>")) {
    if (suffix_.empty()) config["suffix"].Fail("must not be empty");
  }
  void Apply(Texts* texts) const override {
    Each(texts, [this](std::string_view text, bool, bool last, tw::TempString* to) { ReplaceAll(text, suffix_, last ? "" : " ", to); });
  }

 private:
  const std::string suffix_;
};

class ReplaceDecoder final : public Decoder {
 public:
  explicit ReplaceDecoder(const Config& config) : from_(config["pattern"].text("String", "")), to_(config.text("content", "")) {
    if (from_.empty()) config["pattern"].Unsupported("this pattern", "a 'String' that is not empty");
  }
  void Apply(Texts* texts) const override {
    Each(texts, [this](std::string_view text, bool, bool, tw::TempString* to) { ReplaceAll(text, from_, to_, to); });
  }

 private:
  const std::string from_, to_;
};

// Tokens of bytes become the characters that they make up; if they make up none, each becomes
// U+FFFD.
class ByteFallbackDecoder final : public Decoder {
 public:
  void Apply(Texts* texts) const override {
    Texts to(texts->get_allocator());
    tw::TempString bytes(texts->get_allocator());
    const auto flush = [&] {
      if (bytes.empty()) return;
      bool whole = true;
      for (size_t at = 0; at < bytes.size() && whole;) NextChar(bytes, &at, &whole);
      tw::TempString text(texts->get_allocator());
      for (size_t i = 0; i < bytes.size() && !whole; ++i) AppendChar(kReplacement, &text);
      to.push_back(whole ? std::move(bytes) : std::move(text));
      bytes = tw::TempString(texts->get_allocator());
    };
    for (tw::TempString& t : *texts) {
      const int byte = ByteOfToken(t);
      if (byte >= 0) {
        bytes.push_back(char(byte));
        continue;
      }
      flush();
      to.push_back(std::move(t));
    }
    flush();
    texts->swap(to);
  }
};

class FuseDecoder final : public Decoder {
 public:
  void Apply(Texts* texts) const override { JoinAll(texts); }
};

class StripDecoder final : public Decoder {
 public:
  explicit StripDecoder(const Config& config)
      : content_(config.text("content", " ")), start_(config.whole("start", 0)), stop_(config.whole("stop", 0)) {
    if (content_.empty()) config["content"].Fail("must be one character");
  }
  void Apply(Texts* texts) const override {
    Each(texts, [this](std::string_view text, bool, bool, tw::TempString* to) {
      for (int64_t i = 0; i < start_ && text.substr(0, content_.size()) == content_; ++i) text.remove_prefix(content_.size());
      for (int64_t i = 0; i < stop_ && text.ends_with(content_); ++i) text.remove_suffix(content_.size());
      to->append(text);
    });
  }

 private:
  const std::string content_;
  const int64_t start_, stop_;
};

constexpr char kDecoders[] = "Sequence, ByteLevel, WordPiece, Metaspace, BPEDecoder, Replace, ByteFallback, Fuse, Strip";

}  // namespace

std::unique_ptr<Decoder> MakeDecoder(tw::Payer payer, const Config& config) {
  if (!config) return nullptr;
  const std::string type = config.type();
  if (type == "Sequence") return std::make_unique<DecoderSequence>(payer, config["decoders"]);
  if (type == "ByteLevel") return std::make_unique<ByteLevelDecoder>();
  if (type == "WordPiece") return std::make_unique<WordPieceDecoder>(config);
  if (type == "Metaspace") return std::make_unique<MetaspaceDecoder>(config);
  if (type == "BPEDecoder") return std::make_unique<SuffixDecoder>(config);
  if (type == "Replace") return std::make_unique<ReplaceDecoder>(config);
  if (type == "ByteFallback") return std::make_unique<ByteFallbackDecoder>();
  if (type == "Fuse") return std::make_unique<FuseDecoder>();
  if (type == "Strip") return std::make_unique<StripDecoder>(config);
  config.Unsupported("the decoder " + Quoted(type), kDecoders);
}

}  // namespace thalweg::text
