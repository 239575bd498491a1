// Collective operations: each is executed by all members of a group, which are sessions of several
// processes. The keys say which calls belong together. Schemas and shape rules.
#include "ops/common/shape.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

#define KEYS "group_size: int32, group_key: int32, instance_key: int32"
#define TOKENS "ordering_token: resource * Nordering_token"
#define HOW "communication_hint: string = \"auto\"; timeout_seconds: float = 0"
#define REDUCED "merge_op: {\"Min\", \"Max\", \"Mul\", \"Add\"}; final_op: {\"Id\", \"Div\"}"
#define ORDER "is_stateless: bool = false; Nordering_token: int >= 0 = 0; unopened ordering_token"
#define SUMMED "{bfloat16, half, float, double, int32, int64}"
#define ALONE "stateful; touches network; no_gradient \"moves values between programs, whose gradients have no graph in common\""

constexpr const char* kKeys[] = {"group_size", "group_key", "instance_key"};

// Checks the keys, which begin at input `first`. Returns the number of members if it is known.
std::optional<int64_t> Members(const tw::Shape& s, uint32_t first) {
  for (uint32_t i = 0; i < 3; ++i) WantScalar(s, first + i, kKeys[i]);
  const std::optional<int64_t> members = ScalarValue(s, first, kKeys[0]);
  if (members && *members < 1) Fail("group_size is " + std::to_string(*members) + "; a group has at least one member");
  return members;
}

void SameAsInput(const tw::Shape& s) {
  Members(s, 1);
  Set(s, 0, In(s, 0));
}

void ReceivedShape(const tw::Shape& s) {
  Members(s, 0);
  WantVector(s, 3, "shape");
  Set(s, 0, ShapeValue(s, 3, "shape"));
}

// The first axis grows or shrinks by the number of members.
MaybeDims RowsOfGroup(const tw::Shape& s, const char* what) {
  WantRankAtLeast(s, 0, 1, "input");
  MaybeDims dims = In(s, 0);
  if (dims && dims->empty()) Fail(std::string(what) + " needs a first axis, and input is a scalar");
  return dims;
}

void GatheredShape(const tw::Shape& s) {
  const std::optional<int64_t> members = Members(s, 1);
  MaybeDims dims = RowsOfGroup(s, "gathering");
  if (dims) (*dims)[0] = members ? s.calc('*', (*dims)[0], *members) : -1;
  Set(s, 0, dims);
}

void CheckRows(const MaybeDims& dims, const std::optional<int64_t>& members) {
  if (!dims || !members || !Known((*dims)[0]) || (*dims)[0] % *members == 0) return;
  Fail("the first axis of input, " + std::to_string((*dims)[0]) + ", must be divisible by group_size, " + std::to_string(*members));
}

void ScatteredShape(const tw::Shape& s) {
  const std::optional<int64_t> members = Members(s, 1);
  MaybeDims dims = RowsOfGroup(s, "scattering");
  CheckRows(dims, members);
  if (dims) (*dims)[0] = members && Known((*dims)[0]) ? (*dims)[0] / *members : -1;
  Set(s, 0, dims);
}

void ExchangedShape(const tw::Shape& s) {
  const std::optional<int64_t> members = Members(s, 1);
  const MaybeDims dims = RowsOfGroup(s, "an exchange");
  CheckRows(dims, members);
  Set(s, 0, dims);
}

void PermutedShape(const tw::Shape& s) {
  WantRank(s, 1, 2, "source_target_pairs");
  if (s.known(1) && Known(s.dim(1, 1)) && s.dim(1, 1) != 2) {
    Fail("source_target_pairs has " + std::to_string(s.dim(1, 1)) + " columns; it must have 2, source and target");
  }
  Set(s, 0, In(s, 0));
}

}  // namespace

void register_collectives(tw::Plugin& p) {
  p.op<nullptr, SameAsInput>("CollectiveReduceV2(input: T, " KEYS ", " TOKENS ") -> (data: T); T: " SUMMED "; " REDUCED "; " HOW "; " ORDER
                             "; max_subdivs_per_device: int = -1; " ALONE "; doc \"reduces values over the members of a group\"");
  p.op<nullptr, ScatteredShape>("CollectiveReduceScatterV2(input: T, " KEYS ", " TOKENS ") -> (data: T); T: " SUMMED "; " REDUCED "; " HOW
                                "; " ORDER "; max_subdivs_per_device: int = -1; " ALONE
                                "; doc \"reduces values over the members of a group, and gives each its part\"");
  p.op<nullptr, GatheredShape>("CollectiveGatherV2(input: T, " KEYS ", " TOKENS
                               ") -> (data: T); T: {float, half, double, int32, int64}; " HOW "; " ORDER "; " ALONE
                               "; doc \"joins the values of the members of a group\"");
  p.op<nullptr, ExchangedShape>("CollectiveAllToAllV2(input: T, " KEYS ", " TOKENS ") -> (data: T); T: " SUMMED "; " HOW "; " ORDER
                                "; " ALONE "; doc \"exchanges parts of values between the members of a group\"");
  p.op<nullptr, SameAsInput>("CollectiveBcastSendV2(input: T, " KEYS ") -> (data: T); T: {bool, float, half, double, int32, int64}; " HOW
                             "; " ALONE "; doc \"sends a value to the other members of a group\"");
  p.op<nullptr, ReceivedShape>("CollectiveBcastRecvV2(" KEYS
                               ", shape: Tshape) -> (data: T); T: {bool, float, half, double, int32, int64}; "
                               "Tshape: {int32, int64} = int32; " HOW "; " ALONE "; doc \"receives the value of the member that sends\"");
  p.op<nullptr, PermutedShape>("CollectivePermute(input: T, source_target_pairs: int32) -> (output: T); T: " OPS_NUMBERS "; " ALONE
                               "; doc \"sends a value to one other member, and receives that of one\"");
}

}  // namespace thalweg::ops
