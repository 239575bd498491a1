#include "framework/session/options.h"

#include "framework/plan/work_graph.h"

namespace thalweg {
namespace {

using O = SessionOptions;

constexpr const char* kEngines[] = {"auto", "fixed", "counted"};

std::span<const char* const> OptionalPasses() {
  static const auto* names = [] {
    auto* list = new std::vector<const char*>;
    for (const Pass& pass : Passes()) {
      if (pass.optional) list->push_back(pass.name.data());
    }
    return list;
  }();
  return *names;
}

}  // namespace

std::span<const OptionRow<SessionOptions>> SessionOptionRows() {
  static const OptionRow<O> rows[] = {
      {IntOption("threads", "0", 0, UINT32_MAX, "1: everything on the calling thread; any other number: the threads of the runtime"),
       SetMember<&O::threads>},
      {TextOption("container", "localhost", "name of the container of state whose ops name none; sessions with the same name share it"),
       SetMember<&O::container>},
      {BoolOption("optimize", "true", "fold constants and merge equal nodes"), SetMember<&O::optimize>},
      {Repeating(ChoiceOption("disable_pass", "", OptionalPasses(), "an optimisation pass to leave out")),
       AddToMember<&O::disabled_passes>},
      {ChoiceOption("engine", "auto", kEngines, "fixed: one node after the other; counted: nodes side by side; auto: whichever suits"),
       SetMember<&O::engine>},
      {BoolOption("soft_placement", "false", "a node whose device has no kernel for it runs elsewhere, with copies and a log line"),
       SetMember<&O::soft_placement>},
      {IntOption("max_shape_plans", "8", 1, UINT32_MAX,
                 "plans per signature that are made for certain feed shapes; beyond, one serves all shapes"),
       SetMember<&O::max_shape_plans>},
      {IntOption("max_async_runs", "0", 0, UINT32_MAX,
                 "runs started without waiting that may be under way; starting one more waits; 0: twice the runtime's threads"),
       SetMember<&O::max_async_runs>},
  };
  return rows;
}

Status SetSessionOption(SessionOptions* options, std::string_view key, std::string_view value) {
  return SetOption("session", SessionOptionRows(), options, key, value);
}

}  // namespace thalweg
