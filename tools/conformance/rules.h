// The rules that the kit checks, by number: the first digit is the level.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace thalweg::conformance {

struct Rule {
  int number;
  std::string_view text;    // the requirement, as a sentence
  std::string_view source;  // the header that states it
};

std::span<const Rule> Rules();  // by number
const Rule* FindRule(int number);
constexpr int kHighestLevel = 5;

}  // namespace thalweg::conformance
