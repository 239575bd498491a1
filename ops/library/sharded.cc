// Sharded tables: lookups beside the shards, and the full softmax over sharded classes.
#include "thalweg/sharded.h"

#include "ops/library/table.h"
#include "thalweg/op.h"

namespace thalweg::library {

Table::Table(tw_scope* scope, const std::string& function, const char* what, const tw_sharded* given) {
  const std::string who = function + ": " + what;
  std::string wrong;
  if (!given || given->size < sizeof(tw_sharded) || given->flags != 0) {
    wrong = " is NULL, or its size is not set to sizeof(tw_sharded) and its flags to 0";
  } else if (given->n == 0 || !given->shards) {
    wrong = " has no shards";
  } else if (given->partition > TW_SHARDED_DIV) {
    wrong = ": partition is " + std::to_string(given->partition) + "; it is 0, mod, or 1, div";
  }
  if (!wrong.empty()) {
    Fail(scope, TW_INVALID_ARGUMENT, who + wrong);
    return;
  }
  partition_ = given->partition;
  shards_.assign(given->shards, given->shards + given->n);
  for (const tw_output shard : shards_) {
    if (!Inspect(scope, shard, &infos_.emplace_back())) return;
    tasks_.push_back(TaskOf(scope, shard));
  }
  Check(scope, who);
}

void Table::Check(tw_scope* scope, const std::string& who) {
  for (const VariableInfo& info : infos_) {
    if (info.dims.empty() || info.dims[0] < 0) {
      return Fail(scope, TW_INVALID_ARGUMENT, who + ": shard '" + info.name + "' has no known number of rows");
    }
    rows_ += info.dims[0];
  }
  for (size_t k = 0; k < n(); ++k) {
    const VariableInfo& info = infos_[k];
    const int64_t want = tw_sharded_rows(rows_, uint32_t(n()), uint32_t(k));
    const std::string shard = who + ": shard " + std::to_string(k) + ", '" + info.name + "', ";
    if (info.dims[0] != want) {
      return Fail(scope, TW_INVALID_ARGUMENT,
                  shard + "has " + std::to_string(info.dims[0]) + " rows; of " + std::to_string(rows_) + " in " + std::to_string(n()) +
                      " shards it has " + std::to_string(want));
    }
    if (info.dtype == infos_[0].dtype &&
        std::vector(info.dims.begin() + 1, info.dims.end()) == std::vector(dims().begin() + 1, dims().end()))
      continue;
    return Fail(scope, TW_INVALID_ARGUMENT, shard + "is of another type, or has rows of another shape, than the first");
  }
  if (rows_ < int64_t(n())) Fail(scope, TW_INVALID_ARGUMENT, who + " has fewer rows than shards");
}

Table::Places Table::Find(tw_scope* scope, tw_output ids) const {
  const auto op = [&](const char* type, tw_output a, int64_t b) { return tw_scope_op2(scope, type, a, Long(scope, b)); };
  const int64_t shards = int64_t(n()), each = rows_ / shards, more = rows_ % shards, edge = more * (each + 1);
  tw_output shard, row;
  if (partition_ == TW_SHARDED_MOD) {
    shard = op("FloorMod", ids, shards);
    row = op("FloorDiv", ids, shards);
  } else {  // the first `more` shards have one more row
    const tw_output small = op("Less", ids, edge), moved = op("Sub", ids, more);
    shard = tw_scope_op3(scope, "SelectV2", small, op("FloorDiv", ids, each + 1), op("FloorDiv", moved, each));
    row = tw_scope_op3(scope, "SelectV2", small, op("FloorMod", ids, each + 1), op("FloorMod", moved, each));
  }
  return {CastTo(scope, shard, TW_INT32), row};
}

namespace {

// Splits values by shard.
const tw_operation* Part(tw_scope* scope, tw_output values, tw_output shard, size_t n) {
  OpenOp op(scope, "DynamicPartition");
  tw_op_add_input(op, values);
  tw_op_add_input(op, shard);
  tw_op_set_int(op, "num_partitions", int64_t(n));
  return op.EndOperation();
}

}  // namespace

tw_output Table::Lookup(tw_scope* scope, tw_output ids) const {
  const int32_t all = -1;
  const tw_output flat = CastTo(scope, tw_scope_op2(scope, "Reshape", ids, tw_scope_ints(scope, &all, 1)), TW_INT64);
  const Places places = Find(scope, flat);
  const tw_output zero = tw_scope_scalar(scope, TW_INT32, 0), one = tw_scope_scalar(scope, TW_INT32, 1);
  const tw_output order = tw_scope_op3(scope, "Range", zero, tw_scope_op1(scope, "Size", flat), one);
  const tw_operation* rows = Part(scope, places.row, places.shard, n());
  const tw_operation* orders = Part(scope, order, places.shard, n());
  if (!Good(scope)) return 0;
  std::vector<tw_output> parts;
  for (size_t k = 0; k < n(); ++k) parts.push_back(tw_operation_output(orders, uint32_t(k)));
  for (size_t k = 0; k < n(); ++k) {
    parts.push_back(Typed(scope, "ResourceGather", {shards_[k], tw_operation_output(rows, uint32_t(k))}, "dtype", dtype()));
  }
  const tw_output merged = tw_scope_op(scope, "ParallelDynamicStitch", parts.data(), uint32_t(parts.size()));
  std::vector<int32_t> width(dims().begin() + 1, dims().end());
  OpenOp shape(scope, "ConcatV2");
  tw_op_add_input(shape, tw_scope_op1(scope, "Shape", ids));
  tw_op_add_input(shape, tw_scope_ints(scope, width.data(), uint32_t(width.size())));
  tw_op_add_input(shape, zero);
  return tw_scope_op2(scope, "Reshape", merged, shape.End());
}

namespace {

// Results of one shard's task for the logits of its classes, each [batch].
struct Said {
  tw_output largest, sum, right;  // sum: of exp(logit - largest)
};

tw_output Over(tw_scope* scope, const char* type, tw_output values, int32_t axis) {
  return tw_scope_op2(scope, type, values, tw_scope_scalar(scope, TW_INT32, axis));
}

// mine: for each example the number of its label among the shard's classes, or -1.
Said Ask(tw_scope* scope, const Table& weights, const Table* biases, size_t k, tw_output inputs, tw_output mine) {
  const On on(scope, weights.task(k));
  OpenOp product(scope, "MatMul");
  tw_op_add_input(product, inputs);
  tw_op_add_input(product, tw_variable_read(scope, weights.shard(k)));
  tw_op_set_bool(product, "transpose_b", 1);
  tw_output logits = product.End();
  if (biases) logits = tw_scope_op2(scope, "BiasAdd", logits, tw_variable_read(scope, biases->shard(k)));
  // The shift does not change the result, so no gradient flows through it.
  const tw_output largest = tw_scope_op1(scope, "StopGradient", Over(scope, "Max", logits, 1));
  const tw_output shifted = tw_scope_op2(scope, "Sub", logits, Over(scope, "ExpandDims", largest, 1));
  const tw_output sum = Over(scope, "Sum", tw_scope_op1(scope, "Exp", shifted), 1);
  const tw_output classes = tw_scope_scalar(scope, TW_INT32, double(weights.rows(k)));
  const tw_output hot[] = {mine, classes, tw_scope_scalar(scope, weights.dtype(), 1), tw_scope_scalar(scope, weights.dtype(), 0)};
  const tw_output right = Over(scope, "Sum", tw_scope_op2(scope, "Mul", logits, tw_scope_op(scope, "OneHot", hot, 4)), 1);
  return {largest, sum, right};
}

tw_output Softmax(tw_scope* scope, const Table& weights, const Table* biases, tw_output labels, tw_output inputs) {
  const Table::Places places = weights.Find(scope, CastTo(scope, labels, TW_INT64));
  std::vector<Said> all;
  for (size_t k = 0; k < weights.n() && Good(scope); ++k) {
    const tw_output here = tw_scope_op2(scope, "Equal", places.shard, tw_scope_scalar(scope, TW_INT32, double(k)));
    all.push_back(Ask(scope, weights, biases, k, inputs, tw_scope_op3(scope, "SelectV2", here, places.row, Long(scope, -1))));
  }
  if (!Good(scope)) return 0;
  tw_output largest = all[0].largest;
  for (const Said& s : all) largest = tw_scope_op2(scope, "Maximum", largest, s.largest);
  std::vector<tw_output> sums, rights;
  for (const Said& s : all) {
    const tw_output scale = tw_scope_op1(scope, "Exp", tw_scope_op2(scope, "Sub", s.largest, largest));
    sums.push_back(tw_scope_op2(scope, "Mul", s.sum, scale));
    rights.push_back(s.right);
  }
  const auto added = [&](const std::vector<tw_output>& v) { return tw_scope_op(scope, "AddN", v.data(), uint32_t(v.size())); };
  const tw_output total = tw_scope_op2(scope, "AddV2", largest, tw_scope_op1(scope, "Log", added(sums)));
  return tw_scope_op2(scope, "Sub", total, added(rights));
}

void CheckAlike(tw_scope* scope, const char* function, const Table& weights, const Table& biases) {
  if (!Good(scope)) return;
  const bool alike = weights.n() == biases.n() && weights.rows() == biases.rows() && weights.partition() == biases.partition();
  if (alike && weights.dims().size() == 2 && biases.dims().size() == 1) return;
  Fail(scope, TW_INVALID_ARGUMENT, std::string(function) + ": weights must be [classes, n] and biases [classes], in the same shards");
}

}  // namespace
}  // namespace thalweg::library

using namespace thalweg::library;

int64_t tw_sharded_rows(int64_t rows, uint32_t n, uint32_t k) {
  if (rows < 0 || k >= n) return 0;
  return rows / n + (k < rows % n);
}

tw_output tw_sharded_lookup(tw_scope* scope, const tw_sharded* table, tw_output ids) {
  return Protect(scope, [&]() -> tw_output {
    if (!Good(scope)) return 0;
    const Table t(scope, "tw_sharded_lookup", "table", table);
    const tw_output found = Good(scope) ? t.Lookup(scope, ids) : 0;
    return Good(scope) ? found : 0;
  });
}

tw_output tw_sharded_softmax(tw_scope* scope, const tw_sharded* weights, const tw_sharded* biases, tw_output labels, tw_output inputs) {
  return Protect(scope, [&]() -> tw_output {
    constexpr char kName[] = "tw_sharded_softmax";
    if (!Good(scope)) return 0;
    const Table w(scope, kName, "weights", weights);
    if (!Good(scope)) return 0;
    if (!biases) return Softmax(scope, w, nullptr, labels, inputs);
    const Table b(scope, kName, "biases", biases);
    CheckAlike(scope, kName, w, b);
    const tw_output loss = Good(scope) ? Softmax(scope, w, &b, labels, inputs) : 0;
    return Good(scope) ? loss : 0;
  });
}
