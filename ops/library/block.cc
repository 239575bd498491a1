// Begins blocks, finishes their scopes and makes functions of them.
#include "ops/library/block.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "thalweg/function.h"

using namespace thalweg::library;

tw_block::~tw_block() {
  tw_status_release(scope ? tw_scope_finish(scope) : nullptr);
  tw_graph_destroy(body);
}

namespace thalweg::library {

std::string Where(tw_scope* scope, const char* function) {
  const std::string place = tw_scope_place(scope);
  return function + (place.empty() ? "" : " (made at " + place + ")") + ": ";
}

void Refuse(tw_scope* scope, const char* function, const std::string& text) {
  Fail(scope, TW_INVALID_ARGUMENT, Where(scope, function) + text);
}

Captured Finish(tw_scope* scope, const char* function, const std::vector<tw_block*>& blocks) {
  for (size_t i = 0; i < blocks.size() && Good(scope); ++i) {
    if (!blocks[i]) Refuse(scope, function, "block " + std::to_string(i) + " is NULL");
    if (std::count(blocks.begin(), blocks.end(), blocks[i]) > 1) Refuse(scope, function, "block " + std::to_string(i) + " is given twice");
  }
  Captured captured;
  for (tw_block* block : blocks) {
    if (!Good(scope)) break;
    tw_scope_fail(scope, tw_scope_finish(std::exchange(block->scope, nullptr)));
    for (uint32_t i = 0; i < tw_graph_captured_count(block->body) && Good(scope); ++i) {
      tw_output value = 0;
      tw_scope_fail(scope, tw_graph_captured(block->body, i, &value, nullptr));
      if (std::find(captured.begin(), captured.end(), value) == captured.end()) captured.push_back(value);
    }
  }
  return captured;
}

bool Holds(tw_scope* scope, tw_block* block) {
  if (tw_scope_code(block->scope) != TW_OK) tw_scope_fail(scope, tw_scope_finish(std::exchange(block->scope, nullptr)));
  return Good(scope);
}

bool IsStateful(const tw_block& block) {
  for (uint32_t i = 0; i < tw_graph_count(block.body); ++i) {
    if (tw_operation_is_stateful(tw_graph_operation(block.body, i))) return true;
  }
  return false;
}

std::vector<tw_output> Own(tw_scope* scope, const tw_block& block, const Captured& values) {
  std::vector<tw_output> own;
  for (const tw_output value : values) {
    tw_output made = 0;
    if (Good(scope)) tw_scope_fail(scope, tw_graph_own(block.body, value, &made));
    own.push_back(made);
  }
  return own;
}

const char* AddFunction(tw_scope* scope, const tw_block& block, const std::string& name, const Captured& captured,
                        const std::vector<tw_output>& more) {
  std::vector<tw_output> args = block.arguments, results = block.results;
  const std::vector<tw_output> own = Own(scope, block, captured);
  args.insert(args.end(), own.begin(), own.end());
  results.insert(results.end(), more.begin(), more.end());
  std::vector<const tw_operation*> effects;
  for (uint32_t i = 0; i < tw_graph_count(block.body); ++i) {
    const tw_operation* operation = tw_graph_operation(block.body, i);
    if (tw_operation_output_count(operation) == 0 && std::strcmp(tw_operation_type(operation), "NoOp") != 0) effects.push_back(operation);
  }
  if (!Good(scope)) return nullptr;
  const tw_function_spec spec = {sizeof(spec),
                                 0,
                                 name.c_str(),
                                 args.data(),
                                 results.data(),
                                 effects.data(),
                                 uint32_t(args.size()),
                                 uint32_t(results.size()),
                                 uint32_t(effects.size()),
                                 1};
  const char* made = nullptr;
  tw_scope_fail(scope, tw_graph_add_function(tw_scope_graph(scope), block.body, &spec, &made));
  return Good(scope) ? made : nullptr;
}

}  // namespace thalweg::library

tw_block* tw_block_begin(tw_scope* around) {
  return Protect(around, [&]() -> tw_block* {
    tw_graph* graph = tw_scope_graph(around);
    if (!graph) return nullptr;
    auto block = std::make_unique<tw_block>();
    tw_scope_fail(around, tw_graph_open_body(graph, &block->body));
    if (!Good(around)) return nullptr;
    block->scope = tw_scope_create(block->body, nullptr);
    tw_scope_set_place(block->scope, tw_scope_place(around));
    return Holds(around, block.get()) ? block.release() : nullptr;
  });
}

void tw_block_destroy(tw_block* block) { delete block; }

tw_scope* tw_block_scope(tw_block* block) { return block ? block->scope : nullptr; }

tw_output tw_block_argument(tw_block* block, uint32_t dtype, const int64_t* dims, int32_t rank) {
  if (!block) return 0;
  return Protect(block->scope, [&]() -> tw_output {
    const tw_output made = tw_scope_placeholder(block->scope, nullptr, dtype, dims, rank);
    if (made) block->arguments.push_back(made);
    return made;
  });
}

void tw_block_arguments(tw_block* block, const tw_output* values, uint32_t n, const tw_shape* shapes, tw_output* out_arguments) {
  if (out_arguments) std::fill(out_arguments, out_arguments + n, 0);
  if (!block) return;
  Protect(block->scope, [&] {
    if (n > 0 && (!values || !out_arguments)) Refuse(block->scope, "tw_block_arguments", "values or out_arguments is NULL");
    for (uint32_t i = 0; i < n && Good(block->scope); ++i) {
      const tw_shape* shape = shapes ? &shapes[i] : nullptr;
      tw_scope_fail(block->scope, tw_graph_add_argument(block->body, values[i], shape, &out_arguments[i]));
      if (Good(block->scope)) block->arguments.push_back(out_arguments[i]);
    }
    return 0;
  });
}

void tw_block_give(tw_block* block, const tw_output* results, uint32_t n) {
  if (!block) return;
  Protect(block->scope, [&] {
    if (n > 0 && !results) Refuse(block->scope, "tw_block_give", "results is NULL");
    for (uint32_t i = 0; i < n && Good(block->scope); ++i) {
      tw_output own = 0;
      tw_scope_fail(block->scope, tw_graph_own(block->body, results[i], &own));
      block->results.push_back(own);
    }
    return 0;
  });
}

const char* tw_block_define(tw_scope* scope, tw_block* block, const char* name) {
  const std::unique_ptr<tw_block> taken(block);
  return Protect(scope, [&]() -> const char* {
    const Captured captured = Finish(scope, "tw_block_define", {block});
    if (Good(scope) && !name) Refuse(scope, "tw_block_define", "name is NULL");
    if (Good(scope) && !captured.empty()) {
      const tw_operation* maker = nullptr;
      tw_scope_fail(scope, tw_graph_producer(tw_scope_graph(scope), captured[0], &maker, nullptr));
      Fail(scope, TW_INVALID_ARGUMENT,
           Where(scope, "tw_block_define") + "function '" + name + "' uses '" + tw_operation_name(maker) +
               "', which is outside of it; give it as an argument");
    }
    return Good(scope) ? AddFunction(scope, *block, name, captured) : nullptr;
  });
}
