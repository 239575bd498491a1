#include "core.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

namespace thalweg::tf {

void Check(tw_status* status) {
  if (status) Throw(status, static_cast<TF_Code>(tw_status_code(status)));
}

void Set(TF_Status* status, TF_Code code, std::string message) {
  if (!status) return;
  status->code = code;
  status->message = code == TF_OK ? std::string() : std::move(message);
  status->payloads.clear();
}

static void Free(void* data, size_t) { std::free(data); }

void Fill(TF_Buffer* buffer, std::string_view bytes) {
  if (!buffer) Fail(TF_INVALID_ARGUMENT, "the buffer for the result is NULL");
  if (buffer->data) Fail(TF_INVALID_ARGUMENT, "the buffer for the result is not empty");
  void* data = std::malloc(bytes.size() + 1);
  if (!data) throw std::bad_alloc();
  if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
  *buffer = {data, bytes.size(), Free};
}

TF_Buffer* NewBuffer(std::string_view bytes) {
  auto buffer = std::make_unique<TF_Buffer>(TF_Buffer{nullptr, 0, nullptr});
  Fill(buffer.get(), bytes);
  return buffer.release();
}

void Parse(const void* data, size_t bytes, std::string_view what, google::protobuf::MessageLite* message) {
  const google::protobuf::LogSilencer silent;
  if ((data || bytes == 0) && bytes <= INT32_MAX && message->ParseFromArray(data, static_cast<int>(bytes))) return;
  Fail(TF_INVALID_ARGUMENT, "Unparseable ", what);
}

std::string Serialise(const google::protobuf::MessageLite& message) {
  std::string out;
  {
    google::protobuf::io::StringOutputStream stream(&out);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    if (!message.SerializeToCodedStream(&coded)) Fail(TF_RESOURCE_EXHAUSTED, "a message takes more than 2 GiB");
  }
  return out;
}

}  // namespace thalweg::tf

using thalweg::tf::Guard;

const char* TF_Version(void) { return "2.21.0"; }

TF_Status* TF_NewStatus(void) { return new TF_Status; }
void TF_DeleteStatus(TF_Status* status) { delete status; }
void TF_SetStatus(TF_Status* status, TF_Code code, const char* message) { thalweg::tf::Set(status, code, thalweg::tf::OrEmpty(message)); }
TF_Code TF_GetCode(const TF_Status* status) { return status->code; }
const char* TF_Message(const TF_Status* status) { return status->message.c_str(); }
void TF_SetPayload(TF_Status* status, const char* key, const char* value) {
  if (status->code != TF_OK) status->payloads[thalweg::tf::OrEmpty(key)] = thalweg::tf::OrEmpty(value);
}
void TF_ForEachPayload(const TF_Status* status, TF_PayloadVisitor visitor, void* capture) {
  for (const auto& [key, value] : status->payloads) visitor(key.c_str(), value.c_str(), capture);
}

// The code that fits a number of errno.
static TF_Code CodeOf(int error) {
  switch (error) {
    case 0: return TF_OK;
    case EINVAL:
    case ENAMETOOLONG:
    case E2BIG:
    case EDESTADDRREQ:
    case EDOM:
    case EFAULT:
    case EILSEQ:
    case ENOPROTOOPT:
    case ENOTSOCK:
    case ENOTTY:
    case EPROTOTYPE:
    case ESPIPE: return TF_INVALID_ARGUMENT;
    case ETIMEDOUT: return TF_DEADLINE_EXCEEDED;
    case ENODEV:
    case ENOENT:
    case ENXIO:
    case ESRCH: return TF_NOT_FOUND;
    case EEXIST:
    case EADDRNOTAVAIL:
    case EALREADY: return TF_ALREADY_EXISTS;
    case EPERM:
    case EACCES:
    case EROFS: return TF_PERMISSION_DENIED;
    case ENOTEMPTY:
    case EISDIR:
    case ENOTDIR:
    case EADDRINUSE:
    case EBADF:
    case EBUSY:
    case ECHILD:
    case EISCONN:
    case ENOTBLK:
    case ENOTCONN:
    case EPIPE:
    case ESHUTDOWN:
    case ETXTBSY: return TF_FAILED_PRECONDITION;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case EMLINK:
    case ENFILE:
    case ENOBUFS:
    case ENODATA:
    case ENOMEM:
    case ENOSR:
    case EUSERS: return TF_RESOURCE_EXHAUSTED;
    case EFBIG:
    case EOVERFLOW:
    case ERANGE: return TF_OUT_OF_RANGE;
    case ENOSYS:
    case ENOTSUP:
    case EAFNOSUPPORT:
    case EPFNOSUPPORT:
    case EPROTONOSUPPORT:
    case ESOCKTNOSUPPORT:
    case EXDEV: return TF_UNIMPLEMENTED;
    case EAGAIN:
    case ECONNREFUSED:
    case ECONNABORTED:
    case ECONNRESET:
    case EINTR:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETRESET:
    case ENETUNREACH:
    case ENOLCK:
    case ENOLINK: return TF_UNAVAILABLE;
    case EDEADLK:
    case ESTALE: return TF_ABORTED;
    case ECANCELED: return TF_CANCELLED;
    default: return TF_UNKNOWN;
  }
}

void TF_SetStatusFromIOError(TF_Status* status, int error, const char* context) {
  thalweg::tf::Set(status, CodeOf(error), thalweg::tf::Text(thalweg::tf::OrEmpty(context), "; ", std::strerror(error)));
}

TF_Buffer* TF_NewBuffer(void) { return new TF_Buffer{nullptr, 0, nullptr}; }

TF_Buffer* TF_NewBufferFromString(const void* bytes, size_t n) {
  return Guard(nullptr, [&] { return thalweg::tf::NewBuffer({static_cast<const char*>(bytes), n}); });
}

void TF_DeleteBuffer(TF_Buffer* buffer) {
  if (!buffer) return;
  if (buffer->data_deallocator) buffer->data_deallocator(const_cast<void*>(buffer->data), buffer->length);
  delete buffer;
}

TF_Buffer TF_GetBuffer(TF_Buffer* buffer) { return *buffer; }

size_t TF_DataTypeSize(TF_DataType type) {
  return type == TF_STRING || type == TF_RESOURCE || type == TF_VARIANT ? 0 : tw_dtype_bytes(type);
}
