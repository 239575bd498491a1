// One primitive of oneDNN and the layouts of its arguments. Errors of the library become tw::Error
// here. Threads: any number of Runs at once, each with scratch memory of its own.
#ifndef THALWEG_PLUGINS_ONEDNN_PRIMITIVE_H_
#define THALWEG_PLUGINS_ONEDNN_PRIMITIVE_H_

#include <initializer_list>
#include <string>
#include <vector>

#include "library.h"

namespace thalweg::onednn {

using Layout = dnnl_memory_desc_t;

// A tensor whose elements are `strides` apart. Without strides, the primitive chooses the layout.
Layout LayoutOf(const Api& api, dnnl_data_type_t type, const std::vector<int64_t>& dims, const std::vector<int64_t>& strides);
uint64_t Bytes(const Api& api, const Layout& layout);

struct Argument {
  int what;  // DNNL_ARG_...
  const Layout& layout;
  const void* data;
};

// The attributes in a primitive's description: the caller provides scratch memory.
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

// A description, which tells layouts and from which a primitive is made.
class Description {
 public:
  // op: the output of a ..._desc_init. Throws UNIMPLEMENTED if the library has no fast code for it.
  // hint: the description of the forward pass, for gradients.
  Description(const Api& api, const void* op, const Attributes& attributes, const Description* hint = nullptr);
  // Describes a copy from one layout into another.
  Description(const Api& api, const Layout& from, const Layout& to);
  ~Description() { api_.dnnl_primitive_desc_destroy(desc_); }
  Description(const Description&) = delete;

  const Layout& layout(dnnl_query_t what) const;  // valid as long as the description
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
  // Runs on the calling thread only. scratch: scratch() bytes.
  dnnl_status_t Run(std::initializer_list<Argument> arguments, void* scratch) const;

 private:
  const Api& api_;
  dnnl_primitive_t primitive_ = nullptr;
  Layout scratchpad_;
  uint64_t scratch_;
};

}  // namespace thalweg::onednn

#endif  // THALWEG_PLUGINS_ONEDNN_PRIMITIVE_H_
