// Helpers that the layers of thalweg/layer.h share.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ops/library/build.h"
#include "ops/library/options.h"
#include "thalweg/layer.h"

namespace thalweg::library {

// Fails the scope with "<function>: <text>"; below a prefix, with "<function> '<prefix>': <text>", so that the message names the layer.
inline void FailIn(tw_scope* scope, const char* function, const std::string& text) {
  std::string where = tw_scope_prefix(scope);
  if (!where.empty()) where = " '" + where.substr(0, where.size() - 1) + "'";
  Fail(scope, TW_INVALID_ARGUMENT, function + where + ": " + text);
}

// Fails the scope unless the record was filled by its _init function.
template <class T>
bool CheckRecord(tw_scope* scope, const char* function, const char* record, const T* given) {
  if (!given) FailIn(scope, function, std::string(record) + " is NULL");
  if (given && (given->size < sizeof(T) || given->flags != 0)) {
    FailIn(scope, function,
           std::string("fill the ") + record + " with its _init or _create function first (its size is " + std::to_string(given->size) +
               ", its flags " + std::to_string(given->flags) + ")");
  }
  return Good(scope);
}

// Begins the record that a create function fills, with the settings of `like` or the defaults. Fails the scope if `out` is NULL.
template <class T>
bool BeginRecord(tw_scope* scope, const char* function, const char* record, const T* like, void (*init)(T*), T* out) {
  if (out) {
    *out = ReadOptions(scope, record, like, init);  // `like` may be the same record
  } else {
    FailIn(scope, function, "the record to fill is NULL");
  }
  return Good(scope);
}

// Fails the scope unless value is at least 1 and fits an int32.
bool CheckSize(tw_scope* scope, const char* function, const char* what, int64_t value);

// The options of a layer that makes variables. Fails the scope for a NULL name and for a type that weights cannot have.
tw_layer_options ReadLayerOptions(tw_scope* scope, const char* function, const char* name, const tw_layer_options* given);

// "<name>/<part>", or "<part>" where name is empty.
std::string PartName(const char* name, const char* part);

// Creates `name`/`part` with that shape. `how`: without a seed of its own. `number` tells the weights of one layer apart, which share the
// seed of the options.
tw_output CreateWeight(tw_scope* scope, const char* name, const char* part, const tw_layer_options& options, tw_initializer how,
                       const std::vector<int64_t>& dims, int64_t number);

// An initializer of that kind and scale, without a seed.
tw_initializer Initializer(uint32_t kind, double scale);

// The options' initializer of the kernel, else `otherwise`; of the bias, else zeros.
tw_initializer KernelInitializer(const tw_layer_options& options, const tw_initializer& otherwise);
tw_initializer BiasInitializer(const tw_layer_options& options);

// The value of a bool scalar that is a constant: 0 or 1; -1 for other values.
int KnownBool(tw_scope* scope, tw_output value);

// x plus a vector along its last axis; `bias` 0 answers x.
tw_output AddBias(tw_scope* scope, tw_output x, tw_output bias);

// Describes x. Fails the scope unless its rank is known and in [low, high] and its type is half, bfloat16, float or double.
ValueInfo CheckInput(tw_scope* scope, const char* function, tw_output x, int32_t low, int32_t high);

// Fails the scope unless the last axis of x may have `channels` elements; -1 means any.
void CheckChannels(tw_scope* scope, const char* function, const ValueInfo& x, int64_t channels);

// Fails the scope unless x and a weight have one type.
void CheckType(tw_scope* scope, const char* function, const ValueInfo& x, const char* what, const ValueInfo& weight);

// x with the axes from `first` on replaced by `last`. Known sizes stay known. REQUIRES: the rank of x is known, and first <= rank.
tw_output ReshapeTail(tw_scope* scope, tw_output x, int32_t first, const std::vector<int64_t>& last);

// `x` with the axes before `tail` replaced by those of `like` before `first`. REQUIRES: the ranks are known.
tw_output ReshapeAs(tw_scope* scope, tw_output x, tw_output like, int32_t first, const std::vector<int64_t>& tail);

}  // namespace thalweg::library
