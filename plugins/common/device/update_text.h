// Writes programs that make one step of an optimizer from the table of updates.h.
#ifndef THALWEG_PLUGINS_COMMON_DEVICE_UPDATE_TEXT_H_
#define THALWEG_PLUGINS_COMMON_DEVICE_UPDATE_TEXT_H_

#include <string>
#include <string_view>

namespace thalweg::device {

struct Update {
  std::string_view rule;
  int slots, factors;
  std::string_view statements;
};

// Returns the line of that rule. REQUIRES: it exists.
const Update& FindUpdate(std::string_view rule);

// Returns function `update` (all elements: variable, slots, gradient, factors, count) or, if
// `rows`, function `update_rows` (rows of a sparse gradient, sorted as in scatter.h: variable,
// slots, gradient, order, rows, starts, factors, segments, elements of a row). T: the element type.
std::string UpdateText(const Update& u, bool rows);

}  // namespace thalweg::device

#endif  // THALWEG_PLUGINS_COMMON_DEVICE_UPDATE_TEXT_H_
