// Formats the operations of a graph as text on one line.
#pragma once
#include <string>

#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::cli {

// Returns "name" for an operation's first output, "name:1" for the second, and so on.
std::string ValueName(const tw::Graph& graph, tw_output value);
// Returns "a, b:1, ^c": data inputs, then control inputs.
std::string InputsText(const tw::Graph& graph, const tw_operation* op);
// Returns "float [2, ?]; int32 []": types and shapes of an operation's outputs.
std::string OutputsText(const tw::Graph& graph, const tw_operation* op);
// most: the limit in characters; 0: none.
std::string AttrText(const tw_operation* op, const char* attr, size_t most);

}  // namespace thalweg::cli
