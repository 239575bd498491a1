// Losses over the true classes of each example and some drawn classes.
#include "thalweg/sampled.h"

#include "ops/library/build.h"
#include "ops/library/options.h"
#include "ops/library/table.h"
#include "thalweg/op.h"

using namespace thalweg::library;

void tw_sampled_loss_init(tw_sampled_loss* options) {
  if (options) *options = {sizeof(tw_sampled_loss), 0, 0, 64, 0, 0, 0};
}

namespace {

tw_output Op(tw_scope* scope, const char* type, tw_output a, tw_output b) { return tw_scope_op2(scope, type, a, b); }
tw_output Int(tw_scope* scope, int32_t value) { return tw_scope_scalar(scope, TW_INT32, value); }

// Concatenates values of one type along an axis.
tw_output Concat(tw_scope* scope, tw_output a, tw_output b, int32_t axis) {
  const tw_output both[] = {a, b};
  OpenOp op(scope, "ConcatV2");
  tw_op_add_inputs(op, both, 2);
  tw_op_add_input(op, Int(scope, axis));
  return op.End();
}

tw_output Product(tw_scope* scope, tw_output a, tw_output b) {  // a times the transpose of b
  OpenOp op(scope, "MatMul");
  tw_op_add_input(op, a);
  tw_op_add_input(op, b);
  tw_op_set_bool(op, "transpose_b", 1);
  return op.End();
}

tw_output SumOver(tw_scope* scope, tw_output values, int32_t axis) { return Op(scope, "Sum", values, Int(scope, axis)); }

// Logits of the true and of the drawn classes.
struct Logits {
  tw_output right, drawn;  // [batch, true classes] and [batch, drawn classes]
  uint32_t dtype;
  int64_t num_true;
};

class Sampled {
 public:
  // weights, biases: tables if they are sharded.
  Sampled(tw_scope* scope, const char* function, const tw_sampled_loss* given, const Table* weights = nullptr,
          const Table* biases = nullptr)
      : scope_(scope), function_(function), weights_(weights), biases_(biases) {
    options_ = ReadOptions(scope, "tw_sampled_loss", given, tw_sampled_loss_init);
    if (Good(scope) && !options_.candidates && options_.num_sampled <= 0)
      Fail(scope, TW_INVALID_ARGUMENT,
           std::string(function) + ": num_sampled is " + std::to_string(options_.num_sampled) + "; it must be above 0");
  }

  Logits Make(tw_output weights, tw_output biases, tw_output labels, tw_output inputs) {
    Logits out{};
    if (!Good(scope_)) return out;
    const int64_t classes = Classes(weights);
    out.num_true = Describe(scope_, labels).Dim(1);
    out.dtype = Describe(scope_, inputs).dtype;
    if (Good(scope_) && out.num_true <= 0)
      Fail(scope_, TW_INVALID_ARGUMENT,
           std::string(function_) + ": labels must be [batch, true classes] with a known number of true classes, one or more");
    if (!Good(scope_)) return out;
    labels = CastTo(scope_, labels, TW_INT64);
    const tw_output drawn = options_.candidates ? options_.candidates : Draw(labels, out.num_true, classes);
    const tw_output flat = tw_scope_op2(scope_, "Reshape", labels, tw_scope_ints(scope_, &kAll, 1));
    // One lookup for all rows, so that there is one sparse gradient; then the labels' rows and the
    // others are split.
    const tw_output ids = Concat(scope_, flat, drawn, 0);
    const tw_output rows = weights_ ? weights_->Lookup(scope_, ids) : Rows(weights, ids);
    const tw_output offsets = biases_ ? biases_->Lookup(scope_, ids) : Rows(biases, ids);
    const tw_output count = tw_scope_op1(scope_, "Shape", flat);
    const int32_t depth[] = {-1, int32_t(out.num_true)};
    out.right =
        tw_scope_op2(scope_, "Reshape", Op(scope_, "AddV2", Dots(inputs, Head(rows, count, 2), out.num_true), Head(offsets, count, 1)),
                     tw_scope_ints(scope_, depth, 2));
    out.drawn = Op(scope_, "AddV2", Product(scope_, inputs, Tail(rows, count, 2)), Tail(offsets, count, 1));
    if (!options_.keep_hits) out.drawn = Op(scope_, "AddV2", out.drawn, Hits(labels, drawn, out));
    out.right = Op(scope_, "Sub", out.right, LogCount(drawn, 1, out.dtype));
    out.drawn = Op(scope_, "Sub", out.drawn, LogCount(drawn, 2, out.dtype));
    return out;
  }

 private:
  static constexpr int32_t kAll = -1;

  int64_t Classes(tw_output weights) {
    if (weights_) return weights_->rows();
    ValueInfo d = Describe(scope_, weights);
    VariableInfo info;
    int64_t classes = d.Dim(0);
    if (Good(scope_) && d.dtype == TW_RESOURCE && Inspect(scope_, weights, &info)) classes = info.dims.empty() ? -1 : info.dims[0];
    if (Good(scope_) && classes <= 0 && !options_.candidates)
      Fail(scope_, TW_INVALID_ARGUMENT,
           std::string(function_) + ": the number of rows of weights, which is that of classes, is not known; give candidates");
    return classes;
  }
  tw_output Draw(tw_output labels, int64_t num_true, int64_t classes) {
    OpenOp op(scope_, "LogUniformCandidateSampler");
    tw_op_add_input(op, labels);
    tw_op_set_int(op, "num_true", num_true);
    tw_op_set_int(op, "num_sampled", options_.num_sampled);
    tw_op_set_bool(op, "unique", 1);
    tw_op_set_int(op, "range_max", classes);
    tw_op_set_int(op, "seed", options_.seed);
    return op.End();
  }
  tw_output Rows(tw_output from, tw_output ids) {
    const ValueInfo d = Describe(scope_, from);
    if (d.dtype != TW_RESOURCE) return tw_scope_op3(scope_, "GatherV2", from, ids, Int(scope_, 0));
    VariableInfo info;
    if (!Inspect(scope_, from, &info)) return 0;
    return Typed(scope_, "ResourceGather", {from, ids}, "dtype", info.dtype);
  }
  // Return the first rows, `count` (a vector of one number) of them, and the rest.
  tw_output Head(tw_output values, tw_output count, int32_t rank) { return Cut(values, Numbers(0, rank), Size(count, rank)); }
  tw_output Tail(tw_output values, tw_output count, int32_t rank) {
    const tw_output begin = rank == 1 ? count : Concat(scope_, count, Numbers(0, 1), 0);
    return Cut(values, begin, Numbers(-1, rank));
  }
  tw_output Cut(tw_output values, tw_output begin, tw_output size) { return tw_scope_op3(scope_, "Slice", values, begin, size); }
  tw_output Size(tw_output count, int32_t rank) { return rank == 1 ? count : Concat(scope_, count, Numbers(-1, 1), 0); }
  tw_output Numbers(int32_t value, int32_t n) {
    const int32_t both[] = {value, value};
    return tw_scope_ints(scope_, both, uint32_t(n));
  }
  // Returns the product of each true class's row with its example: a vector.
  tw_output Dots(tw_output inputs, tw_output rows, int64_t num_true) {
    tw_output shaped = rows, examples = inputs;
    if (num_true > 1) {  // repeat each example for each of its rows
      const tw_output columns = tw_scope_op3(scope_, "Slice", tw_scope_op1(scope_, "Shape", inputs), Numbers(1, 1), Numbers(1, 1));
      const int32_t split[] = {-1, int32_t(num_true)};
      shaped = tw_scope_op2(scope_, "Reshape", rows, Concat(scope_, tw_scope_ints(scope_, split, 2), columns, 0));
      examples = tw_scope_op2(scope_, "ExpandDims", inputs, Int(scope_, 1));
    }
    const tw_output dots = SumOver(scope_, Op(scope_, "Mul", examples, shaped), -1);
    return num_true > 1 ? tw_scope_op2(scope_, "Reshape", dots, tw_scope_ints(scope_, &kAll, 1)) : dots;
  }
  // Returns the lowest number if a drawn class is a true class of the example, else 0.
  tw_output Hits(tw_output labels, tw_output drawn, const Logits& logits) {
    OpenOp op(scope_, "ComputeAccidentalHits");
    tw_op_add_input(op, labels);
    tw_op_add_input(op, drawn);
    tw_op_set_int(op, "num_true", logits.num_true);
    const tw_output rows = op.End(), places = tw_scope_output(scope_, rows, 1), low = tw_scope_output(scope_, rows, 2);
    const tw_output pair[] = {rows, CastTo(scope_, places, TW_INT32)};
    OpenOp pack(scope_, "Pack");
    tw_op_add_inputs(pack, pair, 2);
    tw_op_set_int(pack, "axis", 1);
    return tw_scope_op3(scope_, "ScatterNd", pack.End(), CastTo(scope_, low, logits.dtype), tw_scope_op1(scope_, "Shape", logits.drawn));
  }
  // Returns the logarithms of the expected counts, from output k of the sampler. They are constants
  // for the gradient, which does not go through the sampler.
  tw_output LogCount(tw_output drawn, uint32_t k, uint32_t dtype) {
    return CastTo(scope_, tw_scope_op1(scope_, "Log", tw_scope_op1(scope_, "StopGradient", tw_scope_output(scope_, drawn, k))), dtype);
  }

  tw_scope* scope_;
  const char* function_;
  const Table *weights_, *biases_;
  tw_sampled_loss options_;
};

// Returns [batch, true and drawn classes]: `right` for the true ones, 0 for the others.
tw_output Targets(tw_scope* scope, const Logits& l, double right) {
  const tw_output ones = tw_scope_op1(scope, "OnesLike", l.right);
  return Concat(scope, Op(scope, "Mul", ones, tw_scope_scalar(scope, l.dtype, right)), tw_scope_op1(scope, "ZerosLike", l.drawn), 1);
}

tw_output CrossEntropy(tw_scope* scope, const Logits& l) {
  if (!Good(scope)) return 0;
  const tw_output targets = Targets(scope, l, 1.0 / double(l.num_true));
  const tw_output loss = Op(scope, "SoftmaxCrossEntropyWithLogits", Concat(scope, l.right, l.drawn, 1), targets);
  return Good(scope) ? loss : 0;
}

}  // namespace

tw_output tw_sampled_softmax(tw_scope* scope, tw_output weights, tw_output biases, tw_output labels, tw_output inputs,
                             const tw_sampled_loss* options) {
  return Protect(scope, [&]() -> tw_output {
    return CrossEntropy(scope, Sampled(scope, "tw_sampled_softmax", options).Make(weights, biases, labels, inputs));
  });
}

tw_output tw_sharded_sampled_softmax(tw_scope* scope, const tw_sharded* weights, const tw_sharded* biases, tw_output labels,
                                     tw_output inputs, const tw_sampled_loss* options) {
  return Protect(scope, [&]() -> tw_output {
    constexpr char kName[] = "tw_sharded_sampled_softmax";
    if (!Good(scope)) return 0;
    const Table w(scope, kName, "weights", weights);
    const Table b(scope, kName, "biases", Good(scope) ? biases : weights);
    return Good(scope) ? CrossEntropy(scope, Sampled(scope, kName, options, &w, &b).Make(0, 0, labels, inputs)) : 0;
  });
}

// max(x, 0) - x z + log(1 + exp(-|x|)) for target z: softplus(x) - x z.
tw_output tw_nce(tw_scope* scope, tw_output weights, tw_output biases, tw_output labels, tw_output inputs, const tw_sampled_loss* options) {
  return Protect(scope, [&]() -> tw_output {
    const Logits l = Sampled(scope, "tw_nce", options).Make(weights, biases, labels, inputs);
    if (!Good(scope)) return 0;
    const tw_output targets =
        Op(scope, "Mul", tw_scope_op1(scope, "OnesLike", l.right), tw_scope_scalar(scope, l.dtype, 1.0 / double(l.num_true)));
    const tw_output right = Op(scope, "Sub", tw_scope_op1(scope, "Softplus", l.right), Op(scope, "Mul", l.right, targets));
    const tw_output loss = Op(scope, "AddV2", SumOver(scope, right, 1), SumOver(scope, tw_scope_op1(scope, "Softplus", l.drawn), 1));
    return Good(scope) ? loss : 0;
  });
}
