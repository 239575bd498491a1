// Weight decay, between the gradients and an optimizer.
#include "ops/library/build.h"
#include "ops/library/options.h"
#include "thalweg/op.h"
#include "thalweg/train.h"

using namespace thalweg::library;

namespace {

tw_output Op(tw_scope* scope, const char* type, tw_output a, tw_output b) { return tw_scope_op2(scope, type, a, b); }

// Checks the arguments; returns true if there is work to do.
bool Check(tw_scope* scope, const char* function, const tw_output* variables, const tw_gradient* gradients, uint32_t n, double decay) {
  if (n > 0 && (!variables || !gradients)) Fail(scope, TW_INVALID_ARGUMENT, std::string(function) + ": variables or gradients is NULL");
  CheckNotBelow0(scope, (std::string(function) + ": decay").c_str(), decay);
  return Good(scope) && n > 0;
}

// Returns the value after `after` has run.
tw_output After(tw_scope* scope, tw_output value, const tw_operation* after) {
  OpenOp identity(scope, "Identity");
  tw_op_add_input(identity, value);
  tw_op_add_control(identity, after);
  return identity.End();
}

}  // namespace

void tw_decay_gradients(tw_scope* scope, const tw_output* variables, tw_gradient* gradients, uint32_t n, double decay) {
  Protect(scope, [&] {
    if (!Check(scope, "tw_decay_gradients", variables, gradients, n, decay)) return 0;
    for (uint32_t i = 0; i < n && Good(scope); ++i) {
      VariableInfo info;
      if (gradients[i].values == 0 || !Inspect(scope, variables[i], &info)) continue;
      tw_gradient g = UniqueRows(scope, gradients[i]);
      const tw_output weights =
          g.rows ? Typed(scope, "ResourceGather", {variables[i], g.rows}, "dtype", info.dtype) : tw_variable_read(scope, variables[i]);
      g.values = Op(scope, "Add", g.values, Op(scope, "Mul", weights, tw_scope_scalar(scope, info.dtype, decay)));
      if (Good(scope)) gradients[i] = g;
    }
    return 0;
  });
}

void tw_decay_weights(tw_scope* scope, const tw_output* variables, tw_gradient* gradients, uint32_t n, tw_output learning_rate,
                      double decay) {
  Protect(scope, [&] {
    if (!Check(scope, "tw_decay_weights", variables, gradients, n, decay)) return 0;
    const tw_graph* graph = tw_scope_graph(scope);
    std::vector<const tw_operation*> computed, decayed;
    for (uint32_t i = 0; i < n; ++i) {
      const tw_operation* producer = nullptr;
      if (gradients[i].values) tw_scope_fail(scope, tw_graph_producer(graph, gradients[i].values, &producer, nullptr));
      if (producer) computed.push_back(producer);
    }
    if (!Good(scope) || computed.empty()) return 0;
    // Every gradient is computed from the weights before the decay.
    const tw_operation* all_computed = tw_scope_group(scope, nullptr, computed.data(), uint32_t(computed.size()));
    for (uint32_t i = 0; i < n && Good(scope); ++i) {
      VariableInfo info;
      if (gradients[i].values == 0 || !Inspect(scope, variables[i], &info)) continue;
      const tw_output factor = Op(scope, "Mul", CastTo(scope, learning_rate, info.dtype), tw_scope_scalar(scope, info.dtype, decay));
      const tw_output less = Op(scope, "Mul", tw_variable_read(scope, variables[i]), factor);
      decayed.push_back(Update(scope, "AssignSubVariableOp", {variables[i], less}, {all_computed}));
    }
    const tw_operation* all_decayed = tw_scope_group(scope, nullptr, decayed.data(), uint32_t(decayed.size()));
    for (uint32_t i = 0; i < n && Good(scope); ++i) {
      if (gradients[i].values == 0) continue;
      const tw_output waited = After(scope, gradients[i].values, all_decayed);
      if (Good(scope)) gradients[i].values = waited;
    }
    return 0;
  });
}
