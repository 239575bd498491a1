// The final operations on rows of a result while they are in the cache: a number is added to each
// column, then a function of one number is applied. The loops are those of the CPU plugin's kernels
// of BiasAdd, Relu and so on, so the bits are the same.
#ifndef THALWEG_PLUGINS_ONEDNN_KERNELS_EPILOGUE_H_
#define THALWEG_PLUGINS_ONEDNN_KERNELS_EPILOGUE_H_

#include <cstdint>
#include <string_view>

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::onednn {

// y[i] = f(x[i]); y may be x.
using Function = void (*)(const float* x, float* y, int64_t n);

// The loops of this machine, found by the name of their op.
class Functions {
 public:
  explicit Functions(const tw_host* host);
  // Sets *out to the loop of the op. Returns false if the op is not one of these.
  bool Find(std::string_view op, Function* out) const;

 private:
  struct Entry {
    std::string_view op;
    Function loop;
  };
  Entry entries_[5];
};

struct Epilogue {
  const float* bias = nullptr;  // one per column; NULL: none
  Function function = nullptr;  // NULL: none
  bool empty() const { return !bias && !function; }
};

// c: rows of `columns` numbers, `step` apart. Their first column is column `first` of the result.
void Finish(const Epilogue& e, float* c, int64_t rows, int64_t columns, int64_t step, int64_t first);

}  // namespace thalweg::onednn

#endif  // THALWEG_PLUGINS_ONEDNN_KERNELS_EPILOGUE_H_
