// Sequences and optionals. As long as all items are known one by one, a sequence exists in the importer only; if a position or a length is
// computed by the step, it becomes a list (list.h).
#include <algorithm>
#include <iterator>

#include "../model.h"
#include "common.h"
#include "list.h"
#include "loop.h"

namespace thalweg::onnx {
namespace {

constexpr int64_t kMostItems = 64;  // of a sequence whose items are known one by one

bool IsFixed(const Value& v) { return v.kind() == Value::Kind::kSequence; }

uint32_t ItemType(const Node& n) {
  return n.has_attr("dtype") ? DtypeOf(static_cast<int32_t>(n.i("dtype"))) : static_cast<uint32_t>(TW_FLOAT);
}

void SequenceEmpty(Builder& b, Node& n) { n.out(b.sequence({}, ItemType(n))); }

void SequenceConstruct(Builder& b, Node& n) { n.out(b.sequence(n.all(), n.in(0).dtype())); }

// ---- One position ----

// The position, counted from the front, of a sequence of `length` items; -1 if the step computes it. Allowed are [-length, end).
int64_t FixedPosition(const Node& n, const Value& position, int64_t length, int64_t end) {
  if (!position.constant()) return -1;
  const int64_t given = position.constant()->integer(0);
  if (given < -length || given >= end) {
    n.fail("position " + std::to_string(given) + " is outside of a sequence of " + std::to_string(length) + " items");
  }
  return given < 0 ? given + length : given;
}

Value ListPosition(Builder& b, const Value& position, const Value& length) { return FromFront(b, ScalarOf(b, position, TW_INT32), length); }

// The items [begin, end) of `from` behind those of `list`.
Value Appended(Builder& b, const Value& list, const Value& from, const Value& begin, const Value& end) {
  return Repeat(b, begin, end, {list}, [&](Builder& body, const Value& number, const std::vector<Value>& states) {
    return std::vector<Value>{Pushed(body, states[0], ListItem(body, from, number))};
  })[0];
}

Value Head(Builder& b, const Value& list, const Value& length) {
  return Described(b.op("TensorListResize", {list, length}), *list.listed());
}

void SequenceInsert(Builder& b, Node& n) {
  const Value &sequence = n.in(0), &item = n.in(1);
  if (IsFixed(sequence)) {
    std::vector<Value> items = sequence.items();
    const auto length = static_cast<int64_t>(items.size());
    const int64_t at = n.has(2) ? FixedPosition(n, n.in(2), length, length + 1) : length;
    if (at >= 0 && length < kMostItems) {
      items.insert(items.begin() + at, item);
      return n.out(b.sequence(std::move(items), sequence.dtype()));
    }
  }
  const Value list = AsList(b, sequence);
  if (!n.has(2)) return n.out(Pushed(b, list, item));
  const Value length = ListLength(b, list), at = ListPosition(b, n.in(2), length);
  n.out(Appended(b, Pushed(b, Head(b, list, at), item), list, at, length));
}

void SequenceErase(Builder& b, Node& n) {
  const Value& sequence = n.in(0);
  const Value last = b.scalar(TW_INT32, -1), position = n.has(1) ? n.in(1) : last;
  if (IsFixed(sequence)) {
    std::vector<Value> items = sequence.items();
    const auto length = static_cast<int64_t>(items.size());
    if (const int64_t at = FixedPosition(n, position, length, length); at >= 0) {
      items.erase(items.begin() + at);
      return n.out(b.sequence(std::move(items), sequence.dtype()));
    }
  }
  const Value list = AsList(b, sequence), length = ListLength(b, list), at = ListPosition(b, position, length);
  n.out(Appended(b, Head(b, list, at), list, b.op("AddV2", {at, b.scalar(TW_INT32, 1)}), length));
}

void SequenceAt(Builder& b, Node& n) {
  const Value& sequence = n.in(0);
  if (IsFixed(sequence)) {
    const auto length = static_cast<int64_t>(sequence.items().size());
    if (const int64_t at = FixedPosition(n, n.in(1), length, length); at >= 0) return n.out(sequence.items()[static_cast<size_t>(at)]);
  }
  const Value list = AsList(b, sequence);
  n.out(ListItem(b, list, ListPosition(b, n.in(1), ListLength(b, list))));
}

void SequenceLength(Builder& b, Node& n) {
  const Value& sequence = n.in(0);
  if (IsFixed(sequence)) return n.out(Known(b, static_cast<int64_t>(sequence.items().size())));
  n.out(b.cast(ListLength(b, AsList(b, sequence)), TW_INT64));
}

// ---- Between tensors and sequences ----

void ConcatFromSequence(Builder& b, Node& n) {
  const Value& sequence = n.in(0);
  const int64_t axis = n.i("axis");
  const bool stack = n.i("new_axis", 0) != 0;
  if (IsFixed(sequence)) {
    const std::vector<Value>& items = sequence.items();
    if (items.empty()) n.fail("the sequence is empty, so its items cannot be joined");
    return n.out(stack ? b.op("Pack", items, {{"axis", axis}}) : b.concat(items, axis));
  }
  const Value list = AsList(b, sequence);
  const auto item = [&](Builder& body, const Value& at) {
    const Value found = ListItem(body, list, at);
    return stack ? body.op("ExpandDims", {found, body.scalar(TW_INT32, static_cast<double>(axis))}) : found;
  };
  const Value first = item(b, b.scalar(TW_INT32, 0));
  n.out(Repeat(b, b.scalar(TW_INT32, 1), ListLength(b, list), {first},
               [&](Builder& body, const Value& number, const std::vector<Value>& states) {
                 return std::vector<Value>{body.concat({states[0], item(body, number)}, axis)};
               })[0]);
}

// The sizes of parts of `each` elements, the last one perhaps smaller.
std::vector<int64_t> PartSizes(int64_t size, int64_t each) {
  std::vector<int64_t> sizes(static_cast<size_t>(size / each), each);
  if (size % each) sizes.push_back(size % each);
  return sizes;
}

// Parts of `each` elements (an int64 scalar that the step computes), as a list.
Value ListOfParts(Builder& b, const Value& x, int axis, const Value& each, bool keep) {
  const Value size = b.size(x, axis), one = Known(b, 1);
  const Value count = b.op("FloorDiv", {b.op("Sub", {b.op("AddV2", {size, each}), one}), each});
  const Value list = EmptyList(b, {false, x.dtype(), nullptr});
  return Repeat(b, Known(b, 0), count, {list}, [&](Builder& body, const Value& number, const std::vector<Value>& states) {
    std::vector<Value> begin(static_cast<size_t>(x.rank()), Known(body, 0)), sizes = SizesOf(body, x, 0, x.rank());
    begin[static_cast<size_t>(axis)] = body.op("Mul", {body.cast(number, TW_INT64), each});
    sizes[static_cast<size_t>(axis)] = body.op("Minimum", {each, body.op("Sub", {size, begin[static_cast<size_t>(axis)]})});
    const Value part = body.op("Slice", {x, Join(body, begin), Join(body, sizes)});
    return std::vector<Value>{Pushed(body, states[0], keep ? part : body.squeeze(part, {axis}))};
  })[0];
}

void SplitToSequence(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const int axis = AxisOf(n, n.i("axis", 0), RankOf(n, x, "input"));
  const Value split = n.maybe(1);
  const bool keep = split || n.i("keepdims", 1) != 0;  // parts of given sizes keep the axis
  Value sizes;                                         // of all parts, if their number is known
  int64_t parts = -1;
  if (split && split.rank() == 1) {
    sizes = split;
    parts = split.dim(0);
  } else if (x.dim(axis) >= 0 && (!split || split.constant())) {
    const int64_t each = split ? split.constant()->integer(0) : 1;
    if (each < 1) n.fail("'split' is " + std::to_string(each) + "; it must be positive");
    const std::vector<int64_t> all = PartSizes(x.dim(axis), each);
    sizes = b.ints(all);
    parts = static_cast<int64_t>(all.size());
  }
  if (parts < 1 || parts > kMostItems) {
    if (split && split.rank() == 1) n.unsupported("'split' must have a known number of elements, from 1 to " + std::to_string(kMostItems));
    return n.out(ListOfParts(b, x, axis, split ? ScalarOf(b, split, TW_INT64) : Known(b, 1), keep));
  }
  std::vector<Value> items =
      b.ops("SplitV", {x, b.cast(sizes, TW_INT64), b.scalar(TW_INT32, axis)}, {{"num_split", parts}}, static_cast<size_t>(parts));
  if (!keep) {
    for (Value& item : items) item = b.squeeze(item, {axis});
  }
  n.out(b.sequence(std::move(items), x.dtype()));
}

// ---- SequenceMap ----

// One round: the body on `items`. Returns its results.
std::vector<Value> MapBody(Builder& b, const proto::GraphProto& body, const std::vector<Value>& items) {
  for (size_t i = 0; i < items.size(); ++i) b.set(body.input(static_cast<int>(i)).name(), items[i]);
  b.Translate(body);
  std::vector<Value> results;
  for (const proto::ValueInfoProto& result : body.output()) results.push_back(b.find(result.name()));
  return results;
}

uint32_t ResultType(const proto::GraphProto& body, size_t i) {
  return DtypeOf(body.output(static_cast<int>(i)).type().tensor_type().elem_type());
}

// Runs the body for each position of the sequences; inputs that are tensors are the same in each round.
void SequenceMap(Builder& b, Node& n) {
  const proto::GraphProto& body = n.graph("body");
  const auto outputs = static_cast<size_t>(body.output_size());
  if (static_cast<size_t>(body.input_size()) != n.inputs()) {
    n.fail("the body takes " + std::to_string(body.input_size()) + " inputs, but the node gives " + std::to_string(n.inputs()));
  }
  std::vector<Value> given = n.all();
  if (std::none_of(given.begin(), given.end(), [](const Value& v) { return v.listed(); })) {
    std::vector<std::vector<Value>> items(outputs);
    const size_t rounds = n.in(0).items().size();
    for (size_t round = 0; round < rounds; ++round) {
      for (size_t i = 0; i < given.size(); ++i) {
        if (!IsFixed(n.in(i))) continue;
        if (n.in(i).items().size() != rounds) n.fail("the sequences have different lengths");
        given[i] = n.in(i).items()[round];
      }
      const std::vector<Value> results = MapBody(b, body, given);
      for (size_t i = 0; i < outputs; ++i) items[i].push_back(results[i]);
    }
    for (size_t i = 0; i < outputs; ++i) n.out(i, b.sequence(items[i], ResultType(body, i)));
    return;
  }
  for (Value& v : given) v = IsFixed(v) ? AsList(b, v) : v;
  std::vector<Value> states;
  for (size_t i = 0; i < outputs; ++i) states.push_back(EmptyList(b, {false, ResultType(body, i), nullptr}));
  const Value rounds = ListLength(b, given[0]);
  const std::vector<Value> lists =
      Repeat(b, b.scalar(TW_INT32, 0), rounds, states, [&](Builder& inside, const Value& number, const std::vector<Value>& before) {
        std::vector<Value> items;
        for (const Value& v : given) items.push_back(v.listed() ? ListItem(inside, v, number) : v);
        std::vector<Value> after = MapBody(inside, body, items);
        for (size_t i = 0; i < after.size(); ++i) after[i] = Pushed(inside, before[i], after[i]);
        return after;
      });
  for (size_t i = 0; i < outputs; ++i) n.out(i, lists[i]);
}

// ---- Optionals ----

void Optional(Builder& b, Node& n) {
  if (n.has(0)) return n.out(b.optional({n.in(0)}));
  const proto::AttributeProto* type = n.attr("type");
  if (!type || !type->has_tp()) n.fail("an optional without an element needs the attribute 'type'");
  proto::TypeProto whole;
  *whole.mutable_optional_type()->mutable_elem_type() = type->tp();
  n.out(Described(b.optional({}), ListedOf(whole)));
}

void OptionalHasElement(Builder& b, Node& n) {
  if (!n.has(0)) return n.out(b.scalar(TW_BOOL, 0));
  const Value& x = n.in(0);
  if (x.kind() == Value::Kind::kOptional) return n.out(b.scalar(TW_BOOL, x.items().empty() ? 0 : 1));
  if (!x.listed() || !x.listed()->optional) return n.out(b.scalar(TW_BOOL, 1));
  n.out(b.op("Greater", {ListLength(b, x), b.scalar(TW_INT32, 0)}));
}

void OptionalGetElement(Builder& b, Node& n) {
  const Value& x = n.in(0);
  if (x.kind() == Value::Kind::kOptional) {
    if (x.items().empty()) n.fail("the optional has no element");
    return n.out(x.items()[0]);
  }
  n.out(x.listed() && x.listed()->optional ? ListItem(b, x, b.scalar(TW_INT32, 0)) : x);
}

constexpr Entry kSequence[] = {
    {"ConcatFromSequence", 11, kLatest, &ConcatFromSequence},
    {"Optional", 15, kLatest, &Optional},
    {"OptionalGetElement", 15, kLatest, &OptionalGetElement},
    {"OptionalHasElement", 15, kLatest, &OptionalHasElement},
    {"SequenceAt", 11, kLatest, &SequenceAt},
    {"SequenceConstruct", 11, kLatest, &SequenceConstruct},
    {"SequenceEmpty", 11, kLatest, &SequenceEmpty},
    {"SequenceErase", 11, kLatest, &SequenceErase},
    {"SequenceInsert", 11, kLatest, &SequenceInsert},
    {"SequenceLength", 11, kLatest, &SequenceLength},
    {"SequenceMap", 17, kLatest, &SequenceMap},
    {"SplitToSequence", 11, kLatest, &SplitToSequence},
};

}  // namespace

Family SequenceTranslators() { return {std::begin(kSequence), std::end(kSequence)}; }

}  // namespace thalweg::onnx
