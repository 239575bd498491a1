// PieceMessage: the part of a signature that a worker runs, and the nodes that it has not been told
// of yet, in an order in which they can be added. Threads: values, no sharing.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "distributed/cluster.h"
#include "distributed/meter.h"
#include "framework/base/status.h"
#include "framework/graph/graph.h"

namespace thalweg::distributed {

// An extra attribute of a receiving node: the shape of its value, as far as the sender's side knows
// it.
inline constexpr const char* kReceivedShape = "_shape";

// A node described by names.
struct PieceNode {
  std::string name, op, device, place;
  std::vector<std::string> inputs;    // "node", "node:1"
  std::vector<std::string> controls;  // "node"
  std::vector<std::string> colocate_with;
  std::map<std::string, std::string> attrs;        // serialised AttrValues, by name
  std::map<std::string, std::string> extra_attrs;  // likewise, for attributes that the op does not have
};

struct PieceLoop {  // in all iterations but the first, input `input` of `merge` is the output of `next`
  std::string merge, next;
  int32_t input = 0;
};

struct PieceSource {
  std::string key, address, title;
  uint64_t incarnation = 0;
};

struct PieceSink {  // a task that gets a value without a request
  std::string key, address, title;
  uint64_t incarnation = 0;
  bool carried = false;  // it is in the process of the session's client: the answer to a run may carry the value there
};

struct PieceMessage {
  std::string library;  // a serialised FunctionDefLibrary of new functions; may be empty
  std::vector<PieceNode> nodes;
  std::vector<PieceLoop> loops;
  std::vector<std::pair<std::string, std::string>> extended;  // the second runs in place of the first
  std::vector<std::string> feeds, fetches, targets;           // of the signature: "node:1", "node:1", "node"
  std::vector<PieceSource> sources;                           // of the values that it receives
  std::vector<std::string> over;  // nodes that an earlier part of the run has run; in the message only if there are any
  // In the message only if there are any of the two:
  std::vector<PieceSink> sinks;     // of the values that it sends
  std::vector<std::string> pushed;  // keys of `sources` that are not requested
  std::string Put() const;
  // meter: pays for the message while it lives; NULL for no charge.
  static StatusOr<PieceMessage> Get(std::string_view bytes, Meter* meter = nullptr);
};

// Adds the nodes. imported: the nodes are not trusted. budget: pays in advance for values and for
// parsing; kept: pays for what the graph keeps beside values; NULL for no charge, both. On failure
// the graph has some of the nodes, and must not be used any more.
Status AddPiece(const PieceMessage& piece, bool imported, Graph* graph, MemoryBudget* budget = nullptr, Meter* kept = nullptr);

}  // namespace thalweg::distributed
