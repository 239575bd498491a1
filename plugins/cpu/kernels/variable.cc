// Variables: create handles, read, assign, add in place, query and destroy. The host takes the
// locks that the specs name.
#include "common/variable.h"

#include "kernels/common/element.h"
#include "kernels/common/types.h"
#include "kernels/register.h"
#include "kernels/tensor_list.h"
#include "kernels/zip.h"
#include "thalweg/plugin/held_resource.h"

namespace thalweg::cpu {
namespace {

void Accumulate(const tw_frame* f, const BinaryKernel& k) {
  const tw_view *variable = f->in[f->in_at[0]], *value = f->in[f->in_at[1]];
  if (variable->rank < 0) throw tw::Error{TW_FAILED_PRECONDITION, "the variable has no value yet; assign one first"};
  common::CheckType(variable, value->dtype);
  if (!SameDims(variable, value))
    Invalid("the variable is " + DimsText(variable) + " and the value " + DimsText(value) + "; both must have one shape");
  Zip(f, k, variable, value, variable);
}

void AddAccumulate(tw::Plugin& p, const std::string& op, const char* type, const BinaryKernel& k) {
  AddKernel<Accumulate>(p, op + "(resource, " + type + ") @CPU; update resource", k);
}

template <class... T>
void AddAccumulates(tw::Plugin& p) {
  (AddAccumulate(p, "AssignAddVariableOp", tw::dtype<T>, kZip<kAdd, T, T, 1>), ...);
  (AddAccumulate(p, "AssignSubVariableOp", tw::dtype<T>, kZip<kSub, T, T, 1>), ...);
}

int64_t VersionOf(tw::Frame f, uint32_t i) {
  return static_cast<const tw_held_resource_api*>(f.f->host->query(f.f->host, TW_S(TW_HELD_RESOURCE_SET), 1))->version(f.f, i);
}

// All variables are open at once, so the values that are read are consistent with each other.
void ReadVariables(tw::Frame f, tw::Many<tw::Any> resources, tw::ManyOut<tw::Any> values, tw::Out<int64_t> versions) {
  if (values.size() != resources.size())
    Invalid("'dtypes' names " + std::to_string(values.size()) + " types for " + std::to_string(resources.size()) + " variables");
  for (uint32_t i = 0; i < resources.size(); ++i) {
    if (resources[i].rank() < 0) throw tw::Error{TW_FAILED_PRECONDITION, "variable " + std::to_string(i) + " has no value yet"};
    common::CheckType(resources[i].v, values[i].v()->dtype);
  }
  const int64_t n = resources.size();
  const Kept all = NewTensor(f.f, TW_INT64, &n, 1);
  for (uint32_t i = 0; i < resources.size(); ++i) {
    tw::check(f.f->host->tensor->forward(f.f, resources.first + i, values[i].o, nullptr, 0));
    reinterpret_cast<int64_t*>(Bytes(all.view()))[i] = VersionOf(f, resources.first + i);
  }
  GiveTensor(f.f, versions.o, all);
}

void AssignVariables(tw::Frame f, tw::Many<tw::Any> resources, tw::In<int64_t> versions, tw::Many<tw::Any> values, tw::Out<bool> assigned) {
  const uint32_t n = resources.size();
  if (values.size() != n || versions.size() != n) {
    Invalid(std::to_string(n) + " variables have " + std::to_string(values.size()) + " values and " + std::to_string(versions.size()) +
            " versions");
  }
  for (uint32_t i = 0; i < n; ++i) {
    if (resources[i].rank() >= 0) common::CheckType(resources[i].v, values[i].v->dtype);
  }
  assigned[0] = false;
  for (uint32_t i = 0; i < n; ++i) {
    if (versions[i] >= 0 && versions[i] != VersionOf(f, resources.first + i)) return;
  }
  std::vector<Kept> kept;
  for (uint32_t i = 0; i < n; ++i) kept.push_back(KeepInput(f.f, values.first + i));
  for (uint32_t i = 0; i < n; ++i) tw::check(f.f->host->resource->assign(f.f, resources.first + i, kept[i].get()));
  assigned[0] = true;
}

}  // namespace

void register_variable(tw::Plugin& p) {
  p.kernel<common::VarHandle>("VarHandleOp @CPU; cheap");
  p.kernel<common::VarIsInitialized>("VarIsInitializedOp @CPU; cheap");
  p.kernel<common::ReadVariable>("ReadVariableOp @CPU; cheap; read resource; view value=resource");
  p.kernel<common::AssignVariable>("AssignVariableOp @CPU; replace resource; keep value");
  p.kernel<ReadVariables>("ReadVariables @CPU; read resources; gives values versions; nondeterministic");
  p.kernel<AssignVariables>("AssignVariables @CPU; replace resources; keep values");
  p.kernel<common::DestroyResource>("DestroyResourceOp @CPU; cheap");
  const Elementwise& t = TW_CPU_FOR_ISA(DetectIsa(p.h), ElementwiseTable);
  const BinaryKernels* tables[] = {&t.binary_float, &t.binary_half, &t.binary_bfloat16};
  const char* types[] = {"float", "half", "bfloat16"};
  for (int i = 0; i < 3; ++i) {
    AddAccumulate(p, "AssignAddVariableOp", types[i], tables[i]->add);
    AddAccumulate(p, "AssignSubVariableOp", types[i], tables[i]->sub);
  }
  AddAccumulates<double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, complex64, complex128>(p);
}

}  // namespace thalweg::cpu
