// Contexts, memory, copies, and the way from source text to a program: from the cache on disk, else compiled and put there.
#include "device.h"

#include <algorithm>

#include "program_cache.h"
#include "program_text.h"

namespace thalweg::opencl {
namespace {

// A CPU runs a work-group on one core: few items, wide vectors, tiles that fill a first-level cache. Anything else gets square groups of
// many small items, as large as the device allows.
Tile ChooseTile(const Api& cl, cl_device_id device) {
  const bool cpu = (DeviceValue<cl_device_type>(cl, device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
  const size_t most = DeviceValue<size_t>(cl, device, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  Tile tile = cpu ? Tile{4, 8, 16, 64} : Tile{16, 4, 4, 16};
  while (tile.group > 1 && tile.group * tile.group > most) tile.group /= 2;
  return tile;
}

std::string BuildOptions(const Tile& t) {
  return "-cl-std=CL1.2 -DGROUP=" + std::to_string(t.group) + " -DROWS=" + std::to_string(t.rows) + " -DWIDTH=" + std::to_string(t.width) +
         " -DTILE_K=" + std::to_string(t.depth);
}

std::string BuildLog(const Api& cl, cl_program program, cl_device_id device) {
  size_t size = 0;
  cl.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  if (size) cl.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  log.resize(std::min(log.size(), log.find('\0')));
  return log;
}

// Empty if the driver does not give it.
std::string Binary(const Api& cl, cl_program program) {
  size_t size = 0;  // one program, one device: the arrays have one element
  if (cl.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr) != CL_SUCCESS) return {};
  std::string binary(size, '\0');
  unsigned char* to = reinterpret_cast<unsigned char*>(binary.data());
  if (cl.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof to, &to, nullptr) != CL_SUCCESS) return {};
  return binary;
}

// NULL if the driver does not take it: then the source decides.
cl_program FromBinary(const Api& cl, cl_context context, cl_device_id device, const std::string& binary, const std::string& options) {
  if (binary.empty()) return nullptr;
  const unsigned char* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  const size_t size = binary.size();
  cl_int taken = CL_SUCCESS, error = CL_SUCCESS;
  cl_program program = cl.clCreateProgramWithBinary(context, 1, &device, &size, &bytes, &taken, &error);
  if (!program) return nullptr;
  if (error == CL_SUCCESS && taken == CL_SUCCESS && cl.clBuildProgram(program, 1, &device, options.c_str(), nullptr, nullptr) == CL_SUCCESS)
    return program;
  cl.clReleaseProgram(program);
  return nullptr;
}

cl_program FromSource(const Api& cl, cl_context context, cl_device_id device, const std::string& options) {
  const char* text = kProgramText;
  const size_t size = sizeof kProgramText - 1;
  cl_int error = CL_SUCCESS;
  cl_program program = cl.clCreateProgramWithSource(context, 1, &text, &size, &error);
  Check(error, "clCreateProgramWithSource");
  error = cl.clBuildProgram(program, 1, &device, options.c_str(), nullptr, nullptr);
  if (error == CL_SUCCESS) return program;
  tw::Error failure = Failure(error, "compiling the kernels");
  failure.text += "; the compiler says: " + BuildLog(cl, program, device);
  cl.clReleaseProgram(program);
  throw failure;
}

}  // namespace

Device::Device(const Api& cl, cl_platform_id platform, cl_device_id device, uint32_t index) : cl_(cl), id_(device) {
  const std::string platform_name = PlatformText(cl, platform, CL_PLATFORM_NAME);
  const std::string name = DeviceText(cl, device, CL_DEVICE_NAME);
  const std::string driver = DeviceText(cl, device, CL_DRIVER_VERSION);
  uid_ = platform_name + "/" + name + "/" + std::to_string(index);
  description_ = name + ", " + DeviceText(cl, device, CL_DEVICE_VERSION) + ", driver " + driver;
  identity_ = platform_name + "\n" + PlatformText(cl, platform, CL_PLATFORM_VERSION) + "\n" + name + "\n" +
              DeviceText(cl, device, CL_DEVICE_VERSION) + "\n" + driver + "\n";
  memory_ = DeviceValue<cl_ulong>(cl, device, CL_DEVICE_GLOBAL_MEM_SIZE);
  largest_ = DeviceValue<cl_ulong>(cl, device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  tile_ = ChooseTile(cl, device);
}

Device::~Device() {
  if (program_) cl_.clReleaseProgram(program_);
  if (queue_) cl_.clReleaseCommandQueue(queue_);
  if (context_) cl_.clReleaseContext(context_);
}

cl_context Device::context() {
  std::lock_guard lock(mutex_);
  cl_int error = CL_SUCCESS;
  if (!context_) context_ = cl_.clCreateContext(nullptr, 1, &id_, nullptr, nullptr, &error);
  Check(error, "clCreateContext");
  return context_;
}

cl_command_queue Device::queue() {
  const cl_context in = context();
  std::lock_guard lock(mutex_);
  cl_int error = CL_SUCCESS;
  if (!queue_) queue_ = cl_.clCreateCommandQueue(in, id_, 0, &error);
  Check(error, "clCreateCommandQueue");
  return queue_;
}

cl_mem Device::Allocate(uint64_t bytes) {
  cl_int error = CL_SUCCESS;
  cl_mem memory = cl_.clCreateBuffer(context(), CL_MEM_READ_WRITE, std::max<size_t>(bytes, 1), nullptr, &error);
  Check(error, "allocating memory");
  return memory;
}

void Device::EnqueueCopy(cl_command_queue queue, const tw_copy& c, cl_event* out_event) {
  if (c.from_host && c.to_host) throw tw::Error{TW_INVALID_ARGUMENT, "a copy between two host addresses is none of a device's"};
  cl_mem from = static_cast<cl_mem>(c.from), to = static_cast<cl_mem>(c.to);
  if (c.from_host)
    Check(cl_.clEnqueueWriteBuffer(queue, to, CL_FALSE, c.to_offset, c.bytes, static_cast<const char*>(c.from) + c.from_offset, 0, nullptr,
                                   out_event),
          "a copy to the device");
  else if (c.to_host)
    Check(cl_.clEnqueueReadBuffer(queue, from, CL_FALSE, c.from_offset, c.bytes, static_cast<char*>(c.to) + c.to_offset, 0, nullptr,
                                  out_event),
          "a copy from the device");
  else
    Check(cl_.clEnqueueCopyBuffer(queue, from, to, c.from_offset, c.to_offset, c.bytes, 0, nullptr, out_event), "a copy inside the device");
}

void Device::Build(const tw_host* host) {
  const std::string options = BuildOptions(tile_);
  const ProgramCache cache(host, identity_ + options + "\n", kProgramText);
  program_ = FromBinary(cl_, context(), id_, cache.Load(), options);
  if (program_) return;
  program_ = FromSource(cl_, context(), id_, options);
  if (const std::string binary = Binary(cl_, program_); !binary.empty()) cache.Store(binary);
}

cl_kernel Device::MakeKernel(const tw_host* host, const char* name) {
  std::lock_guard lock(program_mutex_);
  if (!program_) Build(host);
  cl_int error = CL_SUCCESS;
  cl_kernel kernel = cl_.clCreateKernel(program_, name, &error);
  Check(error, name);
  return kernel;
}

}  // namespace thalweg::opencl
