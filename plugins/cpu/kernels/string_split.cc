// StringSplitV2. If `maxsplit` ends the splitting, the rest is the last part, even if it is empty.
#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/common/temp.h"
#include "kernels/common/text.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

struct Part {
  int64_t row, column;
  std::string_view text;
};

// Linear in the text for every separator, because memmem never goes back.
size_t Find(std::string_view text, std::string_view separator) {
  if (text.size() < separator.size()) return text.npos;  // an empty text may have no address
  const void* at = memmem(text.data(), text.size(), separator.data(), separator.size());
  return at ? size_t(static_cast<const char*>(at) - text.data()) : text.npos;
}

class Split {
 public:
  explicit Split(const tw::Node& n) : most_(n.i("maxsplit")) {}

  void operator()(tw::Frame f, tw::In<tw_string> input, tw::In<tw_string> sep, tw::Out<int64_t> indices, tw::Out<tw_string> values,
                  tw::Out<int64_t> shape) const {
    tw::TempVector<Part> parts(f);
    int64_t columns = 0;
    for (uint64_t i = 0; i < input.size(); ++i) {
      const size_t before = parts.size();
      Append(View(input[i]), View(sep[0]),
             [&](std::string_view text) { parts.push_back({int64_t(i), int64_t(parts.size() - before), text}); });
      columns = std::max(columns, int64_t(parts.size() - before));
    }
    const int64_t n = int64_t(parts.size()), pairs[] = {n, 2};
    Allocate(indices, pairs, 2);
    Allocate(values, &n, 1);
    for (size_t k = 0; k < parts.size(); ++k) {
      indices[2 * k] = parts[k].row;
      indices[2 * k + 1] = parts[k].column;
      values.set(k, parts[k].text);
    }
    shape[0] = int64_t(input.size());
    shape[1] = columns;
  }

 private:
  template <class F>
  void Append(std::string_view text, std::string_view separator, F&& add) const {
    if (most_ == 0) return add(text);
    if (separator.empty()) return AppendWords(text, add);
    for (int64_t done = 0; done != most_ || most_ < 0; ++done) {
      const size_t at = Find(text, separator);
      if (at == text.npos) break;
      add(text.substr(0, at));
      text.remove_prefix(at + separator.size());
    }
    add(text);
  }

  template <class F>
  void AppendWords(std::string_view text, F& add) const {
    const auto skip = [&] { text.remove_prefix(size_t(std::find_if_not(text.begin(), text.end(), IsSpace) - text.begin())); };
    skip();
    for (int64_t done = 0; !text.empty();) {
      const auto size = size_t(std::find_if(text.begin(), text.end(), IsSpace) - text.begin());
      add(text.substr(0, size));
      text.remove_prefix(size);
      skip();
      if (++done == most_) return add(text);
    }
  }

  int64_t most_;
};

}  // namespace

void register_string_split(tw::Plugin& p) { p.kernel<Split>("StringSplitV2 @CPU"); }

}  // namespace thalweg::cpu
