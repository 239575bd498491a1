// Operators that work element by element, and the activations.
#include <iterator>

#include "../graph.h"

namespace thalweg::tflite {
namespace {

// kActivation: the number of the option that names a fused activation; -1: none.
template <const char* kOp, int kActivation>
void Binary(Graph& g, Node& n) {
  const Value v = g.op(kOp, {n.in(0), n.in(1)});
  n.out(kActivation < 0 ? v : g.activated(n, v, n.byte(static_cast<unsigned>(kActivation))));
}

template <const char* kOp>
void Unary(Graph& g, Node& n) {
  n.out(g.op(kOp, {n.in(0)}));
}

#define NAME(op) constexpr char k##op[] = #op
NAME(AddV2);
NAME(Sub);
NAME(Mul);
NAME(Div);
NAME(FloorDiv);
NAME(FloorMod);
NAME(Maximum);
NAME(Minimum);
NAME(Pow);
NAME(SquaredDifference);
NAME(Atan2);
NAME(Less);
NAME(LessEqual);
NAME(Greater);
NAME(GreaterEqual);
NAME(Equal);
NAME(NotEqual);
NAME(LogicalAnd);
NAME(LogicalOr);
NAME(BitwiseXor);
NAME(RightShift);
NAME(LogicalNot);
NAME(Abs);
NAME(Neg);
NAME(Exp);
NAME(Log);
NAME(Sin);
NAME(Cos);
NAME(Sqrt);
NAME(Rsqrt);
NAME(Square);
NAME(Floor);
NAME(Ceil);
NAME(Round);
NAME(Sign);
NAME(Sigmoid);
NAME(Tanh);
NAME(Relu);
NAME(Relu6);
NAME(Elu);
NAME(ZerosLike);
#undef NAME

void Relu1(Graph& g, Node& n) { n.out(g.clip(n.in(0), -1, 1)); }
void ReluTo1(Graph& g, Node& n) { n.out(g.clip(n.in(0), 0, 1)); }
void Leaky(Graph& g, Node& n) { n.out(g.op("LeakyRelu", {n.in(0)}, {{"alpha", n.f(0)}})); }

void HardSwish(Graph& g, Node& n) {
  const Value x = n.in(0);
  n.out(g.op("Mul", {x, g.op("Mul", {g.op("Relu6", {g.op("AddV2", {x, g.like(x, 3)})}), g.like(x, 1.0 / 6)})}));
}

void Gelu(Graph& g, Node& n) {
  const Value x = n.in(0);
  Value bend;
  if (n.flag(0)) {  // by tanh
    const Value cube = g.op("Mul", {g.op("Mul", {x, x}), x});
    const Value inner = g.op("AddV2", {x, g.op("Mul", {cube, g.like(x, 0.044715)})});
    bend = g.op("Tanh", {g.op("Mul", {inner, g.like(x, 0.7978845608028654)})});
  } else {
    bend = g.op("Erf", {g.op("Mul", {x, g.like(x, 0.70710678118654752)})});
  }
  n.out(g.op("Mul", {g.op("Mul", {x, g.like(x, 0.5)}), g.op("AddV2", {bend, g.like(x, 1)})}));
}

void Prelu(Graph& g, Node& n) {
  const Value x = n.in(0);
  n.out(g.op("AddV2", {g.op("Relu", {x}), g.op("Mul", {n.in(1), g.op("Minimum", {x, g.like(x, 0)})})}));
}

void AddN(Graph& g, Node& n) { n.out(g.op("AddN", n.all())); }

// The numbers as they are stored are cast, also those that stand for real ones.
void Cast(Graph& g, Node& n) { n.out(g.cast(n.stored(0), n.out_dtype())); }
void Bitcast(Graph& g, Node& n) { n.out(g.op("Bitcast", {n.stored(0)}, {{"type", Dtype{n.out_dtype()}}})); }

void Softmax(Graph& g, Node& n) {
  const double beta = n.f(0);
  Value x = n.in(0);
  if (beta != 1) x = g.op("Mul", {x, g.like(x, beta)});
  n.out(g.op("Softmax", {x}));
}
void LogSoftmax(Graph& g, Node& n) { n.out(g.op("LogSoftmax", {n.in(0)})); }

void Select(Graph& g, Node& n) { n.out(g.op("Select", n.all())); }
void SelectV2(Graph& g, Node& n) { n.out(g.op("SelectV2", n.all())); }

constexpr Entry kTable[] = {
    {0, "ADD", &Binary<kAddV2, 0>},
    {14, "LOGISTIC", &Unary<kSigmoid>},
    {18, "MUL", &Binary<kMul, 0>},
    {19, "RELU", &Unary<kRelu>},
    {20, "RELU_N1_TO_1", &Relu1},
    {21, "RELU6", &Unary<kRelu6>},
    {25, "SOFTMAX", &Softmax},
    {28, "TANH", &Unary<kTanh>},
    {41, "SUB", &Binary<kSub, 0>},
    {42, "DIV", &Binary<kDiv, 0>},
    {47, "EXP", &Unary<kExp>},
    {50, "LOG_SOFTMAX", &LogSoftmax},
    {53, "CAST", &Cast},
    {54, "PRELU", &Prelu},
    {55, "MAXIMUM", &Binary<kMaximum, -1>},
    {57, "MINIMUM", &Binary<kMinimum, -1>},
    {58, "LESS", &Binary<kLess, -1>},
    {59, "NEG", &Unary<kNeg>},
    {61, "GREATER", &Binary<kGreater, -1>},
    {62, "GREATER_EQUAL", &Binary<kGreaterEqual, -1>},
    {63, "LESS_EQUAL", &Binary<kLessEqual, -1>},
    {64, "SELECT", &Select},
    {66, "SIN", &Unary<kSin>},
    {71, "EQUAL", &Binary<kEqual, -1>},
    {72, "NOT_EQUAL", &Binary<kNotEqual, -1>},
    {73, "LOG", &Unary<kLog>},
    {75, "SQRT", &Unary<kSqrt>},
    {76, "RSQRT", &Unary<kRsqrt>},
    {78, "POW", &Binary<kPow, -1>},
    {84, "LOGICAL_OR", &Binary<kLogicalOr, -1>},
    {86, "LOGICAL_AND", &Binary<kLogicalAnd, -1>},
    {87, "LOGICAL_NOT", &Unary<kLogicalNot>},
    {8, "FLOOR", &Unary<kFloor>},
    {90, "FLOOR_DIV", &Binary<kFloorDiv, -1>},
    {92, "SQUARE", &Unary<kSquare>},
    {93, "ZEROS_LIKE", &Unary<kZerosLike>},
    {95, "FLOOR_MOD", &Binary<kFloorMod, -1>},
    {98, "LEAKY_RELU", &Leaky},
    {99, "SQUARED_DIFFERENCE", &Binary<kSquaredDifference, -1>},
    {101, "ABS", &Unary<kAbs>},
    {104, "CEIL", &Unary<kCeil>},
    {106, "ADD_N", &AddN},
    {108, "COS", &Unary<kCos>},
    {111, "ELU", &Unary<kElu>},
    {116, "ROUND", &Unary<kRound>},
    {117, "HARD_SWISH", &HardSwish},
    {123, "SELECT_V2", &SelectV2},
    {150, "GELU", &Gelu},
    {152, "RELU_0_TO_1", &ReluTo1},
    {156, "ATAN2", &Binary<kAtan2, -1>},
    {158, "SIGN", &Unary<kSign>},
    {159, "BITCAST", &Bitcast},
    {160, "BITWISE_XOR", &Binary<kBitwiseXor, -1>},
    {161, "RIGHT_SHIFT", &Binary<kRightShift, -1>},
};

}  // namespace

Family elementwise_translators() { return {std::begin(kTable), std::end(kTable)}; }

}  // namespace thalweg::tflite
