// Synchronous training. Each variable has an accumulator for each replica beside it; one task keeps
// the state, a vector under a mutex: stamp, step, the number of replicas admitted in this step, the
// number of dropped gradients, and for each replica whether it is admitted.
//
// A replica first gives its gradients to its accumulators, which drop them if their stamp is older
// than the last taken one. When all are there, it asks for admission. It runs one step at a time.
// The replica that completes the required number starts the update. The update takes the gradients
// in the order of the replicas, and changes variables, then the state. So if a replica has read the
// variables and then finds the stamp that it began with, and room for one more, it has read the
// variables of that step.
#include "thalweg/sync.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>

#include "ops/library/options.h"
#include "ops/library/task.h"
#include "thalweg/op.h"

using namespace thalweg::library;

namespace {

constexpr int32_t kStamp = 0, kStep = 1, kIn = 2, kDropped = 3, kReplicas = 4;  // positions in the state
constexpr uint32_t kMostReplicas = 4096;

// Gradient and accumulators of one variable.
struct Given {
  tw_gradient gradient;  // of the replica of this graph
  VariableInfo info;
  std::string task;
  std::vector<tw_output> accumulators;  // by replica
  bool sparse() const { return gradient.rows != 0; }
};

}  // namespace

struct tw_sync {
  std::string name, task;
  uint32_t replicas = 1, required = 1, replica = 0;
  tw_output ticket = 0, stamp = 0;           // placeholders
  tw_output state = 0, mutex = 0, full = 0;  // full: an accumulator that gets an element when enough replicas are admitted
  std::vector<tw_output> tokens;             // accumulators that get an element for each replica that may go on
  std::vector<Given> given;
  tw_output next = 0, consistent = 0;
  bool backup() const { return required < replicas; }
};

namespace {

// ---- Accumulators ----

tw_output Accumulator(tw_scope* scope, const std::string& name, uint32_t dtype, const std::vector<int64_t>& dims, bool sparse) {
  OpenOp op(scope, sparse ? "ResourceSparseConditionalAccumulator" : "ResourceConditionalAccumulator");
  tw_op_set_type(op, "dtype", dtype);
  tw_op_set_shape(op, "shape", dims.data(), int32_t(dims.size()));
  tw_op_set_string(op, "shared_name", name.data(), name.size());
  tw_op_set_bool(op, "_of_graph", 1);
  return op.End();
}

// Two equal gradients have the same mean, so a replica that gives twice counts once.
const tw_operation* Give(tw_scope* scope, tw_output accumulator, tw_output stamp, const tw_gradient& g, const Operations& after) {
  if (!g.rows) return After(scope, "ResourceAccumulatorApplyGradient", {accumulator, stamp, g.values}, after);
  OpenOp op(scope, "ResourceSparseAccumulatorApplyGradient");
  const tw_output inputs[] = {accumulator, stamp, CastTo(scope, g.rows, TW_INT64), g.values, Longs(scope, {})};
  tw_op_add_inputs(op, inputs, 5);
  tw_op_set_bool(op, "has_known_shape", 0);
  for (const tw_operation* before : after) tw_op_add_control(op, before);
  return op.EndOperation();
}

const tw_operation* Take(tw_scope* scope, tw_output accumulator, uint32_t dtype, bool sparse, const Operations& after) {
  return After(scope, sparse ? "ResourceSparseAccumulatorTakeGradient" : "ResourceAccumulatorTakeGradient",
               {accumulator, tw_scope_scalar(scope, TW_INT32, 1)}, after, dtype);
}

// An accumulator used as a signal by holding an element; the taker gets the mean of the sent
// numbers.
constexpr double kGoOn = 1, kSweep = 2;  // sweep: for `current` of the same replica, which waits for it
tw_output Signal(tw_scope* scope, const std::string& name) { return Accumulator(scope, name, TW_FLOAT, {}, false); }
const tw_operation* Send(tw_scope* scope, tw_output signal, tw_output stamp, const Operations& after, double value = kGoOn) {
  return Give(scope, signal, stamp, {tw_scope_scalar(scope, TW_FLOAT, value), 0}, after);
}
const tw_operation* Await(tw_scope* scope, tw_output signal, const Operations& after) {
  return Take(scope, signal, TW_FLOAT, false, after);
}

// Returns a gradient that adds nothing.
tw_gradient Nothing(tw_scope* scope, const Given& g) {
  std::vector<int64_t> dims = g.info.dims;
  if (g.sparse()) dims[0] = 0;
  const tw_output zeros = tw_scope_op2(scope, "Fill", Longs(scope, dims), tw_scope_scalar(scope, g.info.dtype, 0));
  return {zeros, g.sparse() ? Longs(scope, {}) : 0};
}

// ---- The state ----

tw_output Place(tw_scope* scope, tw_output vector, int32_t i) {
  return tw_scope_op3(scope, "GatherV2", vector, tw_scope_scalar(scope, TW_INT32, i), tw_scope_scalar(scope, TW_INT32, 0));
}

tw_output Read(tw_scope* scope, const tw_sync& s, const Operations& after) {
  return First(After(scope, "ReadVariableOp", {s.state}, after, TW_INT64));
}

tw_output Slice(tw_scope* scope, tw_output vector, int32_t begin, int32_t size) {
  return tw_scope_op3(scope, "Slice", vector, tw_scope_ints(scope, &begin, 1), tw_scope_ints(scope, &size, 1));
}

tw_output Ticket(tw_scope* scope, tw_output state) { return Slice(scope, state, kStamp, 2); }

const tw_operation* Producer(tw_scope* scope, tw_output value) {
  const tw_operation* maker = nullptr;
  if (const tw_graph* graph = tw_scope_graph(scope)) tw_scope_fail(scope, tw_graph_producer(graph, value, &maker, nullptr));
  return maker;
}

// The state between lock and unlock.
struct Locked {
  const tw_operation* lock;
  tw_output state;
  Locked(tw_scope* scope, const tw_sync& s, const Operations& after)
      : lock(After(scope, "MutexLock", {s.mutex}, after)), state(Read(scope, s, {lock})) {}
  const tw_operation* End(tw_scope* scope, const Operations& after) const { return After(scope, "ConsumeMutexLock", {First(lock)}, after); }
};

// Returns the state's vector with 1 at these positions.
std::vector<int64_t> Ones(const tw_sync& s, const std::vector<int32_t>& places) {
  std::vector<int64_t> v(size_t(kReplicas) + s.replicas);
  for (const int32_t i : places) v[size_t(i)] = 1;
  return v;
}

// ---- A replica ----

// The state of a replica for the ticket that is fed.
struct Standing {
  tw_output now, in;  // now: the ticket is current; in: its gradients are admitted already
};

tw_output Is(tw_scope* scope, tw_output state, int32_t place, const char* how, tw_output value) {
  return tw_scope_op2(scope, how, Place(scope, state, place), value);
}
tw_output And(tw_scope* scope, tw_output a, tw_output b) { return tw_scope_op2(scope, "LogicalAnd", a, b); }
tw_output Not(tw_scope* scope, tw_output a) { return tw_scope_op1(scope, "LogicalNot", a); }
tw_output Choose(tw_scope* scope, tw_output which, tw_output a, tw_output b) { return tw_scope_op3(scope, "SelectV2", which, a, b); }

int32_t Mine(const tw_sync& s) { return kReplicas + int32_t(s.replica); }

Standing Look(tw_scope* scope, const tw_sync& s, tw_output state) {
  const tw_output now = Is(scope, state, kStamp, "Equal", s.stamp);
  return {now, And(scope, now, Is(scope, state, Mine(s), "Greater", Long(scope, 0)))};
}

// Asks for admission after the gradients are given. before: the replica's standing at its start. If
// there is still room, no update has begun.
const tw_operation* Enter(tw_scope* scope, tw_sync* sync, const Standing& before, const Operations& given) {
  const tw_sync& s = *sync;
  const Locked locked(scope, s, given);
  const tw_output required = Long(scope, s.required);
  const Standing is = Look(scope, s, locked.state);
  const tw_output room = And(scope, is.now, Is(scope, locked.state, kIn, "Less", required));
  const tw_output enters = And(scope, room, Not(scope, is.in));
  sync->consistent = room;
  const tw_output counted = tw_scope_op2(scope, "LogicalOr", is.in, before.in);
  const tw_output stays = Choose(scope, counted, Longs(scope, Ones(s, {})), Longs(scope, Ones(s, {kDropped})));
  const tw_output change = Choose(scope, enters, Longs(scope, Ones(s, {kIn, Mine(s)})), stays);
  const tw_operation* changed = After(scope, "AssignAddVariableOp", {s.state, change}, {}, TW_INT64);
  const tw_output in = tw_scope_op2(scope, "AddV2", Place(scope, locked.state, kIn), CastTo(scope, enters, TW_INT64));
  // Every replica that finds the number complete signals it, repeatedly if needed, so a replica
  // that died before its signal blocks nobody.
  const tw_output full = And(scope, is.now, tw_scope_op2(scope, "GreaterEqual", in, required));
  const tw_operation* said = Send(scope, s.full, Choose(scope, full, s.stamp, Long(scope, -1)), {changed});
  return locked.End(scope, {said});
}

// A replica that is admitted already gives nothing again: the variables may be about to change.
void AddReplica(tw_scope* scope, tw_sync* s) {
  Standing before;
  tw_output stamp;
  {
    const On on(scope, s->task);
    before = Look(scope, *s, Read(scope, *s, {}));
    stamp = Choose(scope, And(scope, before.now, Not(scope, before.in)), s->stamp, Long(scope, -1));
  }
  Operations given;
  for (const Given& g : s->given) given.push_back(Give(scope, g.accumulators[s->replica], stamp, g.gradient, {}));
  const On on(scope, s->task);
  const tw_output token = s->tokens[s->replica];
  const tw_operation* awaited = Await(scope, token, {Enter(scope, s, before, given)});
  // A run may still be in progress when its program has ended. It then waits in line before
  // `current` of the restarted program, which waits under the lock. So if it takes the token that
  // `current` sweeps with, it passes the token on.
  const tw_output swept = tw_scope_op2(scope, "Greater", First(awaited), tw_scope_scalar(scope, TW_FLOAT, kGoOn));
  const tw_operation* handed = Send(scope, token, Choose(scope, swept, Long(scope, INT64_MAX), Long(scope, -1)), {}, kSweep);
  s->next = Ticket(scope, Read(scope, *s, {handed}));
}

// Returns the current ticket, and removes a token of an earlier run.
tw_output AddCurrent(tw_scope* scope, const tw_sync& s) {
  const tw_operation* lock = After(scope, "MutexLock", {s.mutex}, {});
  const tw_operation* sent = Send(scope, s.tokens[s.replica], Long(scope, INT64_MAX), {lock}, kSweep);
  const tw_output state = Read(scope, s, {Await(scope, s.tokens[s.replica], {sent})});
  OpenOp op(scope, "Identity");
  tw_op_add_input(op, Ticket(scope, state));
  tw_op_add_control(op, After(scope, "ConsumeMutexLock", {First(lock)}, {Producer(scope, state)}));
  return op.End();
}

// ---- The update ----

tw_output Joined(tw_scope* scope, const std::vector<tw_output>& parts) {
  OpenOp op(scope, "ConcatV2");
  tw_op_add_inputs(op, parts.data(), uint32_t(parts.size()));
  tw_op_add_input(op, tw_scope_scalar(scope, TW_INT32, 0));
  return op.End();
}

// Also takes the gradients of a replica that is not admitted, and ignores them. An accumulator
// without a gradient is given an empty one, so that nothing blocks.
tw_gradient TakeOne(tw_scope* scope, const tw_sync& s, const Given& g, uint32_t replica, const tw_operation* full, tw_output who) {
  const tw_output accumulator = g.accumulators[replica];
  const auto taken = [&](const tw_operation* after) -> tw_gradient {
    const tw_operation* take = Take(scope, accumulator, g.info.dtype, g.sparse(), {after});
    return {tw_operation_output(take, g.sparse()), g.sparse() ? tw_operation_output(take, 0) : 0};
  };
  if (!s.backup()) return taken(full);
  const tw_output place = Place(scope, who, int32_t(replica));
  const tw_output is_in = tw_scope_op2(scope, "Greater", place, Long(scope, 0));
  const tw_output stamp = Choose(scope, is_in, Long(scope, -1), Long(scope, INT64_MAX));
  const tw_gradient one = taken(Give(scope, accumulator, stamp, Nothing(scope, g), {full}));
  if (!g.sparse()) return {Choose(scope, is_in, one.values, tw_scope_scalar(scope, g.info.dtype, 0)), 0};
  const tw_output rows = tw_scope_op2(scope, "Mul", Typed(scope, "Size", {one.rows}, "out_type", TW_INT64), place);
  const tw_output count = tw_scope_op2(scope, "Reshape", rows, Longs(scope, {1}));
  const size_t rank = g.info.dims.size();
  const tw_output size = Joined(scope, {count, Longs(scope, std::vector<int64_t>(rank - 1, -1))});
  return {tw_scope_op3(scope, "Slice", one.values, Longs(scope, std::vector<int64_t>(rank)), size),
          tw_scope_op3(scope, "Slice", one.rows, Longs(scope, {0}), count)};
}

// Returns the mean, summed in the order of the replicas.
tw_gradient Mean(tw_scope* scope, const tw_sync& s, const Given& g, const tw_operation* full, tw_output who) {
  const On on(scope, g.task);
  std::vector<tw_output> values, rows;
  for (uint32_t i = 0; i < s.replicas && Good(scope); ++i) {
    const tw_gradient one = TakeOne(scope, s, g, i, full, who);
    values.push_back(one.values);
    rows.push_back(one.rows);
  }
  if (!Good(scope)) return {};
  const bool single = values.size() == 1;
  tw_gradient sum = {values[0], rows[0]};
  if (!single && g.sparse()) sum = {Joined(scope, values), Joined(scope, rows)};
  if (!single && !g.sparse()) sum = {tw_scope_op(scope, "AddN", values.data(), uint32_t(values.size())), 0};
  const tw_output share = tw_scope_scalar(scope, g.info.dtype, 1.0 / double(s.required));
  return {s.required == 1 ? sum.values : tw_scope_op2(scope, "Mul", sum.values, share), sum.rows};
}

// Returns the operation, or the operations that it waits for if it is a group: a group may be on a
// replica's task.
Operations Ungrouped(const tw_operation* operation) {
  Operations found, todo = {operation};
  std::set<const tw_operation*> seen;
  while (!todo.empty()) {
    const tw_operation* next = todo.back();
    todo.pop_back();
    if (!seen.insert(next).second) continue;
    const uint32_t n = tw_operation_control_count(next);
    const bool group = n > 0 && std::string(tw_operation_type(next)) == "NoOp";
    if (!group) found.push_back(next);
    for (uint32_t i = 0; group && i < n; ++i) todo.push_back(tw_operation_control(next, i));
  }
  return found;
}

// Lets all replicas go on.
Operations SendTokens(tw_scope* scope, const tw_sync& s, const tw_operation* after) {
  Operations sent;
  for (const tw_output token : s.tokens) sent.push_back(Send(scope, token, Long(scope, INT64_MAX), {after}));
  return sent;
}

const tw_operation* AddUpdate(tw_scope* scope, const tw_sync& s, const tw_operation* apply) {
  const On on(scope, s.task);
  const Locked locked(scope, s, Ungrouped(apply));
  const tw_output kept = tw_scope_op2(scope, "Mul", locked.state, Longs(scope, Ones(s, {kStamp, kStep, kDropped})));
  const tw_output next = tw_scope_op2(scope, "AddV2", kept, Longs(scope, Ones(s, {kStamp, kStep})));
  const tw_operation* assigned = After(scope, "AssignVariableOp", {s.state, next}, {}, TW_INT64);
  return locked.End(scope, SendTokens(scope, s, assigned));
}

// ---- Beginning ----

// Empties an accumulator and sets its stamp. The accumulator of a lost task starts at stamp 0 and
// would accept gradients of an earlier stamp, so the stamp is set first: later gradients of that
// kind are dropped. Taking then adds the missing 1.
const tw_operation* Empty(tw_scope* scope, const tw_sync& s, tw_output accumulator, const tw_gradient& nothing, uint32_t dtype) {
  const tw_output before = tw_scope_op2(scope, "Sub", s.stamp, Long(scope, 1));
  const tw_operation* begun = After(scope, "ResourceAccumulatorSetGlobalStep", {accumulator, before}, {});
  const tw_operation* given = Give(scope, accumulator, Long(scope, INT64_MAX), nothing, {begun});
  return Take(scope, accumulator, dtype, nothing.rows != 0, {given});
}

const tw_operation* AddReset(tw_scope* scope, const tw_sync& s) {
  Operations emptied;
  for (const Given& g : s.given) {
    const On on(scope, g.task);
    const tw_gradient nothing = Nothing(scope, g);
    for (const tw_output a : g.accumulators) emptied.push_back(Empty(scope, s, a, nothing, g.info.dtype));
  }
  const On on(scope, s.task);
  emptied.push_back(Empty(scope, s, s.full, {tw_scope_scalar(scope, TW_FLOAT, 1), 0}, TW_FLOAT));
  const tw_operation* lock = After(scope, "MutexLock", {s.mutex}, emptied);
  const tw_output rest = Longs(scope, std::vector<int64_t>(size_t(kReplicas) - 2 + s.replicas));
  OpenOp assign(scope, "AssignVariableOp");
  tw_op_add_input(assign, s.state);
  tw_op_add_input(assign, Joined(scope, {s.ticket, rest}));
  tw_op_add_control(assign, lock);
  // Replicas that wait for an update that will not come wake up and find a new ticket.
  return After(scope, "ConsumeMutexLock", {First(lock)}, SendTokens(scope, s, assign.EndOperation()));
}

void ReadSyncOptions(tw_scope* scope, const tw_sync_options* given, tw_sync* s) {
  const tw_sync_options o = ReadOptions(scope, "tw_sync_options", given, tw_sync_options_init);
  if (!Good(scope)) return;
  const auto refuse = [&](const char* what, uint32_t value, const std::string& want) {
    Fail(scope, TW_INVALID_ARGUMENT, std::string("tw_sync_begin: ") + what + " is " + std::to_string(value) + "; " + want);
  };
  if (o.replicas == 0 || o.replicas > kMostReplicas)
    refuse("replicas", o.replicas, "1 to " + std::to_string(kMostReplicas) + " are possible");
  if (o.required > o.replicas) refuse("required", o.required, "there are " + std::to_string(o.replicas) + " replicas");
  if (o.replica >= o.replicas) refuse("replica", o.replica, "they are numbered from 0 to replicas - 1");
  s->name = o.name ? o.name : "sync";
  s->task = o.device ? o.device : "";
  s->replicas = o.replicas;
  s->required = o.required ? o.required : o.replicas;
  s->replica = o.replica;
}

void AddState(tw_scope* scope, tw_sync* s) {
  const int64_t two = 2, any = -1;
  s->ticket = tw_scope_placeholder(scope, FreeName(scope, s->name + "/ticket").c_str(), TW_INT64, &two, 1);
  s->stamp = Place(scope, s->ticket, kStamp);
  const On on(scope, s->task);
  const std::string state = s->name + "/state", mutex = s->name + "/mutex";
  OpenOp variable(scope, "VarHandleOp");
  tw_op_set_string(variable, "shared_name", state.data(), state.size());
  tw_op_set_type(variable, "dtype", TW_INT64);
  tw_op_set_shape(variable, "shape", &any, 1);
  s->state = variable.End();
  OpenOp lock(scope, "MutexV2");
  tw_op_set_string(lock, "shared_name", mutex.data(), mutex.size());
  tw_op_set_bool(lock, "_of_graph", 1);
  s->mutex = lock.End();
  s->full = Signal(scope, s->name + "/full");
  for (uint32_t i = 0; i < s->replicas && Good(scope); ++i) s->tokens.push_back(Signal(scope, s->name + "/token" + std::to_string(i)));
}

void AddVariable(tw_scope* scope, tw_sync* s, tw_output variable, const tw_gradient& gradient, const VariableInfo& info) {
  if (!info.known_shape || (gradient.rows && info.dims.empty()))
    Fail(scope, TW_INVALID_ARGUMENT,
         "tw_sync_begin: variable '" + info.name + "' has no known shape; give it an initial value of a known one");
  if (!Good(scope)) return;
  Given g{gradient, info, TaskOf(scope, variable), {}};
  const On on(scope, g.task);
  const std::string name = s->name + "/" + info.name + "/";
  for (uint32_t i = 0; i < s->replicas && Good(scope); ++i)
    g.accumulators.push_back(Accumulator(scope, name + std::to_string(i), info.dtype, info.dims, g.sparse()));
  s->given.push_back(std::move(g));
}

std::unique_ptr<tw_sync> Begin(tw_scope* scope, const tw_sync_options* options, const tw_output* variables, tw_gradient* gradients,
                               uint32_t n) {
  if (n > 0 && (!variables || !gradients)) Fail(scope, TW_INVALID_ARGUMENT, "tw_sync_begin: variables or gradients is NULL");
  auto s = std::make_unique<tw_sync>();
  ReadSyncOptions(scope, options, s.get());
  if (!Good(scope)) return nullptr;
  AddState(scope, s.get());
  std::vector<uint32_t> which;
  for (uint32_t i = 0; i < n && Good(scope); ++i) {
    VariableInfo info;
    if (gradients[i].values == 0 || !Inspect(scope, variables[i], &info)) continue;
    if (!CheckTrained(scope, "tw_sync_begin", variables, gradients, i, info)) break;
    AddVariable(scope, s.get(), variables[i], gradients[i], info);
    which.push_back(i);
  }
  if (Good(scope) && which.empty()) Fail(scope, TW_INVALID_ARGUMENT, "tw_sync_begin: there are no gradients");
  if (!Good(scope)) return nullptr;
  AddReplica(scope, s.get());
  const tw_operation* full = nullptr;
  tw_output who = 0;
  {
    const On on(scope, s->task);
    full = Await(scope, s->full, {});
    if (s->backup()) who = Slice(scope, Read(scope, *s, {full}), kReplicas, int32_t(s->replicas));
  }
  for (size_t k = 0; k < which.size() && Good(scope); ++k) {
    const tw_gradient mean = Mean(scope, *s, s->given[k], full, who);
    if (Good(scope)) gradients[which[k]] = mean;
  }
  return Good(scope) ? std::move(s) : nullptr;
}

// Writes as many fields as the caller's record has room for.
void WriteOps(tw_sync_ops ops, tw_sync_ops* out) {
  ops.size = out->size;
  std::memcpy(out, &ops, std::min<size_t>(out->size, sizeof ops));
}

void End(tw_scope* scope, const tw_sync& s, const tw_operation* apply, tw_sync_ops* out) {
  if (!apply) Fail(scope, TW_INVALID_ARGUMENT, "tw_sync_end: apply is NULL");
  if (!Good(scope)) return;
  tw_sync_ops ops = {};
  ops.ticket = s.ticket;
  ops.next = s.next;
  ops.consistent = s.consistent;
  ops.update = AddUpdate(scope, s, apply);
  ops.reset = AddReset(scope, s);
  const On on(scope, s.task);
  ops.current = AddCurrent(scope, s);
  ops.dropped = Place(scope, Read(scope, s, {}), kDropped);
  if (Good(scope)) WriteOps(ops, out);
}

}  // namespace

void tw_sync_options_init(tw_sync_options* options) {
  if (options) *options = {sizeof(tw_sync_options), 0, nullptr, nullptr, 1, 0, 0, 0};
}

tw_sync* tw_sync_begin(tw_scope* scope, const tw_sync_options* options, const tw_output* variables, tw_gradient* gradients, uint32_t n) {
  return Protect(scope, [&] { return Begin(scope, options, variables, gradients, n).release(); });
}

void tw_sync_end(tw_scope* scope, tw_sync* sync, const tw_operation* apply, tw_sync_ops* out_ops) {
  const std::unique_ptr<tw_sync> taken(sync);
  Protect(scope, [&] {
    if (!out_ops || out_ops->size < offsetof(tw_sync_ops, consistent)) {
      Fail(scope, TW_INVALID_ARGUMENT, "tw_sync_end: out_ops is NULL, or its size is not set to sizeof(tw_sync_ops)");
      return 0;
    }
    WriteOps({}, out_ops);
    if (!sync) Fail(scope, TW_INVALID_ARGUMENT, "tw_sync_end: sync is NULL");
    if (sync) End(scope, *sync, apply, out_ops);
    return 0;
  });
}

void tw_sync_destroy(tw_sync* sync) { delete sync; }
