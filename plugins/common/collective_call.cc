#include "collective_call.h"

#include <algorithm>
#include <iterator>

#include "fold.h"

namespace thalweg::common {
namespace {

constexpr const char* kOperations[] = {"nothing", "all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all"};

std::string Text(uint32_t operation, uint64_t count, uint32_t dtype) {
  return kOperations[std::min<size_t>(operation, std::size(kOperations) - 1)] + (" of " + std::to_string(count)) + " " +
         tw::dtype_text(dtype);
}

}  // namespace

std::string TaskText(const Task& t) {
  std::string s = Text(t.operation, t.count, t.dtype);
  if (t.reduce) s += ", reduction " + std::to_string(t.reduce);
  if (Operation(t.operation) == Operation::kBroadcast) s += ", root " + std::to_string(t.root);
  return s;
}

CollectiveCall CheckedCall(Operation operation, const tw_collective_call& c, uint32_t rank, uint32_t members) {
  const bool folds = operation == Operation::kAllReduce || operation == Operation::kReduceScatter;
  const bool parts = operation == Operation::kReduceScatter || operation == Operation::kAllToAll;
  const tw_view& main = operation == Operation::kBroadcast ? *c.out : *c.in;
  CollectiveCall w = {};
  w.task.operation = uint32_t(operation);
  w.task.dtype = main.dtype;
  w.task.count = main.count;
  w.element = main.count ? main.bytes / main.count : 1;
  w.bytes = main.bytes;
  w.in = static_cast<const char*>(c.in->data) + c.in->offset;
  w.out = static_cast<char*>(c.out->data) + c.out->offset;
  w.line = c.line;
  w.value = c.value;
  const auto fail = [&](uint32_t code, const std::string& why) {
    throw tw::Error{code, Text(uint32_t(operation), main.count, main.dtype) + ": " + why};
  };
  if (main.dtype == TW_STRING || main.dtype == TW_RESOURCE || main.dtype == TW_VARIANT) fail(TW_UNIMPLEMENTED, "only numbers can be sent");
  if (folds) {
    w.task.reduce = c.reduce;
    if (!CanFold(main.dtype, c.reduce)) fail(TW_UNIMPLEMENTED, "no reduction " + std::to_string(c.reduce) + " for this type");
  }
  if (parts && main.count % members) fail(TW_INVALID_ARGUMENT, "not divisible by " + std::to_string(members) + " members");
  const uint64_t result = operation == Operation::kAllGather       ? main.bytes * members
                          : operation == Operation::kReduceScatter ? main.bytes / members
                                                                   : main.bytes;
  if (c.out->bytes != result || c.out->dtype != main.dtype) {
    fail(TW_INVALID_ARGUMENT, "the output has " + std::to_string(c.out->bytes) + " bytes, not " + std::to_string(result));
  }
  if (operation == Operation::kBroadcast) {
    w.task.root = c.root;
    if (c.root >= members) fail(TW_INVALID_ARGUMENT, "root " + std::to_string(c.root) + " is no member");
    if (c.root == rank && c.in->bytes != main.bytes)
      fail(TW_INVALID_ARGUMENT, "the root's input has " + std::to_string(c.in->bytes) + " bytes");
  }
  return w;
}

}  // namespace thalweg::common
