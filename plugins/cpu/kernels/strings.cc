// StringJoin, AsString, and Add of strings.
#include <limits>

#include "kernels/common/broadcast.h"
#include "kernels/common/parallel.h"
#include "kernels/common/temp.h"
#include "kernels/number_text.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

std::string_view Text(const tw_string& s) { return {s.data, s.size}; }

class StringJoin {
 public:
  explicit StringJoin(const tw::Node& n) : separator_(n.s("separator")) {}
  void operator()(tw::Frame f, tw::Many<tw_string> inputs, tw::Out<tw_string> output) const {
    for (uint32_t k = 0; k < inputs.size(); ++k)
      if (inputs[k].rank() != 0 && inputs[k].size() != output.size())
        throw tw::Error{TW_INTERNAL,
                        "input " + std::to_string(k) + " is " + DimsText(inputs[k].v) + "; inputs have one shape or are scalars"};
    tw::TempString text(f);
    for (uint64_t i = 0; i < output.size(); ++i) {
      uint64_t bytes = (inputs.size() ? inputs.size() - 1 : 0) * separator_.size();
      for (uint32_t k = 0; k < inputs.size(); ++k) bytes += inputs[k][inputs[k].rank() == 0 ? 0 : i].size;
      text.clear();
      text.reserve(bytes);
      for (uint32_t k = 0; k < inputs.size(); ++k) {
        if (k) text += separator_;
        text += Text(inputs[k][inputs[k].rank() == 0 ? 0 : i]);
      }
      output.set(i, text);
    }
  }

 private:
  std::string separator_;
};

class AsString {
 public:
  explicit AsString(const tw::Node& n) {
    format_.flags = n.s("fill");
    if (format_.flags.size() > 1 || (!format_.flags.empty() && std::string_view(" +-0#").find(format_.flags[0]) == std::string_view::npos))
      Invalid("fill is '" + format_.flags + "'; it is empty or one of: space + - 0 #");
    format_.width = Small(n, "width");
    format_.precision = Small(n, "precision");
    format_.style = n.b("scientific") ? 'e' : n.b("shortest") ? 'g' : 'f';
  }
  void operator()(tw::Frame f, tw::In<tw::Any> input, tw::Out<tw_string> output) const {
    ParallelFor(f.f, int64_t(output.size()), 500, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) output.set(uint64_t(i), NumberText(input.v, uint64_t(i), format_));
    });
  }

 private:
  static int Small(const tw::Node& n, const char* name) {
    const int64_t v = n.i(name);
    if (v > 4096) Invalid(std::string(name) + " is " + std::to_string(v) + "; it must not be above 4096");
    return v < 0 ? -1 : int(v);
  }

  NumberFormat format_;
};

void AddStrings(tw::Frame f, tw::In<tw_string> x, tw::In<tw_string> y, tw::Out<tw_string> z) {
  if (z.size() == 0) return;
  const Broadcast<2> walk(z.v(), {x.v, y.v});
  const int last = walk.rank - 1;
  walk.ForSegments(0, int64_t(z.size()), [&](const int64_t* from, int64_t to, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const std::string_view head = Text(x[uint64_t(from[0] + i * walk.step[0][last])]),
                             tail = Text(y[uint64_t(from[1] + i * walk.step[1][last])]);
      tw::TempString text(f);
      text.reserve(head.size() + tail.size());
      text.append(head).append(tail);
      z.set(uint64_t(to + i), text);
    }
  });
}

}  // namespace

void register_strings(tw::Plugin& p) {
  p.kernel<StringJoin>("StringJoin @CPU");
  p.kernel<AsString>("AsString @CPU");
  p.kernel<AddStrings>("Add @CPU");
}

}  // namespace thalweg::cpu
