// StringLength and Substr. A UTF-8 character begins at the first byte, and at every byte that is
// not a continuation byte.
#include <limits>

#include "kernels/common/broadcast.h"
#include "kernels/common/parallel.h"
#include "kernels/common/text.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

constexpr size_t kNone = std::string_view::npos;

bool Continues(char c) { return (uint8_t(c) & 0xc0) == 0x80; }

class StringLength {
 public:
  explicit StringLength(const tw::Node& n) : characters_(n.s("unit") == "UTF8_CHAR") {}
  void operator()(tw::In<tw_string> input, tw::Out<int32_t> output) const {
    for (uint64_t i = 0; i < output.size(); ++i) {
      const std::string_view text = View(input[i]);
      const auto length =
          characters_ ? std::count_if(text.begin(), text.end(), [](char c) { return !Continues(c); }) : int64_t(text.size());
      if (length > std::numeric_limits<int32_t>::max())
        Invalid("'input'" + PositionText(input.v, i) + " has " + std::to_string(length) + " of them, more than an int32 can tell");
      output[i] = int32_t(length);
    }
  }

 private:
  bool characters_;
};

// Returns the offset of character number `pos`, the end for one past the last, or kNone if there
// are fewer.
size_t CharacterFromFront(std::string_view text, int64_t pos) {
  size_t at = 0;
  for (; pos > 0; --pos) {
    if (at == text.size()) return kNone;
    do ++at;
    while (at < text.size() && Continues(text[at]));
  }
  return at;
}

size_t CharacterFromBack(std::string_view text, int64_t pos) {
  size_t at = text.size();
  for (; pos < 0; ++pos) {
    if (at == 0) return kNone;
    do --at;
    while (at > 0 && Continues(text[at]));
  }
  return at;
}

size_t Byte(std::string_view text, int64_t pos) {
  const auto size = int64_t(text.size());
  if (pos > size || pos < -size) return kNone;
  return size_t(pos < 0 ? pos + size : pos);
}

class Substr {
 public:
  explicit Substr(const tw::Node& n) : characters_(n.s("unit") == "UTF8_CHAR") {}
  void operator()(tw::Frame f, tw::In<tw_string> input, tw::In<tw::Any> pos, tw::In<tw::Any> len, tw::Out<tw_string> output) const {
    if (output.size() == 0) return;
    const Broadcast<3> walk(output.v(), {input.v, pos.v, len.v});
    const int last = walk.rank - 1;
    ParallelFor(f.f, int64_t(output.size()), 150, [&](int64_t begin, int64_t end) {
      walk.ForSegments(begin, end, [&](const int64_t* from, int64_t to, int64_t n) {
        for (int64_t i = 0; i < n; ++i) {
          const auto at = [&](int k) { return uint64_t(from[k] + i * walk.step[k][last]); };
          output.set(uint64_t(to + i), Part(input.v, at(0), IndexAt(pos.v, at(1)), IndexAt(len.v, at(2))));
        }
      });
    });
  }

 private:
  std::string_view Part(const tw_view* input, uint64_t i, int64_t pos, int64_t len) const {
    const std::string_view text = View(StringAt(input, i));
    const size_t begin = !characters_ ? Byte(text, pos) : pos < 0 ? CharacterFromBack(text, pos) : CharacterFromFront(text, pos);
    if (begin == kNone)
      Invalid("'pos' is " + std::to_string(pos) + ", outside the text: " + ElementText("input", input, i) + ", of " +
              std::to_string(text.size()) + " bytes");
    const std::string_view rest = text.substr(begin);
    if (len < 0) return rest;
    return rest.substr(0, characters_ ? CharacterFromFront(rest, len) : size_t(len));
  }

  bool characters_;
};

}  // namespace

void register_substr(tw::Plugin& p) {
  p.kernel<StringLength>("StringLength @CPU");
  p.kernel<Substr>("Substr @CPU");
}

}  // namespace thalweg::cpu
