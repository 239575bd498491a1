#include "fuse/fit.h"

#include <algorithm>

#include "kernels/common/element.h"

namespace thalweg::cpu {
namespace {

bool ChannelsFirst(const tw_part_node& n) {
  const tw_attr* format = tw_find_attr(n.attrs, n.n_attrs, TW_S("data_format"));
  return format && tw::Attrs{n.attrs, n.n_attrs}.s("data_format") != "NHWC";
}

// Returns the reason why the layout of a called kernel's inputs does not match its pattern, or
// NULL.
const char* BadPattern(const tw_part_node& n, const Operation& op, const Fit& fit) {
  auto all = [&](uint32_t from, auto&& good) { return std::all_of(fit.in + from, fit.in + n.n_in, good); };
  auto full = [](Lie l) { return l == Lie::kFull; };
  bool good = fit.out == Lie::kFull;
  switch (op.pattern) {
    case Pattern::kAlike:
    case Pattern::kRows: good = good && all(0, full); break;
    case Pattern::kChoice: good = good && fit.in[0] == Lie::kFull && all(1, [](Lie l) { return l == Lie::kFull || l == Lie::kOne; }); break;
    case Pattern::kClip:
      for (uint32_t i = 1; i < n.n_in; ++i) good = good && (fit.in[i] == Lie::kFull || n.shapes[i].rank == 0);
      good = good && fit.in[0] == Lie::kFull;
      break;
    case Pattern::kBias:
      if (ChannelsFirst(n)) return "its channels are not the last axis";
      good = good && fit.in[0] == Lie::kFull && fit.in[1] == Lie::kRow;
      break;
  }
  return good ? nullptr : "its inputs have different shapes";
}

// The domain, with the row length that a node needs.
struct Rows {
  Domain domain;
  bool used = false;
  bool Want(int32_t inner) {
    if (domain.inner == 0) domain.inner = inner;
    used = true;
    return inner > 0 && domain.inner == inner;
  }
};

const char* FitReduction(const tw_part_node& n, Rows* rows, Fit* fit) {
  if (!Same(n.shapes[0], rows->domain.shape)) return "it reduces another shape";
  if (!rows->Want(InnerOfReduction(n.value[1], n.shapes[0]))) return "it does not reduce whole rows";
  fit->whole_rows = true;
  fit->in[0] = Lie::kFull;
  fit->out = Lie::kColumn;
  return nullptr;
}

const char* FitElements(const tw_part_node& n, const Operation& op, Rows* rows, Fit* fit) {
  Domain& d = rows->domain;
  fit->out = LieOf(OutShape(n), d);
  if (fit->out == Lie::kColumn && op.body == Operation::kCall) return "it computes a number for each row";
  if (fit->out != Lie::kFull && fit->out != Lie::kColumn) return "its result has another shape";
  for (uint32_t i = 0; i < n.n_in; ++i) {
    fit->in[i] = LieOf(n.shapes[i], d);
    if (fit->in[i] == Lie::kNone && rows->Want(InnerFor(n.shapes[i], d.shape))) fit->in[i] = LieOf(n.shapes[i], d);
    const bool number = fit->in[i] == Lie::kColumn || fit->in[i] == Lie::kOne;
    if (fit->in[i] == Lie::kNone || (fit->out == Lie::kColumn && !number)) return "its inputs broadcast neither rows nor columns";
    rows->used |= fit->in[i] == Lie::kRow || fit->in[i] == Lie::kColumn;
  }
  if (op.body != Operation::kCall) return nullptr;
  if (op.pattern == Pattern::kRows) {
    fit->whole_rows = true;
    if (d.shape.rank == 0 || d.shape.dims[d.shape.rank - 1] == 1 || !rows->Want(1)) return "its rows are not those of the others";
  }
  return BadPattern(n, op, *fit);
}

}  // namespace

const char* Unfit(const tw_part_node& n) {
  if (n.n_in == 0 || n.n_in > kMostInputs || n.n_out != 1) return "it has too many inputs or outputs";
  for (uint32_t i = 0; i <= n.n_in; ++i) {
    if (!Known(n.shapes[i])) return "only running tells its shape";
    if (ElementBytes(n.types[i]) == 0) return "its elements own memory";
  }
  return nullptr;
}

tw_shape DomainOf(const tw_part_node& n, const Operation& op) { return op.body == Operation::kReduce ? n.shapes[0] : OutShape(n); }

Fit FitInto(const tw_part_node& n, const Operation& op, const Domain& domain) {
  Fit fit;
  Rows rows{domain};
  if (op.body == Operation::kReduce) {
    fit.why = n.value[1] ? FitReduction(n, &rows, &fit) : "only running tells what it reduces";
  } else {
    fit.why = FitElements(n, op, &rows, &fit);
  }
  if (rows.used) fit.inner = rows.domain.inner;
  if (!fit.why && fit.whole_rows && rows.domain.columns() > kMostColumns) fit.why = "its rows are too long";
  return fit;
}

}  // namespace thalweg::cpu
