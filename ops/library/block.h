// Blocks: bodies of functions that are being written, and their properties for conditions and
// loops.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ops/library/build.h"
#include "thalweg/flow.h"
#include "thalweg/tensor.h"

// A body with its scope; once the scope is finished, only the body.
struct tw_block {
  ~tw_block();
  tw_graph* body = nullptr;
  tw_scope* scope = nullptr;
  std::vector<tw_output> arguments, results;

  // Only for blocks of tw_each_begin.
  struct Each {
    std::vector<tw_output> initial, states;  // outside; arguments of the block
    tw_output count = 0, index = 0;          // count: number of slices, outside; index: of the slice, in the block
    int64_t size = -1;                       // value of count, if known
    bool reverse = false;
  };
  std::unique_ptr<Each> each;
};

namespace thalweg::library {

// Makes the start of a message: "tw_cond (made at net.c:7): ".
std::string Where(tw_scope* scope, const char* function);
// Fails the scope with INVALID_ARGUMENT and a message that starts with Where.
void Refuse(tw_scope* scope, const char* function, const std::string& text);

// Values of graphs around, which all functions of one operation take behind their own arguments.
using Captured = std::vector<tw_output>;
// Finishes the scopes of the blocks and moves their failures to `scope`. Returns the values of
// graphs around that any block uses, each once. Fails the scope for a block that is NULL, repeated
// or of another graph.
Captured Finish(tw_scope* scope, const char* function, const std::vector<tw_block*>& blocks);
// Returns true if the block's scope has not failed; moves a failure to `scope`.
bool Holds(tw_scope* scope, tw_block* block);
// Returns true if an operation of the block keeps or changes state.
bool IsStateful(const tw_block& block);
// Makes a finished block a function of the scope's graph, with arguments for the captured values
// behind its own. `more`: results behind those of the block. Returns its name there; NULL after a
// failure.
const char* AddFunction(tw_scope* scope, const tw_block& block, const std::string& name, const Captured& captured,
                        const std::vector<tw_output>& more = {});
// Returns the values of a finished block that stand for values of graphs around.
std::vector<tw_output> Own(tw_scope* scope, const tw_block& block, const Captured& values);

}  // namespace thalweg::library
