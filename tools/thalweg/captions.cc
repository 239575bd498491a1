#include "captions.h"

#include <algorithm>
#include <cstdio>

#include "draw.h"
#include "words.h"

namespace thalweg::cli {
namespace {

auto Find(const Signature& signature, const std::string& name) {
  return std::find_if(signature.feeds.begin(), signature.feeds.end(), [&](const Value& f) { return f.name == name; });
}

// Returns the caption of example i for a fetch or feed: the number itself or, for a vector, its
// largest entries.
std::string Caption(const tw::Runtime& runtime, const tw::Tensor& value, int64_t i) {
  const std::vector<int64_t> dims = value.dims();
  if (value.dtype() == TW_STRING) return dims.size() == 1 ? value.string(uint64_t(i)) : "";
  const std::vector<double> all = Cast(runtime, value, TW_DOUBLE).values<double>();
  char text[64];
  if (dims.size() == 1) {
    std::snprintf(text, sizeof(text), "%g", all[size_t(i)]);
    return text;
  }
  if (dims.size() != 2 || dims[1] == 0) return "";
  std::vector<int64_t> order(static_cast<size_t>(dims[1]));
  for (size_t k = 0; k < order.size(); ++k) order[k] = int64_t(k);
  const double* row = all.data() + i * dims[1];
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return row[a] > row[b]; });
  std::string best;
  for (size_t k = 0; k < std::min<size_t>(order.size(), 2); ++k) {
    std::snprintf(text, sizeof(text), "%s%lld: %.3f", k ? "  " : "", static_cast<long long>(order[k]), row[order[k]]);
    best += text;
  }
  return best;
}

}  // namespace

void CheckDrawn(const Signature& signature, const std::string& name) {
  if (Find(signature, name) == signature.feeds.end()) throw UsageError{"--draw '" + name + "': no such feed"};
}

void DrawFeed(const tw::Runtime& runtime, const Signature& signature, const std::string& name) {
  const auto drawn = Find(signature, name);
  const Pictures pictures = ToPictures(runtime, drawn->tensor);
  std::vector<std::vector<std::string>> captions(static_cast<size_t>(pictures.n));
  size_t width = 0;
  std::vector<const Value*> shown;
  for (const auto* list : {&signature.feeds, &signature.fetches}) {
    for (const Value& value : *list) {
      if (&value == &*drawn || value.tensor.dims().empty() || value.tensor.dims()[0] != pictures.n) continue;
      shown.push_back(&value);
      width = std::max(width, value.name.size());
    }
  }
  for (int64_t i = 0; i < pictures.n; ++i) {
    for (const Value* value : shown) {
      captions[size_t(i)].push_back(value->name + std::string(width + 2 - value->name.size(), ' ') + Caption(runtime, value->tensor, i));
    }
  }
  std::fputs(Draw(pictures, captions).c_str(), stdout);
}

}  // namespace thalweg::cli
