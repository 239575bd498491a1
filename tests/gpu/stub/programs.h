// The plugin's kernels as host functions: shard_N.cu registers them when it is compiled as C++.
#pragma once
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

struct HostLaunch {
  unsigned grid[3], block[3];  // numbers of blocks and threads
  long long at[3];             // the current block
};
#define VISIBLE __attribute__((visibility("default")))  // for programs compiled at run time
extern VISIBLE thread_local HostLaunch launch_of_host;

// A parameter. For a pointer: the size of its elements; the next parameter gives the first element.
struct HostParameter {
  size_t bytes, element;
  bool pointer, written;
};

struct VISIBLE HostFunction {
  HostFunction(const char* name, void (*call)(void** arguments), std::vector<HostParameter> parameters);
  void (*call)(void** arguments);
  std::vector<HostParameter> parameters;
};

template <class P>
HostParameter HostParameterOf() {
  if constexpr (std::is_pointer_v<P>) {
    using Element = std::remove_pointer_t<P>;
    return {sizeof(P), sizeof(Element), true, !std::is_const_v<Element>};
  } else {
    return {sizeof(P), 0, false, false};
  }
}

template <auto F>
struct HostCall;
template <class... P, void (*F)(P...)>
struct HostCall<F> {
  static void Run(void** arguments) { Run(arguments, std::index_sequence_for<P...>()); }
  template <size_t... I>
  static void Run(void** arguments, std::index_sequence<I...>) {
    F(*static_cast<P*>(arguments[I])...);
  }
  static std::vector<HostParameter> Parameters() { return {HostParameterOf<P>()...}; }
};
#define HOST_FUNCTION(space, name) \
  static const HostFunction host_##name(#name, &HostCall<&space::name>::Run, HostCall<&space::name>::Parameters());
