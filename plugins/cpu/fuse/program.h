// The steps that a fused set applies to a tile. Each node is a step over values. A value is in the
// memory of an input, in that of an output, or in a buffer of the tile.
// Threads: immutable once constructed.
#ifndef THALWEG_PLUGINS_CPU_FUSE_PROGRAM_H_
#define THALWEG_PLUGINS_CPU_FUSE_PROGRAM_H_

#include <memory>
#include <string>
#include <vector>

#include "fuse/chain.h"
#include "fuse/fit.h"

namespace thalweg::cpu {

// A kernel that the program calls, with the kernel's state.
class CalledKernel {
 public:
  CalledKernel(const tw_host* h, const Operation& op, const tw_part_node& n, void* device);
  ~CalledKernel();
  CalledKernel(const CalledKernel&) = delete;
  tw_status* (*execute() const)(const tw_frame* f) { return op_.def.execute; }
  void* state() const { return state_; }

 private:
  const tw_host* const h_;
  const Operation& op_;
  void* state_;
};

class Program {
 public:
  static constexpr uint32_t kMostNodes = 32, kMostValues = kMostNodes * (kMostInputs + 1);

  struct Value {
    enum Where : uint8_t { kInput, kOutput, kBuffer };
    Where where;
    Lie lie;
    uint32_t dtype;
    uint32_t bytes;  // size of an element
    uint32_t at;     // index of the input, output or buffer
  };
  // One operation of a chain.
  struct Linked {
    Link link;
    bool has_operand;
    uint32_t operand;  // index of a value
  };
  struct Step {
    Operation::Body body;
    Pattern pattern;
    const void* loops;
    const CalledKernel* called;
    bool inplace;               // the output may overwrite any input that has the same layout
    std::vector<uint32_t> in;   // indices of values
    uint32_t out;               // index of a value
    ChainLoop chain = nullptr;  // if set, runs all of `links` from in[0] on, instead of the body
    std::vector<Linked> links = {};
  };

  // The rows and columns of the domain, and their division into tiles.
  struct Tiling {
    int64_t rows = 1, columns = 1;            // of the domain
    int64_t tile_rows = 1, tile_columns = 1;  // of a tile; the last tile may be smaller
    int64_t tiles = 0, tiles_at_once = 1, tasks = 0;
    uint64_t buffer = 0, bytes = 0;  // size of one buffer of a tile, and of all buffers in use at a time
    int slots = 1;
  };

  // Errors: UNIMPLEMENTED for too many nodes, and if the shapes do not give the set one domain.
  Program(const tw_compile_call& c, const Catalogue& catalogue);
  Program(const Program&) = delete;

  // Returns the tiling for the shapes of `part`. Errors: UNIMPLEMENTED if other inputs are rows,
  // columns or single numbers with these shapes.
  Tiling TilingFor(const tw_part& part, const Catalogue& catalogue) const;
  // Returns the tiling for the shapes of a frame. REQUIRES: the program serves these shapes.
  Tiling TilingFor(const tw_frame& f) const;

  // Returns true if output `out` may overwrite input `in`: within a tile, no step reads the input
  // after the output is written.
  bool MayOverwrite(uint32_t out, uint32_t in) const;

  const std::vector<Value>& values() const { return values_; }
  const std::vector<Step>& steps() const { return steps_; }
  const tw_host* host() const { return &host_; }

 private:
  void JoinChains(const ChainTable& chains, const std::vector<const Operation*>& operations);
  void PlaceBuffers();
  Tiling Tile(int64_t rows, int64_t columns) const;

  std::vector<Value> values_;  // the inputs, then one per node
  std::vector<Step> steps_;
  std::vector<Fit> fits_;  // one per node
  std::vector<std::unique_ptr<CalledKernel>> called_;
  uint32_t n_buffers_ = 0, widest_ = 1;
  int64_t cost_ = 0;
  int32_t inner_ = 0;
  bool whole_rows_ = false;
  int most_slots_;
  tw_run_api run_;  // part of host_: keeps the loops of a tile on its thread
  tw_host host_;    // the host that called kernels see
};

// Runs the program as one kernel call of the runtime.
void RunProgram(const tw_frame* f, const Program& p);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_FUSE_PROGRAM_H_
