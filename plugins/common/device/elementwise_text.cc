#include "elementwise_text.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "functions.h"

namespace thalweg::device {
namespace {

#define ENTRY(inputs, op, types, result, expression) {#op, #types, #result, #expression, inputs},
#define UNARY(...) ENTRY(1, __VA_ARGS__)
#define BINARY(...) ENTRY(2, __VA_ARGS__)
#define TERNARY(...) ENTRY(3, __VA_ARGS__)
constexpr Function kFunctions[] = {DEVICE_UNARY(UNARY) DEVICE_BINARY(BINARY) DEVICE_TERNARY(TERNARY)};
#undef TERNARY
#undef BINARY
#undef UNARY
#undef ENTRY

std::string Number(double v) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", v);
  return text;
}

std::string Text(size_t k) { return std::to_string(k); }

}  // namespace

const Function* FindFunction(std::string_view op, std::string_view type) {
  const std::string_view types = ClassOf(type);
  const Function* f =
      std::find_if(std::begin(kFunctions), std::end(kFunctions), [&](const Function& g) { return g.op == op && g.types == types; });
  return f == std::end(kFunctions) ? nullptr : f;
}

std::string_view ClassOf(std::string_view type) {
  if (type == "float" || type == "double" || type == "half" || type == "bfloat16") return "REAL";
  if (type == "int32" || type == "int64") return "WHOLE";
  return type == "bool" ? "BOOL" : "";
}

std::string FunctionText(const Function& f, std::string_view type, std::string_view name, double parameter) {
  const std::string computed = "COMPUTED(" + std::string(type) + ")", expression(f.expression);
  std::string text = "FUNCTION " + (f.result == "BOOL" ? "COMPUTED(bool)" : computed) + " " + std::string(name) + "(";
  for (int k = 0; k < f.inputs; ++k) text += (k ? ", " : "") + computed + " " + char('a' + k);
  text += ") {\n  typedef " + computed + " C;\n  typedef WRAPPING(" + std::string(type) + ") U;\n";
  if (expression.find('P') != std::string::npos) text += "  const C P = (C)" + Number(parameter) + ";\n";
  return text + "  return " + expression + ";\n}\n";
}

std::string ElementwiseText(std::string_view name, const std::vector<std::string>& in, const std::vector<std::string>& out,
                            const std::string& statements) {
  std::string parameters, begin, pointers, dense = "1", loads, dense_loads, results, stores, rooms, puts, streams;
  for (size_t k = 0; k < in.size(); ++k) {
    const std::string x = "in" + Text(k), d = "by" + Text(k), p = "p" + Text(k), type = in[k];
    parameters += "IN(" + type + ", " + x + "), struct Steps steps" + Text(k) + ", Size " + d + ", ";
    begin += "  BEGIN(" + x + ");\n";
    pointers += "      GLOBAL const STORED(" + type + ")* " + p + " = " + x + " + place(&axes, &steps" + Text(k) + ", row) + first * " + d +
                ";\n      const COMPUTED(" + type + ") only" + Text(k) + " = GET(" + type + ", " + p + ", 0);\n";
    const std::string value = "        const COMPUTED(" + type + ") x" + Text(k) + " = ", element = "GET(" + type + ", " + p + ", k)";
    dense += " && " + d;
    dense_loads += value + element + ";\n";
    loads += value + d + " ? " + element + " : only" + Text(k) + ";\n";
  }
  for (size_t k = 0; k < out.size(); ++k) {
    const std::string y = "out" + Text(k), q = "q" + Text(k), type = out[k];
    parameters += "OUT(" + type + ", " + y + "), ";
    begin += "  BEGIN(" + y + ");\n";
    pointers += "      GLOBAL STORED(" + type + ")* " + q + " = " + y + " + i;\n";
    results += "        COMPUTED(" + type + ") y" + Text(k) + ";\n";
    stores += "        PUT(" + type + ", " + q + ", k, y" + Text(k) + ");\n";
    rooms += "        STREAM_ROOM(" + type + ", r" + Text(k) + ");\n";
    puts += "        PUT(" + type + ", r" + Text(k) + ", k - at, y" + Text(k) + ");\n";
    streams += "        STREAM_OUT(" + type + ", " + q + " + at, r" + Text(k) + ");\n";
  }
  // Programs for types that no variable may have never stream results.
  const bool can_stream = std::find(out.begin(), out.end(), "half") == out.end();
  const std::string rest = results + "        " + statements + "\n";
  const std::string streamed = "#ifdef STREAM\n      for (; streamed && at + STREAM <= count; at += STREAM) {\n" + rooms +
                               "        INDEPENDENT\n        for (Size k = at; k < at + STREAM; ++k) {\n" + dense_loads + rest + puts +
                               "        }\n" + streams + "      }\n#endif\n";
  const auto loop = [&](const std::string& body) {
    return "      INDEPENDENT\n      for (Size k = at; k < count; ++k) {\n" + body + rest + stores + "      }\n";
  };
  // If no input repeats an element, the loop has no branch: compilers vectorize only that loop.
  return "KERNEL(" + std::string(name) + ")(" + parameters + "Size n, Size inner, struct Axes axes, Size streamed) {\n" + begin +
         "  FOR_RUNS(begin, end, n) {\n    for (Size i = begin; i < end;) {\n"
         "      const Size row = i / inner, first = i - row * inner, left = inner - first, count = left < end - i ? left : end - i;\n"
         "      Size at = 0;\n" +
         pointers + "      if (" + dense + ") {\n" + (can_stream ? streamed : "") + loop(dense_loads) + "      at = count;\n      }\n" +
         loop(loads) + "      i += count;\n    }\n  }\n}\n";
}

}  // namespace thalweg::device
