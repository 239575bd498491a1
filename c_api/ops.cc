// The list of ops that a runtime knows.
#include "c_api/handles.h"
#include "c_api/shim.h"
#include "thalweg/op.h"

struct tw_ops {
  std::shared_ptr<thalweg::Runtime> runtime;  // owns the schemas
  std::vector<const thalweg::OpSchema*> ops;
  std::vector<std::vector<const thalweg::KernelDef*>> kernels;
};

static const thalweg::OpSchema* At(const tw_ops* ops, uint32_t i) { return i < tw_ops_count(ops) ? ops->ops[i] : nullptr; }

tw_status* tw_ops_create(tw_runtime* runtime, tw_ops** out_ops) {
  NEED(out_ops);
  return thalweg::Guard([&]() -> thalweg::Status {
    auto list = std::make_unique<tw_ops>();
    ASSIGN_OR_RETURN(list->runtime, thalweg::RuntimeOf(runtime));
    list->ops = list->runtime->registry().Ops();
    for (const thalweg::OpSchema* op : list->ops) list->kernels.push_back(list->runtime->registry().Kernels(op->name));
    *out_ops = list.release();
    return thalweg::Status();
  });
}

void tw_ops_destroy(tw_ops* ops) { delete ops; }

uint32_t tw_ops_count(const tw_ops* ops) { return ops ? uint32_t(ops->ops.size()) : 0; }

const char* tw_ops_name(const tw_ops* ops, uint32_t i) { return At(ops, i) ? At(ops, i)->name.c_str() : nullptr; }

const char* tw_ops_schema(const tw_ops* ops, uint32_t i) { return At(ops, i) ? At(ops, i)->text.c_str() : nullptr; }

const char* tw_ops_doc(const tw_ops* ops, uint32_t i) { return At(ops, i) ? At(ops, i)->doc.c_str() : nullptr; }

const char* tw_ops_plugin(const tw_ops* ops, uint32_t i) { return At(ops, i) ? At(ops, i)->plugin.c_str() : nullptr; }

const char* tw_ops_no_gradient(const tw_ops* ops, uint32_t i) { return At(ops, i) ? At(ops, i)->no_gradient.c_str() : nullptr; }

uint32_t tw_ops_kernel_count(const tw_ops* ops, uint32_t i) { return At(ops, i) ? uint32_t(ops->kernels[i].size()) : 0; }

const char* tw_ops_kernel(const tw_ops* ops, uint32_t i, uint32_t k) {
  return k < tw_ops_kernel_count(ops, i) ? ops->kernels[i][k]->spec.text.c_str() : nullptr;
}
