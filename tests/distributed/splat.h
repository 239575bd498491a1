// Splat: a constant of many equal floats; its message contains the value once.
#pragma once
#include <cstdint>
#include <string>

#include "distributed/piece.h"
#include "framework/graph/attr_proto.h"
#include "framework/proto/wire.h"

namespace thalweg::distributed {

inline PieceNode Splat(const std::string& name, uint64_t count) {
  std::string dim, shape, tensor, value;
  PutVarintField(1, count, &dim);
  PutBytesField(2, dim, &shape);
  PutVarintField(1, TW_FLOAT, &tensor);
  PutBytesField(2, shape, &tensor);
  PutBytesField(5, std::string("\0\0\x80\x3f", 4), &tensor);
  PutBytesField(8, tensor, &value);
  return {name, "Const", "", "", {}, {}, {}, {{"dtype", *SerializeAttr(AttrValue::Type(TW_FLOAT))}, {"value", value}}, {}};
}

}  // namespace thalweg::distributed
