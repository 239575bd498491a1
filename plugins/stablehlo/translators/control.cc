// Control flow and structure: loops, branches, calls, composites, barriers, tuples and tokens.
#include <iterator>

#include "common.h"

namespace thalweg::stablehlo {
namespace {

void While(Translation& t, Op& op) {
  const Block &condition = op.body(0), &body = op.body(1);
  const auto part = [&op](const Block& block) {
    return [&op, &block](Translation& b, const std::vector<Value>& variables) { return b.inlined(op, block, variables); };
  };
  const std::vector<Value> last = t.run_while(op.all(), part(condition), part(body));
  for (size_t i = 0; i < last.size(); ++i) op.out(i, last[i]);
}

void If(Translation& t, Op& op) {
  const auto part = [&op](size_t i) {
    return [&op, i](Translation& b, const std::vector<Value>&) { return b.inlined(op, op.body(i), {}); };
  };
  const std::vector<Value> out = t.run_if(op.in(0), part(0), part(1));
  for (size_t i = 0; i < out.size(); ++i) op.out(i, out[i]);
}

// An index outside runs the last branch.
void Case(Translation& t, Op& op) {
  std::vector<Translation::Part> parts;
  for (size_t i = 0; i < op.bodies(); ++i) {
    parts.push_back([&op, i](Translation& b, const std::vector<Value>&) { return b.inlined(op, op.body(i), {}); });
  }
  if (parts.empty()) op.fail("it has no branches");
  const std::vector<Value> out = t.run_case(op.in(0), parts);
  for (size_t i = 0; i < out.size(); ++i) op.out(i, out[i]);
}

void Call(Translation& t, Op& op) {
  const std::vector<Value> out = t.call(op, op.s("callee"), op.all());
  for (size_t i = 0; i < out.size(); ++i) op.out(i, out[i]);
}

void OptimizationBarrier(Translation&, Op& op) {
  for (size_t i = 0; i < op.outputs(); ++i) op.out(i, op.in(i));
}

// Every op of a graph runs when its inputs are there; a token orders nothing else.
void Token(Translation& t, Op& op) { op.out(t.token()); }

// With one replica and one partition, each number is 0 and each exchange gives back what it gets.
void Zero(Translation& t, Op& op) { op.out(t.scalar(TW_UINT32, 0)); }

void Alone(Translation&, Op& op) {
  const Attribute* groups = op.attr("replica_groups");
  if (groups && groups->kind != Attribute::Kind::kElements)
    op.unsupported("its replica_groups are no table of devices; programs for one device are supported");
  if (groups && groups->kind == Attribute::Kind::kElements && groups->type && groups->type->dims.size() == 2 && groups->type->dims[1] > 1) {
    op.unsupported("it exchanges values of " + std::to_string(groups->type->dims[1]) +
                   " replicas or partitions; programs for one device are supported");
  }
  for (size_t i = 0; i < op.outputs(); ++i) op.out(i, op.in(i));
}

void AllToAll(Translation& t, Op& op) {
  if (op.i("split_count", 1) != 1) op.unsupported("it exchanges parts among several devices; programs for one device are supported");
  Alone(t, op);
}

// A value is sent from device 0 to itself, or nothing arrives and the result is zero.
void CollectivePermute(Translation& t, Op& op) {
  const std::vector<int64_t> pairs = op.ints("source_target_pairs", {});
  for (const int64_t device : pairs) {
    if (device != 0)
      op.unsupported("it exchanges values with device " + std::to_string(device) + "; programs for one device are supported");
  }
  op.out(pairs.empty() ? t.op("ZerosLike", {op.in(0)}) : op.in(0));
}

void OneDeviceOnly(Translation&, Op& op) {
  op.unsupported("values cannot leave or enter a running program; export it without host transfers");
}

constexpr Entry kControl[] = {
    {"func.call", &Call},
    {"stablehlo.after_all", &Token},
    {"stablehlo.all_gather", &Alone},
    {"stablehlo.all_reduce", &Alone},
    {"stablehlo.all_to_all", &AllToAll},
    {"stablehlo.case", &Case},
    {"stablehlo.collective_broadcast", &Alone},
    {"stablehlo.collective_permute", &CollectivePermute},
    {"stablehlo.create_token", &Token},
    {"stablehlo.cross-replica-sum", &Alone},
    {"stablehlo.if", &If},
    {"stablehlo.infeed", &OneDeviceOnly},
    {"stablehlo.optimization_barrier", &OptimizationBarrier},
    {"stablehlo.outfeed", &OneDeviceOnly},
    {"stablehlo.partition_id", &Zero},
    {"stablehlo.recv", &OneDeviceOnly},
    {"stablehlo.reduce_scatter", &Alone},
    {"stablehlo.replica_id", &Zero},
    {"stablehlo.send", &OneDeviceOnly},
    {"stablehlo.while", &While},
};

}  // namespace

Family control_translators() { return {std::begin(kControl), std::end(kControl)}; }

}  // namespace thalweg::stablehlo
