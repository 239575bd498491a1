// The translators from our ops to nodes of ONNX, a list for each family.
#pragma once
#include <span>

#include "net.h"

namespace thalweg::cli::onnx {

struct Translator {
  const char* op;
  void (*translate)(Op& o, const char* twin);
  const char* twin = "";  // the ONNX op, for translators that serve several
};

std::span<const Translator> ElementwiseTranslators();
std::span<const Translator> ShapeTranslators();
std::span<const Translator> ReductionTranslators();
std::span<const Translator> LayerTranslators();

// Returns the translator of an op of ours; NULL if ONNX has no twin.
const Translator* FindTranslator(const char* op);

}  // namespace thalweg::cli::onnx
