// Uses of ops, read from bytes: attributes in the order of the op's schema, then inputs. Any bytes
// give a use; zeros follow their end. The encoding:
//   use      4 bytes: the op of this hash, or the next one; each attribute; each input
//   number   < 208: that, less 16; 255: eight bytes; else one of kEdges
//   text     < 128: one of kTexts; else so many bytes more than 128
//   type     of an attribute that gives types: index of an allowed one, + 64: inferred from the inputs, + 128: any type, allowed or not
//   types    number of them (the low 3 bits), + 8: inferred from the inputs; an index each
//   count    inputs of a list (the low 4 bits), + 16: inferred from the inputs, + 32: a number follows that replaces it
//   other attributes   0: omitted; else the value: number, real, text, a byte, or, for lists, a size and values;
//            lists of shapes: < 128: a size, the number of shapes of unknown rank; else a rank and sizes for each
//   input    of handles and references: a State; of variants: a Making (the low 2 bits), + 4: the list knows the shape of its elements,
//            + 8: of another type; of values 0, or 1 + another type than the attributes give; then a tensor
//   tensor   the known facts (Known); rank; dims; number of elements that follow, which repeat; elements
//   real     < 224: less 112, in eighths; else one of kRealEdges
// `make_op_corpus.py` writes these.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tests/fuzz/handles.h"
#include "tests/fuzz/op/op_schema.h"

namespace thalweg::fuzz {

struct AttrValue {
  const AttrSchema* schema = nullptr;
  std::vector<int64_t> numbers;  // also for bools, and dims of a shape
  std::vector<double> reals;
  std::vector<std::string> texts;
  std::vector<uint32_t> types;
  std::vector<std::vector<int64_t>> shapes;  // of a list
  Tensor tensor;
  bool unknown = false;  // a shape of unknown rank, or a list of them
};

// The defect of a handle.
enum class State : uint8_t { kSound, kUninitialised, kOtherType, kSameAsBefore, kDestroyed, kOfAnotherRuntime, kNotFed, kCount };

// How a list is made: from the tensor's rows, without elements, with unset elements, or two lists
// in a vector. A dataset or an optional is made of the tensor, or as two in a vector.
enum class Making : uint8_t { kRows, kEmpty, kReserved, kTwo, kCount };

struct Input {
  const Argument* argument = nullptr;
  Tensor value;  // of a handle: the content of its variable or queue etc.; of a list: the source of its elements
  State state = State::kSound;
  bool is_list = false, knows_shape = false;
  Making making = Making::kRows;
  uint8_t known = 0;  // 1: its rank; 2, 4, ...: one size each; 64: no other reader; 128: it is constant
  bool IsHandle() const { return argument->dtype == TW_RESOURCE || argument->is_ref; }
};

struct Use {
  const OpSchema* op = nullptr;
  std::vector<AttrValue> attrs;  // the given ones
  std::vector<Input> inputs;
  bool plain = true;  // no number is special, so results of other kernels may be compared
};

// taken: the number of bytes that the use consumed.
Use ReadUse(const std::vector<OpSchema>& ops, const uint8_t* data, size_t size, size_t* taken);

// Formats a use for people: `Add(x: float[2, 3], ...) {attributes}`.
std::string Shown(const Use& use);

}  // namespace thalweg::fuzz
