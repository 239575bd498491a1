// Conditions and loops of blocks: checks that the functions agree, and adds the operation.
#include <algorithm>
#include <string>

#include "ops/library/block.h"
#include "ops/library/options.h"
#include "thalweg/op.h"

using namespace thalweg::library;

void tw_while_options_init(tw_while_options* options) {
  if (options) *options = {sizeof(tw_while_options), 0, nullptr, 0, 10};
}

namespace {

std::string Counted(size_t n, const char* thing) { return std::to_string(n) + " " + thing + (n == 1 ? "" : "s"); }

// Shapes and types of many values; owns the memory of the dims.
struct Shapes {
  void Add(const tw_shape& shape) {
    dims.emplace_back(shape.dims, shape.dims + std::max(shape.rank, 0));
    for (int64_t& dim : dims.back()) dim = std::max<int64_t>(dim, -1);
    ranks.push_back(shape.rank);
  }
  // Keeps the sizes that both shapes have.
  void Meet(size_t i, const tw_shape& other) {
    if (ranks[i] != other.rank) {
      ranks[i] = -1;
      dims[i].clear();
    }
    for (int32_t d = 0; d < ranks[i]; ++d) {
      if (dims[i][size_t(d)] != other.dims[d]) dims[i][size_t(d)] = -1;
    }
  }
  std::vector<tw_shape> Get() const {
    std::vector<tw_shape> shapes;
    for (size_t i = 0; i < ranks.size(); ++i) shapes.push_back({dims[i].data(), ranks[i], 0});
    return shapes;
  }
  std::vector<std::vector<int64_t>> dims;
  std::vector<int32_t> ranks;
};

// Ends an operation whose outputs are one list, and writes the first n of them to out.
const tw_operation* EndList(OpenOp* op, tw_output* out, uint32_t n) {
  const tw_operation* made = op->EndOperation();
  for (uint32_t i = 0; made && i < n; ++i) out[i] = tw_operation_output(made, i);
  return made;
}

// ---- Conditions ----

class Choice {
 public:
  Choice(tw_scope* scope, const char* function, std::vector<tw_block*> branches, uint32_t n)
      : scope_(scope), function_(function), branches_(std::move(branches)), n_(n) {}

  // op: If or Case.
  const tw_operation* Add(const char* op, const char* name, tw_output chooser, tw_output* out) {
    if (n_ > 0 && !out) Refuse(scope_, function_, "out_results is NULL");
    const Captured captured = Finish(scope_, function_, branches_);
    Check();
    if (!Good(scope_)) return nullptr;
    const bool stateful = std::any_of(branches_.begin(), branches_.end(), [](const tw_block* b) { return IsStateful(*b); });
    const bool is_if = std::string(op) == "If";
    std::vector<tw_string> functions;
    for (size_t i = 0; i < branches_.size() && Good(scope_); ++i) {
      const std::string base = std::string(name ? name : is_if ? "if" : "case") + "_" + std::to_string(i);
      const char* made = AddFunction(scope_, *branches_[i], base, captured);
      if (made) functions.push_back({made, std::char_traits<char>::length(made)});
    }
    if (!Good(scope_)) return nullptr;
    const std::vector<tw_shape> shapes = shapes_.Get();  // so that nothing allocates while the operation is described
    OpenOp added(scope_, (std::string(stateful ? "" : "Stateless") + op).c_str(), name);
    tw_op_add_input(added, chooser);
    tw_op_add_inputs(added, captured.data(), uint32_t(captured.size()));
    tw_op_set_types(added, "Tout", types_.data(), n_);
    tw_op_set_shapes(added, "output_shapes", shapes.data(), n_);
    if (is_if) {
      tw_op_set_func(added, "then_branch", functions[0].data);
      tw_op_set_func(added, "else_branch", functions[1].data);
    } else {
      tw_op_set_funcs(added, "branches", functions.data(), uint32_t(functions.size()));
    }
    return EndList(&added, out, n_);
  }

 private:
  std::string Name(size_t i) const {
    const bool is_cond = std::string(function_) == "tw_cond";
    return is_cond ? (i == 0 ? "`then`" : "`otherwise`") : "branch " + std::to_string(i);
  }

  void Check() {
    for (size_t i = 0; i < branches_.size() && Good(scope_); ++i) {
      const tw_block& b = *branches_[i];
      if (!b.arguments.empty()) Refuse(scope_, function_, Name(i) + " has " + Counted(b.arguments.size(), "argument") + "; it takes none");
      if (b.results.size() != branches_[0]->results.size()) {
        Refuse(scope_, function_,
               Name(0) + " gives " + Counted(branches_[0]->results.size(), "result") + ", " + Name(i) + " " +
                   std::to_string(b.results.size()) + "; all must give the same");
      } else if (b.results.size() != n_) {
        Refuse(scope_, function_,
               Name(i) + " gives " + Counted(b.results.size(), "result") + ", but " + std::to_string(n_) + " are asked for");
      }
      for (size_t r = 0; r < n_ && Good(scope_); ++r) Compare(i, r);
    }
  }

  void Compare(size_t i, size_t r) {
    const ValueInfo info = Describe(scope_, branches_[i]->body, branches_[i]->results[r]);
    if (i == 0) {
      types_.push_back(info.dtype);
      shapes_.Add(info.shape);
    } else if (info.dtype != types_[r]) {
      Refuse(scope_, function_,
             "result " + std::to_string(r) + " is " + tw_dtype_name(types_[r]) + " in " + Name(0) + " but " + tw_dtype_name(info.dtype) +
                 " in " + Name(i));
    } else {
      shapes_.Meet(r, info.shape);
    }
  }

  tw_scope* scope_;
  const char* function_;
  const std::vector<tw_block*> branches_;
  const uint32_t n_;
  std::vector<uint32_t> types_;
  Shapes shapes_;
};

// ---- Loops ----

class Loop {
 public:
  Loop(tw_scope* scope, tw_block* cond, tw_block* body, const tw_output* first, uint32_t n, const tw_while_options* options)
      : scope_(scope), cond_(cond), body_(body), first_(first, first + (first ? n : 0)) {
    options_ = ReadOptions(scope, "tw_while_options", options, tw_while_options_init);
    if (n > 0 && !first) Refuse(scope, kFunction, "first is NULL");
    if (Good(scope) && options_.parallel_iterations <= 0)
      Refuse(scope, kFunction, "parallel_iterations is " + std::to_string(options_.parallel_iterations) + "; it must be above 0");
  }

  const tw_operation* Add(tw_output* out) {
    const auto n = uint32_t(first_.size());
    if (n > 0 && !out) Refuse(scope_, kFunction, "out_last is NULL");
    CheckCounts();
    if (Good(scope_) && options_.maximum_iterations) Limit();
    const Captured captured = Finish(scope_, kFunction, {cond_, body_});
    for (size_t i = 0; i < first_.size() && Good(scope_); ++i) Check(i);
    if (!Good(scope_)) return nullptr;
    for (const tw_output value : captured) shapes_.Add(Describe(scope_, value).shape);
    const bool stateful = IsStateful(*cond_) || IsStateful(*body_);
    const std::string name = options_.name ? options_.name : "while";
    const char* goes_on = AddFunction(scope_, *cond_, name + "_cond", captured);
    const char* next = Good(scope_) ? AddFunction(scope_, *body_, name + "_body", captured, Own(scope_, *body_, captured)) : nullptr;
    if (!Good(scope_)) return nullptr;
    const std::vector<tw_shape> shapes = shapes_.Get();
    OpenOp op(scope_, stateful ? "While" : "StatelessWhile", options_.name);
    tw_op_add_inputs(op, first_.data(), uint32_t(first_.size()));
    tw_op_add_inputs(op, captured.data(), uint32_t(captured.size()));
    tw_op_set_func(op, "cond", goes_on);
    tw_op_set_func(op, "body", next);
    tw_op_set_shapes(op, "output_shapes", shapes.data(), uint32_t(shapes.size()));
    tw_op_set_int(op, "parallel_iterations", options_.parallel_iterations);
    return EndList(&op, out, n);
  }

 private:
  static constexpr const char* kFunction = "tw_while_loop";

  void CheckCounts() {
    if (!cond_ || !body_) return Refuse(scope_, kFunction, cond_ ? "body is NULL" : "cond is NULL");
    if (!Holds(scope_, cond_) || !Holds(scope_, body_)) return;
    const size_t n = first_.size();
    for (const tw_block* block : {cond_, body_}) {
      if (block->arguments.size() == n) continue;
      Refuse(scope_, kFunction,
             "there are " + Counted(n, "loop variable") + ", but " + (block == cond_ ? "`cond`" : "`body`") + " takes " +
                 std::to_string(block->arguments.size()));
    }
    if (cond_->results.size() != 1)
      Refuse(scope_, kFunction, "`cond` gives " + Counted(cond_->results.size(), "result") + "; it must give one value");
    if (body_->results.size() != n)
      Refuse(scope_, kFunction, "there are " + Counted(n, "loop variable") + ", but `body` gives " + std::to_string(body_->results.size()));
  }

  // Returns "loop variable 1 ('x')".
  std::string Name(size_t i) {
    const tw_operation* maker = nullptr;
    tw_status_release(tw_graph_producer(tw_scope_graph(scope_), first_[i], &maker, nullptr));
    return "loop variable " + std::to_string(i) + " ('" + tw_operation_name(maker) + "')";
  }

  void Check(size_t i) {
    const ValueInfo at_first = Describe(scope_, first_[i]), tested = Describe(scope_, cond_->body, cond_->arguments[i]);
    const ValueInfo kept = Describe(scope_, body_->body, body_->arguments[i]), next = Describe(scope_, body_->body, body_->results[i]);
    if (!Good(scope_)) return;
    const auto differs = [&](uint32_t dtype, const char* what) {
      if (dtype != at_first.dtype)
        Refuse(scope_, kFunction, Name(i) + " is " + tw_dtype_name(at_first.dtype) + ", but " + what + " " + tw_dtype_name(dtype));
      return !Good(scope_);
    };
    if (differs(tested.dtype, "`cond` takes") || differs(kept.dtype, "`body` takes") || differs(next.dtype, "`body` makes it")) return;
    if (ShapeText(tested.shape) != ShapeText(kept.shape))
      return Refuse(scope_, kFunction,
                    Name(i) + " has shape " + ShapeText(kept.shape) + " in `body` but " + ShapeText(tested.shape) + " in `cond`");
    for (const auto& [shape, when] : {std::pair(at_first.shape, "it is at first"), std::pair(next.shape, "`body` makes it")}) {
      if (Fits(shape, kept.shape)) continue;
      return Refuse(scope_, kFunction,
                    Name(i) + " has shape " + ShapeText(kept.shape) + ", but " + when + " " + ShapeText(shape) +
                        "; say in its shape invariant which of its sizes change");
    }
    shapes_.Add(kept.shape);
  }

  // Converts a value of the block to bool, by the rule of tw_cond.
  static tw_output Truth(tw_scope* scope, tw_output value) {
    if (Describe(scope, value).dtype == TW_BOOL) return value;
    tw_block* sides[2];
    for (int i = 0; i < 2; ++i) {
      sides[i] = tw_block_begin(scope);
      const tw_output truth = tw_scope_scalar(tw_block_scope(sides[i]), TW_BOOL, i == 0);
      tw_block_give(sides[i], &truth, 1);
    }
    tw_output truth = 0;
    tw_cond(scope, nullptr, value, sides[0], sides[1], &truth, 1);
    return truth;
  }

  // Adds a loop variable that counts iterations.
  void Limit() {
    const auto last = first_.size();
    first_.push_back(tw_scope_scalar(scope_, TW_INT32, 0));
    tw_output at[2] = {0, 0};
    tw_block_arguments(cond_, &first_[last], 1, nullptr, &at[0]);
    tw_block_arguments(body_, &first_[last], 1, nullptr, &at[1]);
    tw_scope* in = cond_->scope;
    const tw_output more = tw_scope_op2(in, "Less", at[0], options_.maximum_iterations);
    cond_->results[0] = tw_scope_op2(in, "LogicalAnd", more, Truth(in, cond_->results[0]));
    const tw_output next = tw_scope_op2(body_->scope, "AddV2", at[1], tw_scope_scalar(body_->scope, TW_INT32, 1));
    tw_block_give(body_, &next, 1);
  }

  tw_scope* scope_;
  tw_block *cond_, *body_;
  std::vector<tw_output> first_;
  tw_while_options options_;
  Shapes shapes_;
};

void Clear(tw_output* out, uint32_t n) {
  if (out) std::fill(out, out + n, 0);
}

}  // namespace

const tw_operation* tw_cond(tw_scope* scope, const char* name, tw_output pred, tw_block* then, tw_block* otherwise, tw_output* out_results,
                            uint32_t n) {
  const std::unique_ptr<tw_block> first(then), second(otherwise == then ? nullptr : otherwise);
  Clear(out_results, n);
  return Protect(scope, [&] { return Choice(scope, "tw_cond", {then, otherwise}, n).Add("If", name, pred, out_results); });
}

const tw_operation* tw_switch_case(tw_scope* scope, const char* name, tw_output index, tw_block* const* branches, uint32_t n_branches,
                                   tw_output* out_results, uint32_t n) {
  Clear(out_results, n);
  const tw_operation* made = Protect(scope, [&]() -> const tw_operation* {
    if (!branches || n_branches == 0) Refuse(scope, "tw_switch_case", "there are no branches");
    if (!Good(scope)) return nullptr;
    return Choice(scope, "tw_switch_case", {branches, branches + n_branches}, n).Add("Case", name, index, out_results);
  });
  for (uint32_t i = 0; branches && i < n_branches; ++i) {
    if (std::find(branches, branches + i, branches[i]) == branches + i)
      tw_block_destroy(branches[i]);  // destroys a repeated block only once
  }
  return made;
}

const tw_operation* tw_while_loop(tw_scope* scope, tw_block* cond, tw_block* body, const tw_output* first, uint32_t n,
                                  const tw_while_options* options, tw_output* out_last) {
  const std::unique_ptr<tw_block> goes_on(cond), next(body == cond ? nullptr : body);
  return Protect(scope, [&] {
    Loop loop(scope, cond, body, first, n, options);
    Clear(out_last, n);  // out_last may be `first`
    return Good(scope) ? loop.Add(out_last) : nullptr;
  });
}
