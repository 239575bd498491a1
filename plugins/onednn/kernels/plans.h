// Decides which convolutions the library computes, and keeps the plans of one node by their sizes.
// Threads: any.
#ifndef THALWEG_PLUGINS_ONEDNN_KERNELS_PLANS_H_
#define THALWEG_PLUGINS_ONEDNN_KERNELS_PLANS_H_

#include <memory>
#include <type_traits>

#include "kernels/convolution.h"
#include "kernels/latest.h"

namespace thalweg::onednn {

// The library's numbers of element types.
template <class T>
inline constexpr dnnl_data_type_t kType = std::is_same_v<T, float> ? dnnl_f32 : dnnl_bf16;

// Returns true if the processor has instructions for products of bfloat16. Without them float is as
// fast.
bool MultipliesBfloat16();

// Returns true if the library is faster at this convolution than the CPU plugin's own kernel, as
// measured.
bool Pays(const Sizes& s, Pass pass, dnnl_data_type_t type, const Library& library);

class Plans {
 public:
  Plans(const Library& library, Pass pass, dnnl_data_type_t type) : library_(library), pass_(pass), type_(type) {}

  // Returns NULL if the CPU plugin's own kernel should compute the convolution.
  std::shared_ptr<const Convolution> Of(const Sizes& sizes) const;

 private:
  const Library& library_;
  Pass pass_;
  dnnl_data_type_t type_;
  Latest<Sizes, Convolution> latest_;
};

}  // namespace thalweg::onednn

#endif  // THALWEG_PLUGINS_ONEDNN_KERNELS_PLANS_H_
