// JSON written by people, as a tree. Threads: values, no sharing.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/status.h"

namespace thalweg::distributed {

struct JsonTree {
  enum Kind { kNull, kBool, kNumber, kText, kArray, kObject };
  Kind kind = kNull;
  struct Member;
  double number = 0;                                  // 1 for true
  std::string text;                                   // for a text
  std::vector<Member> members;                        // in an array their names are empty
  const JsonTree* Find(std::string_view name) const;  // NULL if there is none
};
struct JsonTree::Member {
  std::string name;
  JsonTree value;
};

// Errors: INVALID_ARGUMENT with line and column.
StatusOr<JsonTree> ParseJson(std::string_view text);

}  // namespace thalweg::distributed
