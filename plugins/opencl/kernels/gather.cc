// Gather, GatherV2, GatherNd, ResourceGather, ResourceGatherNd, ScatterNd, TensorScatterX,
// ResourceScatterX and ResourceScatterNdX. Indices are read and checked on the host; the data stays
// on the device.
#include <algorithm>
#include <numeric>

#include "kernels/copy.h"
#include "kernels/register.h"
#include "kernels/segments.h"

namespace thalweg::opencl {
namespace {

std::vector<int64_t> Integers(const tw_view* v) {
  std::vector<int64_t> list;
  if (!tw::integers(v, &list)) Invalid("indices of type " + tw::dtype_text(v->dtype) + " are no integers");
  return list;
}

Size Product(const int64_t* dims, int32_t begin, int32_t end) {
  return std::accumulate(dims + begin, dims + end, Size(1), std::multiplies<>());
}

// Throws if a variable has no value or another type; other inputs always fit. what: start of the
// message's part about `type`.
void CheckVariable(const tw_view* var, uint32_t type, const char* what) {
  if (var->rank < 0) throw tw::Error{TW_FAILED_PRECONDITION, "the variable has no value yet; assign one first"};
  if (var->dtype != type) Invalid("the variable is " + tw::dtype_text(var->dtype) + ", " + what + tw::dtype_text(type));
}

// Allocates the output if the shape rule could not determine its dims.
void Allocate(const tw_frame* f, const Dims& dims) {
  if (f->out[0]->rank < 0) tw::check(f->host->tensor->allocate(f, 0, dims.data(), uint32_t(dims.size())));
}

// Gathers rows along one axis.
class Gather {
 public:
  explicit Gather(const tw::Node& n)
      : batch_dims_(n.find("batch_dims") ? n.i("batch_dims") : 0),
        kernel_(n, ProgramText({{"T", MovedAs(n.type_out(0))}}, {"copy.h"}), "gather") {}

  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const tw_view *x = f->in[0], *indices = f->in[1], *y = f->out[0];  // y may have no memory yet
    const int32_t batch = int32_t(batch_dims_ < 0 ? batch_dims_ + indices->rank : batch_dims_);
    int32_t axis = batch;
    if (f->n_in == 3) axis = int32_t(Integers(f->in[2]).at(0));
    if (axis < 0) axis += x->rank;
    CheckVariable(x, y->dtype, "the op says ");
    if (x->rank < 1) Invalid("params " + tw::text(x->dims, x->rank) + " must have at least one axis");
    if (axis < batch || axis >= x->rank) Invalid("axis " + tw::text(axis) + " is outside of params " + tw::text(x->dims, x->rank));
    if (batch < 0 || batch > indices->rank || !std::equal(x->dims, x->dims + batch, indices->dims))
      Invalid("params " + tw::text(x->dims, x->rank) + " and indices " + tw::text(indices->dims, indices->rank) +
              " differ in their first " + tw::text(batch) + " axes, batch_dims");
    const std::vector<int64_t> rows = Integers(indices);
    CheckIndices(rows, x->dims[axis], "indices");
    Dims dims(x->dims, x->dims + axis);
    dims.insert(dims.end(), indices->dims + batch, indices->dims + indices->rank);
    dims.insert(dims.end(), x->dims + axis + 1, x->dims + x->rank);
    Allocate(f, dims);
    if (f->out[0]->count == 0) return;
    const Size batches = Product(x->dims, 0, batch), outer = Product(x->dims, batch, axis), inner = Product(x->dims, axis + 1, x->rank);
    const Size picked = Size(indices->count) / batches;
    const Temporary sent(kernel_.device(), rows);
    kernel_.RunTasks(f, batches * outer * picked, inner, At(x), sent.place(), At(f->out[0]), batches, outer, Size(x->dims[axis]), picked,
                     inner);
  }

 private:
  int64_t batch_dims_;
  Kernel kernel_;
};

// Returns the block number for each index vector. Blocks have the dims beyond the length of a
// vector.
std::vector<int64_t> Blocks(const tw_view* indices, const Dims& dims) {
  const std::vector<int64_t> all = Integers(indices);
  const size_t depth = size_t(indices->dims[indices->rank - 1]);
  std::vector<int64_t> blocks(depth ? all.size() / depth : size_t(Product(indices->dims, 0, indices->rank - 1)), 0);
  for (size_t k = 0; depth && k < all.size(); ++k) {
    const size_t axis = k % depth;
    if (all[k] < 0 || all[k] >= dims[axis])
      Invalid("indices[" + std::to_string(k / depth) + "] has " + tw::text(all[k]) + " for axis " + std::to_string(axis) + " of " +
              tw::text(dims.data(), int32_t(dims.size())));
    blocks[k / depth] = blocks[k / depth] * dims[axis] + all[k];
  }
  return blocks;
}

class GatherNd {
 public:
  explicit GatherNd(const tw::Node& n) : kernel_(n, ProgramText({{"T", MovedAs(n.type_out(0))}}, {"copy.h"}), "gather") {}
  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const tw_view *x = f->in[0], *indices = f->in[1];
    CheckVariable(x, f->out[0]->dtype, "the op says ");
    if (indices->rank < 1) Invalid("indices must be index vectors, but are a scalar");
    const int64_t depth = indices->dims[indices->rank - 1];
    if (depth > x->rank)
      Invalid("indices " + tw::text(indices->dims, indices->rank) + " name more axes than params " + tw::text(x->dims, x->rank) + " have");
    const std::vector<int64_t> rows = Blocks(indices, DimsOf(x));
    Dims dims(indices->dims, indices->dims + indices->rank - 1);
    dims.insert(dims.end(), x->dims + depth, x->dims + x->rank);
    Allocate(f, dims);
    if (f->out[0]->count == 0) return;
    const Size picked = Size(rows.size()), inner = Size(f->out[0]->count) / picked;
    const Temporary sent(kernel_.device(), rows);
    kernel_.RunTasks(f, picked, inner, At(x), sent.place(), At(f->out[0]), Size(1), Size(1), Size(x->count) / inner, picked, inner);
  }

 private:
  Kernel kernel_;
};

// How an update changes an element, by the end of the op's name.
struct Joining {
  const char *name, *join;
};
constexpr Joining kJoinings[] = {{"Add", "((a) + (b))"},
                                 {"Sub", "((a) - (b))"},
                                 {"Max", "((b) > (a) || (b) != (b) ? (b) : (a))"},
                                 {"Min", "((b) < (a) || (b) != (b) ? (b) : (a))"},
                                 {"Update", "(b)"},
                                 {"ScatterNd", "((a) + (b))"}};

const char* JoiningOf(const tw::Node& n) {
  const std::string_view op(n.node->op, n.node->op_len);
  return std::find_if(std::begin(kJoinings), std::end(kJoinings), [&](const Joining& j) { return op.ends_with(j.name); })->join;
}

class Scatter {
 public:
  Scatter(const tw::Node& n, uint32_t type)
      : kernel_(n, ProgramText({{"T", tw::dtype_text(type)}, {"JOIN_TWO(a, b)", JoiningOf(n)}}, {"scatter.h"}), "scatter") {}

  // Joins row targets[k] of y, of `inner` elements, with row k of the updates.
  void Run(const tw_frame* f, const std::vector<int64_t>& targets, Place updates, Place y, Size inner) const {
    const Segments s(targets);
    if (s.count() == 0 || inner == 0) return;
    const Temporary order(kernel_.device(), s.order), rows(kernel_.device(), s.rows), starts(kernel_.device(), s.starts);
    kernel_.RunTasks(f, s.count(), 4 * inner, updates, order.place(), rows.place(), starts.place(), y, s.count(), inner);
  }

 private:
  Kernel kernel_;
};

void RefuseOtherPolicies(const tw::Node& n) {
  if (!n.s("bad_indices_policy").empty() && n.s("bad_indices_policy") != "DEFAULT" && n.s("bad_indices_policy") != "ERROR")
    throw tw::Error{TW_UNIMPLEMENTED, "bad_indices_policy is not offered on OpenCL devices; place the op on a CPU"};
}

class ScatterNd {
 public:
  explicit ScatterNd(const tw::Node& n) : copy_(n, n.type_out(0)), scatter_(n, n.type_out(0)) { RefuseOtherPolicies(n); }
  void operator()(tw::Frame frame) const {
    const tw_view *indices = frame.f->in[0], *updates = frame.f->in[1], *y = frame.f->out[0];
    const std::vector<int64_t> targets = Blocks(indices, DimsOf(y));
    copy_.Zero(frame.f, Size(y->count), At(y));
    scatter_.Run(frame.f, targets, At(updates), At(y), targets.empty() ? 0 : Size(updates->count / targets.size()));
  }

 private:
  Copy copy_;
  Scatter scatter_;
};

class TensorScatter {
 public:
  explicit TensorScatter(const tw::Node& n) : copy_(n, n.type_out(0)), scatter_(n, n.type_out(0)) {}
  void operator()(tw::Frame frame) const {
    const tw_view *x = frame.f->in[0], *indices = frame.f->in[1], *updates = frame.f->in[2], *y = frame.f->out[0];
    const std::vector<int64_t> targets = Blocks(indices, DimsOf(y));
    copy_.Dense(frame.f, Size(y->count), At(x), At(y));
    scatter_.Run(frame.f, targets, At(updates), At(y), targets.empty() ? 0 : Size(updates->count / targets.size()));
  }

 private:
  Copy copy_;
  Scatter scatter_;
};

class ResourceScatter {
 public:
  explicit ResourceScatter(const tw::Node& n) : copy_(n, n.type_in(2)), scatter_(n, n.type_in(2)) {}
  void operator()(tw::Frame frame) const {
    const tw_view *var = frame.f->in[0], *indices = frame.f->in[1], *updates = frame.f->in[2];
    CheckVariable(var, updates->dtype, "the updates are ");
    if (var->rank < 1) Invalid("the variable is a scalar, which has no rows");
    const std::vector<int64_t> targets = Integers(indices);
    CheckIndices(targets, var->dims[0], "indices");
    const Size inner = Product(var->dims, 1, var->rank);
    const Size all = Size(targets.size()) * inner;
    if (updates->rank == 0) {  // one number for all elements
      const Temporary repeated(copy_.device(), uint64_t(all) * ElementBytes(updates->dtype));
      copy_.Fill(frame.f, all, At(updates), repeated.place());
      return scatter_.Run(frame.f, targets, repeated.place(), At(var), inner);
    }
    if (Size(updates->count) != all)
      Invalid("updates " + tw::text(updates->dims, updates->rank) + " must have a row of the variable " + tw::text(var->dims, var->rank) +
              " for each of indices " + tw::text(indices->dims, indices->rank));
    scatter_.Run(frame.f, targets, At(updates), At(var), inner);
  }

 private:
  Copy copy_;
  Scatter scatter_;
};

// Updates blocks of a variable by index vectors.
class ResourceScatterNd {
 public:
  explicit ResourceScatterNd(const tw::Node& n) : scatter_(n, n.type_in(2)) { RefuseOtherPolicies(n); }
  void operator()(tw::Frame frame) const {
    const tw_view *var = frame.f->in[0], *indices = frame.f->in[1], *updates = frame.f->in[2];
    CheckVariable(var, updates->dtype, "the updates are ");
    if (indices->rank < 1) Invalid("indices must be index vectors, but are a scalar");
    const int32_t outer = indices->rank - 1, depth = int32_t(std::min<int64_t>(indices->dims[outer], INT32_MAX));
    if (depth > var->rank)
      Invalid("indices " + tw::text(indices->dims, indices->rank) + " name more axes than the variable " + tw::text(var->dims, var->rank) +
              " has");
    const std::vector<int64_t> targets = Blocks(indices, DimsOf(var));
    if (updates->rank != outer + var->rank - depth || !std::equal(indices->dims, indices->dims + outer, updates->dims) ||
        !std::equal(var->dims + depth, var->dims + var->rank, updates->dims + outer))
      Invalid("updates of shape " + tw::text(updates->dims, updates->rank) + " for indices of shape " +
              tw::text(indices->dims, indices->rank) + " into the variable of shape " + tw::text(var->dims, var->rank));
    scatter_.Run(frame.f, targets, At(updates), At(var), Product(var->dims, depth, var->rank));
  }

 private:
  Scatter scatter_;
};

constexpr const char* kMovable[] = {"float", "double", "half",   "bfloat16", "int8", "int16",     "int32",     "int64",
                                    "uint8", "uint16", "uint32", "uint64",   "bool", "complex64", "complex128"};
constexpr const char* kNumbers[] = {"float", "double", "half", "bfloat16", "int32", "int64"};

}  // namespace

void register_gather(tw::Plugin& p) {
  for (const std::string i : {"int32", "int64"}) {
    for (const std::string t : kMovable) {
      p.kernel<Gather>("Gather(" + t + ", " + i + " -> " + t + ") @OPENCL; host indices");
      for (const char* axis : {"int32", "int64"})
        p.kernel<Gather>("GatherV2(" + t + ", " + i + ", " + axis + " -> " + t + ") @OPENCL; host indices axis");
      p.kernel<GatherNd>("GatherNd(" + t + ", " + i + " -> " + t + ") @OPENCL; host indices");
      p.kernel<GatherNd>("ResourceGatherNd(resource, " + i + " -> " + t + ") @OPENCL; host indices; read resource");
      p.kernel<Gather>("ResourceGather(resource, " + i + " -> " + t + ") @OPENCL; host indices; read resource");
    }
    for (const std::string t : kNumbers) {
      p.kernel<ScatterNd>("ScatterNd(" + i + ", " + t + ", " + i + " -> " + t + ") @OPENCL; host indices shape");
      for (const std::string end : {"Add", "Sub", "Update", "Max", "Min"})
        p.kernel<TensorScatter>("TensorScatter" + end + "(" + t + ", " + i + ", " + t + " -> " + t + ") @OPENCL; host indices");
      for (const std::string end : {"Add", "Sub", "Update"})
        p.kernel<ResourceScatter>("ResourceScatter" + end + "(resource, " + i + ", " + t + ") @OPENCL; host indices; update resource");
      for (const std::string end : {"Add", "Sub", "Update", "Max", "Min"})
        p.kernel<ResourceScatterNd>("ResourceScatterNd" + end + "(resource, " + i + ", " + t + ") @OPENCL; host indices; update ref");
    }
  }
}

}  // namespace thalweg::opencl
