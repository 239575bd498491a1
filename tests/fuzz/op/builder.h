// An op under construction.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tests/fuzz/broken.h"
#include "thalweg/thalweg.h"

namespace thalweg::fuzz {

class Builder {
 public:
  Builder(tw_graph* graph, const char* type, const std::string& name) : op_(tw_op_create(graph, type, name.c_str())) {}
  Builder& Reads(tw_output value) {
    tw_op_add_input(op_, value);
    return *this;
  }
  Builder& Type(const char* attr, uint32_t dtype) {
    tw_op_set_type(op_, attr, dtype);
    return *this;
  }
  Builder& Shape(const char* attr, const std::vector<int64_t>* dims) {
    tw_op_set_shape(op_, attr, dims ? dims->data() : nullptr, dims ? int32_t(dims->size()) : -1);
    return *this;
  }
  Builder& Text(const char* attr, const std::string& text) {
    tw_op_set_string(op_, attr, text.data(), text.size());
    return *this;
  }
  tw_op* op() { return op_; }
  // Returns its first output; this cannot fail.
  tw_output Must() {
    const tw_operation* made = nullptr;
    fuzz::Must(tw_op_finish(op_, &made), "adding an operation around the op");
    return tw_operation_output(made, 0);
  }

 private:
  tw_op* op_;
};

}  // namespace thalweg::fuzz
