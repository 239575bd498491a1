#include "primitive.h"

#include <algorithm>
#include <string_view>

namespace thalweg::onednn {

Layout LayoutOf(const Api& api, dnnl_data_type_t type, const std::vector<int64_t>& dims, const std::vector<int64_t>& strides) {
  dnnl_dims_t d{}, s{};
  std::copy(dims.begin(), dims.end(), d);
  std::copy(strides.begin(), strides.end(), s);
  Layout layout;
  const int rank = int(dims.size());
  Check(strides.empty() ? api.dnnl_memory_desc_init_by_tag(&layout, rank, d, type, dnnl_format_tag_any)
                        : api.dnnl_memory_desc_init_by_strides(&layout, rank, d, type, s),
        "describing a tensor");
  return layout;
}

uint64_t Bytes(const Api& api, const Layout& layout) { return api.dnnl_memory_desc_get_size(&layout); }

Attributes::Attributes(const Api& api) : api_(api) {
  Check(api.dnnl_primitive_attr_create(&attr_), "making attributes");
  Check(api.dnnl_primitive_attr_set_scratchpad_mode(attr_, dnnl_scratchpad_mode_user), "asking for scratch memory");
}

Attributes::~Attributes() { api_.dnnl_primitive_attr_destroy(attr_); }

Description::Description(const Api& api, const void* op, const Attributes& attributes, const Description* hint) : api_(api) {
  const OneThread one(api);
  Check(api.dnnl_primitive_desc_create(&desc_, op, attributes.get(), api.engine, hint ? hint->get() : nullptr), "describing a primitive");
  const char* name = "";
  api.dnnl_primitive_desc_query(desc_, dnnl_query_impl_info_str, 0, &name);
  const std::string_view code = name;
  if (code.find("ref") == code.npos && code.find("gemm") == code.npos) return;
  api.dnnl_primitive_desc_destroy(desc_);
  throw tw::Error{TW_UNIMPLEMENTED, "oneDNN has only its general code, " + std::string(code) + ", for this"};
}

Description::Description(const Api& api, const Layout& from, const Layout& to) : api_(api) {
  const OneThread one(api);
  Check(api.dnnl_reorder_primitive_desc_create(&desc_, &from, api.engine, &to, api.engine, Attributes(api).get()), "describing a copy");
}

const Layout& Description::layout(dnnl_query_t what) const { return *api_.dnnl_primitive_desc_query_md(desc_, what, 0); }

Primitive::Primitive(const Description& d) : api_(d.api()), scratchpad_(d.layout(dnnl_query_scratchpad_md)) {
  const OneThread one(api_);
  scratch_ = Bytes(api_, scratchpad_);
  Check(api_.dnnl_primitive_create(&primitive_, d.get()), "making a primitive");
}

dnnl_status_t Primitive::Run(std::initializer_list<Argument> arguments, void* scratch) const {
  const OneThread one(api_);
  dnnl_exec_arg_t args[8];
  int n = 0;
  dnnl_status_t s = dnnl_success;
  auto add = [&](int what, const Layout& layout, const void* data) {
    if (s != dnnl_success) return;
    s = api_.dnnl_memory_create(&args[n].memory, &layout, api_.engine, const_cast<void*>(data));
    if (s == dnnl_success) args[n++].arg = what;
  };
  for (const Argument& a : arguments) add(a.what, a.layout, a.data);
  if (scratch_) add(DNNL_ARG_SCRATCHPAD, scratchpad_, scratch);
  if (s == dnnl_success) s = api_.dnnl_primitive_execute(primitive_, api_.stream, n, args);
  while (n > 0) api_.dnnl_memory_destroy(args[--n].memory);
  return s;
}

}  // namespace thalweg::onednn
