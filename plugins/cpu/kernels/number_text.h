// Formats elements as text, for AsString and for messages.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_NUMBER_TEXT_H_
#define THALWEG_PLUGINS_CPU_KERNELS_NUMBER_TEXT_H_

#include <string>

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cpu {

// As in printf: flags is one of " +-0#" or empty. A negative width or precision means not given.
// The style of floating-point numbers is f, e or g.
struct NumberFormat {
  std::string flags;
  int width = -1, precision = -1;
  char style = 'g';
};

// Returns element i as text. Complex numbers are "(re,im)", booleans "true" and "false", strings
// themselves.
// Throws UNIMPLEMENTED for types without a text (resources, variants, quantised and 8-bit
// floating-point types).
std::string NumberText(const tw_view* v, uint64_t i, const NumberFormat& format);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_NUMBER_TEXT_H_
