/* Functions of cuDNN that need a device and are not part of graphs: not supported here. */
/* clang-format off */
#define NAMES(X) \
  X(cudnnBackendExecute) X(cudnnCreateDropoutDescriptor) X(cudnnCreateRNNDataDescriptor) X(cudnnCreateRNNDescriptor) \
  X(cudnnCreateTensorDescriptor) X(cudnnDestroy) X(cudnnDestroyDropoutDescriptor) X(cudnnDestroyRNNDataDescriptor) \
  X(cudnnDestroyRNNDescriptor) X(cudnnDestroyTensorDescriptor) X(cudnnGetRNNTempSpaceSizes) X(cudnnGetRNNWeightParams) \
  X(cudnnGetRNNWeightSpaceSize) X(cudnnGetTensorNdDescriptor) X(cudnnRNNForward) X(cudnnSetDropoutDescriptor) \
  X(cudnnSetRNNDataDescriptor) X(cudnnSetRNNDescriptor_v8) X(cudnnSetStream) X(cudnnSetTensor4dDescriptor) X(cudnnSetTensorNdDescriptor) \
  X(cudnnSoftmaxForward)
/* clang-format on */

enum { kNotSupported = 3000 };

#define ABSENT(name)                                     \
  __attribute__((visibility("default"))) int name(void); \
  int name(void) { return kNotSupported; }
NAMES(ABSENT)
