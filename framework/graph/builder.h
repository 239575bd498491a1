// tw_builder: the interface with which callbacks build. Shape inference and autodiff each implement
// their part; the other calls fail, and the failure is sticky. Threads: one builder is used by one
// callback at a time.
#pragma once
#include "framework/base/status.h"
#include "framework/tensor/tensor.h"
#include "thalweg/plugin/op.h"

struct tw_builder {
  virtual ~tw_builder() = default;
  virtual tw_edge Add(const tw_new_node& n);
  virtual tw_edge Output(tw_edge node, uint32_t i);
  virtual tw_edge Constant(uint32_t dtype, const int64_t* dims, uint32_t rank, const void* data, uint64_t bytes);
  virtual thalweg::Status Describe(tw_edge e, uint32_t* out_dtype, tw_shape* out_shape);
  virtual tw_edge Input(uint32_t i);
  virtual tw_edge Result(uint32_t o);
  virtual tw_edge ShapeOf(uint32_t i);
  virtual tw_edge Dy(uint32_t o);
  virtual uint32_t HasDy(uint32_t o);
  virtual tw_edge DySparse(uint32_t o, tw_edge* out_rows);
  virtual void Dx(uint32_t i, tw_edge values);
  virtual void DxSparse(uint32_t i, tw_edge rows, tw_edge values);
  virtual void SetShape(uint32_t o, const int64_t* dims, int32_t rank);
  virtual int64_t Dim(uint32_t op, int64_t x, int64_t y);
  virtual void GetHandle(uint32_t i, uint32_t* out_dtype, tw_shape* out_shape);
  virtual void SetHandle(uint32_t o, uint32_t dtype, const int64_t* dims, int32_t rank);

  // Records a failure, unless one is already recorded.
  void Fail(thalweg::Status s) {
    if (status.ok()) status = std::move(s);
  }
  thalweg::Status status;

 private:
  void NotHere(const char* call);
};

namespace thalweg {

// Returns the tw_graph_api table, which dispatches to the builder.
const tw_graph_api* GraphApi();

// Makes a scalar of `dtype` in host memory with the rounded value. UNIMPLEMENTED for types that are
// not numbers.
StatusOr<Tensor> ScalarTensor(uint32_t dtype, double value);

}  // namespace thalweg
