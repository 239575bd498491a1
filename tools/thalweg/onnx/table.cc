#include "table.h"

#include <cstring>

namespace thalweg::cli::onnx {

const Translator* FindTranslator(const char* op) {
  for (const auto list : {ElementwiseTranslators(), ShapeTranslators(), ReductionTranslators(), LayerTranslators()}) {
    for (const Translator& t : list) {
      if (std::strcmp(t.op, op) == 0) return &t;
    }
  }
  return nullptr;
}

}  // namespace thalweg::cli::onnx
