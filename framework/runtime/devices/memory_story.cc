#include "framework/runtime/devices/memory_story.h"

#include <algorithm>

#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/runtime/runtime.h"
#include "framework/runtime/state/resource.h"

namespace thalweg {

void AddVariables(Runtime& runtime, const std::string& container, const Device* device, std::vector<LiveTensor>* to) {
  for (Resource* r : runtime.resources().List(container)) {
    // A variable that is being updated is left out: a message must not wait.
    if (r->is_variable() && r->device() == device && r->TryRead()) {
      if (const Tensor& t = r->value()) {
        to->push_back({StrCat("variable '", Shown(r->name()), "': ", DTypeName(t.dtype()), t.shape().text()), t.bytes()});
      }
      r->UnlockRead();
    }
    r->Release();
  }
}

std::string LargestText(std::vector<LiveTensor> all) {
  constexpr size_t kShown = 4;
  std::erase_if(all, [](const LiveTensor& t) { return t.bytes == 0; });
  std::stable_sort(all.begin(), all.end(), [](const LiveTensor& a, const LiveTensor& b) { return a.bytes > b.bytes; });
  std::string text;
  uint64_t rest = 0;
  for (size_t k = 0; k < all.size(); ++k) {
    if (k < kShown) text += StrCat(k ? ", " : "; the largest there are ", all[k].what, " (", all[k].bytes, " bytes)");
    if (k >= kShown) rest += all[k].bytes;
  }
  if (rest) text += StrCat(", and ", all.size() - kShown, " more of ", rest, " bytes");
  return text;
}

}  // namespace thalweg
