// Devices, contexts, streams and events.
#include <cstring>

#include "state.h"

using namespace stub;

EXPORT CUresult cuDriverGetVersion(int* version) {
  std::lock_guard lock(Now().mutex);
  *version = int(Option("version", 13000));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuInit(unsigned) { return Answer("cuInit", false); }
EXPORT CUresult cuGetErrorName(CUresult error, const char** name) {
  switch (error) {
    case CUDA_ERROR_OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case CUDA_ERROR_ECC_UNCORRECTABLE: *name = "CUDA_ERROR_ECC_UNCORRECTABLE"; break;
    case CUDA_ERROR_NO_DEVICE: *name = "CUDA_ERROR_NO_DEVICE"; break;
    case CUDA_ERROR_LAUNCH_FAILED: *name = "CUDA_ERROR_LAUNCH_FAILED"; break;
    default: *name = "CUDA_ERROR_OF_THE_STUB";
  }
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetCount(int* count) {
  std::lock_guard lock(Now().mutex);
  *count = int(Option("devices", 1));
  return Enter("cuDeviceGetCount", false);
}
EXPORT CUresult cuDeviceGet(CUdevice* device, int i) {
  *device = i;
  return Answer("cuDeviceGet", false);
}
EXPORT CUresult cuDeviceGetName(char* name, int bytes, CUdevice) {
  std::strncpy(name, "Stub", size_t(bytes));
  return Answer("cuDeviceGetName", false);
}
EXPORT CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  std::memset(uuid, device, sizeof *uuid);
  return Answer("cuDeviceGetUuid", false);
}
EXPORT CUresult cuDeviceTotalMem(size_t* bytes, CUdevice) {
  std::lock_guard lock(Now().mutex);
  *bytes = size_t(Option("memory", 1 << 30));
  return Enter("cuDeviceTotalMem", false);
}
EXPORT CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute what, CUdevice) {
  switch (what) {  // an H100's values
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = int(Option("capability", 9)); break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: *value = 1; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 132; break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = 1980000; break;
    default: *value = 0;
  }
  return Answer("cuDeviceGetAttribute", false);
}
EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  *context = &Now().contexts[device];
  (*context)->device = device;
  return Answer("cuDevicePrimaryCtxRetain", false);
}
EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice) { return Answer("cuDevicePrimaryCtxRelease", false); }
EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  std::lock_guard lock(Now().mutex);
  current = Mutant("no_context") ? nullptr : context;
  return Enter("cuCtxSetCurrent", false);
}
EXPORT CUresult cuCtxSynchronize() { return Answer("cuCtxSynchronize"); }

// The built-in streams, which get no work here.
static bool IsDefault(CUstream stream) { return stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD; }

// Reports an operation that a recorded stream does not permit. REQUIRES: the mutex.
static bool Refuses(CUstream stream, const char* what) {
  if (!Now().streams.count(stream) || !stream->recorded) return false;
  Wrong(std::string(what) + " on a stream that is being recorded");
  stream->broken = true;
  return true;
}

EXPORT CUresult cuStreamCreate(CUstream* stream, unsigned) {
  State& s = Now();
  std::lock_guard lock(s.mutex);
  if (CUresult error = Enter("cuStreamCreate")) return error;
  *stream = new CUstream_st{};
  (*stream)->id = s.next_stream++;
  s.streams.insert(*stream);
  (*stream)->thread = std::thread(WorkOff, *stream);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamDestroy(CUstream stream) {
  State& s = Now();
  {
    std::unique_lock lock(s.mutex);
    Enter("cuStreamDestroy");
    if (!s.streams.erase(stream)) {
      Wrong("a stream is destroyed that is not there");
      return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!stream->work.empty() || stream->busy) Wrong("a stream is destroyed with work in it");
    if (stream->recorded) Wrong("a stream is destroyed while it is recorded");
    stream->closing = true;
    s.changed.notify_all();
  }
  stream->thread.join();
  delete stream;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamSynchronize(CUstream stream) {
  std::unique_lock lock(Now().mutex);
  if (CUresult error = Enter("cuStreamSynchronize")) {
    Drain(lock, stream);
    return error;
  }
  if (stream->recorded) Wrong("a stream is waited for while it is recorded");
  if (Mutant("no_stream_synchronize")) return CUDA_SUCCESS;
  return Drain(lock, stream);
}
EXPORT CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuStreamIsCapturing")) return error;
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (IsDefault(stream)) return CUDA_SUCCESS;
  if (!Now().streams.count(stream)) return CUDA_ERROR_INVALID_HANDLE;
  *status = stream->recorded ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuStreamWaitEvent")) return error;
  if (Refuses(stream, "a wait")) return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  if (!Now().events.count(event)) Wrong("a stream waits for an event that is not there");
  Work w;
  w.what = "waiting for an event";
  w.harmless = true;
  if (!Mutant("no_wait_event")) w.before = event->record;
  Enqueue(Mutant("wait_event_on_another_stream") ? Another(stream) : stream, std::move(w));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t, unsigned) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuStreamWaitValue32")) return error;
  if (Refuses(stream, "a wait")) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  Work w;
  w.what = "waiting for a flag";
  w.harmless = true;
  if (!Mutant("no_wait_value")) w.flag = reinterpret_cast<const uint32_t*>(address);
  Enqueue(stream, std::move(w));
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventCreate(CUevent* event, unsigned) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuEventCreate")) return error;
  *event = new CUevent_st{std::make_shared<Record>()};
  (*event)->record->done = true;
  Now().events.insert(*event);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuEventDestroy(CUevent event) {
  std::lock_guard lock(Now().mutex);
  Enter("cuEventDestroy");
  if (!Now().events.erase(event)) {
    Wrong("an event is destroyed that is not there");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  delete event;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuEventRecord")) return error;
  if (Refuses(stream, "an event")) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (Mutant("no_event_record")) return CUDA_SUCCESS;
  if (!event->record->done) Wrong("an event is used again before its place was reached");
  event->record = std::make_shared<Record>();
  if (IsDefault(stream)) {
    event->record->done = true;
    event->record->clock = Now().host;
    return CUDA_SUCCESS;
  }
  Work w;
  w.what = "an event";
  w.harmless = true;
  w.mark = event->record;
  Enqueue(Mutant("record_on_another_stream") ? Another(stream) : stream, std::move(w));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuEventQuery(CUevent event) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuEventQuery")) return error;
  if (!event->record->done) return CUDA_ERROR_NOT_READY;
  Join(&Now().host, event->record->clock);  // the host knows as much as if it had waited
  return event->record->result;
}
EXPORT CUresult cuEventSynchronize(CUevent event) {
  State& s = Now();
  std::unique_lock lock(s.mutex);
  const CUresult error = Enter("cuEventSynchronize");
  if (Mutant("no_event_synchronize")) return CUDA_SUCCESS;
  const std::shared_ptr<Record> record = event->record;
  s.changed.wait(lock, [&] { return record->done; });
  Join(&s.host, record->clock);
  return error ? error : record->result;
}

EXPORT CUresult cuEventElapsedTime(float* ms, CUevent from, CUevent to) {
  std::lock_guard lock(Now().mutex);
  if (CUresult error = Enter("cuEventElapsedTime")) return error;
  if (!from->record->done || !to->record->done) return CUDA_ERROR_NOT_READY;
  *ms = std::chrono::duration<float, std::milli>(to->record->when - from->record->when).count();
  return CUDA_SUCCESS;
}
