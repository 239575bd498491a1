// Normalizers and splitters.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "charsmap.h"
#include "pattern.h"
#include "tokenizer_parts.h"
#include "unicode.h"

namespace thalweg::text {
namespace {

bool IsAsciiPunctuation(uint32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}
bool IsMarkOfText(uint32_t c) { return IsAsciiPunctuation(c) || IsPunctuation(c); }

bool IsIdeograph(uint32_t c) {
  constexpr std::pair<uint32_t, uint32_t> kRanges[] = {{0x4e00, 0x9fff},   {0x3400, 0x4dbf},   {0x20000, 0x2a6df}, {0x2a700, 0x2b73f},
                                                       {0x2b740, 0x2b81f}, {0x2b820, 0x2ceaf}, {0xf900, 0xfaff},   {0x2f800, 0x2fa1f}};
  return std::any_of(std::begin(kRanges), std::end(kRanges), [c](const auto& r) { return r.first <= c && c <= r.second; });
}

// The characters of a text as UTF-8, with the first byte of each, and the size.
struct Encoded {
  Encoded(const Chars& chars, Span span) : text(chars.get_allocator()), at(chars.get_allocator()) {
    at.reserve(span.end - span.begin + 1);
    for (uint32_t i = span.begin; i < span.end; ++i) {
      at.push_back(uint32_t(text.size()));
      AppendChar(chars[i].c, &text);
    }
    at.push_back(uint32_t(text.size()));
  }
  tw::TempString text;
  tw::TempVector<uint32_t> at;
};

// ---- Patterns ----

// A regular expression as tokenizer.json has it, in the syntax of other libraries. \s, \w and \d
// stand for classes of Unicode. Such patterns often end with alternatives that look ahead, for a
// run of spaces of which the last one belongs to the next word; RE2 has no look-ahead, so the run
// is a group of its own here.
class Regex {
 public:
  Regex(tw::Payer payer, std::string_view text) : spaces_(text.ends_with(kSpaces)), pattern_(payer, Translated(text, spaces_), "pattern") {}

  // Calls visit(begin, end) for each match in the text, in bytes.
  template <class F>
  void EachMatch(std::string_view text, const F& visit) const {
    size_t at = 0;
    while (const auto match = pattern_.Find(text, at, false)) {
      size_t end = match->end;
      if (spaces_ && match->group && end < text.size()) {
        size_t last = end;  // the first byte of the last space
        do --last;
        while (last > match->begin && (uint8_t(text[last]) & 0xc0) == 0x80);
        if (last > match->begin) end = last;
      }
      visit(match->begin, end);
      at = end;
    }
  }

 private:
  static constexpr std::string_view kSpaces = R"(|\s+(?!\S)|\s+)";
  static constexpr std::string_view kSpaceClass = R"(\t-\r \x{85}\p{Z})", kWordClass = R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200c}\x{200d})";

  static std::string Translated(std::string_view text, bool spaces) {
    if (spaces) text.remove_suffix(kSpaces.size());
    std::string out = spaces ? "(?:" : "";
    bool in_class = false;
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (c == '\\' && i + 1 < text.size()) {
        const char kind = text[++i];
        const std::string_view set = kind == 's' || kind == 'S' ? kSpaceClass : kind == 'w' || kind == 'W' ? kWordClass : "";
        const bool negated = kind == 'S' || kind == 'W';
        if (set.empty()) {
          out += kind == 'd' ? R"(\p{Nd})" : kind == 'D' ? R"(\P{Nd})" : std::string{'\\', kind};
        } else if (!in_class) {
          out += (negated ? "[^" : "[") + std::string(set) + "]";
        } else if (!negated) {
          out += set;
        } else {
          Invalid("'model': the pattern " + Quoted(text) + " has \\" + kind + " in brackets; this is not supported");
        }
        continue;
      }
      if (c == '(' && i + 1 < text.size() && text[i + 1] != '?') {  // groups are not looked at, so that group 1 is that of spaces
        out += in_class ? "(" : "(?:";
        continue;
      }
      if (c == '[') in_class = true;
      if (c == ']') in_class = false;
      out += c;
    }
    return out + (spaces ? ")|([" + std::string(kSpaceClass) + "]+)" : "");
  }

  const bool spaces_;
  const Pattern pattern_;
};

// Finds what the `pattern` of a step names: a text as it is, or a regular expression.
class Finder {
 public:
  Finder(tw::Payer payer, const Config& config) : text_(config.text("String", "")) {
    if (text_.empty() && config["Regex"]) regex_.emplace(payer, config["Regex"].text());
    if (text_.empty() && !regex_) config.Fail("has neither a 'String' nor a 'Regex'");
  }
  Finder(tw::Payer payer, std::string_view regex) { regex_.emplace(payer, regex); }
  // Calls visit(begin, end) for each match, in bytes.
  template <class F>
  void EachMatch(std::string_view text, const F& visit) const {
    if (regex_) return regex_->EachMatch(text, visit);
    for (size_t at = text.find(text_); at != text.npos; at = text.find(text_, at + text_.size())) visit(at, at + text_.size());
  }

 private:
  const std::string text_;
  std::optional<Regex> regex_;
};

// Calls each(text, put), which calls put(begin, end, replaced) for each part of the text, in bytes
// and in order, that is to be replaced. last: new characters stand for the last one that they
// replace; else each stands for the one at its place.
template <class F>
void Rewrite(Chars* chars, bool last, const F& each) {
  const Encoded from(*chars, {0, uint32_t(chars->size())});
  Chars to(chars->get_allocator());
  size_t done = 0;  // characters that are in `to`, or replaced
  const auto char_at = [&](size_t byte) { return size_t(std::lower_bound(from.at.begin(), from.at.end(), byte) - from.at.begin()); };
  each(std::string_view(from.text), [&](size_t begin, size_t end, std::string_view replaced) {
    const size_t first = char_at(begin), behind = char_at(end);
    to.insert(to.end(), chars->begin() + std::ptrdiff_t(done), chars->begin() + std::ptrdiff_t(first));
    size_t origin = last ? behind - 1 : first;
    for (size_t at = 0; at < replaced.size(); origin = std::min(origin + 1, behind - 1))
      to.push_back({NextChar(replaced, &at), (*chars)[origin].begin, (*chars)[origin].end});
    done = behind;
  });
  if (done == 0) return;
  to.insert(to.end(), chars->begin() + std::ptrdiff_t(done), chars->end());
  chars->swap(to);
}

// ---- Normalizers ----

class NormalizerSequence final : public Normalizer {
 public:
  NormalizerSequence(tw::Payer payer, const Config& list) {
    for (size_t i = 0; i < list.want(JsonValue::Kind::kArray).size(); ++i) {
      if (auto one = MakeNormalizer(payer, list[i])) all_.push_back(std::move(one));
    }
  }
  void Apply(Chars* text) const override {
    for (const auto& one : all_) one->Apply(text);
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> all_;
};

class NormalForm final : public Normalizer {
 public:
  explicit NormalForm(Form form) : form_(form) {}
  void Apply(Chars* text) const override { Normalize(form_, text); }

 private:
  const Form form_;
};

class Lowercase final : public Normalizer {
 public:
  void Apply(Chars* text) const override { Lower(text); }
};

class StripAccents final : public Normalizer {
 public:
  void Apply(Chars* text) const override {
    text->erase(std::remove_if(text->begin(), text->end(), [](const Char& c) { return IsMark(c.c); }), text->end());
  }
};

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  void Apply(Chars* text) const override {
    const auto kept = [](const Char& c) { return !IsSpace(c.c); };
    if (right_) text->erase(std::find_if(text->rbegin(), text->rend(), kept).base(), text->end());
    if (left_) text->erase(text->begin(), std::find_if(text->begin(), text->end(), kept));
  }

 private:
  const bool left_, right_;
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string text) : text_(std::move(text)) {}
  void Apply(Chars* text) const override {
    if (text->empty()) return;
    const Char head = text->front();  // the new characters stand for it, too
    Chars more(text->get_allocator());
    for (size_t at = 0; at < text_.size();) more.push_back({NextChar(text_, &at), head.begin, head.end});
    text->insert(text->begin(), more.begin(), more.end());
  }

 private:
  const std::string text_;
};

class Replace final : public Normalizer {
 public:
  Replace(tw::Payer payer, const Config& config) : finder_(payer, config["pattern"]), content_(config.text("content", "")) {}
  void Apply(Chars* text) const override {
    Rewrite(text, true, [this](std::string_view all, const auto& put) {
      finder_.EachMatch(all, [&](size_t begin, size_t end) { put(begin, end, content_); });
    });
  }

 private:
  const Finder finder_;
  const std::string content_;
};

std::string FromBase64(const Config& config) {
  std::string out;
  uint32_t bits = 0, n = 0;
  for (const char c : config.text()) {
    const int digit = c >= 'A' && c <= 'Z'   ? c - 'A'
                      : c >= 'a' && c <= 'z' ? c - 'a' + 26
                      : c >= '0' && c <= '9' ? c - '0' + 52
                      : c == '+'             ? 62
                      : c == '/'             ? 63
                                             : -1;
    if (c == '=') break;
    if (digit < 0) config.Fail("has a character that is none of base64");
    bits = (bits << 6 | uint32_t(digit)) & 0xffffff;
    if ((n += 6) < 8) continue;
    n -= 8;
    out += char(bits >> n & 255);
  }
  return out;
}

class Precompiled final : public Normalizer {
 public:
  Precompiled(tw::Payer payer, const Config& config) {
    const std::string bytes = FromBase64(config);
    held_.set(payer, bytes.size());
    map_ = Charsmap(bytes);
  }
  void Apply(Chars* text) const override {
    Rewrite(text, false, [this](std::string_view all, const auto& put) {
      for (size_t at = 0; at < all.size();) {
        std::string_view replaced;
        // A rule that ends inside a character would be damaged.
        const size_t n = map_.Longest(all.substr(at), &replaced);
        const bool whole = n > 0 && (at + n == all.size() || (uint8_t(all[at + n]) & 0xc0) != 0x80);
        if (whole) put(at, at + n, replaced);
        at += whole ? n : CharSize(all[at]);
      }
    });
  }

 private:
  Charsmap map_;
  tw::Holding held_;
};

class BertNormalizer final : public Normalizer {
 public:
  explicit BertNormalizer(const Config& config)
      : cleans_(config.yes("clean_text", true)),
        separates_(config.yes("handle_chinese_chars", true)),
        lower_(config.yes("lowercase", true)),
        strips_(config.yes("strip_accents", lower_)) {}
  void Apply(Chars* text) const override {
    if (cleans_) Clean(text);
    if (separates_) Separate(text);
    if (strips_) {
      Normalize(Form::kNfd, text);
      text->erase(std::remove_if(text->begin(), text->end(), [](const Char& c) { return IsNonspacing(c.c); }), text->end());
    }
    if (lower_) Lower(text);
  }

 private:
  static void Clean(Chars* text) {
    const auto dropped = [](const Char& c) {
      const bool space = c.c == '\t' || c.c == '\n' || c.c == '\r';
      return c.c == 0 || c.c == kReplacement || (!space && IsOther(c.c));
    };
    text->erase(std::remove_if(text->begin(), text->end(), dropped), text->end());
    for (Char& c : *text) {
      if (IsSpace(c.c)) c.c = ' ';
    }
  }
  // Puts spaces around ideographs.
  static void Separate(Chars* text) {
    if (std::none_of(text->begin(), text->end(), [](const Char& c) { return IsIdeograph(c.c); })) return;
    Chars to(text->get_allocator());
    for (const Char& c : *text) {
      const bool apart = IsIdeograph(c.c);
      if (apart) to.push_back({' ', c.begin, c.begin});
      to.push_back(c);
      if (apart) to.push_back({' ', c.end, c.end});
    }
    text->swap(to);
  }

  const bool cleans_, separates_, lower_, strips_;
};

// ---- Splitters ----

class SplitterSequence final : public Splitter {
 public:
  SplitterSequence(tw::Payer payer, const Config& list) {
    for (size_t i = 0; i < list.want(JsonValue::Kind::kArray).size(); ++i) {
      if (auto one = MakeSplitter(payer, list[i])) all_.push_back(std::move(one));
    }
  }
  void Apply(Words* words) const override {
    for (const auto& one : all_) one->Apply(words);
  }

 private:
  std::vector<std::unique_ptr<Splitter>> all_;
};

// Cuts by the kind of each character: neighbours of one kind stay together.
class ByKind final : public Splitter {
 public:
  enum Kind : uint8_t { kDropped, kAlone, kFirst, kSecond };
  using Find = Kind (*)(uint32_t c, uint32_t argument);
  explicit ByKind(Find find, uint32_t argument = 0) : find_(find), argument_(argument) {}
  void Apply(Words* words) const override {
    tw::TempVector<Span> spans(words->spans.get_allocator());
    for (const Span& s : words->spans) {
      Kind last = kDropped;
      for (uint32_t i = s.begin; i < s.end; ++i) {
        const Kind kind = find_(words->chars[i].c, argument_);
        if (kind != kDropped && kind != kAlone && kind == last)
          spans.back().end = i + 1;
        else if (kind != kDropped)
          spans.push_back({i, i + 1});
        last = kind;
      }
    }
    words->spans.swap(spans);
  }

 private:
  const Find find_;
  const uint32_t argument_;
};

ByKind::Kind KindForBert(uint32_t c, uint32_t) { return IsSpace(c) ? ByKind::kDropped : IsMarkOfText(c) ? ByKind::kAlone : ByKind::kFirst; }
ByKind::Kind KindForSpaces(uint32_t c, uint32_t) { return IsSpace(c) ? ByKind::kDropped : ByKind::kFirst; }
ByKind::Kind KindForWords(uint32_t c, uint32_t) { return IsSpace(c) ? ByKind::kDropped : IsWord(c) ? ByKind::kFirst : ByKind::kSecond; }
ByKind::Kind KindForDigits(uint32_t c, uint32_t alone) { return !IsNumber(c) ? ByKind::kFirst : alone ? ByKind::kAlone : ByKind::kSecond; }
ByKind::Kind KindForDelimiter(uint32_t c, uint32_t delimiter) { return c == delimiter ? ByKind::kDropped : ByKind::kFirst; }

// Cuts at the matches of a pattern, or at punctuation.
class SplitByMatches final : public Splitter {
 public:
  // Every match is a word, and so is what is between two.
  SplitByMatches(tw::Payer payer, std::string_view regex) : behavior_(Behavior::kIsolated), inverted_(false) {
    finder_.emplace(payer, regex);
  }
  SplitByMatches(tw::Payer payer, const Config& config, bool punctuation)
      : behavior_(BehaviorOf(config, punctuation ? "Isolated" : "")), inverted_(config.yes("invert", false)) {
    if (!punctuation) finder_.emplace(payer, config["pattern"]);
  }
  void Apply(Words* words) const override {
    tw::TempVector<Span> spans(words->spans.get_allocator());
    for (const Span& s : words->spans) Cut(words->chars, s, &spans);
    words->spans.swap(spans);
  }

 private:
  enum class Behavior { kRemoved, kIsolated, kPrevious, kNext, kContiguous };
  struct Piece {
    Span span;
    bool match;
  };
  using Pieces = tw::TempVector<Piece>;

  static Behavior BehaviorOf(const Config& config, std::string_view otherwise) {
    const std::string name = config.text("behavior", otherwise);
    if (name == "Removed") return Behavior::kRemoved;
    if (name == "Isolated") return Behavior::kIsolated;
    if (name == "MergedWithPrevious") return Behavior::kPrevious;
    if (name == "MergedWithNext") return Behavior::kNext;
    if (name == "Contiguous") return Behavior::kContiguous;
    config["behavior"].Unsupported(Quoted(name), "Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous");
  }

  void Cut(const Chars& chars, Span word, tw::TempVector<Span>* to) const {
    Pieces pieces(chars.get_allocator());
    uint32_t done = word.begin;
    const auto add = [&](uint32_t begin, uint32_t end) {  // a match
      if (done < begin) pieces.push_back({{done, begin}, inverted_});
      if (begin < end) pieces.push_back({{begin, end}, !inverted_});
      done = end;
    };
    if (finder_) {
      const Encoded encoded(chars, word);
      uint32_t at = 0;  // the character of the last byte that was asked for; matches come in order
      const auto char_at = [&](size_t byte) {
        while (encoded.at[at] < byte) ++at;
        return word.begin + at;
      };
      finder_->EachMatch(encoded.text, [&](size_t begin, size_t end) {
        const uint32_t first = char_at(begin);
        add(first, char_at(end));
      });
    } else {
      for (uint32_t i = word.begin; i < word.end; ++i) {
        if (IsMarkOfText(chars[i].c)) add(i, i + 1);
      }
    }
    if (done < word.end) pieces.push_back({{done, word.end}, inverted_});
    Join(pieces, to);
  }

  void Join(const Pieces& pieces, tw::TempVector<Span>* to) const {
    const size_t first = to->size();
    for (size_t i = 0; i < pieces.size(); ++i) {
      const Piece& p = pieces[i];
      const bool follows = to->size() > first && i > 0;
      bool joins = false;
      switch (behavior_) {
        case Behavior::kRemoved:
          if (p.match) continue;
          break;
        case Behavior::kIsolated: break;
        case Behavior::kPrevious: joins = follows && p.match && !pieces[i - 1].match; break;
        case Behavior::kNext: joins = follows && !p.match && pieces[i - 1].match; break;
        case Behavior::kContiguous: joins = follows && p.match == pieces[i - 1].match; break;
      }
      if (joins)
        to->back().end = p.span.end;
      else
        to->push_back(p.span);
    }
  }

  const Behavior behavior_;
  const bool inverted_;
  std::optional<Finder> finder_;
};

// Writes spaces as another character, puts one before words, and cuts before each.
class Metaspace final : public Splitter {
 public:
  explicit Metaspace(const Config& config) : splits_(config.yes("split", true)) {
    const std::string replacement = config.text("replacement", "\xe2\x96\x81");
    size_t at = 0;
    if (!replacement.empty()) space_ = NextChar(replacement, &at);
    if (at == 0 || at != replacement.size()) config["replacement"].Fail("must be one character");
    const std::string scheme = config.text("prepend_scheme", config.yes("add_prefix_space", true) ? "always" : "never");
    if (scheme != "always" && scheme != "never" && scheme != "first")
      config["prepend_scheme"].Unsupported(Quoted(scheme), "always, first, never");
    always_ = scheme == "always";
    first_ = scheme == "first";
  }
  void Apply(Words* words) const override {
    Words to(words->chars.get_allocator());
    for (const Span& s : words->spans) {
      if (s.begin == s.end) continue;
      auto begin = uint32_t(to.chars.size());
      const Char& head = words->chars[s.begin];
      const bool starts = head.c == ' ' || head.c == space_;
      if (!starts && (always_ || (first_ && head.begin == 0))) to.chars.push_back({space_, head.begin, head.end});
      for (uint32_t i = s.begin; i < s.end; ++i) {
        Char c = words->chars[i];
        if (c.c == ' ') c.c = space_;
        const auto at = uint32_t(to.chars.size());
        if (splits_ && c.c == space_ && at > begin) {
          to.spans.push_back({begin, at});
          begin = at;
        }
        to.chars.push_back(c);
      }
      to.spans.push_back({begin, uint32_t(to.chars.size())});
    }
    words->chars.swap(to.chars);
    words->spans.swap(to.spans);
  }

 private:
  const bool splits_;
  bool always_ = false, first_ = false;
  uint32_t space_ = 0;
};

// Writes the bytes of the text in the alphabet of GPT-2, after cutting it with the pattern of that
// model.
class ByteLevel final : public Splitter {
 public:
  ByteLevel(tw::Payer payer, const Config& config) : prefix_(config.yes("add_prefix_space", true)) {
    if (config.yes("use_regex", true)) cut_.emplace(payer, R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)");
  }
  void Apply(Words* words) const override {
    if (prefix_) {
      Each(words, [words](Span s, Chars* to) {
        const Char& head = words->chars[s.begin];
        if (head.c != ' ') to->push_back({' ', head.begin, head.end});
        to->insert(to->end(), words->chars.begin() + s.begin, words->chars.begin() + s.end);
      });
    }
    if (cut_) cut_->Apply(words);
    Each(words, [words](Span s, Chars* to) {
      for (uint32_t i = s.begin; i < s.end; ++i) {
        const Char& c = words->chars[i];
        std::string bytes;  // at most 4
        AppendChar(c.c, &bytes);
        for (const char byte : bytes) to->push_back({CharOfByte(uint8_t(byte)), c.begin, c.end});
      }
    });
  }

 private:
  // Replaces each word by what write(span, &chars) appends.
  template <class F>
  static void Each(Words* words, const F& write) {
    Words to(words->chars.get_allocator());
    for (const Span& s : words->spans) {
      if (s.begin == s.end) continue;
      const auto begin = uint32_t(to.chars.size());
      write(s, &to.chars);
      to.spans.push_back({begin, uint32_t(to.chars.size())});
    }
    words->chars.swap(to.chars);
    words->spans.swap(to.spans);
  }

  const bool prefix_;
  std::optional<SplitByMatches> cut_;
};

constexpr char kNormalizers[] =
    "Sequence, NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend, Replace, Precompiled, BertNormalizer";
constexpr char kSplitters[] =
    "Sequence, BertPreTokenizer, Whitespace, WhitespaceSplit, Punctuation, Digits, CharDelimiterSplit, Split, Metaspace, ByteLevel";

}  // namespace

std::unique_ptr<Normalizer> MakeNormalizer(tw::Payer payer, const Config& config) {
  if (!config) return nullptr;
  const std::string type = config.type();
  if (type == "Sequence") return std::make_unique<NormalizerSequence>(payer, config["normalizers"]);
  if (type == "NFC") return std::make_unique<NormalForm>(Form::kNfc);
  if (type == "NFD") return std::make_unique<NormalForm>(Form::kNfd);
  if (type == "NFKC") return std::make_unique<NormalForm>(Form::kNfkc);
  if (type == "NFKD") return std::make_unique<NormalForm>(Form::kNfkd);
  if (type == "Lowercase") return std::make_unique<Lowercase>();
  if (type == "StripAccents") return std::make_unique<StripAccents>();
  if (type == "Strip") return std::make_unique<Strip>(config.yes("strip_left", true), config.yes("strip_right", true));
  if (type == "Prepend") return std::make_unique<Prepend>(config.text("prepend", ""));
  if (type == "Replace") return std::make_unique<Replace>(payer, config);
  if (type == "Precompiled") {
    if (!config["precompiled_charsmap"]) return nullptr;
    return std::make_unique<Precompiled>(payer, config["precompiled_charsmap"]);
  }
  if (type == "BertNormalizer") return std::make_unique<BertNormalizer>(config);
  config.Unsupported("the normalizer " + Quoted(type), kNormalizers);
}

std::unique_ptr<Splitter> MakeSplitter(tw::Payer payer, const Config& config) {
  if (!config) return nullptr;
  const std::string type = config.type();
  if (type == "Sequence") return std::make_unique<SplitterSequence>(payer, config["pretokenizers"]);
  if (type == "BertPreTokenizer") return std::make_unique<ByKind>(KindForBert);
  if (type == "Whitespace") return std::make_unique<ByKind>(KindForWords);
  if (type == "WhitespaceSplit") return std::make_unique<ByKind>(KindForSpaces);
  if (type == "Punctuation") return std::make_unique<SplitByMatches>(payer, config, true);
  if (type == "Digits") return std::make_unique<ByKind>(KindForDigits, config.yes("individual_digits", false) ? 1u : 0u);
  if (type == "CharDelimiterSplit") {
    const std::string delimiter = config.text("delimiter", "");
    size_t at = 0;
    const uint32_t c = delimiter.empty() ? 0 : NextChar(delimiter, &at);
    if (at == 0 || at != delimiter.size()) config["delimiter"].Fail("must be one character");
    return std::make_unique<ByKind>(KindForDelimiter, c);
  }
  if (type == "Split") return std::make_unique<SplitByMatches>(payer, config, false);
  if (type == "Metaspace") return std::make_unique<Metaspace>(config);
  if (type == "ByteLevel") return std::make_unique<ByteLevel>(payer, config);
  config.Unsupported("the pre-tokenizer " + Quoted(type), kSplitters);
}

}  // namespace thalweg::text
