// OpSchema: what plugin/op.h's schema text says, parsed. Immutable once registered.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/attr_value.h"
#include "thalweg/plugin/op.h"

namespace thalweg {

// One entry of an argument's [dims].
struct DimPattern {
  enum Kind { kSize, kName, kStar, kAny } kind = kAny;
  int64_t size = -1;  // kSize
  std::string name;   // kName, kStar
};

struct ArgSpec {
  std::string name;
  uint32_t dtype = 0;       // fixed type; 0: by attribute
  std::string type_attr;    // type attribute that says it
  std::string list_attr;    // list(type) attribute: one value per entry
  std::string number_attr;  // int attribute that says how many
  std::string resource;     // type that the handle leads to; empty: not said
  bool ref = false;
  bool has_dims = false;
  std::vector<DimPattern> dims;
};

struct AttrSpec {
  std::string name;
  uint32_t kind = 0;  // TW_ATTR_*
  bool list = false;
  std::vector<uint32_t> types;       // allowed; empty: any
  std::vector<std::string> strings;  // allowed; empty: any
  bool has_min = false;
  int64_t min = 0;  // of an int, or of a list's length
  bool has_default = false;
  AttrValue default_value;
  uint32_t since = 0;
};

// What the kernels of an op reach beside inputs and state: a bit per word of the clause `touches`.
enum Touches : uint32_t { kTouchesFiles = 1, kTouchesNetwork = 2, kTouchesSystem = 4 };

// How an op's output 0 follows from its inputs, as far as planning may make use of it. Arguments by number; -1: not said.
struct OpAlgebra {
  int32_t passes = -1, renames = -1, converts = -1;
  int32_t permuted = -1, permutation = -1;
  int32_t condition = -1, if_true = -1, if_false = -1;
  std::vector<std::pair<int32_t, double>> neutral;  // input, number
  bool involution = false, idempotent = false;
  bool said = false;  // any of these
};

// What an op does with the order of axes. Arguments and attributes by number; -1: none.
struct OpAxes {
  bool elementwise = false;
  bool ordered = false;          // by `in`, `out` and `lists`
  std::vector<uint8_t> in, out;  // per argument: has the axes, or something for each; empty: none has
  std::vector<int32_t> lists;    // attributes with something for each
  int32_t format = -1;           // attribute that says the order
  int32_t numbers = -1;          // input with numbers of axes
  int32_t keep = -1;             // attribute that says whether reduced axes stay
};

struct ShapeQuery;
struct ShapeAnswer;
// A shape rule of the runtime's own, asked in place of a plugin's callback.
class ShapeRule {
 public:
  virtual ~ShapeRule() = default;
  virtual Status Infer(const ShapeQuery& query, ShapeAnswer* out) const = 0;
};

struct OpSchema {
  std::string name;
  std::vector<ArgSpec> inputs, outputs;
  std::vector<AttrSpec> attrs;
  bool stateful = false, once = false, commutative = false;
  uint32_t touches = 0;             // Touches
  std::vector<uint8_t> shape_only;  // per input argument
  std::vector<uint8_t> unopened;    // per input argument
  std::vector<uint8_t> data;        // per input argument: its elements decide no kernel's memory (the hint `?data`)
  // Node::in_at() and out_at() of every node, where all arguments are single values; else empty.
  std::vector<uint32_t> in_at, out_at;
  OpAlgebra algebra;
  OpAxes axes;
  std::string runs_as;  // of an op with references: the op with handles that runs in its place
  std::string role, no_gradient, doc;
  std::string text;                 // as registered
  bool unread = false;              // only `name`, `text` and what stands below count
  const ShapeRule* rule = nullptr;  // NULL: def.shape
  // The sealed definition and the table it is called with.
  tw_op_def def{};
  const tw_host* host = nullptr;
  std::string plugin;                   // id of who registered it
  std::weak_ptr<const void> in_graphs;  // held by every graph that has the op, so that the plugin is not unloaded; empty: it never is

  int FindAttr(std::string_view attr_name) const;  // -1: none
  int FindInput(std::string_view arg) const;
  int FindOutput(std::string_view arg) const;
};

// "files", "files and network".
std::string TouchesText(uint32_t touches);

// INVALID_ARGUMENT with the column of what is wrong.
StatusOr<OpSchema> ParseOpSchema(std::string_view text);
// Reads the text of a schema that is unread; what the text does not say stays. Errors: also a gradient callback beside `no_gradient`.
Status ReadOpSchema(OpSchema* op);

// True where the value is one that the spec allows; otherwise the message says why.
Status CheckAttr(const AttrSpec& spec, const AttrValue& value);

}  // namespace thalweg
