// How arguments of each type are drawn, and how results of each type are kept. This is enough to
// call most functions by their types; calls.cc has the others.
#pragma once
#include <algorithm>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tests/fuzz/c_api/program.h"

namespace thalweg::fuzz {

template <class T>
constexpr bool kIsHandle = false;
template <class T>
constexpr bool kIsOwned = false;
#define X(type, end, owned)                     \
  template <>                                   \
  inline constexpr bool kIsHandle<type> = true; \
  template <>                                   \
  inline constexpr bool kIsOwned<type> = owned;
FUZZ_HANDLES(X)
#undef X

// Records whose fields after size and flags are eight bytes each and contain no pointer.
template <class T, class... Of>
constexpr bool kIsOneOf = (std::is_same_v<T, Of> || ...);
template <class T>
constexpr bool kNumbersOnly =
    kIsOneOf<T, tw_sgd, tw_polynomial, tw_cosine_restarts, tw_momentum, tw_adam, tw_adamax, tw_adagrad, tw_adadelta, tw_rmsprop, tw_ftrl,
             tw_lbfgs_options, tw_moving_averages, tw_lstm_cell, tw_gru_cell, tw_sampled_loss, tw_initializer, tw_layer_options, tw_dense,
             tw_convolution, tw_convolution_sizes, tw_norm, tw_batch_norm, tw_attention, tw_batch_options, tw_pool, tw_rotary>;

template <class T>
T* Program::Handle() {
  const auto entry = pool<T>().Get(Number());
  if (!owner_) owner_ = std::is_same_v<T, tw_graph> || std::is_same_v<T, tw_session> ? entry.handle : entry.owner;
  return entry.handle;
}

template <class T, class F>
T* Program::List(F&& draw) {
  const Word* word = Peek();
  if (!word || word->text != "(" || word->quoted) {
    Null();
    limit_ = kList;
    after_text_ = false;
    return nullptr;
  }
  ++at_;
  limit_ = UINT64_MAX;  // drops the limit of an earlier array
  T* list = Memory<T>(kList);
  for (size_t i = 0; Peek() && Peek()->text != ")"; ++i) {
    const T element = draw();
    if (i < kList) list[i] = element;
  }
  if (Peek()) ++at_;
  limit_ = kList;
  after_text_ = false;
  return list;
}

template <class T>
void Program::Keep(T* handle) {
  if (!handle) return;
  auto& all = pool<T>().all;
  if (all.size() >= Pool<T>::kMost) return End(handle);
  all.push_back({handle, kIsOwned<T> ? owner_ : nullptr});
}

template <class T>
T* Program::Taken(T* handle) {
  pool<T>().Forget(handle);
  return handle;
}

template <class T>
void Program::Finish(T* handle) {
  if (!handle) return End(handle);
  Waiting::ForAll();
  if constexpr (std::is_same_v<T, tw_graph> || std::is_same_v<T, tw_session>) EndOwned(handle);
  // These have two owners.
  if constexpr (std::is_same_v<T, tw_saver> || std::is_same_v<T, tw_session>) {
    while (!pool<tw_checkpointer>().all.empty()) Finish(pool<tw_checkpointer>().all.back().handle);
  }
  if constexpr (std::is_same_v<T, tw_session>) {  // which they run
    while (!pool<tw_trainer>().all.empty()) Finish(pool<tw_trainer>().all.back().handle);
    while (!pool<tw_iterator>().all.empty()) Finish(pool<tw_iterator>().all.back().handle);
  }
  // Releases one reference of a shared object, and removes one of its entries.
  auto& all = pool<T>().all;
  const auto it = std::find_if(all.begin(), all.end(), [&](const auto& e) { return e.handle == handle; });
  if (it != all.end()) all.erase(it);
  End(handle);
}

template <class T>
T Program::Draw() {
  if constexpr (std::is_floating_point_v<T>) {
    return T(Real());
  } else if constexpr (std::is_integral_v<T>) {
    const uint64_t n = Number();
    if constexpr (std::is_signed_v<T>) {
      if (int64_t(n) < 0) return T(n);
    }
    // Only a 64-bit number is the length of a text.
    if (after_text_ && !std::is_same_v<T, uint64_t>) limit_ = UINT64_MAX;
    return T(Limited(n));
  } else {
    using Pointee = std::remove_pointer_t<T>;
    using Plain = std::remove_const_t<Pointee>;
    constexpr bool is_const = std::is_const_v<Pointee>;
    if constexpr (std::is_same_v<T, const char*>) {
      const tw_string text = String();
      limit_ = text.size;
      after_text_ = true;
      return text.data;
    } else if constexpr (kIsHandle<Plain>) {
      return Handle<Plain>();
    } else if constexpr (std::is_same_v<T, const tw_operation*>) {
      return Operation();
    } else if constexpr (std::is_same_v<T, const tw_function_spec*>) {
      return FunctionSpec();
    } else if constexpr (std::is_same_v<T, const tw_signature*>) {
      return Signature();
    } else if constexpr (std::is_same_v<T, const tw_run_options*>) {
      return RunOptions();
    } else if constexpr (std::is_same_v<T, const tw_import_options*>) {
      return ImportOptions();
    } else if constexpr (std::is_same_v<T, const void*>) {
      return Bytes();
    } else if constexpr (std::is_function_v<Pointee> || std::is_void_v<Pointee>) {
      return nullptr;
    } else if constexpr (std::is_pointer_v<Plain> && is_const) {
      return List<Plain>([this] { return Draw<Plain>(); });
    } else if constexpr (std::is_arithmetic_v<Plain> && is_const) {
      return List<Plain>([this] { return static_cast<Plain>(Draw<Plain>()); });
    } else if constexpr (std::is_same_v<T, const tw_string*>) {
      return List<Plain>([this] { return String(); });
    } else if constexpr (std::is_same_v<T, const tw_shape*>) {
      return List<Plain>([this] {
        const auto* dims = Draw<const int64_t*>();
        return tw_shape{dims, Draw<int32_t>(), 0};
      });
    } else if constexpr (std::is_same_v<T, const tw_gradient*>) {
      return List<Plain>([this] {
        const uint64_t values = Number();
        return tw_gradient{values, Number()};
      });
    } else if constexpr (is_const) {
      return reinterpret_cast<T>(Options(sizeof(Plain), kNumbersOnly<Plain>));
    } else {
      if (Null()) return nullptr;
      Plain* results = Memory<Plain>(kList * 4);
      // An output record must have its size set.
      constexpr bool is_record = std::is_class_v<Plain> && !std::is_same_v<Plain, tw_shape> && !std::is_same_v<Plain, tw_gradient>;
      if constexpr (is_record) results->size = Size(sizeof(Plain));
      return results;
    }
  }
}

// ---- Results ----

template <class T>
void KeepOut(Program& p, T argument) {
  if constexpr (std::is_pointer_v<T>) {
    using Plain = std::remove_pointer_t<T>;
    if constexpr (std::is_same_v<T, tw_scope*>) p.NoteScope(tw_scope_code(argument));
    if (!argument) return;
    for (size_t i = 0; i < Program::kList; ++i) {
      if constexpr (std::is_same_v<T, const tw_operation**>) {
        p.Keep(argument[i], p.owner());
      } else if constexpr (std::is_same_v<T, uint64_t*>) {
        p.Keep(argument[i]);
      } else if constexpr (std::is_same_v<T, tw_gradient*>) {
        p.Keep(argument[i].values);
        p.Keep(argument[i].rows);
      } else if constexpr (std::is_pointer_v<Plain> && !std::is_const_v<Plain> && kIsHandle<std::remove_pointer_t<Plain>>) {
        if (argument[i] && p.failed()) Broken("a call that failed made something");
        p.Keep(argument[i]);
      } else if constexpr (std::is_same_v<T, const char**>) {
        p.Read(argument[i]);
      } else if constexpr (std::is_same_v<T, tw_shape*>) {
        if (argument[i].rank > 0) p.Read(argument[i].dims, uint64_t(argument[i].rank) * sizeof(int64_t));
      }
    }
  }
}

template <class T>
void KeepResult(Program& p, T result) {
  if constexpr (std::is_same_v<T, tw_status*>) {
    p.Note(result);
  } else if constexpr (std::is_same_v<T, const tw_operation*>) {
    p.Keep(result, p.owner());
  } else if constexpr (std::is_same_v<T, const char*>) {
    p.Read(result);
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    p.Keep(result);
  } else if constexpr (std::is_pointer_v<T>) {
    if constexpr (kIsHandle<std::remove_pointer_t<T>>) p.Keep(result);
  }
}

// Draws the arguments from left to right, calls the function, and keeps its results.
template <class R, class... A>
void CallByTypes(Program& p, R (*function)(A...)) {
  const std::tuple<A...> arguments{p.Draw<A>()...};
  std::apply(
      [&](A... a) {
        if constexpr (std::is_void_v<R>) {
          function(a...);
        } else {
          KeepResult(p, function(a...));
        }
        (KeepOut(p, a), ...);
      },
      arguments);
}

}  // namespace thalweg::fuzz
