// Blocks that run for each slice: loops over lists of slices, which collect the results of the
// block in further lists.
#include <algorithm>
#include <string>

#include "ops/library/block.h"
#include "thalweg/op.h"

using namespace thalweg::library;

namespace {

// Returns the sizes of a shape, from axis `from` on, as an int32 vector; -1 for unknown ones.
tw_output Sizes(tw_scope* scope, const tw_shape& shape, int32_t from) {
  if (shape.rank < 0) return tw_scope_scalar(scope, TW_INT32, -1);
  std::vector<int32_t> sizes;
  for (int32_t i = from; i < shape.rank; ++i) sizes.push_back(int32_t(std::clamp<int64_t>(shape.dims[i], -1, INT32_MAX)));
  return tw_scope_ints(scope, sizes.data(), uint32_t(sizes.size()));
}

// Returns the number of slices of a value.
tw_output FirstSize(tw_scope* scope, tw_output value, const tw_shape& shape) {
  if (shape.rank > 0 && shape.dims[0] >= 0 && shape.dims[0] <= INT32_MAX) return tw_scope_scalar(scope, TW_INT32, double(shape.dims[0]));
  const int32_t zero = 0, one = 1;
  const tw_output size =
      tw_scope_op3(scope, "Slice", tw_scope_op1(scope, "Shape", value), tw_scope_ints(scope, &zero, 1), tw_scope_ints(scope, &one, 1));
  return tw_scope_op2(scope, "Reshape", size, tw_scope_ints(scope, nullptr, 0));
}

tw_output ListOp(tw_scope* scope, const char* type, std::initializer_list<tw_output> inputs, uint32_t dtype) {
  OpenOp op(scope, type);
  for (const tw_output input : inputs) tw_op_add_input(op, input);
  tw_op_set_type(op, "element_dtype", dtype);
  return op.End();
}

// Checks that the known first sizes agree.
void CheckSlices(tw_scope* scope, const std::vector<ValueInfo>& elems) {
  const tw_shape* known = nullptr;
  for (size_t i = 0; i < elems.size() && Good(scope); ++i) {
    const tw_shape& shape = elems[i].shape;
    if (shape.rank == 0) Refuse(scope, "tw_each_begin", "elems[" + std::to_string(i) + "] is a scalar, which has no slices");
    if (shape.rank <= 0 || shape.dims[0] < 0) continue;
    if (known && known->dims[0] != shape.dims[0])
      Refuse(scope, "tw_each_begin",
             "elems[" + std::to_string(i) + "] has shape " + ShapeText(shape) + ", but one before it " + ShapeText(*known) +
                 "; their first sizes must be the same");
    known = &shape;
  }
}

// The loop around a block: its condition, its counter, and lists of results.
class EachLoop {
 public:
  EachLoop(tw_scope* scope, std::unique_ptr<tw_block> block) : scope_(scope), block_(std::move(block)), each_(*block_->each) {}

  void Add(const char* name, const tw_output* states, const tw_output* results, uint32_t n_results, tw_output* out_states,
           tw_output* out_results) {
    if (!Holds(scope_, block_.get())) return;
    const auto n_states = uint32_t(each_.initial.size());
    for (uint32_t i = 0; i < n_states && Good(scope_); ++i) CheckState(i, states[i]);
    first_ = {tw_scope_scalar(scope_, TW_INT32, 0)};
    first_.insert(first_.end(), each_.initial.begin(), each_.initial.end());
    std::vector<tw_output> next = {tw_scope_op2(block_->scope, "AddV2", block_->arguments[0], tw_scope_scalar(block_->scope, TW_INT32, 1))};
    next.insert(next.end(), states, states + n_states);
    for (uint32_t i = 0; i < n_results && Good(scope_); ++i) next.push_back(Gather(results[i]));
    tw_block_give(block_.get(), next.data(), uint32_t(next.size()));
    tw_while_options options;
    tw_while_options_init(&options);
    options.name = name;
    std::vector<tw_output> last(first_.size());
    std::unique_ptr<tw_block> cond = Condition();
    tw_while_loop(scope_, cond.release(), block_.release(), first_.data(), uint32_t(first_.size()), &options, last.data());
    for (uint32_t i = 0; i < n_states && out_states && Good(scope_); ++i) out_states[i] = last[1 + i];
    for (uint32_t i = 0; i < n_results && Good(scope_); ++i) Stack(i, last[1 + n_states + i], &out_results[i]);
  }

 private:
  struct Result {
    uint32_t dtype;
    std::vector<int64_t> dims;
    int32_t rank;
    tw_shape shape() const { return {dims.data(), rank, 0}; }
  };

  void CheckState(uint32_t i, tw_output state) {
    const ValueInfo kept = Describe(block_->scope, block_->body, each_.states[i]), next = Describe(block_->scope, block_->body, state);
    if (tw_scope_code(block_->scope) != TW_OK || (next.dtype == kept.dtype && Fits(next.shape, kept.shape))) return;
    const tw_operation* maker = nullptr;
    tw_status_release(tw_graph_producer(tw_scope_graph(scope_), each_.initial[i], &maker, nullptr));
    Refuse(scope_, "tw_each_end",
           "state " + std::to_string(i) + " ('" + tw_operation_name(maker) + "') is " + tw_dtype_name(kept.dtype) + " " +
               ShapeText(kept.shape) + " at first, but the block makes it " + tw_dtype_name(next.dtype) + " " + ShapeText(next.shape));
  }

  // Makes the list of a result a loop variable; returns the list with the result of this slice.
  tw_output Gather(tw_output result) {
    const ValueInfo info = Describe(block_->scope, block_->body, result);
    if (tw_scope_code(block_->scope) != TW_OK) return 0;
    results_.push_back({info.dtype, {info.shape.dims, info.shape.dims + std::max(info.shape.rank, 0)}, info.shape.rank});
    first_.push_back(ListOp(scope_, "TensorListReserve", {Sizes(scope_, info.shape, 0), each_.count}, info.dtype));
    tw_output list = 0;
    tw_block_arguments(block_.get(), &first_.back(), 1, nullptr, &list);
    return ListOp(block_->scope, "TensorListSetItem", {list, each_.index, result}, info.dtype);
  }

  std::unique_ptr<tw_block> Condition() {
    std::unique_ptr<tw_block> cond(tw_block_begin(scope_));
    std::vector<tw_output> at(first_.size());
    tw_block_arguments(cond.get(), first_.data(), uint32_t(first_.size()), nullptr, at.data());
    const tw_output more = tw_scope_op2(tw_block_scope(cond.get()), "Less", at[0], each_.count);
    tw_block_give(cond.get(), &more, 1);
    return cond;
  }

  void Stack(uint32_t i, tw_output list, tw_output* out) {
    const tw_output sizes = Sizes(scope_, results_[i].shape(), 0);
    OpenOp op(scope_, "TensorListStack");
    tw_op_add_input(op, list);
    tw_op_add_input(op, sizes);
    tw_op_set_type(op, "element_dtype", results_[i].dtype);
    tw_op_set_int(op, "num_elements", size_);
    *out = op.End();
  }

  tw_scope* scope_;
  std::unique_ptr<tw_block> block_;
  tw_block::Each& each_;
  const int64_t size_ = each_.size;  // used after the block is gone
  std::vector<tw_output> first_;
  std::vector<Result> results_;
};

}  // namespace

tw_block* tw_each_begin(tw_scope* scope, const tw_output* elems, uint32_t n_elems, const tw_output* initial, uint32_t n_states,
                        uint32_t reverse, tw_output* out_slices, tw_output* out_states) {
  return Protect(scope, [&]() -> tw_block* {
    const std::vector<tw_output> values(elems, elems + (elems ? n_elems : 0)), first(initial, initial + (initial ? n_states : 0));
    if (out_slices) std::fill(out_slices, out_slices + n_elems, 0);  // out_slices may be elems
    if (out_states) std::fill(out_states, out_states + n_states, 0);
    if (!elems || n_elems == 0 || !out_slices)
      Refuse(scope, "tw_each_begin", elems && n_elems > 0 ? "out_slices is NULL" : "there are no elems");
    if (n_states > 0 && (!initial || !out_states)) Refuse(scope, "tw_each_begin", "initial or out_states is NULL");
    std::vector<ValueInfo> infos;
    for (uint32_t i = 0; i < n_elems && Good(scope); ++i) infos.push_back(Describe(scope, values[i]));
    CheckSlices(scope, infos);
    std::unique_ptr<tw_block> block(tw_block_begin(scope));
    if (!block) return nullptr;
    block->each = std::make_unique<tw_block::Each>();
    tw_block::Each& each = *block->each;
    each.initial = first;
    each.reverse = reverse != 0;
    if (infos[0].shape.rank > 0) each.size = std::max<int64_t>(infos[0].shape.dims[0], -1);
    each.count = FirstSize(scope, values[0], infos[0].shape);
    tw_scope* in = block->scope;
    const tw_output number = tw_block_argument(block.get(), TW_INT32, nullptr, 0);
    each.index =
        each.reverse ? tw_scope_op2(in, "Sub", tw_scope_op2(in, "Sub", each.count, tw_scope_scalar(in, TW_INT32, 1)), number) : number;
    each.states.resize(n_states);
    tw_block_arguments(block.get(), first.data(), n_states, nullptr, each.states.data());
    std::copy(each.states.begin(), each.states.end(), out_states);
    for (uint32_t i = 0; i < n_elems && Good(scope); ++i) {
      const tw_output list = ListOp(scope, "TensorListFromTensor", {values[i], Sizes(scope, infos[i].shape, 1)}, infos[i].dtype);
      if (Good(scope)) out_slices[i] = ListOp(in, "TensorListGetItem", {list, each.index, Sizes(in, infos[i].shape, 1)}, infos[i].dtype);
    }
    return Good(scope) && Holds(scope, block.get()) ? block.release() : nullptr;
  });
}

tw_output tw_each_index(tw_block* block) {
  if (block && !block->each) Refuse(block->scope, "tw_each_index", "the block was not begun by tw_each_begin");
  return block && block->each && Good(block->scope) ? block->each->index : 0;
}

void tw_each_end(tw_scope* scope, const char* name, tw_block* block, const tw_output* states, const tw_output* results, uint32_t n_results,
                 tw_output* out_states, tw_output* out_results) {
  std::unique_ptr<tw_block> taken(block);
  if (out_results) std::fill(out_results, out_results + n_results, 0);
  if (out_states && block && block->each) std::fill(out_states, out_states + block->each->initial.size(), 0);
  Protect(scope, [&] {
    if (!block || !block->each) {
      Refuse(scope, "tw_each_end", block ? "the block was not begun by tw_each_begin" : "block is NULL");
    } else if ((!states && !block->each->initial.empty()) || (n_results > 0 && (!results || !out_results))) {
      Refuse(scope, "tw_each_end", "states, results or out_results is NULL");
    }
    if (Good(scope)) EachLoop(scope, std::move(taken)).Add(name, states, results, n_results, out_states, out_results);
    return 0;
  });
}
