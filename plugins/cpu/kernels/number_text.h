// Elements as text, for AsString and for messages.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_NUMBER_TEXT_H_
#define THALWEG_PLUGINS_CPU_KERNELS_NUMBER_TEXT_H_

#include <string>

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cpu {

// As in printf: flags one of " +-0#" or empty; width and precision not given below 0; style of floating-point numbers f, e or g.
struct NumberFormat {
  std::string flags;
  int width = -1, precision = -1;
  char style = 'g';
};

// Element i. Complex numbers are "(re,im)", truth values "true" and "false", strings themselves.
// Throws UNIMPLEMENTED for types that have no text (resources, variants, quantised and 8-bit floating-point types).
std::string NumberText(const tw_view* v, uint64_t i, const NumberFormat& format);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_NUMBER_TEXT_H_
