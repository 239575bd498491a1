// One primitive of oneDNN and what it wants its arguments to look like. Errors of the library become tw::Error here.
// Threads: Run from any, several at once, each with scratch memory of its own.
#ifndef THALWEG_PLUGINS_ONEDNN_PRIMITIVE_H_
#define THALWEG_PLUGINS_ONEDNN_PRIMITIVE_H_

#include <initializer_list>
#include <string>
#include <vector>

#include "library.h"

namespace thalweg::onednn {

using Layout = dnnl_memory_desc_t;

// A tensor whose elements lie `strides` apart; without strides, in whatever layout the primitive likes best.
Layout LayoutOf(const Api& api, dnnl_data_type_t type, const std::vector<int64_t>& dims, const std::vector<int64_t>& strides);
uint64_t Bytes(const Api& api, const Layout& layout);

struct Argument {
  int what;  // DNNL_ARG_...
  const Layout& layout;
  const void* data;
};

// Attributes while a primitive is described: scratch memory comes from the caller.
class Attributes {
 public:
  explicit Attributes(const Api& api);
  ~Attributes();
  Attributes(const Attributes&) = delete;
  const_dnnl_primitive_attr_t get() const { return attr_; }

 private:
  const Api& api_;
  dnnl_primitive_attr_t attr_ = nullptr;
};

// A description, from which layouts are asked and a primitive is made.
class Description {
 public:
  // op: what a ..._desc_init made. UNIMPLEMENTED if the library has no fast code for it. hint: of the forward pass, for gradients.
  Description(const Api& api, const void* op, const Attributes& attributes, const Description* hint = nullptr);
  // Of a copy from one layout into another.
  Description(const Api& api, const Layout& from, const Layout& to);
  ~Description() { api_.dnnl_primitive_desc_destroy(desc_); }
  Description(const Description&) = delete;

  const Layout& layout(dnnl_query_t what) const;  // as long as the description
  const Api& api() const { return api_; }
  const_dnnl_primitive_desc_t get() const { return desc_; }

 private:
  const Api& api_;
  dnnl_primitive_desc_t desc_ = nullptr;
};

class Primitive {
 public:
  explicit Primitive(const Description& d);
  ~Primitive() { api_.dnnl_primitive_destroy(primitive_); }
  Primitive(const Primitive&) = delete;

  uint64_t scratch() const { return scratch_; }
  // On the calling thread alone. scratch: scratch() bytes.
  dnnl_status_t Run(std::initializer_list<Argument> arguments, void* scratch) const;

 private:
  const Api& api_;
  dnnl_primitive_t primitive_ = nullptr;
  Layout scratchpad_;
  uint64_t scratch_;
};

}  // namespace thalweg::onednn

#endif  // THALWEG_PLUGINS_ONEDNN_PRIMITIVE_H_
