// Between real numbers and those that stand for them. A quantised tensor gives its real numbers to every operator (graph.h), so these
// operators only pass them on.
#include <iterator>

#include "../graph.h"

namespace thalweg::tflite {
namespace {

void Quantize(Graph&, Node& n) { n.out(n.in(0)); }

// Also widens half numbers.
void Dequantize(Graph& g, Node& n) { n.out(g.cast(n.in(0), n.out_dtype())); }

void FakeQuant(Graph& g, Node& n) {
  n.out(g.op("FakeQuantWithMinMaxArgs", {n.in(0)}, {{"min", n.f(0)}, {"max", n.f(1)}, {"num_bits", n.i(2)}, {"narrow_range", n.flag(3)}}));
}

// A constant is read with its zeros.
void Densify(Graph&, Node& n) { n.out(n.stored(0)); }

constexpr Entry kTable[] = {
    {6, "DEQUANTIZE", &Dequantize}, {80, "FAKE_QUANT", &FakeQuant}, {114, "QUANTIZE", &Quantize}, {124, "DENSIFY", &Densify}};

}  // namespace

Family quantize_translators() { return {std::begin(kTable), std::end(kTable)}; }

}  // namespace thalweg::tflite
