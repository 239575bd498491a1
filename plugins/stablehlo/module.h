// A StableHLO module in memory, as module_reader.h makes it from a file and as translators (translate.h) walk it. Names of ops and
// attributes are those of the portable dialect VHLO without versions: `vhlo.add_v1` is "stablehlo.add". Attributes that StableHLO's text
// groups, such as `dot_dimension_numbers`, are flat here, as in VHLO: "lhs_batching_dimensions", "precision_config" and so on.
// Threads: a module is not changed once it is made.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../common/importer/tensor.h"

namespace thalweg::stablehlo {

using importer::Dims;
using importer::Error;
using importer::Tensor;

// ---- Types ----

enum class Element : uint8_t {
  kNone,  // no tensor
  kBool,
  kI2,
  kI4,
  kI8,
  kI16,
  kI32,
  kI64,
  kUI2,
  kUI4,
  kUI8,
  kUI16,
  kUI32,
  kUI64,
  kF4E2M1FN,
  kF6E2M3FN,
  kF6E3M2FN,
  kF8E3M4,
  kF8E4M3,
  kF8E4M3FN,
  kF8E4M3FNUZ,
  kF8E4M3B11FNUZ,
  kF8E5M2,
  kF8E5M2FNUZ,
  kF8E8M0FNU,
  kBF16,
  kF16,
  kTF32,
  kF32,
  kF64,
  kC64,   // complex<f32>
  kC128,  // complex<f64>
  kIndex,
  kQuantised,  // Type::quantised says more
};

// A quantised element: expressed = (storage - zero_point) * scale. axis -1: one scale and zero point for all elements, else one for each
// index of that axis.
struct Quantised {
  Element storage = Element::kNone, expressed = Element::kNone;
  bool is_signed = true;
  int64_t storage_min = 0, storage_max = 0;
  int64_t axis = -1;
  std::vector<double> scales;
  std::vector<int64_t> zero_points;
};

struct Type {
  enum class Kind : uint8_t {
    kTensor,
    kScalar,  // an element type alone: the type of an integer or real attribute, or a type as an attribute
    kToken,
    kTuple,     // of `types`
    kFunction,  // from `types` to `results`
    kNone,
    kBuffer,  // a tensor in memory that an op may overwrite; no translator takes it
  };
  Kind kind = Kind::kNone;
  Element element = Element::kNone;
  bool ranked = true;
  Dims dims;    // -1: not known when the module was made
  Dims bounds;  // empty, or for each axis the largest size, -1 for none
  std::vector<const Type*> types, results;
  std::shared_ptr<const Quantised> quantised;

  bool tensor() const { return kind == Kind::kTensor; }
  bool static_shape() const;
};

// The text with '_' for control characters and for bytes beyond ASCII: names in a file need not be UTF-8.
std::string Printable(std::string_view text);
// "tensor<?x3xf32>", as StableHLO writes it.
std::string Text(const Type& type);
const char* Name(Element element);  // "f32", "ui8", ...
// Our element type, TW_FLOAT and so on. Throws Error (UNIMPLEMENTED) for those that we do not have.
uint32_t DtypeOf(Element element);
bool IsComplex(Element element);
bool IsFloat(Element element);     // real
bool IsSigned(Element element);    // signed integers
bool IsUnsigned(Element element);  // unsigned integers, not kBool

// ---- Attributes ----

struct Attribute;

// Elements of a constant, in the machine's order. A bool takes a byte of 0 or 1, an element of 2 or 4 bits a byte.
struct Elements {
  bool splat = false;  // `data` holds one element, which stands for all
  const void* data = nullptr;
  uint64_t bytes = 0;
  std::shared_ptr<const void> keep;  // what `data` lies in
};

struct Field {
  std::string_view name;
  const Attribute* value;
};

struct Attribute {
  enum class Kind : uint8_t {
    kUnit,
    kBool,        // integer: 0 or 1
    kInteger,     // integer, type
    kFloat,       // real, type
    kString,      // text
    kEnum,        // text: "EQ", "DEFAULT", ...
    kType,        // type
    kArray,       // array
    kDictionary,  // fields
    kSymbol,      // text: a function's name without @
    kElements,    // elements, type: a tensor
    kAlias,       // output_operand_alias: integer is the operand's index, `array` the two lists of tuple indices
    kOther,       // read and left out, such as a shard's position; text says what it is
  };
  Kind kind = Kind::kUnit;
  int64_t integer = 0;
  double real = 0;
  std::string_view text;  // lies in the file, in a literal or in Module::names: many attributes may share a long one
  const Type* type = nullptr;
  std::vector<const Attribute*> array;
  std::vector<Field> fields;  // in the order of the file
  Elements elements;
};

// The value of a field; NULL if there is none.
const Attribute* Find(const std::vector<Field>& fields, std::string_view name);

// ---- Operations ----

using Id = uint32_t;  // of a value within its function

struct Operation;

// What a region holds: every region of StableHLO has one block. The last operation is "stablehlo.return", also of a function.
struct Block {
  std::vector<Id> arguments;
  std::vector<Operation> operations;
};

struct Operation {
  std::string_view name;  // "stablehlo.add"; "func.call"
  std::vector<Id> operands, results;
  std::vector<Field> attributes;          // of its own
  const Attribute* dictionary = nullptr;  // further ones, which operations may share; NULL: none
  std::vector<Block> regions;             // an empty optional region has no operations
  std::string_view location;              // as shown in messages: "jit(f)/add"; empty: unknown
  uint64_t offset = 0;                    // of the operation's encoding in the module's bytes, for messages

  const Attribute* attribute(std::string_view attribute_name) const;  // NULL: absent
};

struct Function {
  std::string_view name;
  bool is_private = false;
  bool has_body = true;                     // false: declared only
  const Type* type = nullptr;               // from `types` to `results`; functions may share it
  std::vector<std::string> argument_names;  // from the locations of the arguments, as JAX writes them; "": none
  // Arrays of dictionaries, as many as arguments and results, which functions may share; NULL: none.
  const Attribute *argument_attributes = nullptr, *result_attributes = nullptr;
  std::vector<const Type*> values;  // the type of each Id
  Block body;

  const std::vector<const Type*>& arguments() const { return type->types; }
  const std::vector<const Type*>& results() const { return type->results; }
  // A dictionary, or NULL. Its fields are those of an attribute that is none: it has none.
  const Attribute* argument_attribute(size_t i) const { return argument_attributes ? argument_attributes->array[i] : nullptr; }
  const Attribute* result_attribute(size_t i) const { return result_attributes ? result_attributes->array[i] : nullptr; }
};

struct Module {
  std::string producer;  // of the bytecode: "StableHLO_v1.9.0"
  std::string version;   // of the portable dialect: "1.9.0"
  uint64_t format = 0;   // version of MLIR's bytecode
  std::vector<Function> functions;
  // What the pointers above point to.
  std::deque<Type> types;
  std::deque<Attribute> owned;
  std::deque<std::string> names;
  std::shared_ptr<const void> bytes;
  std::unordered_map<std::string_view, const Function*> named;

  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  const Function* find(std::string_view name) const;  // NULL: there is none
};

}  // namespace thalweg::stablehlo
