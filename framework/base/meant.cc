#include "framework/base/meant.h"

#include <algorithm>
#include <vector>

namespace thalweg {
namespace {

constexpr size_t kLongest = 200;

// Returns the number of edits (insert, delete, replace) from a to b.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t up = row[j];
      row[j] = std::min({up + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = up;
    }
  }
  return row[b.size()];
}

}  // namespace

Meant::Meant(std::string_view written) : written_(written), least_(written.size() / 3 + 1) {}

void Meant::Consider(std::string_view name) {
  if (written_.size() > kLongest || name.size() > kLongest) return;
  if (const size_t edits = Distance(written_, name); edits < least_) {
    least_ = edits;
    nearest_ = name;
  }
}

std::string Meant::text() const { return nearest_.empty() ? "" : "; did you mean '" + std::string(nearest_) + "'?"; }

}  // namespace thalweg
