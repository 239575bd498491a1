/* The structures of DLPack, written independently from its specification, and deleters that
 * count. */
#ifndef DLPACK_STRUCTS_H
#define DLPACK_STRUCTS_H
#include <stdint.h>

typedef struct DLTensor {
  void* data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(struct DLManagedTensor* self);
} DLManagedTensor;
typedef struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor tensor;
} DLManagedTensorVersioned;

static int deleted;
static inline void count_deleted(DLManagedTensor* self) {
  (void)self;
  ++deleted;
}
static inline void count_deleted_versioned(DLManagedTensorVersioned* self) {
  (void)self;
  ++deleted;
}

#endif
