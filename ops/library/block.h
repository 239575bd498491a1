// Blocks: bodies of functions that are being written, and what conditions and loops need to know of them.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ops/library/build.h"
#include "thalweg/flow.h"
#include "thalweg/tensor.h"

// A body with its scope, or, once its scope was finished, only the body.
struct tw_block {
  ~tw_block();
  tw_graph* body = nullptr;
  tw_scope* scope = nullptr;
  std::vector<tw_output> arguments, results;

  // Of tw_each_begin only.
  struct Each {
    std::vector<tw_output> initial, states;  // outside; arguments of the block
    tw_output count = 0, index = 0;          // how many slices, outside; which it is
    int64_t size = -1;                       // of count, where it is known
    bool reverse = false;
  };
  std::unique_ptr<Each> each;
};

namespace thalweg::library {

// "tw_cond (made at net.c:7): ", as messages begin.
std::string Where(tw_scope* scope, const char* function);
// Fails the scope with INVALID_ARGUMENT and such a message.
void Refuse(tw_scope* scope, const char* function, const std::string& text);

// Values from around, which all functions of one operation take behind their own arguments.
using Captured = std::vector<tw_output>;
// Finishes the scopes of the blocks, whose failures become those of `scope`, and answers what any of them uses from around, each once.
// Fails the scope for a block that is NULL, stands twice or is of another graph.
Captured Finish(tw_scope* scope, const char* function, const std::vector<tw_block*>& blocks);
// Whether the block's scope is good; what it failed with becomes the failure of `scope`.
bool Holds(tw_scope* scope, tw_block* block);
// Whether an operation of the block keeps or changes something.
bool IsStateful(const tw_block& block);
// Makes a finished block a function of the scope's graph, with arguments for the captured values behind its own. `more`: results behind
// those of the block. Answers its name there; NULL after a failure.
const char* AddFunction(tw_scope* scope, const tw_block& block, const std::string& name, const Captured& captured,
                        const std::vector<tw_output>& more = {});
// What stands in a finished block for values from around.
std::vector<tw_output> Own(tw_scope* scope, const tw_block& block, const Captured& values);

}  // namespace thalweg::library
