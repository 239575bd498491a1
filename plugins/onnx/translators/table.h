// The table of translators. A translator turns one ONNX node into nodes of ours: it reads inputs and attributes of `n`, adds nodes
// through `b`, and sets each wanted output. Each family is a file with functions and one array, listed in table.cc.
#pragma once
#include <string_view>
#include <vector>

#include "../builder.h"

namespace thalweg::onnx {

using Translate = void (*)(Builder& b, Node& n);

constexpr int kLatest = 1 << 20;  // `until` of a translator that holds for the newest opset

struct Entry {
  const char* op;
  int since, until;  // opsets of the domain, both inclusive
  Translate run;
  const char* domain = "";  // "" is ai.onnx
};

struct Family {
  const Entry* begin;
  const Entry* end;
};

// Finds the translator of an op; NULL if there is none. out_known: the domain has an op of that name in another opset.
const Entry* FindTranslator(std::string_view domain, std::string_view op, int64_t opset, bool* out_known);

// One function per file of this folder.
Family ActivationTranslators();
Family AttentionTranslators();
Family CastTranslators();
Family ControlTranslators();
Family ConvTranslators();
Family DetectionTranslators();
Family ElementwiseTranslators();
Family FillTranslators();
Family GatherTranslators();
Family LearningTranslators();
Family LogicTranslators();
Family LossTranslators();
Family MatMulTranslators();
Family NormTranslators();
Family OrderTranslators();
Family PartTranslators();
Family PoolTranslators();
Family QuantiseTranslators();
Family RandomTranslators();
Family RecurrentTranslators();
Family ReductionTranslators();
Family ResizeTranslators();
Family SampleTranslators();
Family SequenceTranslators();
Family ShapeTranslators();
Family SignalTranslators();
Family TextTranslators();
Family TrainingTranslators();
Family UnaryTranslators();

}  // namespace thalweg::onnx
