#include "sentencepiece.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <map>

#include "wire.h"

namespace thalweg::text {
namespace {

constexpr std::string_view kSpace = "\xe2\x96\x81";  // U+2581, which stands for a space in pieces
constexpr std::string_view kReplacementText = "\xef\xbf\xbd";
constexpr float kUnknownPenalty = 10;
constexpr size_t kMostPieces = size_t{1} << 24;
// The most of the best splits that are computed, as in the library.
constexpr int32_t kMostBest = 1024, kMostDrawnFrom = 512;

// Returns the byte that a piece such as <0x0A> stands for, or -1.
int ByteOf(std::string_view piece) {
  if (piece.size() != 6 || piece.substr(0, 3) != "<0x" || piece[5] != '>') return -1;
  int byte = 0;
  for (const char c : piece.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) return -1;
    byte = byte * 16 + digit;
  }
  return byte;
}

// Returns the bytes of the valid character that begins the text, or 0.
size_t ValidSize(std::string_view text) {
  size_t at = 0;
  bool valid = false;
  NextChar(text, &at, &valid);
  return valid ? at : 0;
}

}  // namespace

SentencePiece::SentencePiece(tw::Payer payer, std::string_view model) {
  if (model.empty()) Invalid("'model' is empty; it must be the contents of a .model file of SentencePiece");
  // Memory for pieces that are as short as possible: a message of one has 5 bytes.
  size_t count = 0;
  Wire::Field field;
  for (Wire wire(model, "ModelProto"); wire.Next(&field);) count += field.number == 1 && field.type == 2;
  if (count > kMostPieces) Invalid("the model has " + std::to_string(count) + " pieces; at most 2^24 are supported");
  constexpr uint64_t kEach = 2 * sizeof(Entry) + sizeof(float) + 64 /* of maps */ + 2 * sizeof(Trie::Key);
  held_.set(payer, count * kEach + 2 * model.size() + 2 * Trie::HeapFor(model.size()));
  Read(model);
  Index();
  held_.set(payer, count * kEach + 2 * model.size() + trie_.heap() + defined_.heap());
}

void SentencePiece::Read(std::string_view model) {
  uint64_t map_bytes = 0, back_bytes = 0;
  Wire::Field field;
  for (Wire wire(model, "ModelProto"); wire.Next(&field);) {
    if (field.type != 2) continue;
    if (field.number == 1) ReadPiece(field.bytes);
    if (field.number == 2) ReadTrainer(field.bytes);
    if (field.number == 3) ReadRules(field.bytes, &rules_, &map_bytes);
    if (field.number == 5) ReadRules(field.bytes, &back_, &back_bytes);
  }
  denormalizes_ = back_bytes > 0;
}

void SentencePiece::ReadPiece(std::string_view message) {
  Entry piece;
  Wire::Field field;
  for (Wire wire(message, "SentencePiece"); wire.Next(&field);) {
    if (field.number == 1 && field.type == 2) piece.text = std::string(field.bytes);
    if (field.number == 2 && field.type == 5) piece.score = field.real();
    if (field.number == 3 && field.type == 0) piece.type = uint8_t(std::min<uint64_t>(field.value, 255));
  }
  const std::string where = "piece " + std::to_string(pieces_.size());
  if (piece.text.empty()) Invalid(where + " of the model is empty");
  if (piece.text.size() > Trie::kLongest)
    Invalid(where + " of the model has " + std::to_string(piece.text.size()) + " bytes; at most " + std::to_string(Trie::kLongest) +
            " are supported");
  if (piece.type < kNormal || piece.type > kByte)
    Invalid(where + " of the model has the type " + std::to_string(piece.type) + ", which is unknown");
  if (!std::isfinite(piece.score)) Invalid(where + " of the model, " + Quoted(piece.text) + ", has a score that is no finite number");
  pieces_.push_back(std::move(piece));
}

void SentencePiece::ReadTrainer(std::string_view message) {
  Wire::Field field;
  for (Wire wire(message, "TrainerSpec"); wire.Next(&field);) {
    const auto text = [&field](std::string* to) {
      if (!field.bytes.empty()) *to = std::string(field.bytes);
    };
    switch (field.number) {
      case 3:
        if (field.value < 1 || field.value > 4) Invalid("the model has the type " + std::to_string(field.value) + ", which is unknown");
        kind_ = Kind(field.value);
        break;
      case 24: space_behind_ = field.value != 0; break;
      case 35: byte_fallback_ = field.value != 0; break;
      case 44: unknown_text_ = std::string(field.bytes); break;
      case 45: text(&unknown_piece_); break;
      case 46: text(&bos_); break;
      case 47: text(&eos_); break;
      default: break;
    }
  }
}

void SentencePiece::ReadRules(std::string_view message, Rules* to, uint64_t* map_bytes) {
  Wire::Field field;
  for (Wire wire(message, "NormalizerSpec"); wire.Next(&field);) {
    if (field.number == 2 && field.type == 2 && !field.bytes.empty()) {
      to->map = Charsmap(field.bytes);
      *map_bytes = field.bytes.size();
    }
    if (field.type != 0) continue;
    if (field.number == 3) to->dummy_prefix = field.value != 0;
    if (field.number == 4) to->remove_extra = field.value != 0;
    if (field.number == 5) to->escape = field.value != 0;
  }
}

void SentencePiece::Index() {
  std::fill(std::begin(bytes_), std::end(bytes_), -1);
  std::vector<Trie::Key> keys, defined;
  min_score_ = FLT_MAX;
  scores_.reserve(pieces_.size());
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const Entry& p = pieces_[i];
    const auto id = int32_t(i);
    const bool normal = p.type == kNormal || p.type == kUserDefined || p.type == kUnused;
    const auto [at, is_new] = (normal ? normal_ : reserved_).emplace(p.text, id);
    if (!is_new)
      Invalid("pieces " + std::to_string(at->second) + " and " + std::to_string(id) + " of the model are both " + Quoted(p.text));
    scores_.push_back(p.score);
    is_defined_.push_back(p.type == kUserDefined);
    is_unused_.push_back(p.type == kUnused);
    if (normal) keys.emplace_back(p.text, id);
    if (p.type == kUserDefined) defined.emplace_back(p.text, id);
    if (p.type == kNormal) min_score_ = std::min(min_score_, p.score);
    if (p.type == kUnknown) {
      if (unknown_ >= 0)
        Invalid("pieces " + std::to_string(unknown_) + " and " + std::to_string(id) + " of the model are both the unknown piece");
      unknown_ = id;
    }
    if (p.type == kByte) {
      const int byte = ByteOf(p.text);
      if (byte < 0) Invalid("piece " + std::to_string(id) + " of the model is " + Quoted(p.text) + "; a byte is written like <0x0A>");
      bytes_[byte] = id;
    }
  }
  CheckPieces();
  defined_ = Trie(std::move(defined));
  if (kind_ == Kind::kUnigram) trie_ = Trie(std::move(keys));
}

void SentencePiece::CheckPieces() const {
  if (unknown_ < 0) Invalid("the model has " + std::to_string(pieces_.size()) + " pieces and no unknown piece; it is damaged");
  if (normal_.empty()) Invalid("the model has no piece that stands for text");
  const auto missing = std::find(std::begin(bytes_), std::end(bytes_), -1) - std::begin(bytes_);
  if (byte_fallback_ && missing < 256) Invalid("the model falls back to bytes, but lacks the piece of byte " + std::to_string(missing));
  const auto any = std::any_of(std::begin(bytes_), std::end(bytes_), [](int32_t id) { return id >= 0; });
  if (!byte_fallback_ && any) Invalid("the model has pieces of bytes, but does not fall back to bytes");
}

int32_t SentencePiece::Find(std::string_view piece) const {
  if (const auto at = reserved_.find(piece); at != reserved_.end()) return at->second;
  const auto at = normal_.find(piece);
  return at == normal_.end() ? unknown_ : at->second;
}

void SentencePiece::Check(const Options& options) const {
  const auto check = [this](bool wanted, const std::string& piece, const char* option) {
    if (wanted && Is(Find(piece), kUnknown))
      Invalid("'" + std::string(option) + "' is true, but the model has no piece " + Quoted(piece) + "; set it to false");
  };
  check(options.bos, bos_, "add_bos");
  check(options.eos, eos_, "add_eos");
}

std::string_view SentencePiece::Prefix(std::string_view text, const Rules& rules, size_t* size) const {
  if (const size_t n = &rules == &rules_ ? defined_.Longest(text) : 0) {
    *size = n;
    return text.substr(0, n);
  }
  std::string_view replaced;
  if ((*size = rules.map.Longest(text, &replaced))) return replaced;
  const size_t n = ValidSize(text);
  *size = n ? n : 1;
  return n ? text.substr(0, n) : kReplacementText;
}

SentencePiece::Normalized SentencePiece::Normalize(tw::Frame f, std::string_view text, const Rules& rules, bool space_behind) const {
  if (text.size() > INT32_MAX) Invalid("a text has " + std::to_string(text.size()) + " bytes; it may have at most 2^31 - 1");
  Normalized to(f);
  uint32_t consumed = 0;
  size_t size = 0;
  const auto advance = [&] {
    text.remove_prefix(size);
    consumed += uint32_t(size);
  };
  const std::string_view space = rules.escape ? kSpace : std::string_view(" ");
  const auto add = [&](std::string_view part) {
    to.text.append(part);
    to.origin.insert(to.origin.end(), part.size(), consumed);
  };
  while (rules.remove_extra && !text.empty() && Prefix(text, rules, &size) == " ") advance();
  if (!text.empty()) {
    if (!space_behind && rules.dummy_prefix) add(space);
    bool after_space = rules.remove_extra;
    for (; !text.empty(); advance()) {
      std::string_view part = Prefix(text, rules, &size);
      while (after_space && part.substr(0, 1) == " ") part.remove_prefix(1);
      for (const char& c : part) add(c == ' ' && rules.escape ? kSpace : std::string_view(&c, 1));
      if (!part.empty()) after_space = part.back() == ' ';
      if (!rules.remove_extra) after_space = false;
    }
    while (rules.remove_extra && std::string_view(to.text).ends_with(space)) {
      const size_t length = to.text.size() - space.size();
      consumed = to.origin[length];
      to.text.resize(length);
      to.origin.resize(length);
    }
    if (space_behind && rules.dummy_prefix) add(space);
  }
  to.origin.push_back(consumed);
  return to;
}

Unigram<float> SentencePiece::unigram() const {
  return {&trie_, &scores_, &is_defined_, &is_unused_, min_score_ - kUnknownPenalty, unknown_};
}

size_t SentencePiece::SymbolSize(std::string_view text, bool* out_defined) const {
  const size_t n = defined_.Longest(text);
  *out_defined = n > 0;
  return n ? n : std::min(CharSize(text[0]), text.size());
}

void SentencePiece::Split(std::string_view normalized, Parts* to) const {
  switch (kind_) {
    case Kind::kUnigram: return BestSplit(unigram(), normalized, to);
    case Kind::kPairs: return SplitPairs(normalized, 0, nullptr, to);
    case Kind::kWord: return SplitWords(normalized, to);
    case Kind::kChar: return SplitChars(normalized, to);
  }
}

void SentencePiece::SplitPairs(std::string_view normalized, double dropout, Random* random, Parts* to) const {
  Symbols symbols(to->get_allocator());
  for (size_t at = 0; at < normalized.size();) {
    bool defined = false;
    const size_t size = SymbolSize(normalized.substr(at), &defined);
    AppendSymbol(-1, uint32_t(at), uint32_t(at + size), defined, &symbols);
    at += size;
  }
  // Pieces that are not used can be merged further. One that is left is split again, as it was
  // merged: the length of its left part.
  using Halves = std::map<std::string_view, uint32_t, std::less<>, tw::TempAllocator<std::pair<const std::string_view, uint32_t>>>;
  Halves halves(to->get_allocator());
  const auto find = [&](const Symbol& left, const Symbol& right, Merged* merged) {
    const std::string_view whole = normalized.substr(left.begin, right.end - left.begin);
    const auto at = normal_.find(whole);
    if (at == normal_.end()) return false;
    *merged = {-double(scores_[size_t(at->second)]), at->second};
    if (Is(at->second, kUnused)) halves[whole] = left.end - left.begin;
    return true;
  };
  MergePairs(&symbols, find, [&] { return dropout > 0 && (dropout >= 1 || random->Next() < dropout); });
  tw::TempVector<Part> rest(to->get_allocator());
  EachSymbol(symbols, [&](const Symbol& s) {
    rest.push_back({-1, s.begin, s.end});
    while (!rest.empty()) {
      const Part p = rest.back();
      rest.pop_back();
      const std::string_view text = normalized.substr(p.begin, p.end - p.begin);
      const int32_t id = Find(text);
      const auto half = Is(id, kUnused) ? halves.find(text) : halves.end();
      if (half == halves.end()) {
        to->push_back({id, p.begin, p.end});
      } else {
        rest.push_back({-1, p.begin + half->second, p.end});
        rest.push_back({-1, p.begin, p.begin + half->second});
      }
    }
  });
}

void SentencePiece::SplitWords(std::string_view normalized, Parts* to) const {
  for (size_t begin = 0; begin < normalized.size();) {
    const size_t end = std::min(normalized.find(kSpace, begin + 1), normalized.size());
    to->push_back({Find(normalized.substr(begin, end - begin)), uint32_t(begin), uint32_t(end)});
    begin = end;
  }
}

void SentencePiece::SplitChars(std::string_view normalized, Parts* to) const {
  for (size_t begin = 0; begin < normalized.size();) {
    bool defined = false;
    const size_t end = begin + SymbolSize(normalized.substr(begin), &defined);
    to->push_back({Find(normalized.substr(begin, end - begin)), uint32_t(begin), uint32_t(end)});
    begin = end;
  }
}

SentencePiece::Row SentencePiece::Finish(tw::Frame f, Normalized n, const Parts& parts, size_t text_size, const Options& options) const {
  Row row(f);
  const auto add = [&row](int32_t id, uint32_t begin, uint32_t end) { row.pieces.push_back({id, begin, end, 0, 0, true}); };
  if (options.bos) add(Find(bos_), 0, 0);
  bool after_unknown = false;
  for (const Part& p : parts) {
    const uint32_t begin = n.origin[p.begin], end = n.origin[p.end];
    const bool is_unknown = Is(p.id, kUnknown);
    if (is_unknown && byte_fallback_) {
      // The last byte of a character has its origin.
      for (uint32_t i = p.begin; i < p.end; ++i) add(bytes_[uint8_t(n.text[i])], begin, i + 1 == p.end ? end : begin);
    } else if (is_unknown && after_unknown) {
      Piece& last = row.pieces.back();
      last.end = end;
      last.size += p.end - p.begin;
    } else {
      row.pieces.push_back({p.id, begin, end, p.begin, p.end - p.begin, false});
    }
    after_unknown = is_unknown;
  }
  if (options.eos) add(Find(eos_), uint32_t(text_size), uint32_t(text_size));
  if (options.reverse) std::reverse(row.pieces.begin(), row.pieces.end());
  row.normalized = std::move(n.text);
  return row;
}

SentencePiece::Row SentencePiece::Encode(tw::Frame f, std::string_view text, const Options& options) const {
  Normalized n = Normalize(f, text, rules_, space_behind_);
  Parts parts(f);
  Split(n.text, &parts);
  return Finish(f, std::move(n), parts, text.size(), options);
}

void SentencePiece::EncodeBest(tw::Frame f, std::string_view text, size_t n, const Options& options, Rows* to) const {
  if (kind_ != Kind::kUnigram)
    throw tw::Error{TW_UNIMPLEMENTED, "only unigram models have several best splits; this model is of another type"};
  const Normalized normalized = Normalize(f, text, rules_, space_behind_);
  std::vector<std::pair<Parts, double>> best;
  if (normalized.text.empty())
    best.emplace_back(Parts(f), 0.0);
  else if (n == 1) {
    best.emplace_back(Parts(f), 0.0);
    Split(normalized.text, &best[0].first);
  } else {
    Lattice(unigram(), normalized.text, f).Best(std::min<size_t>(n, kMostBest), &best);
  }
  for (const auto& [parts, score] : best) to->push_back(Finish(f, normalized, parts, text.size(), options));
}

SentencePiece::Row SentencePiece::Sample(tw::Frame f, std::string_view text, int32_t n, double alpha, uint64_t seed,
                                         const Options& options) const {
  if (n > kMostDrawnFrom) Invalid("'nbest_size' is " + std::to_string(n) + "; it must be at most " + std::to_string(kMostDrawnFrom));
  Normalized normalized = Normalize(f, text, rules_, space_behind_);
  Random random(seed);
  Parts parts(f);
  if (normalized.text.empty()) return Finish(f, std::move(normalized), parts, text.size(), options);
  if (kind_ == Kind::kPairs) {
    SplitPairs(normalized.text, alpha, &random, &parts);
  } else if (kind_ != Kind::kUnigram) {
    throw tw::Error{TW_UNIMPLEMENTED, "models of words and characters have one split of a text; set 'nbest_size' to 0"};
  } else if (n < 0) {
    Lattice(unigram(), normalized.text, f).Sample(alpha, &random, &parts);
  } else {
    std::vector<std::pair<Parts, double>> best;
    Lattice(unigram(), normalized.text, f).Best(size_t(n), &best);
    double sum = 0;
    for (const auto& [split, score] : best) sum += std::exp(alpha * (score - best[0].second));
    double left = random.Next() * sum;
    size_t drawn = 0;
    for (; drawn + 1 < best.size(); ++drawn) {
      left -= std::exp(alpha * (best[drawn].second - best[0].second));
      if (left < 0) break;
    }
    parts = std::move(best[drawn].first);
  }
  return Finish(f, std::move(normalized), parts, text.size(), options);
}

tw::TempString SentencePiece::Decode(tw::Frame f, const tw::TempVector<Given>& given, const Options& options) const {
  tw::TempVector<Given> pieces(f);
  pieces.reserve(given.size() + 2);
  if (options.bos) pieces.push_back({Find(bos_), bos_});
  pieces.insert(pieces.end(), given.begin(), given.end());
  if (options.eos) pieces.push_back({Find(eos_), eos_});
  if (options.reverse) std::reverse(pieces.begin(), pieces.end());
  tw::TempString text(f), bytes(f);
  const auto flush = [&] {
    for (size_t at = 0; at < bytes.size();) {
      const size_t n = ValidSize(std::string_view(bytes).substr(at));
      text.append(n ? std::string_view(bytes).substr(at, n) : kReplacementText);
      at += std::max<size_t>(n, 1);
    }
    bytes.clear();
  };
  bool at_start = true, dropped = false;  // dropped: the space before the first word was left out
  for (const Given& p : pieces) {
    if (Is(p.id, kByte)) {
      bytes.push_back(char(ByteOf(pieces_[size_t(p.id)].text)));
      continue;
    }
    flush();
    if (dropped || !text.empty()) at_start = false;
    dropped = false;
    if (Is(p.id, kControl)) continue;
    if (Is(p.id, kUnknown)) {
      text.append(p.text == pieces_[size_t(p.id)].text ? std::string_view(unknown_text_) : p.text);
      continue;
    }
    std::string_view rest = p.text;
    if (at_start && (rules_.dummy_prefix || rules_.remove_extra) && rest.substr(0, kSpace.size()) == kSpace) {
      rest.remove_prefix(kSpace.size());
      dropped = !rules_.remove_extra;
    }
    for (size_t at = 0; at < rest.size();) {
      const bool space = rest.substr(at, kSpace.size()) == kSpace;
      text.push_back(space ? ' ' : rest[at]);
      at += space ? kSpace.size() : 1;
    }
  }
  flush();
  return denormalizes_ ? std::move(Normalize(f, text, back_, false).text) : text;
}

}  // namespace thalweg::text
