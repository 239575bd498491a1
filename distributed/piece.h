// PieceMessage: what a worker is to run of a signature, and the nodes that it has not been told of yet. Nodes stand in the order in which
// they can be added. Threads: values, no sharing.
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

// An extra attribute of a node that receives: the shape that its value has, as far as its sender's side knows.
inline constexpr const char* kReceivedShape = "_shape";

// A node by names.
struct PieceNode {
  std::string name, op, device, place;
  std::vector<std::string> inputs;    // "node", "node:1"
  std::vector<std::string> controls;  // "node"
  std::vector<std::string> colocate_with;
  std::map<std::string, std::string> attrs;        // serialised AttrValues, by name
  std::map<std::string, std::string> extra_attrs;  // likewise, which the op does not have
};

struct PieceLoop {  // input `input` of `merge` is, in all iterations but the first, what `next` gives
  std::string merge, next;
  int32_t input = 0;
};

struct PieceSource {
  std::string key, address, title;
  uint64_t incarnation = 0;
};

struct PieceSink {  // who gets a value without asking for it
  std::string key, address, title;
  uint64_t incarnation = 0;
  bool carried = false;  // it is in the process of the session's client: the answer to a run may bring it the value
};

struct PieceMessage {
  std::string library;  // a serialised FunctionDefLibrary of functions that are new; may be empty
  std::vector<PieceNode> nodes;
  std::vector<PieceLoop> loops;
  std::vector<std::pair<std::string, std::string>> extended;  // the second runs in the place of the first
  std::vector<std::string> feeds, fetches, targets;           // of the signature: "node:1", "node:1", "node"
  std::vector<PieceSource> sources;                           // of what it receives
  std::vector<std::string> over;  // nodes that an earlier part of the run has run; in the message only if there are some
  // In the message only if there are some of either:
  std::vector<PieceSink> sinks;     // of what it sends
  std::vector<std::string> pushed;  // keys of `sources` that are not asked for
  std::string Put() const;
  // meter: pays for the message while it lives; NULL: nobody.
  static StatusOr<PieceMessage> Get(std::string_view bytes, Meter* meter = nullptr);
};

// Adds the nodes. imported: they are not trusted. budget: pays, before they are made, for values and for what is read; kept: for what the
// graph keeps beside values; NULL, both: nobody. On failure the graph has some of them, and is of no use any more.
Status AddPiece(const PieceMessage& piece, bool imported, Graph* graph, MemoryBudget* budget = nullptr, Meter* kept = nullptr);

}  // namespace thalweg::distributed
