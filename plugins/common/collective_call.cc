#include "collective_call.h"

#include <algorithm>
#include <iterator>
#include <new>

#include "fold.h"

namespace thalweg::common {
namespace {

constexpr const char* kOperations[] = {"nothing", "all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "permute"};

std::string Text(uint32_t operation, uint64_t count, uint32_t dtype) {
  return kOperations[std::min<size_t>(operation, std::size(kOperations) - 1)] + (" of " + std::to_string(count)) + " " +
         tw::dtype_text(dtype);
}

// FNV-1a. Members compare it instead of the sources, whose number has no limit.
uint32_t Checksum(const std::vector<uint32_t>& sources) {
  uint32_t sum = 2166136261;
  for (const uint32_t source : sources) {
    for (int shift = 0; shift < 32; shift += 8) sum = (sum ^ (source >> shift & 255)) * 16777619;
  }
  return sum;
}

// Returns what is wrong with the sources of a permutation; empty: nothing.
std::string WrongSources(const tw_collective_call& c, uint32_t members) {
  if (c.size < sizeof c || !c.sources || c.n_sources != members) {
    return std::to_string(c.size < sizeof c ? 0 : c.n_sources) + " sources for " + std::to_string(members) + " members";
  }
  for (uint32_t r = 0; r < members; ++r) {
    const uint32_t source = c.sources[r];
    if (source < members || source == kNobody) continue;
    return "the source of member " + std::to_string(r) + ", " + std::to_string(source) + ", is no member";
  }
  return "";
}

tw_status* Append(tw_sink* to, const void* bytes, uint64_t n) {
  static_cast<std::string*>(to->user)->append(static_cast<const char*>(bytes), n);
  return nullptr;
}

}  // namespace

void CheckConfig(const tw_group_config& c) {
  if (c.members == 0 || c.rank >= c.members) {
    Fail(TW_INVALID_ARGUMENT, "rank " + std::to_string(c.rank) + " is none of " + std::to_string(c.members) + " members");
  }
  if (c.native_len) Fail(TW_UNIMPLEMENTED, "works on host memory, not on queues of '" + std::string(c.native, c.native_len) + "'");
}

void Keep(const tw_host* host, const CollectiveCall& call) {
  if (!call.watcher) host->timeline->retain(call.line);
}

void Finish(const tw_host* host, const CollectiveCall& call, const Failed& how) noexcept {
  if (call.watcher) return call.watcher->Ended(how);
  const tw_timeline_api* t = host->timeline;
  if (how.code) t->fail(call.line, tw_fail(host, how.code, how.text.data(), how.text.size()));
  t->signal(call.line, call.value);
  t->release(call.line);
}

Failed CopyOf(const Failed& how) noexcept {
  Failed copy{how.code, ""};
  try {
    copy.text = how.text;
  } catch (const std::bad_alloc&) {  // the code alone says it
  }
  return copy;
}

Failed FailedOf(const tw_host* host, const tw_status* status) noexcept {
  Failed how{host->status->code(status), ""};
  tw_sink to = {TW_SIZED(tw_sink), &how.text, Append};
  try {
    if (tw_status* s = host->status->text(status, &to)) host->status->release(s);
  } catch (const std::bad_alloc&) {
    how.text.clear();
  }
  return how;
}

Failed Caught(const tw_host* host) noexcept {
  tw_status* s = tw::caught(host);
  Failed how = FailedOf(host, s);
  host->status->release(s);
  return how;
}

std::string TaskText(const Task& t) {
  std::string s = Text(t.operation, t.count, t.dtype);
  if (t.reduce) s += ", reduction " + std::to_string(t.reduce);
  if (Operation(t.operation) == Operation::kBroadcast) s += ", root " + std::to_string(t.root);
  if (Operation(t.operation) == Operation::kPermute) s += ", sources of checksum " + std::to_string(t.root);
  return s;
}

CollectiveCall CheckedCall(Operation operation, const tw_collective_call& c, uint32_t rank, uint32_t members) {
  const bool folds = operation == Operation::kAllReduce || operation == Operation::kReduceScatter;
  const bool parts = operation == Operation::kReduceScatter || operation == Operation::kAllToAll;
  const tw_view& main = operation == Operation::kBroadcast ? *c.out : *c.in;
  const bool reads = operation != Operation::kBroadcast || c.root == rank;
  CollectiveCall w;
  w.task.operation = uint32_t(operation);
  w.task.dtype = main.dtype;
  w.task.count = main.count;
  w.element = main.count ? main.bytes / main.count : 1;
  w.bytes = main.bytes;
  if (reads) w.in = static_cast<const char*>(c.in->data) + c.in->offset;
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
    if (reads && c.in->bytes != main.bytes) fail(TW_INVALID_ARGUMENT, "the root's input has " + std::to_string(c.in->bytes) + " bytes");
  }
  if (operation == Operation::kPermute) {
    if (const std::string wrong = WrongSources(c, members); !wrong.empty()) fail(TW_INVALID_ARGUMENT, wrong);
    w.sources.assign(c.sources, c.sources + members);
    w.task.root = Checksum(w.sources);
  }
  return w;
}

}  // namespace thalweg::common
