/* The C API of ONNX Runtime, as bindings/onnxruntime serves it: types, functions and values that a client's binary relies on. Names,
 * signatures, values and layouts are those of ONNX Runtime 1.29 (API version 29), and of all versions before it, because the table of
 * functions only grows. ONNX Runtime's own documentation says what each function does, and README.md of bindings/onnxruntime what is
 * served. Programs may be compiled against ONNX Runtime's headers instead. Threads: as ONNX Runtime's. */
#ifndef THALWEG_ONNXRUNTIME_C_API_H
#define THALWEG_ONNXRUNTIME_C_API_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ORT_API_VERSION 29
#define ORT_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ONNXTensorElementDataType {
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED = 0,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT = 1,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8 = 2,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8 = 3,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16 = 4,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16 = 5,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32 = 6,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 = 7,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING = 8,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL = 9,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16 = 10,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE = 11,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32 = 12,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64 = 13,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64 = 14,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128 = 15,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16 = 16,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN = 17,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FNUZ = 18,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2 = 19,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2FNUZ = 20,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT4 = 21, /* two elements a byte, as in all types below */
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4 = 22,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1 = 23,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2 = 24, /* four elements a byte */
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2 = 25,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0 = 26
} ONNXTensorElementDataType;

typedef enum ONNXType {
  ONNX_TYPE_UNKNOWN = 0,
  ONNX_TYPE_TENSOR = 1,
  ONNX_TYPE_SEQUENCE = 2,
  ONNX_TYPE_MAP = 3,
  ONNX_TYPE_OPAQUE = 4,
  ONNX_TYPE_SPARSETENSOR = 5,
  ONNX_TYPE_OPTIONAL = 6
} ONNXType;

typedef enum OrtErrorCode {
  ORT_OK = 0,
  ORT_FAIL = 1,
  ORT_INVALID_ARGUMENT = 2,
  ORT_NO_SUCHFILE = 3,
  ORT_NO_MODEL = 4,
  ORT_ENGINE_ERROR = 5,
  ORT_RUNTIME_EXCEPTION = 6,
  ORT_INVALID_PROTOBUF = 7,
  ORT_MODEL_LOADED = 8,
  ORT_NOT_IMPLEMENTED = 9,
  ORT_INVALID_GRAPH = 10,
  ORT_EP_FAIL = 11,
  ORT_MODEL_LOAD_CANCELED = 12,
  ORT_MODEL_REQUIRES_COMPILATION = 13,
  ORT_NOT_FOUND = 14,
  ORT_DEVICE_RESET = 15
} OrtErrorCode;

typedef enum OrtLoggingLevel {
  ORT_LOGGING_LEVEL_VERBOSE = 0,
  ORT_LOGGING_LEVEL_INFO = 1,
  ORT_LOGGING_LEVEL_WARNING = 2,
  ORT_LOGGING_LEVEL_ERROR = 3,
  ORT_LOGGING_LEVEL_FATAL = 4
} OrtLoggingLevel;

typedef enum GraphOptimizationLevel {
  ORT_DISABLE_ALL = 0,
  ORT_ENABLE_BASIC = 1,
  ORT_ENABLE_EXTENDED = 2,
  ORT_ENABLE_LAYOUT = 3,
  ORT_ENABLE_ALL = 99
} GraphOptimizationLevel;

typedef enum ExecutionMode { ORT_SEQUENTIAL = 0, ORT_PARALLEL = 1 } ExecutionMode;
typedef enum OrtAllocatorType {
  OrtInvalidAllocator = -1,
  OrtDeviceAllocator = 0,
  OrtArenaAllocator = 1,
  OrtReadOnlyAllocator = 2
} OrtAllocatorType;
typedef enum OrtMemType {
  OrtMemTypeCPUInput = -2,
  OrtMemTypeCPUOutput = -1,
  OrtMemTypeCPU = OrtMemTypeCPUOutput,
  OrtMemTypeDefault = 0
} OrtMemType;
typedef enum OrtDeviceMemoryType { OrtDeviceMemoryType_DEFAULT = 0, OrtDeviceMemoryType_HOST_ACCESSIBLE = 5 } OrtDeviceMemoryType;
typedef enum OrtMemoryInfoDeviceType {
  OrtMemoryInfoDeviceType_CPU = 0,
  OrtMemoryInfoDeviceType_GPU = 1,
  OrtMemoryInfoDeviceType_FPGA = 2,
  OrtMemoryInfoDeviceType_NPU = 3
} OrtMemoryInfoDeviceType;
typedef enum OrtHardwareDeviceType {
  OrtHardwareDeviceType_CPU = 0,
  OrtHardwareDeviceType_GPU = 1,
  OrtHardwareDeviceType_NPU = 2
} OrtHardwareDeviceType;

/* Values of functions that are not served. */
typedef int32_t OrtSparseFormat, OrtSparseIndicesFormat, OrtOpAttrType, OrtLanguageProjection, OrtExecutionProviderDevicePolicy,
    OrtCompiledModelCompatibility;

#define ORT_OPAQUE(name) typedef struct name name
ORT_OPAQUE(OrtArenaCfg);
ORT_OPAQUE(OrtCANNProviderOptions);
ORT_OPAQUE(OrtCUDAProviderOptions);
ORT_OPAQUE(OrtCUDAProviderOptionsV2);
ORT_OPAQUE(OrtCompileApi);
ORT_OPAQUE(OrtCustomOp);
ORT_OPAQUE(OrtCustomOpDomain);
ORT_OPAQUE(OrtDeviceEpIncompatibilityDetails);
ORT_OPAQUE(OrtDnnlProviderOptions);
ORT_OPAQUE(OrtEnv);
ORT_OPAQUE(OrtEnvCreationOptions);
ORT_OPAQUE(OrtEpApi);
ORT_OPAQUE(OrtEpAssignedNode);
ORT_OPAQUE(OrtEpAssignedSubgraph);
ORT_OPAQUE(OrtEpDevice);
ORT_OPAQUE(OrtExternalInitializerInfo);
ORT_OPAQUE(OrtGraph);
ORT_OPAQUE(OrtHardwareDevice);
ORT_OPAQUE(OrtInteropApi);
ORT_OPAQUE(OrtIoBinding);
ORT_OPAQUE(OrtKernelContext);
ORT_OPAQUE(OrtKernelInfo);
ORT_OPAQUE(OrtKeyValuePairs);
ORT_OPAQUE(OrtLogger);
ORT_OPAQUE(OrtLoraAdapter);
ORT_OPAQUE(OrtMIGraphXProviderOptions);
ORT_OPAQUE(OrtMapTypeInfo);
ORT_OPAQUE(OrtMemoryInfo);
ORT_OPAQUE(OrtModel);
ORT_OPAQUE(OrtModelEditorApi);
ORT_OPAQUE(OrtModelMetadata);
ORT_OPAQUE(OrtNode);
ORT_OPAQUE(OrtOp);
ORT_OPAQUE(OrtOpAttr);
ORT_OPAQUE(OrtOpenVINOProviderOptions);
ORT_OPAQUE(OrtOptionalTypeInfo);
ORT_OPAQUE(OrtPrepackedWeightsContainer);
ORT_OPAQUE(OrtROCMProviderOptions);
ORT_OPAQUE(OrtRunOptions);
ORT_OPAQUE(OrtSequenceTypeInfo);
ORT_OPAQUE(OrtSession);
ORT_OPAQUE(OrtSessionOptions);
ORT_OPAQUE(OrtShapeInferContext);
ORT_OPAQUE(OrtStatus);
ORT_OPAQUE(OrtSyncStream);
ORT_OPAQUE(OrtTensorRTProviderOptions);
ORT_OPAQUE(OrtTensorRTProviderOptionsV2);
ORT_OPAQUE(OrtTensorTypeAndShapeInfo);
ORT_OPAQUE(OrtThreadPoolCallbacksConfig);
ORT_OPAQUE(OrtThreadingOptions);
ORT_OPAQUE(OrtTrainingApi);
ORT_OPAQUE(OrtTypeInfo);
ORT_OPAQUE(OrtValue);
ORT_OPAQUE(OrtValueInfo);
#undef ORT_OPAQUE

typedef struct OrtAllocator {
  uint32_t version; /* of the API that the maker of the allocator was compiled for */
  void* (*Alloc)(struct OrtAllocator*, size_t);
  void (*Free)(struct OrtAllocator*, void*);
  const OrtMemoryInfo* (*Info)(const struct OrtAllocator*);
  void* (*Reserve)(struct OrtAllocator*, size_t);                         /* since version 18 */
  OrtStatus* (*GetStats)(const struct OrtAllocator*, OrtKeyValuePairs**); /* since version 23; may be NULL */
  void* (*AllocOnStream)(struct OrtAllocator*, size_t, OrtSyncStream*);   /* since version 23; may be NULL */
  OrtStatus* (*Shrink)(struct OrtAllocator*);                             /* may be NULL */
} OrtAllocator;

typedef void (*OrtLoggingFunction)(void* param, OrtLoggingLevel severity, const char* category, const char* logid,
                                   const char* code_location, const char* message);
typedef void (*RunAsyncCallbackFn)(void* user_data, OrtValue** outputs, size_t num_outputs, OrtStatus* status);
typedef OrtStatus* (*EpSelectionDelegate)(const OrtEpDevice**, size_t, const OrtKeyValuePairs*, const OrtKeyValuePairs*,
                                          const OrtEpDevice**, size_t, size_t*, void*);
typedef const struct OrtCustomHandleType* OrtCustomThreadHandle;
typedef OrtCustomThreadHandle (*OrtCustomCreateThreadFn)(void* options, void (*worker)(void*), void* param);
typedef void (*OrtCustomJoinThreadFn)(OrtCustomThreadHandle);
typedef void (*OrtExperimentalFnPtr)(void);

struct OrtEnvCreationOptions {
  uint32_t version;
  int32_t logging_severity_level;
  const char* log_id;
  OrtLoggingFunction custom_logging_function;
  void* custom_logging_param;
  const OrtThreadingOptions* threading_options;
  const OrtKeyValuePairs* config_entries;
};

typedef struct OrtApi OrtApi;
typedef struct OrtApiBase {
  const OrtApi* (*GetApi)(uint32_t version);
  const char* (*GetVersionString)(void);
} OrtApiBase;
ORT_EXPORT const OrtApiBase* OrtGetApiBase(void);
ORT_EXPORT OrtStatus* OrtSessionOptionsAppendExecutionProvider_CPU(OrtSessionOptions* options, int use_arena);

struct OrtApi {
  OrtStatus* (*CreateStatus)(OrtErrorCode, const char*);
  OrtErrorCode (*GetErrorCode)(const OrtStatus*);
  const char* (*GetErrorMessage)(const OrtStatus*);
  OrtStatus* (*CreateEnv)(OrtLoggingLevel, const char*, OrtEnv**);
  OrtStatus* (*CreateEnvWithCustomLogger)(OrtLoggingFunction, void*, OrtLoggingLevel, const char*, OrtEnv**);
  OrtStatus* (*EnableTelemetryEvents)(const OrtEnv*);
  OrtStatus* (*DisableTelemetryEvents)(const OrtEnv*);
  OrtStatus* (*CreateSession)(const OrtEnv*, const char*, const OrtSessionOptions*, OrtSession**);
  OrtStatus* (*CreateSessionFromArray)(const OrtEnv*, const void*, size_t, const OrtSessionOptions*, OrtSession**);
  OrtStatus* (*Run)(OrtSession*, const OrtRunOptions*, const char* const*, const OrtValue* const*, size_t, const char* const*, size_t,
                    OrtValue**);
  OrtStatus* (*CreateSessionOptions)(OrtSessionOptions**);
  OrtStatus* (*SetOptimizedModelFilePath)(OrtSessionOptions*, const char*);
  OrtStatus* (*CloneSessionOptions)(const OrtSessionOptions*, OrtSessionOptions**);
  OrtStatus* (*SetSessionExecutionMode)(OrtSessionOptions*, ExecutionMode);
  OrtStatus* (*EnableProfiling)(OrtSessionOptions*, const char*);
  OrtStatus* (*DisableProfiling)(OrtSessionOptions*);
  OrtStatus* (*EnableMemPattern)(OrtSessionOptions*);
  OrtStatus* (*DisableMemPattern)(OrtSessionOptions*);
  OrtStatus* (*EnableCpuMemArena)(OrtSessionOptions*);
  OrtStatus* (*DisableCpuMemArena)(OrtSessionOptions*);
  OrtStatus* (*SetSessionLogId)(OrtSessionOptions*, const char*);
  OrtStatus* (*SetSessionLogVerbosityLevel)(OrtSessionOptions*, int);
  OrtStatus* (*SetSessionLogSeverityLevel)(OrtSessionOptions*, int);
  OrtStatus* (*SetSessionGraphOptimizationLevel)(OrtSessionOptions*, GraphOptimizationLevel);
  OrtStatus* (*SetIntraOpNumThreads)(OrtSessionOptions*, int);
  OrtStatus* (*SetInterOpNumThreads)(OrtSessionOptions*, int);
  OrtStatus* (*CreateCustomOpDomain)(const char*, OrtCustomOpDomain**);
  OrtStatus* (*CustomOpDomain_Add)(OrtCustomOpDomain*, const OrtCustomOp*);
  OrtStatus* (*AddCustomOpDomain)(OrtSessionOptions*, OrtCustomOpDomain*);
  OrtStatus* (*RegisterCustomOpsLibrary)(OrtSessionOptions*, const char*, void**);
  OrtStatus* (*SessionGetInputCount)(const OrtSession*, size_t*);
  OrtStatus* (*SessionGetOutputCount)(const OrtSession*, size_t*);
  OrtStatus* (*SessionGetOverridableInitializerCount)(const OrtSession*, size_t*);
  OrtStatus* (*SessionGetInputTypeInfo)(const OrtSession*, size_t, OrtTypeInfo**);
  OrtStatus* (*SessionGetOutputTypeInfo)(const OrtSession*, size_t, OrtTypeInfo**);
  OrtStatus* (*SessionGetOverridableInitializerTypeInfo)(const OrtSession*, size_t, OrtTypeInfo**);
  OrtStatus* (*SessionGetInputName)(const OrtSession*, size_t, OrtAllocator*, char**);
  OrtStatus* (*SessionGetOutputName)(const OrtSession*, size_t, OrtAllocator*, char**);
  OrtStatus* (*SessionGetOverridableInitializerName)(const OrtSession*, size_t, OrtAllocator*, char**);
  OrtStatus* (*CreateRunOptions)(OrtRunOptions**);
  OrtStatus* (*RunOptionsSetRunLogVerbosityLevel)(OrtRunOptions*, int);
  OrtStatus* (*RunOptionsSetRunLogSeverityLevel)(OrtRunOptions*, int);
  OrtStatus* (*RunOptionsSetRunTag)(OrtRunOptions*, const char*);
  OrtStatus* (*RunOptionsGetRunLogVerbosityLevel)(const OrtRunOptions*, int*);
  OrtStatus* (*RunOptionsGetRunLogSeverityLevel)(const OrtRunOptions*, int*);
  OrtStatus* (*RunOptionsGetRunTag)(const OrtRunOptions*, const char**);
  OrtStatus* (*RunOptionsSetTerminate)(OrtRunOptions*);
  OrtStatus* (*RunOptionsUnsetTerminate)(OrtRunOptions*);
  OrtStatus* (*CreateTensorAsOrtValue)(OrtAllocator*, const int64_t*, size_t, ONNXTensorElementDataType, OrtValue**);
  OrtStatus* (*CreateTensorWithDataAsOrtValue)(const OrtMemoryInfo*, void*, size_t, const int64_t*, size_t, ONNXTensorElementDataType,
                                               OrtValue**);
  OrtStatus* (*IsTensor)(const OrtValue*, int*);
  OrtStatus* (*GetTensorMutableData)(OrtValue*, void**);
  OrtStatus* (*FillStringTensor)(OrtValue*, const char* const*, size_t);
  OrtStatus* (*GetStringTensorDataLength)(const OrtValue*, size_t*);
  OrtStatus* (*GetStringTensorContent)(const OrtValue*, void*, size_t, size_t*, size_t);
  OrtStatus* (*CastTypeInfoToTensorInfo)(const OrtTypeInfo*, const OrtTensorTypeAndShapeInfo**);
  OrtStatus* (*GetOnnxTypeFromTypeInfo)(const OrtTypeInfo*, ONNXType*);
  OrtStatus* (*CreateTensorTypeAndShapeInfo)(OrtTensorTypeAndShapeInfo**);
  OrtStatus* (*SetTensorElementType)(OrtTensorTypeAndShapeInfo*, ONNXTensorElementDataType);
  OrtStatus* (*SetDimensions)(OrtTensorTypeAndShapeInfo*, const int64_t*, size_t);
  OrtStatus* (*GetTensorElementType)(const OrtTensorTypeAndShapeInfo*, ONNXTensorElementDataType*);
  OrtStatus* (*GetDimensionsCount)(const OrtTensorTypeAndShapeInfo*, size_t*);
  OrtStatus* (*GetDimensions)(const OrtTensorTypeAndShapeInfo*, int64_t*, size_t);
  OrtStatus* (*GetSymbolicDimensions)(const OrtTensorTypeAndShapeInfo*, const char**, size_t);
  OrtStatus* (*GetTensorShapeElementCount)(const OrtTensorTypeAndShapeInfo*, size_t*);
  OrtStatus* (*GetTensorTypeAndShape)(const OrtValue*, OrtTensorTypeAndShapeInfo**);
  OrtStatus* (*GetTypeInfo)(const OrtValue*, OrtTypeInfo**);
  OrtStatus* (*GetValueType)(const OrtValue*, ONNXType*);
  OrtStatus* (*CreateMemoryInfo)(const char*, OrtAllocatorType, int, OrtMemType, OrtMemoryInfo**);
  OrtStatus* (*CreateCpuMemoryInfo)(OrtAllocatorType, OrtMemType, OrtMemoryInfo**);
  OrtStatus* (*CompareMemoryInfo)(const OrtMemoryInfo*, const OrtMemoryInfo*, int*);
  OrtStatus* (*MemoryInfoGetName)(const OrtMemoryInfo*, const char**);
  OrtStatus* (*MemoryInfoGetId)(const OrtMemoryInfo*, int*);
  OrtStatus* (*MemoryInfoGetMemType)(const OrtMemoryInfo*, OrtMemType*);
  OrtStatus* (*MemoryInfoGetType)(const OrtMemoryInfo*, OrtAllocatorType*);
  OrtStatus* (*AllocatorAlloc)(OrtAllocator*, size_t, void**);
  OrtStatus* (*AllocatorFree)(OrtAllocator*, void*);
  OrtStatus* (*AllocatorGetInfo)(const OrtAllocator*, const OrtMemoryInfo**);
  OrtStatus* (*GetAllocatorWithDefaultOptions)(OrtAllocator**);
  OrtStatus* (*AddFreeDimensionOverride)(OrtSessionOptions*, const char*, int64_t);
  OrtStatus* (*GetValue)(const OrtValue*, int, OrtAllocator*, OrtValue**);
  OrtStatus* (*GetValueCount)(const OrtValue*, size_t*);
  OrtStatus* (*CreateValue)(const OrtValue* const*, size_t, ONNXType, OrtValue**);
  OrtStatus* (*CreateOpaqueValue)(const char*, const char*, const void*, size_t, OrtValue**);
  OrtStatus* (*GetOpaqueValue)(const char*, const char*, const OrtValue*, void*, size_t);
  OrtStatus* (*KernelInfoGetAttribute_float)(const OrtKernelInfo*, const char*, float*);
  OrtStatus* (*KernelInfoGetAttribute_int64)(const OrtKernelInfo*, const char*, int64_t*);
  OrtStatus* (*KernelInfoGetAttribute_string)(const OrtKernelInfo*, const char*, char*, size_t*);
  OrtStatus* (*KernelContext_GetInputCount)(const OrtKernelContext*, size_t*);
  OrtStatus* (*KernelContext_GetOutputCount)(const OrtKernelContext*, size_t*);
  OrtStatus* (*KernelContext_GetInput)(const OrtKernelContext*, size_t, const OrtValue**);
  OrtStatus* (*KernelContext_GetOutput)(OrtKernelContext*, size_t, const int64_t*, size_t, OrtValue**);
  void (*ReleaseEnv)(OrtEnv*);
  void (*ReleaseStatus)(OrtStatus*);
  void (*ReleaseMemoryInfo)(OrtMemoryInfo*);
  void (*ReleaseSession)(OrtSession*);
  void (*ReleaseValue)(OrtValue*);
  void (*ReleaseRunOptions)(OrtRunOptions*);
  void (*ReleaseTypeInfo)(OrtTypeInfo*);
  void (*ReleaseTensorTypeAndShapeInfo)(OrtTensorTypeAndShapeInfo*);
  void (*ReleaseSessionOptions)(OrtSessionOptions*);
  void (*ReleaseCustomOpDomain)(OrtCustomOpDomain*);
  OrtStatus* (*GetDenotationFromTypeInfo)(const OrtTypeInfo*, const char**, size_t*);
  OrtStatus* (*CastTypeInfoToMapTypeInfo)(const OrtTypeInfo*, const OrtMapTypeInfo**);
  OrtStatus* (*CastTypeInfoToSequenceTypeInfo)(const OrtTypeInfo*, const OrtSequenceTypeInfo**);
  OrtStatus* (*GetMapKeyType)(const OrtMapTypeInfo*, ONNXTensorElementDataType*);
  OrtStatus* (*GetMapValueType)(const OrtMapTypeInfo*, OrtTypeInfo**);
  OrtStatus* (*GetSequenceElementType)(const OrtSequenceTypeInfo*, OrtTypeInfo**);
  void (*ReleaseMapTypeInfo)(OrtMapTypeInfo*);
  void (*ReleaseSequenceTypeInfo)(OrtSequenceTypeInfo*);
  OrtStatus* (*SessionEndProfiling)(OrtSession*, OrtAllocator*, char**);
  OrtStatus* (*SessionGetModelMetadata)(const OrtSession*, OrtModelMetadata**);
  OrtStatus* (*ModelMetadataGetProducerName)(const OrtModelMetadata*, OrtAllocator*, char**);
  OrtStatus* (*ModelMetadataGetGraphName)(const OrtModelMetadata*, OrtAllocator*, char**);
  OrtStatus* (*ModelMetadataGetDomain)(const OrtModelMetadata*, OrtAllocator*, char**);
  OrtStatus* (*ModelMetadataGetDescription)(const OrtModelMetadata*, OrtAllocator*, char**);
  OrtStatus* (*ModelMetadataLookupCustomMetadataMap)(const OrtModelMetadata*, OrtAllocator*, const char*, char**);
  OrtStatus* (*ModelMetadataGetVersion)(const OrtModelMetadata*, int64_t*);
  void (*ReleaseModelMetadata)(OrtModelMetadata*);
  OrtStatus* (*CreateEnvWithGlobalThreadPools)(OrtLoggingLevel, const char*, const OrtThreadingOptions*, OrtEnv**);
  OrtStatus* (*DisablePerSessionThreads)(OrtSessionOptions*);
  OrtStatus* (*CreateThreadingOptions)(OrtThreadingOptions**);
  void (*ReleaseThreadingOptions)(OrtThreadingOptions*);
  OrtStatus* (*ModelMetadataGetCustomMetadataMapKeys)(const OrtModelMetadata*, OrtAllocator*, char***, int64_t*);
  OrtStatus* (*AddFreeDimensionOverrideByName)(OrtSessionOptions*, const char*, int64_t);
  OrtStatus* (*GetAvailableProviders)(char***, int*);
  OrtStatus* (*ReleaseAvailableProviders)(char**, int);
  OrtStatus* (*GetStringTensorElementLength)(const OrtValue*, size_t, size_t*);
  OrtStatus* (*GetStringTensorElement)(const OrtValue*, size_t, size_t, void*);
  OrtStatus* (*FillStringTensorElement)(OrtValue*, const char*, size_t);
  OrtStatus* (*AddSessionConfigEntry)(OrtSessionOptions*, const char*, const char*);
  OrtStatus* (*CreateAllocator)(const OrtSession*, const OrtMemoryInfo*, OrtAllocator**);
  void (*ReleaseAllocator)(OrtAllocator*);
  OrtStatus* (*RunWithBinding)(OrtSession*, const OrtRunOptions*, const OrtIoBinding*);
  OrtStatus* (*CreateIoBinding)(OrtSession*, OrtIoBinding**);
  void (*ReleaseIoBinding)(OrtIoBinding*);
  OrtStatus* (*BindInput)(OrtIoBinding*, const char*, const OrtValue*);
  OrtStatus* (*BindOutput)(OrtIoBinding*, const char*, const OrtValue*);
  OrtStatus* (*BindOutputToDevice)(OrtIoBinding*, const char*, const OrtMemoryInfo*);
  OrtStatus* (*GetBoundOutputNames)(const OrtIoBinding*, OrtAllocator*, char**, size_t**, size_t*);
  OrtStatus* (*GetBoundOutputValues)(const OrtIoBinding*, OrtAllocator*, OrtValue***, size_t*);
  void (*ClearBoundInputs)(OrtIoBinding*);
  void (*ClearBoundOutputs)(OrtIoBinding*);
  OrtStatus* (*TensorAt)(OrtValue*, const int64_t*, size_t, void**);
  OrtStatus* (*CreateAndRegisterAllocator)(OrtEnv*, const OrtMemoryInfo*, const OrtArenaCfg*);
  OrtStatus* (*SetLanguageProjection)(const OrtEnv*, OrtLanguageProjection);
  OrtStatus* (*SessionGetProfilingStartTimeNs)(const OrtSession*, uint64_t*);
  OrtStatus* (*SetGlobalIntraOpNumThreads)(OrtThreadingOptions*, int);
  OrtStatus* (*SetGlobalInterOpNumThreads)(OrtThreadingOptions*, int);
  OrtStatus* (*SetGlobalSpinControl)(OrtThreadingOptions*, int);
  OrtStatus* (*AddInitializer)(OrtSessionOptions*, const char*, const OrtValue*);
  OrtStatus* (*CreateEnvWithCustomLoggerAndGlobalThreadPools)(OrtLoggingFunction, void*, OrtLoggingLevel, const char*,
                                                              const OrtThreadingOptions*, OrtEnv**);
  OrtStatus* (*SessionOptionsAppendExecutionProvider_CUDA)(OrtSessionOptions*, const OrtCUDAProviderOptions*);
  OrtStatus* (*SessionOptionsAppendExecutionProvider_ROCM)(OrtSessionOptions*, const OrtROCMProviderOptions*);
  OrtStatus* (*SessionOptionsAppendExecutionProvider_OpenVINO)(OrtSessionOptions*, const OrtOpenVINOProviderOptions*);
  OrtStatus* (*SetGlobalDenormalAsZero)(OrtThreadingOptions*);
  OrtStatus* (*CreateArenaCfg)(size_t, int, int, int, OrtArenaCfg**);
  void (*ReleaseArenaCfg)(OrtArenaCfg*);
  OrtStatus* (*ModelMetadataGetGraphDescription)(const OrtModelMetadata*, OrtAllocator*, char**);
  OrtStatus* (*SessionOptionsAppendExecutionProvider_TensorRT)(OrtSessionOptions*, const OrtTensorRTProviderOptions*);
  OrtStatus* (*SetCurrentGpuDeviceId)(int);
  OrtStatus* (*GetCurrentGpuDeviceId)(int*);
  OrtStatus* (*KernelInfoGetAttributeArray_float)(const OrtKernelInfo*, const char*, float*, size_t*);
  OrtStatus* (*KernelInfoGetAttributeArray_int64)(const OrtKernelInfo*, const char*, int64_t*, size_t*);
  OrtStatus* (*CreateArenaCfgV2)(const char* const*, const size_t*, size_t, OrtArenaCfg**);
  OrtStatus* (*AddRunConfigEntry)(OrtRunOptions*, const char*, const char*);
  OrtStatus* (*CreatePrepackedWeightsContainer)(OrtPrepackedWeightsContainer**);
  void (*ReleasePrepackedWeightsContainer)(OrtPrepackedWeightsContainer*);
  OrtStatus* (*CreateSessionWithPrepackedWeightsContainer)(const OrtEnv*, const char*, const OrtSessionOptions*,
                                                           OrtPrepackedWeightsContainer*, OrtSession**);
  OrtStatus* (*CreateSessionFromArrayWithPrepackedWeightsContainer)(const OrtEnv*, const void*, size_t, const OrtSessionOptions*,
                                                                    OrtPrepackedWeightsContainer*, OrtSession**);
  OrtStatus* (*SessionOptionsAppendExecutionProvider_TensorRT_V2)(OrtSessionOptions*, const OrtTensorRTProviderOptionsV2*);
  OrtStatus* (*CreateTensorRTProviderOptions)(OrtTensorRTProviderOptionsV2**);
  OrtStatus* (*UpdateTensorRTProviderOptions)(OrtTensorRTProviderOptionsV2*, const char* const*, const char* const*, size_t);
  OrtStatus* (*GetTensorRTProviderOptionsAsString)(const OrtTensorRTProviderOptionsV2*, OrtAllocator*, char**);
  void (*ReleaseTensorRTProviderOptions)(OrtTensorRTProviderOptionsV2*);
  OrtStatus* (*EnableOrtCustomOps)(OrtSessionOptions*);
  OrtStatus* (*RegisterAllocator)(OrtEnv*, OrtAllocator*);
  OrtStatus* (*UnregisterAllocator)(OrtEnv*, const OrtMemoryInfo*);
  OrtStatus* (*IsSparseTensor)(const OrtValue*, int*);
  OrtStatus* (*CreateSparseTensorAsOrtValue)(OrtAllocator*, const int64_t*, size_t, ONNXTensorElementDataType, OrtValue**);
  OrtStatus* (*FillSparseTensorCoo)(OrtValue*, const OrtMemoryInfo*, const int64_t*, size_t, const void*, const int64_t*, size_t);
  OrtStatus* (*FillSparseTensorCsr)(OrtValue*, const OrtMemoryInfo*, const int64_t*, size_t, const void*, const int64_t*, size_t,
                                    const int64_t*, size_t);
  OrtStatus* (*FillSparseTensorBlockSparse)(OrtValue*, const OrtMemoryInfo*, const int64_t*, size_t, const void*, const int64_t*, size_t,
                                            const int32_t*);
  OrtStatus* (*CreateSparseTensorWithValuesAsOrtValue)(const OrtMemoryInfo*, void*, const int64_t*, size_t, const int64_t*, size_t,
                                                       ONNXTensorElementDataType, OrtValue**);
  OrtStatus* (*UseCooIndices)(OrtValue*, int64_t*, size_t);
  OrtStatus* (*UseCsrIndices)(OrtValue*, int64_t*, size_t, int64_t*, size_t);
  OrtStatus* (*UseBlockSparseIndices)(OrtValue*, const int64_t*, size_t, int32_t*);
  OrtStatus* (*GetSparseTensorFormat)(const OrtValue*, OrtSparseFormat*);
  OrtStatus* (*GetSparseTensorValuesTypeAndShape)(const OrtValue*, OrtTensorTypeAndShapeInfo**);
  OrtStatus* (*GetSparseTensorValues)(const OrtValue*, const void**);
  OrtStatus* (*GetSparseTensorIndicesTypeShape)(const OrtValue*, OrtSparseIndicesFormat, OrtTensorTypeAndShapeInfo**);
  OrtStatus* (*GetSparseTensorIndices)(const OrtValue*, OrtSparseIndicesFormat, size_t*, const void**);
  OrtStatus* (*HasValue)(const OrtValue*, int*);
  OrtStatus* (*KernelContext_GetGPUComputeStream)(const OrtKernelContext*, void**);
  OrtStatus* (*GetTensorMemoryInfo)(const OrtValue*, const OrtMemoryInfo**);
  OrtStatus* (*GetExecutionProviderApi)(const char*, uint32_t, const void**);
  OrtStatus* (*SessionOptionsSetCustomCreateThreadFn)(OrtSessionOptions*, OrtCustomCreateThreadFn);
  OrtStatus* (*SessionOptionsSetCustomThreadCreationOptions)(OrtSessionOptions*, void*);
  OrtStatus* (*SessionOptionsSetCustomJoinThreadFn)(OrtSessionOptions*, OrtCustomJoinThreadFn);
  OrtStatus* (*SetGlobalCustomCreateThreadFn)(OrtThreadingOptions*, OrtCustomCreateThreadFn);
  OrtStatus* (*SetGlobalCustomThreadCreationOptions)(OrtThreadingOptions*, void*);
  OrtStatus* (*SetGlobalCustomJoinThreadFn)(OrtThreadingOptions*, OrtCustomJoinThreadFn);
  OrtStatus* (*SynchronizeBoundInputs)(OrtIoBinding*);
  OrtStatus* (*SynchronizeBoundOutputs)(OrtIoBinding*);
  OrtStatus* (*SessionOptionsAppendExecutionProvider_CUDA_V2)(OrtSessionOptions*, const OrtCUDAProviderOptionsV2*);
  OrtStatus* (*CreateCUDAProviderOptions)(OrtCUDAProviderOptionsV2**);
  OrtStatus* (*UpdateCUDAProviderOptions)(OrtCUDAProviderOptionsV2*, const char* const*, const char* const*, size_t);
  OrtStatus* (*GetCUDAProviderOptionsAsString)(const OrtCUDAProviderOptionsV2*, OrtAllocator*, char**);
  void (*ReleaseCUDAProviderOptions)(OrtCUDAProviderOptionsV2*);
  OrtStatus* (*SessionOptionsAppendExecutionProvider_MIGraphX)(OrtSessionOptions*, const OrtMIGraphXProviderOptions*);
  OrtStatus* (*AddExternalInitializers)(OrtSessionOptions*, const char* const*, const OrtValue* const*, size_t);
  OrtStatus* (*CreateOpAttr)(const char*, const void*, int, OrtOpAttrType, OrtOpAttr**);
  void (*ReleaseOpAttr)(OrtOpAttr*);
  OrtStatus* (*CreateOp)(const OrtKernelInfo*, const char*, const char*, int, const char**, const ONNXTensorElementDataType*, int,
                         const OrtOpAttr* const*, int, int, int, OrtOp**);
  OrtStatus* (*InvokeOp)(const OrtKernelContext*, const OrtOp*, const OrtValue* const*, int, OrtValue* const*, int);
  void (*ReleaseOp)(OrtOp*);
  OrtStatus* (*SessionOptionsAppendExecutionProvider)(OrtSessionOptions*, const char*, const char* const*, const char* const*, size_t);
  OrtStatus* (*CopyKernelInfo)(const OrtKernelInfo*, OrtKernelInfo**);
  void (*ReleaseKernelInfo)(OrtKernelInfo*);
  const OrtTrainingApi* (*GetTrainingApi)(uint32_t);
  OrtStatus* (*SessionOptionsAppendExecutionProvider_CANN)(OrtSessionOptions*, const OrtCANNProviderOptions*);
  OrtStatus* (*CreateCANNProviderOptions)(OrtCANNProviderOptions**);
  OrtStatus* (*UpdateCANNProviderOptions)(OrtCANNProviderOptions*, const char* const*, const char* const*, size_t);
  OrtStatus* (*GetCANNProviderOptionsAsString)(const OrtCANNProviderOptions*, OrtAllocator*, char**);
  void (*ReleaseCANNProviderOptions)(OrtCANNProviderOptions*);
  void (*MemoryInfoGetDeviceType)(const OrtMemoryInfo*, OrtMemoryInfoDeviceType*);
  OrtStatus* (*UpdateEnvWithCustomLogLevel)(OrtEnv*, OrtLoggingLevel);
  OrtStatus* (*SetGlobalIntraOpThreadAffinity)(OrtThreadingOptions*, const char*);
  OrtStatus* (*RegisterCustomOpsLibrary_V2)(OrtSessionOptions*, const char*);
  OrtStatus* (*RegisterCustomOpsUsingFunction)(OrtSessionOptions*, const char*);
  OrtStatus* (*KernelInfo_GetInputCount)(const OrtKernelInfo*, size_t*);
  OrtStatus* (*KernelInfo_GetOutputCount)(const OrtKernelInfo*, size_t*);
  OrtStatus* (*KernelInfo_GetInputName)(const OrtKernelInfo*, size_t, char*, size_t*);
  OrtStatus* (*KernelInfo_GetOutputName)(const OrtKernelInfo*, size_t, char*, size_t*);
  OrtStatus* (*KernelInfo_GetInputTypeInfo)(const OrtKernelInfo*, size_t, OrtTypeInfo**);
  OrtStatus* (*KernelInfo_GetOutputTypeInfo)(const OrtKernelInfo*, size_t, OrtTypeInfo**);
  OrtStatus* (*KernelInfoGetAttribute_tensor)(const OrtKernelInfo*, const char*, OrtAllocator*, OrtValue**);
  OrtStatus* (*HasSessionConfigEntry)(const OrtSessionOptions*, const char*, int*);
  OrtStatus* (*GetSessionConfigEntry)(const OrtSessionOptions*, const char*, char*, size_t*);
  OrtStatus* (*SessionOptionsAppendExecutionProvider_Dnnl)(OrtSessionOptions*, const OrtDnnlProviderOptions*);
  OrtStatus* (*CreateDnnlProviderOptions)(OrtDnnlProviderOptions**);
  OrtStatus* (*UpdateDnnlProviderOptions)(OrtDnnlProviderOptions*, const char* const*, const char* const*, size_t);
  OrtStatus* (*GetDnnlProviderOptionsAsString)(const OrtDnnlProviderOptions*, OrtAllocator*, char**);
  void (*ReleaseDnnlProviderOptions)(OrtDnnlProviderOptions*);
  OrtStatus* (*KernelInfo_GetNodeName)(const OrtKernelInfo*, char*, size_t*);
  OrtStatus* (*KernelInfo_GetLogger)(const OrtKernelInfo*, const OrtLogger**);
  OrtStatus* (*KernelContext_GetLogger)(const OrtKernelContext*, const OrtLogger**);
  OrtStatus* (*Logger_LogMessage)(const OrtLogger*, OrtLoggingLevel, const char*, const char*, int, const char*);
  OrtStatus* (*Logger_GetLoggingSeverityLevel)(const OrtLogger*, OrtLoggingLevel*);
  OrtStatus* (*KernelInfoGetConstantInput_tensor)(const OrtKernelInfo*, size_t, int*, const OrtValue**);
  OrtStatus* (*CastTypeInfoToOptionalTypeInfo)(const OrtTypeInfo*, const OrtOptionalTypeInfo**);
  OrtStatus* (*GetOptionalContainedTypeInfo)(const OrtOptionalTypeInfo*, OrtTypeInfo**);
  OrtStatus* (*GetResizedStringTensorElementBuffer)(OrtValue*, size_t, size_t, char**);
  OrtStatus* (*KernelContext_GetAllocator)(const OrtKernelContext*, const OrtMemoryInfo*, OrtAllocator**);
  const char* (*GetBuildInfoString)(void);
  OrtStatus* (*CreateROCMProviderOptions)(OrtROCMProviderOptions**);
  OrtStatus* (*UpdateROCMProviderOptions)(OrtROCMProviderOptions*, const char* const*, const char* const*, size_t);
  OrtStatus* (*GetROCMProviderOptionsAsString)(const OrtROCMProviderOptions*, OrtAllocator*, char**);
  void (*ReleaseROCMProviderOptions)(OrtROCMProviderOptions*);
  OrtStatus* (*CreateAndRegisterAllocatorV2)(OrtEnv*, const char*, const OrtMemoryInfo*, const OrtArenaCfg*, const char* const*,
                                             const char* const*, size_t);
  OrtStatus* (*RunAsync)(OrtSession*, const OrtRunOptions*, const char* const*, const OrtValue* const*, size_t, const char* const*, size_t,
                         OrtValue**, RunAsyncCallbackFn, void*);
  OrtStatus* (*UpdateTensorRTProviderOptionsWithValue)(OrtTensorRTProviderOptionsV2*, const char*, void*);
  OrtStatus* (*GetTensorRTProviderOptionsByName)(const OrtTensorRTProviderOptionsV2*, const char*, void**);
  OrtStatus* (*UpdateCUDAProviderOptionsWithValue)(OrtCUDAProviderOptionsV2*, const char*, void*);
  OrtStatus* (*GetCUDAProviderOptionsByName)(const OrtCUDAProviderOptionsV2*, const char*, void**);
  OrtStatus* (*KernelContext_GetResource)(const OrtKernelContext*, int, int, void**);
  OrtStatus* (*SetUserLoggingFunction)(OrtSessionOptions*, OrtLoggingFunction, void*);
  OrtStatus* (*ShapeInferContext_GetInputCount)(const OrtShapeInferContext*, size_t*);
  OrtStatus* (*ShapeInferContext_GetInputTypeShape)(const OrtShapeInferContext*, size_t, OrtTensorTypeAndShapeInfo**);
  OrtStatus* (*ShapeInferContext_GetAttribute)(const OrtShapeInferContext*, const char*, const OrtOpAttr**);
  OrtStatus* (*ShapeInferContext_SetOutputTypeShape)(const OrtShapeInferContext*, size_t, const OrtTensorTypeAndShapeInfo*);
  OrtStatus* (*SetSymbolicDimensions)(OrtTensorTypeAndShapeInfo*, const char**, size_t);
  OrtStatus* (*ReadOpAttr)(const OrtOpAttr*, OrtOpAttrType, void*, size_t, size_t*);
  OrtStatus* (*SetDeterministicCompute)(OrtSessionOptions*, bool);
  OrtStatus* (*KernelContext_ParallelFor)(const OrtKernelContext*, void (*)(void*, size_t), size_t, size_t, void*);
  OrtStatus* (*SessionOptionsAppendExecutionProvider_OpenVINO_V2)(OrtSessionOptions*, const char* const*, const char* const*, size_t);
  OrtStatus* (*SessionOptionsAppendExecutionProvider_VitisAI)(OrtSessionOptions*, const char* const*, const char* const*, size_t);
  OrtStatus* (*KernelContext_GetScratchBuffer)(const OrtKernelContext*, const OrtMemoryInfo*, size_t, void**);
  OrtStatus* (*KernelInfoGetAllocator)(const OrtKernelInfo*, OrtMemType, OrtAllocator**);
  OrtStatus* (*AddExternalInitializersFromFilesInMemory)(OrtSessionOptions*, const char* const*, char* const*, const size_t*, size_t);
  OrtStatus* (*CreateLoraAdapter)(const char*, OrtAllocator*, OrtLoraAdapter**);
  OrtStatus* (*CreateLoraAdapterFromArray)(const void*, size_t, OrtAllocator*, OrtLoraAdapter**);
  void (*ReleaseLoraAdapter)(OrtLoraAdapter*);
  OrtStatus* (*RunOptionsAddActiveLoraAdapter)(OrtRunOptions*, const OrtLoraAdapter*);
  OrtStatus* (*SetEpDynamicOptions)(OrtSession*, const char* const*, const char* const*, size_t);
  void (*ReleaseValueInfo)(OrtValueInfo*);
  void (*ReleaseNode)(OrtNode*);
  void (*ReleaseGraph)(OrtGraph*);
  void (*ReleaseModel)(OrtModel*);
  OrtStatus* (*GetValueInfoName)(const OrtValueInfo*, const char**);
  OrtStatus* (*GetValueInfoTypeInfo)(const OrtValueInfo*, const OrtTypeInfo**);
  const OrtModelEditorApi* (*GetModelEditorApi)(void);
  OrtStatus* (*CreateTensorWithDataAndDeleterAsOrtValue)(OrtAllocator*, void*, size_t, const int64_t*, size_t, ONNXTensorElementDataType,
                                                         OrtValue**);
  OrtStatus* (*SessionOptionsSetLoadCancellationFlag)(OrtSessionOptions*, bool);
  const OrtCompileApi* (*GetCompileApi)(void);
  void (*CreateKeyValuePairs)(OrtKeyValuePairs**);
  void (*AddKeyValuePair)(OrtKeyValuePairs*, const char*, const char*);
  const char* (*GetKeyValue)(const OrtKeyValuePairs*, const char*);
  void (*GetKeyValuePairs)(const OrtKeyValuePairs*, const char* const**, const char* const**, size_t*);
  void (*RemoveKeyValuePair)(OrtKeyValuePairs*, const char*);
  void (*ReleaseKeyValuePairs)(OrtKeyValuePairs*);
  OrtStatus* (*RegisterExecutionProviderLibrary)(OrtEnv*, const char*, const char*);
  OrtStatus* (*UnregisterExecutionProviderLibrary)(OrtEnv*, const char*);
  OrtStatus* (*GetEpDevices)(const OrtEnv*, const OrtEpDevice* const**, size_t*);
  OrtStatus* (*SessionOptionsAppendExecutionProvider_V2)(OrtSessionOptions*, OrtEnv*, const OrtEpDevice* const*, size_t, const char* const*,
                                                         const char* const*, size_t);
  OrtStatus* (*SessionOptionsSetEpSelectionPolicy)(OrtSessionOptions*, OrtExecutionProviderDevicePolicy);
  OrtStatus* (*SessionOptionsSetEpSelectionPolicyDelegate)(OrtSessionOptions*, EpSelectionDelegate, void*);
  OrtHardwareDeviceType (*HardwareDevice_Type)(const OrtHardwareDevice*);
  uint32_t (*HardwareDevice_VendorId)(const OrtHardwareDevice*);
  const char* (*HardwareDevice_Vendor)(const OrtHardwareDevice*);
  uint32_t (*HardwareDevice_DeviceId)(const OrtHardwareDevice*);
  const OrtKeyValuePairs* (*HardwareDevice_Metadata)(const OrtHardwareDevice*);
  const char* (*EpDevice_EpName)(const OrtEpDevice*);
  const char* (*EpDevice_EpVendor)(const OrtEpDevice*);
  const OrtKeyValuePairs* (*EpDevice_EpMetadata)(const OrtEpDevice*);
  const OrtKeyValuePairs* (*EpDevice_EpOptions)(const OrtEpDevice*);
  const OrtHardwareDevice* (*EpDevice_Device)(const OrtEpDevice*);
  const OrtEpApi* (*GetEpApi)(void);
  OrtStatus* (*GetTensorSizeInBytes)(const OrtValue*, size_t*);
  OrtStatus* (*AllocatorGetStats)(const OrtAllocator*, OrtKeyValuePairs**);
  OrtStatus* (*CreateMemoryInfo_V2)(const char*, OrtMemoryInfoDeviceType, uint32_t, int32_t, OrtDeviceMemoryType, size_t, OrtAllocatorType,
                                    OrtMemoryInfo**);
  OrtDeviceMemoryType (*MemoryInfoGetDeviceMemType)(const OrtMemoryInfo*);
  uint32_t (*MemoryInfoGetVendorId)(const OrtMemoryInfo*);
  OrtStatus* (*ValueInfo_GetValueProducer)(const OrtValueInfo*, const OrtNode**, size_t*);
  OrtStatus* (*ValueInfo_GetValueNumConsumers)(const OrtValueInfo*, size_t*);
  OrtStatus* (*ValueInfo_GetValueConsumers)(const OrtValueInfo*, const OrtNode**, int64_t*, size_t);
  OrtStatus* (*ValueInfo_GetInitializerValue)(const OrtValueInfo*, const OrtValue**);
  OrtStatus* (*ValueInfo_GetExternalInitializerInfo)(const OrtValueInfo*, OrtExternalInitializerInfo**);
  OrtStatus* (*ValueInfo_IsRequiredGraphInput)(const OrtValueInfo*, bool*);
  OrtStatus* (*ValueInfo_IsOptionalGraphInput)(const OrtValueInfo*, bool*);
  OrtStatus* (*ValueInfo_IsGraphOutput)(const OrtValueInfo*, bool*);
  OrtStatus* (*ValueInfo_IsConstantInitializer)(const OrtValueInfo*, bool*);
  OrtStatus* (*ValueInfo_IsFromOuterScope)(const OrtValueInfo*, bool*);
  OrtStatus* (*Graph_GetName)(const OrtGraph*, const char**);
  OrtStatus* (*Graph_GetModelPath)(const OrtGraph*, const char**);
  OrtStatus* (*Graph_GetOnnxIRVersion)(const OrtGraph*, int64_t*);
  OrtStatus* (*Graph_GetNumOperatorSets)(const OrtGraph*, size_t*);
  OrtStatus* (*Graph_GetOperatorSets)(const OrtGraph*, const char**, int64_t*, size_t);
  OrtStatus* (*Graph_GetNumInputs)(const OrtGraph*, size_t*);
  OrtStatus* (*Graph_GetInputs)(const OrtGraph*, const OrtValueInfo**, size_t);
  OrtStatus* (*Graph_GetNumOutputs)(const OrtGraph*, size_t*);
  OrtStatus* (*Graph_GetOutputs)(const OrtGraph*, const OrtValueInfo**, size_t);
  OrtStatus* (*Graph_GetNumInitializers)(const OrtGraph*, size_t*);
  OrtStatus* (*Graph_GetInitializers)(const OrtGraph*, const OrtValueInfo**, size_t);
  OrtStatus* (*Graph_GetNumNodes)(const OrtGraph*, size_t*);
  OrtStatus* (*Graph_GetNodes)(const OrtGraph*, const OrtNode**, size_t);
  OrtStatus* (*Graph_GetParentNode)(const OrtGraph*, const OrtNode**);
  OrtStatus* (*Graph_GetGraphView)(const OrtGraph*, const OrtNode**, size_t, OrtGraph**);
  OrtStatus* (*Node_GetId)(const OrtNode*, size_t*);
  OrtStatus* (*Node_GetName)(const OrtNode*, const char**);
  OrtStatus* (*Node_GetOperatorType)(const OrtNode*, const char**);
  OrtStatus* (*Node_GetDomain)(const OrtNode*, const char**);
  OrtStatus* (*Node_GetSinceVersion)(const OrtNode*, int*);
  OrtStatus* (*Node_GetNumInputs)(const OrtNode*, size_t*);
  OrtStatus* (*Node_GetInputs)(const OrtNode*, const OrtValueInfo**, size_t);
  OrtStatus* (*Node_GetNumOutputs)(const OrtNode*, size_t*);
  OrtStatus* (*Node_GetOutputs)(const OrtNode*, const OrtValueInfo**, size_t);
  OrtStatus* (*Node_GetNumImplicitInputs)(const OrtNode*, size_t*);
  OrtStatus* (*Node_GetImplicitInputs)(const OrtNode*, const OrtValueInfo**, size_t);
  OrtStatus* (*Node_GetNumAttributes)(const OrtNode*, size_t*);
  OrtStatus* (*Node_GetAttributes)(const OrtNode*, const OrtOpAttr**, size_t);
  OrtStatus* (*Node_GetAttributeByName)(const OrtNode*, const char*, const OrtOpAttr**);
  OrtStatus* (*OpAttr_GetTensorAttributeAsOrtValue)(const OrtOpAttr*, OrtValue**);
  OrtStatus* (*OpAttr_GetType)(const OrtOpAttr*, OrtOpAttrType*);
  OrtStatus* (*OpAttr_GetName)(const OrtOpAttr*, const char**);
  OrtStatus* (*Node_GetNumSubgraphs)(const OrtNode*, size_t*);
  OrtStatus* (*Node_GetSubgraphs)(const OrtNode*, const OrtGraph**, size_t, const char**);
  OrtStatus* (*Node_GetGraph)(const OrtNode*, const OrtGraph**);
  OrtStatus* (*Node_GetEpName)(const OrtNode*, const char**);
  void (*ReleaseExternalInitializerInfo)(OrtExternalInitializerInfo*);
  const char* (*ExternalInitializerInfo_GetFilePath)(const OrtExternalInitializerInfo*);
  int64_t (*ExternalInitializerInfo_GetFileOffset)(const OrtExternalInitializerInfo*);
  size_t (*ExternalInitializerInfo_GetByteSize)(const OrtExternalInitializerInfo*);
  const char* (*GetRunConfigEntry)(const OrtRunOptions*, const char*);
  const OrtMemoryInfo* (*EpDevice_MemoryInfo)(const OrtEpDevice*, OrtDeviceMemoryType);
  OrtStatus* (*CreateSharedAllocator)(OrtEnv*, const OrtEpDevice*, OrtDeviceMemoryType, OrtAllocatorType, const OrtKeyValuePairs*,
                                      OrtAllocator**);
  OrtStatus* (*GetSharedAllocator)(OrtEnv*, const OrtMemoryInfo*, OrtAllocator**);
  OrtStatus* (*ReleaseSharedAllocator)(OrtEnv*, const OrtEpDevice*, OrtDeviceMemoryType);
  OrtStatus* (*GetTensorData)(const OrtValue*, const void**);
  OrtStatus* (*GetSessionOptionsConfigEntries)(const OrtSessionOptions*, OrtKeyValuePairs**);
  OrtStatus* (*SessionGetMemoryInfoForInputs)(const OrtSession*, const OrtMemoryInfo**, size_t);
  OrtStatus* (*SessionGetMemoryInfoForOutputs)(const OrtSession*, const OrtMemoryInfo**, size_t);
  OrtStatus* (*SessionGetEpDeviceForInputs)(const OrtSession*, const OrtEpDevice**, size_t);
  OrtStatus* (*CreateSyncStreamForEpDevice)(const OrtEpDevice*, const OrtKeyValuePairs*, OrtSyncStream**);
  void* (*SyncStream_GetHandle)(OrtSyncStream*);
  void (*ReleaseSyncStream)(OrtSyncStream*);
  OrtStatus* (*CopyTensors)(const OrtEnv*, const OrtValue* const*, OrtValue* const*, OrtSyncStream*, size_t);
  OrtStatus* (*Graph_GetModelMetadata)(const OrtGraph*, OrtModelMetadata**);
  OrtStatus* (*GetModelCompatibilityForEpDevices)(const OrtEpDevice* const*, size_t, const char*, OrtCompiledModelCompatibility*);
  OrtStatus* (*CreateExternalInitializerInfo)(const char*, int64_t, size_t, OrtExternalInitializerInfo**);
  bool (*TensorTypeAndShape_HasShape)(const OrtTensorTypeAndShapeInfo*);
  OrtStatus* (*KernelInfo_GetConfigEntries)(const OrtKernelInfo*, OrtKeyValuePairs**);
  OrtStatus* (*KernelInfo_GetOperatorDomain)(const OrtKernelInfo*, char*, size_t*);
  OrtStatus* (*KernelInfo_GetOperatorType)(const OrtKernelInfo*, char*, size_t*);
  OrtStatus* (*KernelInfo_GetOperatorSinceVersion)(const OrtKernelInfo*, int*);
  const OrtInteropApi* (*GetInteropApi)(void);
  OrtStatus* (*SessionGetEpDeviceForOutputs)(const OrtSession*, const OrtEpDevice**, size_t);
  OrtStatus* (*GetNumHardwareDevices)(const OrtEnv*, size_t*);
  OrtStatus* (*GetHardwareDevices)(const OrtEnv*, const OrtHardwareDevice**, size_t);
  OrtStatus* (*GetHardwareDeviceEpIncompatibilityDetails)(const OrtEnv*, const char*, const OrtHardwareDevice*,
                                                          OrtDeviceEpIncompatibilityDetails**);
  OrtStatus* (*DeviceEpIncompatibilityDetails_GetReasonsBitmask)(const OrtDeviceEpIncompatibilityDetails*, uint32_t*);
  OrtStatus* (*DeviceEpIncompatibilityDetails_GetNotes)(const OrtDeviceEpIncompatibilityDetails*, const char**);
  OrtStatus* (*DeviceEpIncompatibilityDetails_GetErrorCode)(const OrtDeviceEpIncompatibilityDetails*, int32_t*);
  void (*ReleaseDeviceEpIncompatibilityDetails)(OrtDeviceEpIncompatibilityDetails*);
  OrtStatus* (*GetCompatibilityInfoFromModel)(const char*, const char*, OrtAllocator*, char**);
  OrtStatus* (*GetCompatibilityInfoFromModelBytes)(const void*, size_t, const char*, OrtAllocator*, char**);
  OrtStatus* (*CreateEnvWithOptions)(const OrtEnvCreationOptions*, OrtEnv**);
  OrtStatus* (*Session_GetEpGraphAssignmentInfo)(const OrtSession*, const OrtEpAssignedSubgraph* const**, size_t*);
  OrtStatus* (*EpAssignedSubgraph_GetEpName)(const OrtEpAssignedSubgraph*, const char**);
  OrtStatus* (*EpAssignedSubgraph_GetNodes)(const OrtEpAssignedSubgraph*, const OrtEpAssignedNode* const**, size_t*);
  OrtStatus* (*EpAssignedNode_GetName)(const OrtEpAssignedNode*, const char**);
  OrtStatus* (*EpAssignedNode_GetDomain)(const OrtEpAssignedNode*, const char**);
  OrtStatus* (*EpAssignedNode_GetOperatorType)(const OrtEpAssignedNode*, const char**);
  void (*RunOptionsSetSyncStream)(OrtRunOptions*, OrtSyncStream*);
  OrtStatus* (*GetTensorElementTypeAndShapeDataReference)(const OrtValue*, ONNXTensorElementDataType*, const int64_t**, size_t*);
  OrtStatus* (*RunOptionsEnableProfiling)(OrtRunOptions*, const char*);
  OrtStatus* (*RunOptionsDisableProfiling)(OrtRunOptions*);
  OrtStatus* (*KernelInfoGetAttributeArray_string)(const OrtKernelInfo*, const char*, OrtAllocator*, char***, size_t*);
  OrtStatus* (*SetPerSessionThreadPoolCallbacks)(OrtEnv*, const OrtThreadPoolCallbacksConfig*);
  OrtStatus* (*GetMemPatternEnabled)(const OrtSessionOptions*, int*);
  OrtStatus* (*GetSessionExecutionMode)(const OrtSessionOptions*, ExecutionMode*);
  OrtStatus* (*SessionReleaseCapturedGraph)(OrtSession*, int);
  OrtExperimentalFnPtr (*GetExperimentalFunction)(const char*);
  OrtStatus* (*KernelContext_GetSyncStream)(const OrtKernelContext*, OrtSyncStream**);
  OrtStatus* (*SessionOptionsSetWeightlessSourceModelBuffer)(OrtSessionOptions*, const void*, size_t);
};

#ifdef __cplusplus
}
#endif
#endif
