// Bodies that combine scalars (of reduce, scatter, sort, ...): what they are, and how they run over many elements at once.
// Threads: those of Translation.
#pragma once
#include <memory>
#include <vector>

#include "../loose.h"
#include "common.h"

namespace thalweg::stablehlo {

// What a body of two arguments computes, if it is one of the usual ones.
enum class Combiner { kOther, kAdd, kMultiply, kMaximum, kMinimum, kAnd, kOr, kSecond };
// kSecond: returns its second argument, as a scatter that replaces does.
Combiner CombinerOf(const Op& op, const Block& block);

// Whether every operation of the body, and of functions that it calls, is element-wise, so that it may be given values of any one shape in
// place of scalars. other: receives the name of an operation that is not; may be NULL.
bool Elementwise(Translation& t, const Block& block, std::string_view* other = nullptr);
// Runs such a body. args: all of one shape, or scalars. Results have that shape, or are scalars if they depend on no argument.
std::vector<Value> Vectorised(Translation& t, const Op& op, const Block& block, const std::vector<Value>& args);

// A combiner of `n` values with `n` others, element by element; the results have the shape of the arguments.
// Fails if the body is not element-wise.
class Fold {
 public:
  Fold(Translation& t, const Op& op, const Block& block);
  std::vector<Value> operator()(const std::vector<Value>& a, const std::vector<Value>& b) const;
  Combiner combiner() const { return combiner_; }
  // The same combiner, in another graph.
  Fold in(Translation& other) const { return Fold(other, *this); }

 private:
  Fold(Translation& t, const Fold& same) : t_(t), op_(same.op_), block_(same.block_), combiner_(same.combiner_), loose_(same.loose_) {}
  Translation& t_;
  const Op& op_;
  const Block& block_;
  const Combiner combiner_;
  std::shared_ptr<const Loose> loose_;  // made once, since it copies the types of the whole function
};

// The result of `combiner` with this operand and the other one is the other one.
bool Neutral(Combiner combiner, const Value& v);

}  // namespace thalweg::stablehlo
