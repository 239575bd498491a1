// Writes programs that compute element by element from the table of functions.h, for one op or for
// a chain of ops. The result is plain text that uses the macros of README.md, for any device that
// compiles it.
#ifndef THALWEG_PLUGINS_COMMON_DEVICE_ELEMENTWISE_TEXT_H_
#define THALWEG_PLUGINS_COMMON_DEVICE_ELEMENTWISE_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

namespace thalweg::device {

// A line of functions.h.
struct Function {
  std::string_view op, types, result, expression;
  int inputs;
};

// Returns the line for that op and element type ("float", "int32"); NULL if there is none.
const Function* FindFunction(std::string_view op, std::string_view type);
// Returns "REAL", "WHOLE" or "BOOL"; empty for a type that the table does not know.
std::string_view ClassOf(std::string_view type);

// Returns `name` as a function of the program. parameter: the value of P.
std::string FunctionText(const Function& f, std::string_view type, std::string_view name, double parameter);

// Returns function `name`, whose statements compute y0, y1, ... from x0, x1, ..., of these element
// types.
// Parameters of the function: for each input its tensor, its steps and its inner step (1, or 0,
// which repeats an element); for each output the tensor; then the number of elements, the number of
// elements of a row, the axes that lead from row to row, and whether results bypass the caches.
// Outputs are dense.
std::string ElementwiseText(std::string_view name, const std::vector<std::string>& in, const std::vector<std::string>& out,
                            const std::string& statements);

}  // namespace thalweg::device

#endif  // THALWEG_PLUGINS_COMMON_DEVICE_ELEMENTWISE_TEXT_H_
