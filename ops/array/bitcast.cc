// Bitcast reinterprets the bits of a tensor as elements of another type.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

int64_t BytesOf(uint32_t type) {
  switch (type) {
    case TW_COMPLEX128: return 16;
    case TW_DOUBLE:
    case TW_INT64:
    case TW_UINT64:
    case TW_COMPLEX64: return 8;
    case TW_FLOAT:
    case TW_INT32:
    case TW_UINT32:
    case TW_QINT32: return 4;
    case TW_BFLOAT16:
    case TW_HALF:
    case TW_INT16:
    case TW_UINT16:
    case TW_QINT16:
    case TW_QUINT16: return 2;
    default: return 1;
  }
}

// Smaller elements add a new last axis; larger ones consume the last axis.
void Rule(const tw::Shape& s) {
  MaybeDims dims = In(s, 0);
  const int64_t from = BytesOf(s.type_in(0)), to = BytesOf(s.type_out(0));
  if (dims && to < from) dims->push_back(from / to);
  if (dims && to > from) {
    if (dims->empty() || (Known(dims->back()) && dims->back() != to / from))
      Fail("an input of " + TypeName(s.type_in(0)) + " needs a last axis of size " + tw::text(to / from) + " to become " +
           TypeName(s.type_out(0)) + ", but has shape " + Text(dims));
    dims->pop_back();
  }
  Set(s, 0, dims);
}

}  // namespace

#define BITCAST_TYPES                                                                                                                \
  "{bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, int16, complex64, complex128, qint8, quint8, " \
  "qint16, quint16, qint32}"

void register_bitcast(tw::Plugin& p) {
  p.op<nullptr, Rule>("Bitcast(input: T) -> (output: type); T: " BITCAST_TYPES "; type: " BITCAST_TYPES
                      "; no_gradient \"bits have no derivative\"; "
                      "?data input; doc \"the same bits as elements of another type; a last axis comes or goes where the sizes differ\"");
}

}  // namespace thalweg::ops
