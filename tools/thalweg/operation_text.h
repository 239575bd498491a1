// What there is to say about the operations of a graph, as text on one line.
#pragma once
#include <string>

#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::cli {

// "name" for an operation's first value, "name:1" for another.
std::string ValueName(const tw::Graph& graph, tw_output value);
// "a, b:1, ^c": values, then operations that only come before.
std::string InputsText(const tw::Graph& graph, const tw_operation* op);
// "float [2, ?]; int32 []": types and shapes of an operation's outputs.
std::string OutputsText(const tw::Graph& graph, const tw_operation* op);
// most: characters; 0: all.
std::string AttrText(const tw_operation* op, const char* attr, size_t most);

}  // namespace thalweg::cli
