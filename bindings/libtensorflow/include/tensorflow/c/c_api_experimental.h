/* The experimental part of the C API of TensorFlow; see c_api.h. */
#ifndef THALWEG_TENSORFLOW_C_API_EXPERIMENTAL_H
#define THALWEG_TENSORFLOW_C_API_EXPERIMENTAL_H
#include "tensorflow/c/eager/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

TF_CAPI_EXPORT void TF_EnableXLACompilation(TF_SessionOptions* options, unsigned char enable);
TF_CAPI_EXPORT unsigned char TF_SetXlaEnableLazyCompilation(unsigned char enable);
TF_CAPI_EXPORT unsigned char TF_SetTfXlaCpuGlobalJit(unsigned char enable);
TF_CAPI_EXPORT void TF_SetXlaAutoJitMode(const char* mode);
TF_CAPI_EXPORT unsigned char TF_GetXlaAutoJitEnabled(void);
TF_CAPI_EXPORT void TF_SetXlaMinClusterSize(int size);
TF_CAPI_EXPORT unsigned char TF_GetXlaConstantFoldingDisabled(void);
TF_CAPI_EXPORT void TF_SetXlaConstantFoldingDisabled(unsigned char should_enable);
TF_CAPI_EXPORT TF_Buffer* TF_CreateConfig(unsigned char enable_xla_compilation, unsigned char gpu_memory_allow_growth,
                                          unsigned int num_cpu_devices);
TF_CAPI_EXPORT TF_Buffer* TF_CreateRunOptions(unsigned char enable_full_trace);
TF_CAPI_EXPORT const char* TF_GraphDebugString(TF_Graph* graph, size_t* len);
TF_CAPI_EXPORT char* TF_FunctionDebugString(TF_Function* func, size_t* len);
TF_CAPI_EXPORT TF_Tensor* TF_DequeueNamedTensor(TF_Session* session, int tensor_id, TF_Status* status);
TF_CAPI_EXPORT void TF_EnqueueNamedTensor(TF_Session* session, int tensor_id, TF_Tensor* tensor, TF_Status* status);
TF_CAPI_EXPORT TF_Buffer* TFE_GetServerDef(const char* text_proto, TF_Status* status);

TF_CAPI_EXPORT void TF_MakeInternalErrorStatus(TF_Status* status, const char* errMsg);
typedef struct TF_CheckpointReader TF_CheckpointReader;

TF_CAPI_EXPORT TF_CheckpointReader* TF_NewCheckpointReader(const char* filename, TF_Status* status);
TF_CAPI_EXPORT void TF_DeleteCheckpointReader(TF_CheckpointReader* reader);
TF_CAPI_EXPORT int TF_CheckpointReaderHasTensor(TF_CheckpointReader* reader, const char* name);
TF_CAPI_EXPORT const char* TF_CheckpointReaderGetVariable(TF_CheckpointReader* reader, int index);
TF_CAPI_EXPORT int TF_CheckpointReaderSize(TF_CheckpointReader* reader);
TF_CAPI_EXPORT TF_DataType TF_CheckpointReaderGetVariableDataType(TF_CheckpointReader* reader, const char* name);
TF_CAPI_EXPORT void TF_CheckpointReaderGetVariableShape(TF_CheckpointReader* reader, const char* name, int64_t* dims, int num_dims,
                                                        TF_Status* status);
TF_CAPI_EXPORT int TF_CheckpointReaderGetVariableNumDims(TF_CheckpointReader* reader, const char* name);
TF_CAPI_EXPORT TF_Tensor* TF_CheckpointReaderGetTensor(TF_CheckpointReader* reader, const char* name, TF_Status* status);
typedef struct TF_AttrBuilder TF_AttrBuilder;

TF_CAPI_EXPORT TF_AttrBuilder* TF_NewAttrBuilder(const char* op_name);
TF_CAPI_EXPORT void TF_DeleteAttrBuilder(TF_AttrBuilder* builder);
TF_CAPI_EXPORT void TF_AttrBuilderSetType(TF_AttrBuilder* builder, const char* attr_name, TF_DataType value);
TF_CAPI_EXPORT void TF_AttrBuilderSetTypeList(TF_AttrBuilder* builder, const char* attr_name, const TF_DataType* values, int num_values);
TF_CAPI_EXPORT void TF_AttrBuilderCheckCanRunOnDevice(TF_AttrBuilder* builder, const char* device_type, TF_Status* status);
TF_CAPI_EXPORT const char* TF_GetNumberAttrForOpListInput(const char* op_name, int input_index, TF_Status* status);
TF_CAPI_EXPORT int TF_OpIsStateful(const char* op_type, TF_Status* status);
TF_CAPI_EXPORT void TF_InitMain(const char* usage, int* argc, char*** argv);
TF_CAPI_EXPORT int TF_PickUnusedPortOrDie(void);
TF_CAPI_EXPORT TFE_TensorHandle* TFE_NewTensorHandleFromScalar(TF_DataType data_type, void* data, size_t len, TF_Status* status);
TF_CAPI_EXPORT void TFE_EnableCollectiveOps(TFE_Context* ctx, const void* proto, size_t proto_len, TF_Status* status);
TF_CAPI_EXPORT void TFE_AbortCollectiveOps(TFE_Context* ctx, TF_Status* status);
TF_CAPI_EXPORT void TFE_CollectiveOpsCheckPeerHealth(TFE_Context* ctx, const char* task, int64_t timeout_in_ms, TF_Status* status);
struct TF_ShapeAndType {
  int num_dims;
  int64_t* dims;
  TF_DataType dtype;
};
typedef struct TF_ShapeAndType TF_ShapeAndType;
struct TF_ShapeAndTypeList {
  int num_items;
  TF_ShapeAndType* items;
};
typedef struct TF_ShapeAndTypeList TF_ShapeAndTypeList;

TF_CAPI_EXPORT TF_ShapeAndTypeList* TF_NewShapeAndTypeList(int num_shapes);
TF_CAPI_EXPORT void TF_ShapeAndTypeListSetShape(TF_ShapeAndTypeList* shape_list, int index, const int64_t* dims, int num_dims);
TF_CAPI_EXPORT void TF_ShapeAndTypeListSetUnknownShape(TF_ShapeAndTypeList* shape_list, int index);
TF_CAPI_EXPORT void TF_ShapeAndTypeListSetDtype(TF_ShapeAndTypeList* shape_list, int index, TF_DataType dtype);
TF_CAPI_EXPORT void TF_DeleteShapeAndTypeList(TF_ShapeAndTypeList* shape_list);
TF_CAPI_EXPORT void TF_DeleteShapeAndTypeListArray(TF_ShapeAndTypeList** shape_list_array, int num_items);
TF_CAPI_EXPORT void TFE_InferShapes(TFE_Op* op, TF_ShapeAndTypeList* input_shapes, TF_Tensor** input_tensors,
                                    TF_ShapeAndTypeList* input_tensor_as_shapes, TF_ShapeAndTypeList** input_resource_shapes_and_types,
                                    TF_ShapeAndTypeList** output_shapes, TF_ShapeAndTypeList*** output_resource_shapes_and_types,
                                    TF_Status* status);
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsSetValidateColocationConstraints(TF_ImportGraphDefOptions* opts, unsigned char enable);
TF_CAPI_EXPORT TF_Library* TF_LoadPluggableDeviceLibrary(const char* library_filename, TF_Status* status);
TF_CAPI_EXPORT void TF_DeletePluggableDeviceLibraryHandle(TF_Library* lib_handle);
TF_CAPI_EXPORT void TF_GraphRemoveFunction(TF_Graph* g, const char* func_name, TF_Status* status);

#ifdef __cplusplus
}
#endif
#endif
