#include "update_text.h"

#include <algorithm>
#include <iterator>

#include "updates.h"

namespace thalweg::device {
namespace {

// Statements may hold commas.
#define ENTRY(rule, slots, factors, ...) {#rule, slots, factors, #__VA_ARGS__},
constexpr Update kUpdates[] = {DEVICE_UPDATES(ENTRY)};
#undef ENTRY

// before + "v" + after, before + "s1" + after, ...: for the variable and its slots.
std::string ForSlots(const Update& u, const std::string& before, const std::string& between, const std::string& after) {
  std::string text;
  for (int k = 0; k <= u.slots; ++k) {
    const std::string name = k == 0 ? "v" : "s" + std::to_string(k);
    text += before + name + between + name + after;
  }
  return text;
}

}  // namespace

const Update& FindUpdate(std::string_view rule) {
  return *std::find_if(std::begin(kUpdates), std::end(kUpdates), [&](const Update& u) { return u.rule == rule; });
}

std::string UpdateText(const Update& u, bool rows) {
  std::string parameters, factors;
  for (int k = 0; k <= u.slots; ++k) parameters += "OUT(T, in_" + (k == 0 ? std::string("v") : "s" + std::to_string(k)) + "), ";
  parameters += "IN(T, in_g), ";
  for (int k = 0; k < u.factors; ++k) factors += "COMPUTED(T) k" + std::to_string(k) + ", ";
  const std::string begin = "  typedef COMPUTED(T) C;\n" + ForSlots(u, "  BEGIN(in_", "); (void)in_", ";\n") + "  BEGIN(in_g);\n";
  const std::string load = ForSlots(u, "C ", " = GET(T, in_", ", i); "), store = ForSlots(u, "PUT(T, in_", ", i, ", "); ");
  const std::string statements(u.statements);
  if (!rows)
    return "KERNEL(update)(" + parameters + factors + "Size n) {\n" + begin +
           "  FOR_RUNS(begin, end, n) {\n    INDEPENDENT\n    for (Size i = begin; i < end; ++i) {\n      const C g = GET(T, in_g, i); " +
           load + "\n      " + statements + ";\n      " + store + "\n    }\n  }\n}\n";
  return "KERNEL(update_rows)(" + parameters + "IN(int64, order), IN(int64, rows), IN(int64, starts), " + factors +
         "Size segments, Size inner) {\n" + begin +
         "  BEGIN(order), BEGIN(rows), BEGIN(starts);\n  FOR_EACH(s, segments) {\n    for (Size c = 0; c < inner; ++c) {\n"
         "      const Size i = rows[s] * inner + c;\n      " +
         load +
         "\n      for (Size k = starts[s]; k < starts[s + 1]; ++k) {\n        const C g = GET(T, in_g, order[k] * inner + c);\n        " +
         statements + ";\n      }\n      " + store + "\n    }\n  }\n}\n";
}

}  // namespace thalweg::device
