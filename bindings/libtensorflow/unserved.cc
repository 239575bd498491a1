// The functions that this library does not serve. One with a status fails with UNIMPLEMENTED and its name; one without writes its
// name to the log and returns zero. README.md says why they are not served.
#include "core.h"
#include "tensorflow/c/c_api_experimental.h"
#include "tensorflow/c/eager/c_api_experimental.h"

namespace {

template <class Result>
Result Zero() {
  if constexpr (!std::is_void_v<Result>) return Result{};
}

void Log(const char* function) {
  const std::string text = thalweg::tf::Text(function, " is not served by Thalweg's libtensorflow; it does nothing");
  tw_status_release(tw_log_write(nullptr, TW_LOG_WARNING, text.c_str()));
}

void Refuse(const char* function, TF_Status* status) {
  thalweg::tf::Set(status, TF_UNIMPLEMENTED, thalweg::tf::Text(function, " is not served by Thalweg's libtensorflow"));
}

}  // namespace

#define FAILS(Result, name, parameters) \
  Result name parameters {              \
    Refuse(#name, status);              \
    return Zero<Result>();              \
  }
#define WARNS(Result, name, parameters) \
  Result name parameters {              \
    Log(#name);                         \
    return Zero<Result>();              \
  }

// clang-format off: a line for each function
// c_api.h
FAILS(TF_ImportGraphDefResults*, TF_GraphImportGraphDefWithResultsNoSerialization, (TF_Graph*, const TF_Buffer*, const TF_ImportGraphDefOptions*, TF_Status* status))
FAILS(TF_ApiDefMap*, TF_NewApiDefMap, (TF_Buffer*, TF_Status* status))
WARNS(void, TF_DeleteApiDefMap, (TF_ApiDefMap*))
FAILS(void, TF_ApiDefMapPut, (TF_ApiDefMap*, const char*, size_t, TF_Status* status))
FAILS(TF_Buffer*, TF_ApiDefMapGet, (TF_ApiDefMap*, const char*, size_t, TF_Status* status))
FAILS(void, TF_UpdateEdge, (TF_Graph*, TF_Output, TF_Input, TF_Status* status))
FAILS(TF_Server*, TF_NewServer, (const void*, size_t, TF_Status* status))
FAILS(void, TF_ServerStart, (TF_Server*, TF_Status* status))
FAILS(void, TF_ServerStop, (TF_Server*, TF_Status* status))
FAILS(void, TF_ServerJoin, (TF_Server*, TF_Status* status))
WARNS(const char*, TF_ServerTarget, (TF_Server*))
WARNS(void, TF_DeleteServer, (TF_Server*))
FAILS(void, TF_RegisterFilesystemPlugin, (const char*, TF_Status* status))
WARNS(void, TF_AddOperationControlInput, (TF_Graph*, TF_Operation*, TF_Operation*))
FAILS(void, TF_SetAttr, (TF_Graph*, TF_Operation*, const char*, TF_Buffer*, TF_Status* status))
FAILS(void, TF_ClearAttr, (TF_Graph*, TF_Operation*, const char*, TF_Status* status))
WARNS(void, TF_SetFullType, (TF_Graph*, TF_Operation*, const TF_Buffer*))
WARNS(void, TF_SetRequestedDevice, (TF_Graph*, TF_Operation*, const char*))
WARNS(void, TF_RemoveAllControlInputs, (TF_Graph*, TF_Operation*))
WARNS(void, TF_SetRequireShapeInferenceFns, (TF_Graph*, bool))
WARNS(TF_Buffer*, TF_GetHandleShapeAndType, (TF_Graph*, TF_Output))
FAILS(void, TF_SetHandleShapeAndType, (TF_Graph*, TF_Output, const void*, size_t, TF_Status* status))
FAILS(void, TF_AddWhileInputHack, (TF_Graph*, TF_Output, TF_Operation*, TF_Status* status))

// c_api_experimental.h
WARNS(void, TF_EnableXLACompilation, (TF_SessionOptions*, unsigned char))
WARNS(unsigned char, TF_SetXlaEnableLazyCompilation, (unsigned char))
WARNS(unsigned char, TF_SetTfXlaCpuGlobalJit, (unsigned char))
WARNS(void, TF_SetXlaAutoJitMode, (const char*))
WARNS(unsigned char, TF_GetXlaAutoJitEnabled, ())
WARNS(void, TF_SetXlaMinClusterSize, (int))
WARNS(unsigned char, TF_GetXlaConstantFoldingDisabled, ())
WARNS(void, TF_SetXlaConstantFoldingDisabled, (unsigned char))
WARNS(TF_Buffer*, TF_CreateConfig, (unsigned char, unsigned char, unsigned int))
WARNS(TF_Buffer*, TF_CreateRunOptions, (unsigned char))
WARNS(const char*, TF_GraphDebugString, (TF_Graph*, size_t*))
WARNS(char*, TF_FunctionDebugString, (TF_Function*, size_t*))
FAILS(TF_Tensor*, TF_DequeueNamedTensor, (TF_Session*, int, TF_Status* status))
FAILS(void, TF_EnqueueNamedTensor, (TF_Session*, int, TF_Tensor*, TF_Status* status))
FAILS(TF_Buffer*, TFE_GetServerDef, (const char*, TF_Status* status))
FAILS(void, TF_MakeInternalErrorStatus, (TF_Status* status, const char*))
WARNS(TF_AttrBuilder*, TF_NewAttrBuilder, (const char*))
WARNS(void, TF_DeleteAttrBuilder, (TF_AttrBuilder*))
WARNS(void, TF_AttrBuilderSetType, (TF_AttrBuilder*, const char*, TF_DataType))
WARNS(void, TF_AttrBuilderSetTypeList, (TF_AttrBuilder*, const char*, const TF_DataType*, int))
FAILS(void, TF_AttrBuilderCheckCanRunOnDevice, (TF_AttrBuilder*, const char*, TF_Status* status))
WARNS(void, TF_InitMain, (const char*, int*, char***))
WARNS(int, TF_PickUnusedPortOrDie, ())
FAILS(void, TFE_EnableCollectiveOps, (TFE_Context*, const void*, size_t, TF_Status* status))
FAILS(void, TFE_AbortCollectiveOps, (TFE_Context*, TF_Status* status))
FAILS(void, TFE_CollectiveOpsCheckPeerHealth, (TFE_Context*, const char*, int64_t, TF_Status* status))
WARNS(TF_ShapeAndTypeList*, TF_NewShapeAndTypeList, (int))
WARNS(void, TF_ShapeAndTypeListSetShape, (TF_ShapeAndTypeList*, int, const int64_t*, int))
WARNS(void, TF_ShapeAndTypeListSetUnknownShape, (TF_ShapeAndTypeList*, int))
WARNS(void, TF_ShapeAndTypeListSetDtype, (TF_ShapeAndTypeList*, int, TF_DataType))
WARNS(void, TF_DeleteShapeAndTypeList, (TF_ShapeAndTypeList*))
WARNS(void, TF_DeleteShapeAndTypeListArray, (TF_ShapeAndTypeList**, int))
FAILS(void, TFE_InferShapes, (TFE_Op*, TF_ShapeAndTypeList*, TF_Tensor**, TF_ShapeAndTypeList*, TF_ShapeAndTypeList**, TF_ShapeAndTypeList**, TF_ShapeAndTypeList***, TF_Status* status))
FAILS(void, TF_GraphRemoveFunction, (TF_Graph*, const char*, TF_Status* status))

// eager/c_api.h
FAILS(void, TFE_ContextSetServerDef, (TFE_Context*, int, const void*, size_t, TF_Status* status))

// eager/c_api_experimental.h
WARNS(void, TFE_ContextEnableGraphCollection, (TFE_Context*))
WARNS(void, TFE_ContextDisableGraphCollection, (TFE_Context*))
WARNS(void, TFE_MonitoringCounterCellIncrementBy, (TFE_MonitoringCounterCell*, int64_t))
WARNS(int64_t, TFE_MonitoringCounterCellValue, (TFE_MonitoringCounterCell*))
FAILS(TFE_MonitoringCounter0*, TFE_MonitoringNewCounter0, (const char*, TF_Status* status, const char*))
WARNS(void, TFE_MonitoringDeleteCounter0, (TFE_MonitoringCounter0*))
WARNS(TFE_MonitoringCounterCell*, TFE_MonitoringGetCellCounter0, (TFE_MonitoringCounter0*))
FAILS(TFE_MonitoringCounter1*, TFE_MonitoringNewCounter1, (const char*, TF_Status* status, const char*, const char*))
WARNS(void, TFE_MonitoringDeleteCounter1, (TFE_MonitoringCounter1*))
WARNS(TFE_MonitoringCounterCell*, TFE_MonitoringGetCellCounter1, (TFE_MonitoringCounter1*, const char*))
FAILS(TFE_MonitoringCounter2*, TFE_MonitoringNewCounter2, (const char*, TF_Status* status, const char*, const char*, const char*))
WARNS(void, TFE_MonitoringDeleteCounter2, (TFE_MonitoringCounter2*))
WARNS(TFE_MonitoringCounterCell*, TFE_MonitoringGetCellCounter2, (TFE_MonitoringCounter2*, const char*, const char*))
WARNS(void, TFE_MonitoringIntGaugeCellSet, (TFE_MonitoringIntGaugeCell*, int64_t))
WARNS(int64_t, TFE_MonitoringIntGaugeCellValue, (TFE_MonitoringIntGaugeCell*))
FAILS(TFE_MonitoringIntGauge0*, TFE_MonitoringNewIntGauge0, (const char*, TF_Status* status, const char*))
WARNS(void, TFE_MonitoringDeleteIntGauge0, (TFE_MonitoringIntGauge0*))
WARNS(TFE_MonitoringIntGaugeCell*, TFE_MonitoringGetCellIntGauge0, (TFE_MonitoringIntGauge0*))
FAILS(TFE_MonitoringIntGauge1*, TFE_MonitoringNewIntGauge1, (const char*, TF_Status* status, const char*, const char*))
WARNS(void, TFE_MonitoringDeleteIntGauge1, (TFE_MonitoringIntGauge1*))
WARNS(TFE_MonitoringIntGaugeCell*, TFE_MonitoringGetCellIntGauge1, (TFE_MonitoringIntGauge1*, const char*))
FAILS(TFE_MonitoringIntGauge2*, TFE_MonitoringNewIntGauge2, (const char*, TF_Status* status, const char*, const char*, const char*))
WARNS(void, TFE_MonitoringDeleteIntGauge2, (TFE_MonitoringIntGauge2*))
WARNS(TFE_MonitoringIntGaugeCell*, TFE_MonitoringGetCellIntGauge2, (TFE_MonitoringIntGauge2*, const char*, const char*))
WARNS(void, TFE_MonitoringStringGaugeCellSet, (TFE_MonitoringStringGaugeCell*, const char*))
WARNS(void, TFE_MonitoringStringGaugeCellValue, (TFE_MonitoringStringGaugeCell*, TF_Buffer*))
FAILS(TFE_MonitoringStringGauge0*, TFE_MonitoringNewStringGauge0, (const char*, TF_Status* status, const char*))
WARNS(void, TFE_MonitoringDeleteStringGauge0, (TFE_MonitoringStringGauge0*))
WARNS(TFE_MonitoringStringGaugeCell*, TFE_MonitoringGetCellStringGauge0, (TFE_MonitoringStringGauge0*))
FAILS(TFE_MonitoringStringGauge1*, TFE_MonitoringNewStringGauge1, (const char*, TF_Status* status, const char*, const char*))
WARNS(void, TFE_MonitoringDeleteStringGauge1, (TFE_MonitoringStringGauge1*))
WARNS(TFE_MonitoringStringGaugeCell*, TFE_MonitoringGetCellStringGauge1, (TFE_MonitoringStringGauge1*, const char*))
FAILS(TFE_MonitoringStringGauge2*, TFE_MonitoringNewStringGauge2, (const char*, TF_Status* status, const char*, const char*, const char*))
WARNS(void, TFE_MonitoringDeleteStringGauge2, (TFE_MonitoringStringGauge2*))
WARNS(TFE_MonitoringStringGaugeCell*, TFE_MonitoringGetCellStringGauge2, (TFE_MonitoringStringGauge2*, const char*, const char*))
FAILS(TFE_MonitoringStringGauge3*, TFE_MonitoringNewStringGauge3, (const char*, TF_Status* status, const char*, const char*, const char*, const char*))
WARNS(void, TFE_MonitoringDeleteStringGauge3, (TFE_MonitoringStringGauge3*))
WARNS(TFE_MonitoringStringGaugeCell*, TFE_MonitoringGetCellStringGauge3, (TFE_MonitoringStringGauge3*, const char*, const char*, const char*))
FAILS(TFE_MonitoringStringGauge4*, TFE_MonitoringNewStringGauge4, (const char*, TF_Status* status, const char*, const char*, const char*, const char*, const char*))
WARNS(void, TFE_MonitoringDeleteStringGauge4, (TFE_MonitoringStringGauge4*))
WARNS(TFE_MonitoringStringGaugeCell*, TFE_MonitoringGetCellStringGauge4, (TFE_MonitoringStringGauge4*, const char*, const char*, const char*, const char*))
WARNS(void, TFE_MonitoringBoolGaugeCellSet, (TFE_MonitoringBoolGaugeCell*, bool))
WARNS(bool, TFE_MonitoringBoolGaugeCellValue, (TFE_MonitoringBoolGaugeCell*))
FAILS(TFE_MonitoringBoolGauge0*, TFE_MonitoringNewBoolGauge0, (const char*, TF_Status* status, const char*))
WARNS(void, TFE_MonitoringDeleteBoolGauge0, (TFE_MonitoringBoolGauge0*))
WARNS(TFE_MonitoringBoolGaugeCell*, TFE_MonitoringGetCellBoolGauge0, (TFE_MonitoringBoolGauge0*))
FAILS(TFE_MonitoringBoolGauge1*, TFE_MonitoringNewBoolGauge1, (const char*, TF_Status* status, const char*, const char*))
WARNS(void, TFE_MonitoringDeleteBoolGauge1, (TFE_MonitoringBoolGauge1*))
WARNS(TFE_MonitoringBoolGaugeCell*, TFE_MonitoringGetCellBoolGauge1, (TFE_MonitoringBoolGauge1*, const char*))
FAILS(TFE_MonitoringBoolGauge2*, TFE_MonitoringNewBoolGauge2, (const char*, TF_Status* status, const char*, const char*, const char*))
WARNS(void, TFE_MonitoringDeleteBoolGauge2, (TFE_MonitoringBoolGauge2*))
WARNS(TFE_MonitoringBoolGaugeCell*, TFE_MonitoringGetCellBoolGauge2, (TFE_MonitoringBoolGauge2*, const char*, const char*))
WARNS(void, TFE_MonitoringSamplerCellAdd, (TFE_MonitoringSamplerCell*, double))
WARNS(void, TFE_MonitoringSamplerCellValue, (TFE_MonitoringSamplerCell*, TF_Buffer*))
WARNS(TFE_MonitoringBuckets*, TFE_MonitoringNewExponentialBuckets, (double, double, int))
WARNS(void, TFE_MonitoringDeleteBuckets, (TFE_MonitoringBuckets*))
FAILS(TFE_MonitoringSampler0*, TFE_MonitoringNewSampler0, (const char*, TFE_MonitoringBuckets*, TF_Status* status, const char*))
WARNS(void, TFE_MonitoringDeleteSampler0, (TFE_MonitoringSampler0*))
WARNS(TFE_MonitoringSamplerCell*, TFE_MonitoringGetCellSampler0, (TFE_MonitoringSampler0*))
FAILS(TFE_MonitoringSampler1*, TFE_MonitoringNewSampler1, (const char*, TFE_MonitoringBuckets*, TF_Status* status, const char*, const char*))
WARNS(void, TFE_MonitoringDeleteSampler1, (TFE_MonitoringSampler1*))
WARNS(TFE_MonitoringSamplerCell*, TFE_MonitoringGetCellSampler1, (TFE_MonitoringSampler1*, const char*))
FAILS(TFE_MonitoringSampler2*, TFE_MonitoringNewSampler2, (const char*, TFE_MonitoringBuckets*, TF_Status* status, const char*, const char*, const char*))
WARNS(void, TFE_MonitoringDeleteSampler2, (TFE_MonitoringSampler2*))
WARNS(TFE_MonitoringSamplerCell*, TFE_MonitoringGetCellSampler2, (TFE_MonitoringSampler2*, const char*, const char*))
WARNS(TFE_CancellationManager*, TFE_NewCancellationManager, ())
WARNS(bool, TFE_CancellationManagerIsCancelled, (TFE_CancellationManager*))
WARNS(bool, TFE_CancellationManagerIsCancelling, (TFE_CancellationManager*))
WARNS(void, TFE_CancellationManagerStartCancel, (TFE_CancellationManager*))
WARNS(TFE_CancellationToken, TFE_CancellationManagerGetToken, (TFE_CancellationManager*))
WARNS(bool, TFE_CancellationManagerRegisterCallback, (TFE_CancellationManager*, TFE_CancellationToken, const TFE_CancelCallback*, const char*))
WARNS(bool, TFE_CancellationManagerDeregisterCallback, (TFE_CancellationManager*, TFE_CancellationToken))
WARNS(bool, TFE_CancellationManagerTryDeregisterCallback, (TFE_CancellationManager*, TFE_CancellationToken))
WARNS(void, TFE_DeleteCancellationManager, (TFE_CancellationManager*))
FAILS(void, TFE_OpSetCancellationManager, (TFE_Op*, TFE_CancellationManager*, TF_Status* status))
FAILS(void, TFE_ContextUpdateServerDef, (TFE_Context*, int, const void*, size_t, TF_Status* status))
FAILS(void, TFE_ContextUpdateServerDefWithTimeout, (TFE_Context*, int, const void*, size_t, int64_t, TF_Status* status))
FAILS(void, TFE_ContextSetServerDefWithTimeout, (TFE_Context*, int, const void*, size_t, int64_t, TF_Status* status, bool))
FAILS(void, TFE_ContextSetServerDefWithTimeoutAndRetries, (TFE_Context*, int, const void*, size_t, int64_t, int, TF_Status* status, bool))
FAILS(bool, TFE_ContextCheckAlive, (TFE_Context*, const char*, TF_Status* status))
FAILS(void*, TFE_TensorHandleDevicePointer, (TFE_TensorHandle*, TF_Status* status))
FAILS(size_t, TFE_TensorHandleDeviceMemorySize, (TFE_TensorHandle*, TF_Status* status))
FAILS(TFE_TensorHandle*, TFE_NewTensorHandleFromDeviceMemory, (TFE_Context*, const char*, TF_DataType, const int64_t*, int, void*, size_t, void (*)(void*, size_t, void*), void*, TF_Status* status))
WARNS(void, TFE_HostAddressSpace, (TFE_Context*, TF_Buffer*))
FAILS(void, TFE_RegisterCustomDevice, (TFE_Context*, TFE_CustomDevice, const char*, void*, TF_Status* status))
WARNS(bool, TFE_IsCustomDevice, (TFE_Context*, const char*))
FAILS(TFE_TensorHandle*, TFE_NewCustomDeviceTensorHandle, (TFE_Context*, const char*, TF_DataType, void*, TFE_CustomDeviceTensorHandle, TF_Status* status))
FAILS(void, TFE_ContextGetGraphDebugInfo, (TFE_Context*, const char*, TF_Buffer*, TF_Status* status))
FAILS(TF_Function*, TFE_ContextGetFunction, (TFE_Context*, const char*, TF_Status* status))
FAILS(TFE_TensorHandle*, TFE_CreatePackedTensorHandle, (TFE_Context*, TFE_TensorHandle**, int*, TF_Status* status))
FAILS(void, TFE_ContextSetSoftDevicePlacement, (TFE_Context*, unsigned char, TF_Status* status))
FAILS(void, TFE_ContextSetLogDevicePlacement, (TFE_Context*, unsigned char, TF_Status* status))
FAILS(void, TFE_ContextSetRunEagerOpAsFunction, (TFE_Context*, unsigned char, TF_Status* status))
FAILS(void, TFE_ContextSetJitCompileRewrite, (TFE_Context*, unsigned char, TF_Status* status))
FAILS(void, TFE_GetExecutedOpNames, (TFE_Context*, TF_Buffer*, TF_Status* status))
FAILS(void, TFE_SetLogicalCpuDevices, (TFE_Context*, int, const char*, TF_Status* status))
FAILS(void, TFE_InsertConfigKeyValue, (TFE_Context*, const char*, const char*, TF_Status* status))
FAILS(void, TFE_GetConfigKeyValue, (TFE_Context*, const char*, int64_t, TF_Buffer*, TF_Status* status))
FAILS(void, TFE_DeleteConfigKeyValue, (TFE_Context*, const char*, TF_Status* status))
FAILS(void, TFE_ReportErrorToCluster, (TFE_Context*, int, const char*, TF_Status* status))
FAILS(void, TFE_GetTaskStates, (TFE_Context*, const TF_Buffer*, void*, TF_Status* status))
FAILS(void, TFE_WaitAtBarrier, (TFE_Context*, const char*, int64_t, TF_Status* status))
FAILS(void, TFE_InitializeLocalOnlyContext, (TFE_Context*, int, const void*, size_t, TF_Status* status))
