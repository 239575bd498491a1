// Contexts, memory and copies. Programs come from the cache on disk, or are compiled and stored
// there.
#include "device.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "program_cache.h"

namespace thalweg::opencl {
namespace {

bool IsCpu(const Api& cl, cl_device_id device) {
  return (DeviceValue<cl_device_type>(cl, device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
}

// A CPU runs a work-group on one core. It gets one item with wide vectors, sums that fill the
// registers, and slices that fit the first-level cache. Other devices get square groups of many
// small items, as large as the device allows.
std::vector<Tile> ChooseTiles(const Api& cl, cl_device_id device) {
  static constexpr Tile kCpu[] = {{1, 16, 16, 128, 1}, {1, 16, 16, 128, 4}, {1, 16, 16, 256, 8}, {2, 8, 16, 64, 1}};
  static constexpr Tile kOther[] = {{16, 4, 4, 16, 1}, {16, 8, 4, 16, 1}, {8, 8, 8, 16, 1},
                                    {8, 4, 4, 16, 1},  {4, 4, 4, 16, 1},  {1, 4, 4, 16, 1}};
  const size_t most = DeviceValue<size_t>(cl, device, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  const cl_ulong local = DeviceValue<cl_ulong>(cl, device, CL_DEVICE_LOCAL_MEM_SIZE);
  std::vector<Tile> fitting;
  for (const Tile& t :
       IsCpu(cl, device) ? std::vector<Tile>(std::begin(kCpu), std::end(kCpu)) : std::vector<Tile>(std::begin(kOther), std::end(kOther))) {
    const size_t rows = t.group * t.rows * t.passes, columns = t.group * t.width;
    if (t.group * t.group <= most && (rows * (t.depth + 1) + t.depth * columns) * sizeof(double) <= local && fitting.size() < 4)
      fitting.push_back(t);
  }
  if (fitting.empty()) fitting.push_back({1, 1, 2, 4, 1});
  return fitting;
}

constexpr uint64_t kLeastCache = 8u << 20;   // bytes; assumed minimum of a processor's caches
constexpr uint64_t kCopiedNow = 256u << 10;  // bytes that a thread copies in less time than a driver needs to start a copy

// The host memory under a buffer.
struct Standing {
  std::shared_ptr<Pages> pages;
  void* block;
  size_t bytes;
};

void CL_CALLBACK GiveBack(cl_mem, void* user) {
  const std::unique_ptr<Standing> standing(static_cast<Standing*>(user));
  standing->pages->Give(standing->block, standing->bytes);
}

// On a device without double, constants without a suffix must not become double.
std::string BuildOptions(bool blocked, bool has_double) {
  return std::string("-cl-std=CL1.2 -w") + (blocked ? " -DBLOCKED" : "") +
         (has_double ? " -DHAS_DOUBLE" : " -cl-single-precision-constant");
}

std::string BuildLog(const Api& cl, cl_program program, cl_device_id device) {
  size_t size = 0;
  cl.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  if (size) cl.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  log.resize(std::min(log.size(), log.find('\0')));
  return log;
}

// PoCL keeps compiled programs in a cache of its own. If it is asked for a binary, it compiles each
// function of the program a second time, for work-groups of any size.
bool KeepsPrograms(const std::string& platform) { return platform == "Portable Computing Language"; }

// Returns an empty string if the driver does not provide the binary.
std::string Binary(const Api& cl, cl_program program) {
  size_t size = 0;  // one program and one device, so the arrays have one element
  if (cl.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr) != CL_SUCCESS) return {};
  std::string binary(size, '\0');
  unsigned char* to = reinterpret_cast<unsigned char*>(binary.data());
  if (cl.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof to, &to, nullptr) != CL_SUCCESS) return {};
  return binary;
}

// Returns NULL if the driver rejects the binary; the source is then compiled.
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

cl_program FromSource(const Api& cl, cl_context context, cl_device_id device, const std::string& options, const std::string& text) {
  const char* bytes = text.data();
  const size_t size = text.size();
  cl_int error = CL_SUCCESS;
  cl_program program = cl.clCreateProgramWithSource(context, 1, &bytes, &size, &error);
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
  tiles_ = ChooseTiles(cl, device);
  blocked_ = IsCpu(cl, device);
  keeps_programs_ = KeepsPrograms(platform_name);
  has_double_ = DeviceValue<cl_device_fp_config>(cl, device, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
  cache_bytes_ = std::max<uint64_t>(DeviceValue<cl_ulong>(cl, device, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE), kLeastCache);
  if (DeviceValue<cl_bool>(cl, device, CL_DEVICE_HOST_UNIFIED_MEMORY)) pages_ = std::make_shared<Pages>();
}

Device::~Device() {
  for (auto& [text, program] : programs_) cl_.clReleaseProgram(program);
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

void Device::RunOutOfOrder() {
  const auto queues = DeviceValue<cl_command_queue_properties>(cl_, id_, CL_DEVICE_QUEUE_PROPERTIES);
  out_of_order_ = (queues & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0;
}

cl_mem Device::Create(cl_mem_flags flags, uint64_t bytes, void* host, const char* what) {
  cl_int error = CL_SUCCESS;
  cl_mem memory = cl_.clCreateBuffer(context(), CL_MEM_READ_WRITE | flags, std::max<size_t>(bytes, 1), host, &error);
  Check(error, what);
  return memory;
}

// from: the initial contents, or NULL.
cl_mem Device::OnPages(uint64_t bytes, const void* from) {
  auto standing = std::unique_ptr<Standing>(new Standing{pages_, nullptr, bytes});
  standing->block = pages_->Take(bytes);
  if (!standing->block) throw Failure(CL_OUT_OF_HOST_MEMORY, "allocating memory");
  if (from) std::memcpy(standing->block, from, bytes);
  cl_mem memory = nullptr;
  try {
    memory = Create(CL_MEM_USE_HOST_PTR, bytes, standing->block, "allocating memory");
  } catch (...) {
    pages_->Give(standing->block, bytes);
    throw;
  }
  const cl_int error = cl_.clSetMemObjectDestructorCallback(memory, GiveBack, standing.get());
  if (error == CL_SUCCESS) return standing.release(), memory;
  cl_.clReleaseMemObject(memory);
  pages_->Give(standing->block, bytes);
  throw Failure(error, "allocating memory");
}

cl_mem Device::Allocate(uint64_t bytes) { return pages_ ? OnPages(bytes, nullptr) : Create(0, bytes, nullptr, "allocating memory"); }

cl_mem Device::Copied(const void* from, uint64_t bytes) {
  if (bytes == 0) return Allocate(0);
  return pages_ ? OnPages(bytes, from) : Create(CL_MEM_COPY_HOST_PTR, bytes, const_cast<void*>(from), "allocating memory");
}

bool Device::CopyNow(const tw_copy& c) {
  if (!pages_ || !blocked_ || c.bytes > kCopiedNow || profile_.on() || c.from_host == c.to_host) return false;
  void* address = nullptr;
  const cl_mem memory = static_cast<cl_mem>(c.from_host ? c.to : c.from);
  if (cl_.clGetMemObjectInfo(memory, CL_MEM_HOST_PTR, sizeof address, &address, nullptr) != CL_SUCCESS || !address) return false;
  if (c.from_host)
    std::memcpy(static_cast<char*>(address) + c.to_offset, static_cast<const char*>(c.from) + c.from_offset, c.bytes);
  else
    std::memcpy(static_cast<char*>(c.to) + c.to_offset, static_cast<const char*>(address) + c.from_offset, c.bytes);
  return true;
}

void Device::EnqueueCopy(cl_command_queue queue, const tw_copy& c, cl_uint n, const cl_event* after, cl_event* out_event) {
  if (c.from_host && c.to_host) throw tw::Error{TW_INVALID_ARGUMENT, "a copy between two host addresses is none of a device's"};
  cl_mem from = static_cast<cl_mem>(c.from), to = static_cast<cl_mem>(c.to);
  if (c.from_host)
    Check(cl_.clEnqueueWriteBuffer(queue, to, CL_FALSE, c.to_offset, c.bytes, static_cast<const char*>(c.from) + c.from_offset, n, after,
                                   out_event),
          "a copy to the device");
  else if (c.to_host)
    Check(
        cl_.clEnqueueReadBuffer(queue, from, CL_FALSE, c.from_offset, c.bytes, static_cast<char*>(c.to) + c.to_offset, n, after, out_event),
        "a copy from the device");
  else
    Check(cl_.clEnqueueCopyBuffer(queue, from, to, c.from_offset, c.to_offset, c.bytes, n, after, out_event), "a copy inside the device");
}

cl_program Device::Build(const tw_host* host, const std::string& text) {
  const std::string options = BuildOptions(blocked_, has_double_);
  if (keeps_programs_ && Setting(host, "cache_dir").empty()) return FromSource(cl_, context(), id_, options, text);
  const ProgramCache cache(host, identity_ + options + "\n", text);
  if (cl_program program = FromBinary(cl_, context(), id_, cache.Load(), options)) return program;
  cl_program program = FromSource(cl_, context(), id_, options, text);
  if (const std::string binary = Binary(cl_, program); !binary.empty()) cache.Store(binary);
  return program;
}

std::optional<size_t> Device::KeptTile(const tw_host* host, const std::string& text) const {
  const std::string kept = ProgramCache(host, identity_ + "tile\n", text).Load();
  if (kept.size() != 1 || size_t(kept[0]) >= tiles_.size()) return std::nullopt;
  return size_t(kept[0]);
}

void Device::KeepTile(const tw_host* host, const std::string& text, size_t tile) const {
  ProgramCache(host, identity_ + "tile\n", text).Store(std::string(1, char(tile)));
}

cl_kernel Device::MakeKernel(const tw_host* host, const std::string& text, const char* name) {
  std::lock_guard lock(program_mutex_);
  cl_program& program = programs_[text];
  if (!program) program = Build(host, text);
  cl_int error = CL_SUCCESS;
  cl_kernel kernel = cl_.clCreateKernel(program, name, &error);
  Check(error, name);
  return kernel;
}

}  // namespace thalweg::opencl
