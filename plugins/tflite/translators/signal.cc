// Complex numbers and Fourier transforms.
#include <iterator>

#include "../graph.h"

namespace thalweg::tflite {
namespace {

void Rfft2d(Graph& g, Node& n) { n.out(g.op("RFFT2D", {n.in(0), n.in(1)})); }

template <const char* kOp>
void Part(Graph& g, Node& n) {
  n.out(g.op(kOp, {n.in(0)}, {{"Tout", Dtype{n.out_dtype()}}}));
}
constexpr char kReal[] = "Real", kImag[] = "Imag", kAbs[] = "ComplexAbs";

constexpr Entry kTable[] = {
    {131, "RFFT2D", &Rfft2d}, {133, "IMAG", &Part<kImag>}, {134, "REAL", &Part<kReal>}, {135, "COMPLEX_ABS", &Part<kAbs>}};

}  // namespace

Family signal_translators() { return {std::begin(kTable), std::end(kTable)}; }

}  // namespace thalweg::tflite
