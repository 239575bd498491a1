// OpSchema: the parsed form of a schema text (see plugin/op.h). Threads: immutable once registered.
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
  uint32_t dtype = 0;       // fixed type; 0: given by an attribute
  std::string type_attr;    // type attribute that gives the type
  std::string list_attr;    // list(type) attribute: one value per entry
  std::string number_attr;  // int attribute that gives the number of values
  std::string resource;     // resource type behind the handle; empty: not declared
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
  int64_t min = 0;  // for an int: least value; for a list: least length
  bool has_default = false;
  AttrValue default_value;
  uint32_t since = 0;
};

// The outside state that kernels of an op access, besides inputs and resources: a bit per word of
// the clause `touches`.
enum Touches : uint32_t { kTouchesFiles = 1, kTouchesNetwork = 2, kTouchesSystem = 4 };

// Declared facts about how output 0 follows from the inputs, for use by planning. Arguments by
// number; -1: not declared.
struct OpAlgebra {
  int32_t passes = -1, renames = -1, converts = -1;
  int32_t permuted = -1, permutation = -1;
  int32_t condition = -1, if_true = -1, if_false = -1;
  std::vector<std::pair<int32_t, double>> neutral;  // pairs of input and number
  bool involution = false, idempotent = false;
  bool said = false;  // any of these is declared
};

// Declared facts about how an op treats the order of axes. Arguments and attributes by number; -1:
// none.
struct OpAxes {
  bool elementwise = false;
  bool ordered = false;          // declared by `in`, `out` and `lists`
  std::vector<uint8_t> in, out;  // per argument: 1 if it has the axes, or one entry for each; empty: none has
  std::vector<int32_t> lists;    // attributes with one entry per axis
  int32_t format = -1;           // attribute that gives the order
  int32_t numbers = -1;          // input with axis numbers
  int32_t keep = -1;             // attribute that says whether reduced axes are kept
};

struct ShapeQuery;
struct ShapeAnswer;
// A shape rule inside the runtime, used instead of a plugin's callback.
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
  std::vector<uint8_t> data;        // per input argument: 1 if its elements affect no kernel's memory needs (the hint `?data`)
  // in_at() and out_at() for every node of the op, if all arguments are single values; otherwise
  // empty.
  std::vector<uint32_t> in_at, out_at;
  OpAlgebra algebra;
  OpAxes axes;
  std::string runs_as;  // for an op with references: the op with handles that runs in its place
  std::string role, no_gradient, doc;
  std::string text;                 // as registered
  bool unread = false;              // unparsed: only `name`, `text` and the members below are valid
  const ShapeRule* rule = nullptr;  // NULL: def.shape
  // The sealed definition and the host table for its calls.
  tw_op_def def{};
  const tw_host* host = nullptr;
  std::string plugin;                   // id of the plugin that registered the op
  std::weak_ptr<const void> in_graphs;  // held by every graph with the op, which keeps the plugin loaded; empty: it is never unloaded

  int FindAttr(std::string_view attr_name) const;  // -1: none
  int FindInput(std::string_view arg) const;
  int FindOutput(std::string_view arg) const;
};

// Formats "files" or "files and network".
std::string TouchesText(uint32_t touches);

// INVALID_ARGUMENT gives the column of the error; UNIMPLEMENTED that of a word that is no element
// type here.
StatusOr<OpSchema> ParseOpSchema(std::string_view text);
// Parses the text of an unread schema and keeps the members that the text does not define. Also
// refuses a gradient callback together with `no_gradient`.
Status ReadOpSchema(OpSchema* op);

// Checks whether the spec allows the value; the error says why not.
Status CheckAttr(const AttrSpec& spec, const AttrValue& value);

}  // namespace thalweg
