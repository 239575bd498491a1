#include "table.h"

#include <map>
#include <string>
#include <utility>

namespace thalweg::onnx {
namespace {

using Key = std::pair<std::string_view, std::string_view>;

const std::multimap<Key, const Entry*>& Index() {
  static const auto* index = [] {
    auto* made = new std::multimap<Key, const Entry*>;
    for (const Family family : {
             ActivationTranslators(), AttentionTranslators(),   CastTranslators(),     ControlTranslators(),  ConvTranslators(),
             DetectionTranslators(),  ElementwiseTranslators(), FillTranslators(),     GatherTranslators(),   LearningTranslators(),
             LogicTranslators(),      LossTranslators(),        MatMulTranslators(),   NormTranslators(),     OrderTranslators(),
             PartTranslators(),       PoolTranslators(),        QuantiseTranslators(), RandomTranslators(),   RecurrentTranslators(),
             ReductionTranslators(),  ResizeTranslators(),      SampleTranslators(),   SequenceTranslators(), ShapeTranslators(),
             SignalTranslators(),     TextTranslators(),        TrainingTranslators(), UnaryTranslators(),
         }) {
      for (const Entry* e = family.begin; e != family.end; ++e) made->emplace(Key{e->domain, e->op}, e);
    }
    return made;
  }();
  return *index;
}

}  // namespace

const Entry* FindTranslator(std::string_view domain, std::string_view op, int64_t opset, bool* out_known) {
  if (domain == "ai.onnx") domain = "";
  const auto [first, last] = Index().equal_range(Key{domain, op});
  *out_known = first != last;
  for (auto i = first; i != last; ++i) {
    if (opset >= i->second->since && opset <= i->second->until) return i->second;
  }
  return nullptr;
}

}  // namespace thalweg::onnx
