// Sorting: by keys if the comparator compares one number of each side, else by comparing all pairs.
#include "sort.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>
#include <set>

#include "body.h"
#include "common.h"
#include "elementwise.h"

namespace thalweg::stablehlo {
namespace {

constexpr int64_t kMostPairs = 2048;  // elements of an axis whose pairs are compared

constexpr int kMostDeep = 256;       // operations between an argument of a comparator and what it compares
constexpr int kMostCompared = 4096;  // parts of two attributes: lists may share their parts, so their number has no other bound

bool SameAttribute(const Attribute& a, const Attribute& b, int depth, int* left) {
  if (&a == &b) return true;
  if (depth > 8 || --*left < 0 || a.kind != b.kind || a.integer != b.integer || std::memcmp(&a.real, &b.real, sizeof a.real) != 0 ||
      a.text != b.text) {
    return false;
  }
  if (a.array.size() != b.array.size() || a.fields.size() != b.fields.size()) return false;
  if ((a.type == nullptr) != (b.type == nullptr) || (a.type && Text(*a.type) != Text(*b.type))) return false;
  for (size_t i = 0; i < a.array.size(); ++i) {
    if (!SameAttribute(*a.array[i], *b.array[i], depth + 1, left)) return false;
  }
  for (size_t i = 0; i < a.fields.size(); ++i) {
    if (a.fields[i].name != b.fields[i].name || !SameAttribute(*a.fields[i].value, *b.fields[i].value, depth + 1, left)) return false;
  }
  return a.elements.splat == b.elements.splat && a.elements.bytes == b.elements.bytes &&
         (a.elements.bytes == 0 || std::memcmp(a.elements.data, b.elements.data, a.elements.bytes) == 0);
}

bool SameAttributes(const Operation& p, const Operation& q) {
  int left = kMostCompared;
  if (p.attributes.size() != q.attributes.size() || (p.dictionary == nullptr) != (q.dictionary == nullptr)) return false;
  for (size_t i = 0; i < p.attributes.size(); ++i) {
    if (p.attributes[i].name != q.attributes[i].name || !SameAttribute(*p.attributes[i].value, *q.attributes[i].value, 0, &left))
      return false;
  }
  return !p.dictionary || SameAttribute(*p.dictionary, *q.dictionary, 0, &left);
}

// Compares what two values of a body are made of: one of left arguments, the other in the same way of right ones.
class Mirror {
 public:
  explicit Mirror(const Block& block) {
    for (const Operation& o : block.operations) {
      for (const Id id : o.results) made_[id] = &o;
    }
    for (size_t i = 0; i < block.arguments.size(); ++i) argument_[block.arguments[i]] = i;
  }
  // left_first: `left` is of the arguments 0, 2, ..., `right` of 1, 3, ...
  bool Same(Id left, Id right, bool left_first, int depth = 0) {
    if (depth > kMostDeep) return false;
    if (!seen_.insert({left, right}).second) return true;
    const auto a = argument_.find(left), b = argument_.find(right);
    if (a != argument_.end() || b != argument_.end()) {
      if (a == argument_.end() || b == argument_.end()) return false;
      const size_t first = left_first ? a->second : b->second, second = left_first ? b->second : a->second;
      return first % 2 == 0 && second == first + 1;
    }
    const auto x = made_.find(left), y = made_.find(right);
    if (x == made_.end() || y == made_.end()) return left == right;  // values of the graph around
    const Operation &p = *x->second, &q = *y->second;
    if (p.name != q.name || p.operands.size() != q.operands.size()) return false;
    if (p.results.size() != 1 || q.results.size() != 1 || !p.regions.empty() || !q.regions.empty()) return false;
    if (!SameAttributes(p, q)) return false;
    for (size_t i = 0; i < p.operands.size(); ++i) {
      if (!Same(p.operands[i], q.operands[i], left_first, depth + 1)) return false;
    }
    return true;
  }

 private:
  std::unordered_map<Id, const Operation*> made_;
  std::unordered_map<Id, size_t> argument_;
  std::set<std::pair<Id, Id>> seen_;
};

std::string EnumOf(const Operation& o, std::string_view name, const char* otherwise) {
  const Attribute* a = o.attribute(name);
  return a ? std::string(a->text) : otherwise;
}

// The keys in whose ascending order the elements are to stand; absent if the comparator is no comparison of keys.
Value KeysOf(Translation& t, const Op& op, const std::vector<Value>& values) {
  const Block& body = op.body();
  const Operation& end = body.operations.back();
  const Operation* compare = nullptr;
  for (const Operation& o : body.operations) {
    if (o.results.size() == 1 && end.operands.size() == 1 && o.results[0] == end.operands[0]) compare = &o;
  }
  if (!compare || compare->name != "stablehlo.compare" || compare->operands.size() != 2) return Value();
  const std::string direction = EnumOf(*compare, "comparison_direction", "");
  const bool rises = direction == "LT" || direction == "LE";
  if (!rises && direction != "GT" && direction != "GE") return Value();
  const Id left = compare->operands[0], right = compare->operands[1];
  bool swapped = false;
  if (!Mirror(body).Same(left, right, true)) {
    if (!Mirror(body).Same(left, right, false)) return Value();
    swapped = true;  // compares the right element with the left one
  }
  Block keyed;
  keyed.arguments = body.arguments;
  keyed.operations = body.operations;
  keyed.operations.back().operands = {left};
  std::vector<Value> twice;
  for (const Value& v : values) twice.insert(twice.end(), 2, v);
  Value keys = Vectorised(t, op, keyed, twice).at(0);
  if (keys.rank() != values[0].rank() || IsComplex(keys)) return Value();
  if (IsBool(keys)) keys = t.cast(keys, TW_UINT8);
  if (IsReal(keys)) {
    // Without the total order, -0 equals 0.
    if (EnumOf(*compare, "compare_type", "") != "TOTALORDER")
      keys = t.op("SelectV2", {t.op("Equal", {keys, t.like(keys, 0)}), t.like(keys, 0), keys});
    keys = TotalOrder(t, keys);
  }
  return rises != swapped ? keys : t.op("Invert", {keys});
}

Value Beside(Translation& t, const Value& v, bool rows) {
  return t.expand(v, {rows ? static_cast<int64_t>(v.rank()) : static_cast<int64_t>(v.rank()) - 1});
}

// The rank of element j: how many elements stand before it. Equal elements keep their order.
Value RanksOf(Translation& t, const Op& op, const std::vector<Value>& values, int64_t length) {
  std::vector<Value> forward, backward;
  for (const Value& v : values) {
    const Value a = Beside(t, v, true), b = Beside(t, v, false);  // [..., i, 1] and [..., 1, j]
    std::vector<Value> sizes = SizesOf(t, v);
    sizes.push_back(sizes.back());
    const Value i = BroadcastTo(t, a, sizes), j = BroadcastTo(t, b, sizes);
    forward.insert(forward.end(), {i, j});
    backward.insert(backward.end(), {j, i});
  }
  const Value before = Vectorised(t, op, op.body(), forward).at(0), after = Vectorised(t, op, op.body(), backward).at(0);
  const Value earlier = t.op("Less", {CountAlong(t, Known(t, length), 2, 0), CountAlong(t, Known(t, length), 2, 1)});
  const Value stands = t.op("LogicalOr", {before, t.op("LogicalAnd", {earlier, t.op("LogicalNot", {after})})});
  return t.op("Sum", {t.cast(stands, TW_INT32), t.ints({-2})});
}

void Sort(Translation& t, Op& op) {
  const size_t n = op.inputs();
  if (n == 0) op.fail("it needs an operand");
  const int rank = RankOf(op, op.in(0));
  if (rank == 0) op.fail("a scalar cannot be sorted");
  int64_t axis = op.i("dimension", rank - 1);
  if (axis < 0) axis += rank;
  AxisOf(op, axis, rank);
  if (!Elementwise(t, op.body())) op.unsupported("its comparator has other ops than element-wise ones");
  std::vector<int64_t> perm(static_cast<size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[static_cast<size_t>(axis)], perm.back());
  std::vector<Value> values;
  for (const Value& v : op.all()) values.push_back(t.transpose(v, perm));
  Value keys = KeysOf(t, op, values);
  const int64_t length = values[0].dim(-1);
  if (length == 0 || length == 1) {
    for (size_t i = 0; i < n; ++i) op.out(i, op.in(i));
    return;
  }
  if (!keys) {
    if (length < 0 || length > kMostPairs) {
      op.unsupported("the comparator compares several numbers, which is supported for at most " + std::to_string(kMostPairs) +
                     " elements, but the axis has " + (length < 0 ? "an unknown number of them" : std::to_string(length)));
    }
    keys = RanksOf(t, op, values, length);
  }
  const Value order = AscendingOrder(t, keys);
  for (size_t i = 0; i < n; ++i) {
    const Value sorted = t.op("GatherV2", {values[i], order, t.scalar(TW_INT32, rank - 1)}, {{"batch_dims", rank - 1}});
    op.out(i, t.transpose(sorted, perm));
  }
}

constexpr Entry kSort[] = {
    {"stablehlo.sort", &Sort},
};

}  // namespace

// TopKV2 finds the largest first, and the first of equals first; the complement of a number has the opposite order.
Value AscendingOrder(Translation& t, const Value& keys) {
  const Value count = t.cast(t.size(keys, keys.rank() - 1), TW_INT32);
  return t.ops("TopKV2", {t.op("Invert", {keys}), count}, {{"sorted", true}}, 2)[1];
}

Family sort_translators() { return {std::begin(kSort), std::end(kSort)}; }

}  // namespace thalweg::stablehlo
