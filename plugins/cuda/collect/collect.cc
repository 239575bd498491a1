// Writes the programs of the plugin's kernels, for nvcc:
//   cuda_collect FOLDER
// creates every kernel of kernels/register_all.h for each of its specs, with the attributes below,
// and writes the program texts that they request to FOLDER/shard_N.cu. It replaces
// kernels/kernel.cc and the host.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "kernels/kernel.h"
#include "kernels/register_all.h"
#include "modules.h"

namespace {

std::map<std::string, std::set<std::string>> wanted;  // functions by program text

void Want(const std::string& text, const char* name) { wanted[text].insert(name); }

}  // namespace

namespace thalweg::opencl {

Kernel::Kernel(const tw_host*, Device& device, const std::string& text, const char* name)
    : device_(device), name_(name), function_(nullptr) {
  Want(text, name);
}
LateKernel::LateKernel(const tw::Node& n, std::string text, const char* name)
    : host_(n.host()), device_(*static_cast<Device*>(n.node->device)), text_(std::move(text)), name_(name) {
  Want(text_, name);
}
// None of these functions is ever called.
const Kernel& LateKernel::operator*() const { return static_cast<void>(device_), static_cast<void>(name_), *kernel_; }
void Kernel::Set(CUstream, Arguments*, const Place&) const { std::abort(); }
int64_t NumberAt(const tw_frame*, Device&, const Place&) { std::abort(); }
void Kernel::Launch(CUstream, Range, Range, void**) const { std::abort(); }
CUdeviceptr Temporary::On(CUstream) const { return static_cast<void>(queue_), memory_; }
Temporary::~Temporary() { static_cast<void>(device_); }
bool ByLibrary(Device&, const tw_frame*, uint32_t, const MatrixSizes&, const Matrix&, const Matrix&, const Place&, cl_long, bool,
               const Layout&) {
  std::abort();
}
bool ConvolvesByLibrary(Device&, const tw_frame*, ConvolutionPart, uint32_t, const Window&, cl_long, const Copy&, const Place&,
                        const Place&, const Place&) {
  std::abort();
}
bool PoolsByLibrary(Device&, const tw_frame*, PoolPart, uint32_t, const Window&, const Place&, const Place&) { std::abort(); }
bool NormalisesByLibrary(Device&, const tw_frame*, uint32_t, const Dims&, bool, float, const Place&, const Place&, const Place&,
                         const Place&, const Place&, const Place&) {
  std::abort();
}
bool NormGradientsByLibrary(Device&, const tw_frame*, uint32_t, const Dims&, bool, const Place&, const Place&, const Place&, const Place&,
                            const Place&, const Place&, const Place&, const Place&) {
  std::abort();
}
bool SoftmaxByLibrary(Device&, const tw_frame*, uint32_t, cl_long, cl_long, bool, const Place&, const Place&) { std::abort(); }
bool AttendsByLibrary(Device&, const tw_frame*, const AttentionCall&) { std::abort(); }
bool AttentionGradientsByLibrary(Device&, const tw_frame*, const AttentionCall&) { std::abort(); }

}  // namespace thalweg::opencl

namespace thalweg::cuda {

// Kernel calls refer to these functions.
void Device::Enter() { std::abort(); }
CUstream Device::stream() { std::abort(); }
CUevent Stream::Now() { std::abort(); }
void Others::Wait(CUstream, uint64_t*) { std::abort(); }
tw::Error Failure(const Driver&, CUresult, const std::string&) { std::abort(); }

}  // namespace thalweg::cuda

namespace {

size_t refused = 0;

// The attributes of all nodes; a kernel reads only those of its op. Create uses them with every
// choice off and on. Numbers that appear in programs have their most common values (`second`
// selects another one), rounded to float as in graphs. For other values NVRTC compiles programs.
struct Attributes {
  Attributes(bool choice, bool second, const std::string& op)
      : on(choice), alpha(second ? 0.01f : 0.2f), epsilon(second ? 1e-3f : 1e-4f), clip(op == "BlockLSTMV2" ? 0 : 3) {
    for (const char* name : {"transpose_a", "transpose_b", "adj_x", "adj_y", "use_nesterov", "update_slots", "multiply_linear_by_lr",
                             "validate_shape", "ignore_lookup_error", "exclusive", "reverse", "sorted", "keep_dims", "align_corners",
                             "is_causal", "is_training", "use_peephole", "adjoint_a", "adjoint_b"})
      Add(name, TW_ATTR_BOOL, &on);
    for (const char* name : {"Truncate", "half_pixel_centers"}) Add(name, TW_ATTR_BOOL, &off);
    for (const char* name : {"data_format", "container", "shared_name"}) Add(name, TW_ATTR_STRING, &nhwc);
    Add("padding", TW_ATTR_STRING, &valid);
    Add("bad_indices_policy", TW_ATTR_STRING, &nothing);
    Add("mode", TW_ATTR_STRING, &reflect);
    for (const char* name : {"axis", "batch_dims", "seed", "seed2", "begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask",
                             "shrink_axis_mask", "num_split", "block_size"})
      Add(name, TW_ATTR_INT, &zero);
    const bool volumes = op.find("3D") != op.npos;
    for (const char* name : {"strides", "dilations", "ksize"}) Add(name, TW_ATTR_INT, ones, volumes ? 5 : 4);
    if (volumes) list[FindOrEnd("data_format")].data = &ndhwc;
    if (op.substr(0, 9) == "LeakyRelu") Add("alpha", TW_ATTR_FLOAT, &alpha);
    Add("epsilon", TW_ATTR_FLOAT, &epsilon);
    Add("cell_clip", TW_ATTR_FLOAT, &clip);
    for (const char* name : {"forget_bias", "exponential_avg_factor", "scale"}) Add(name, TW_ATTR_FLOAT, &one);
    Add("explicit_paddings", TW_ATTR_INT, ones, 0);
  }
  void Add(const char* name, uint32_t kind, const void* data, int elements = -1) {
    list.push_back({name, std::string_view(name).size(), data, kind, elements < 0 ? 1u : uint32_t(elements), elements >= 0, 0});
  }

  size_t FindOrEnd(std::string_view name) const {
    return size_t(std::find_if(list.begin(), list.end(), [&](const tw_attr& a) { return std::string_view(a.name, a.name_len) == name; }) -
                  list.begin());
  }

  std::vector<tw_attr> list;
  uint8_t on, off = 0;
  double alpha, epsilon, clip;
  int64_t zero = 0;
  double one = 1;
  int64_t ones[5] = {1, 1, 1, 1, 1};
  tw_string nothing{"", 0}, nhwc{"NHWC", 4}, ndhwc{"NDHWC", 5}, valid{"VALID", 5}, reflect{"REFLECT", 7};
};

// Parses a list of types such as "float, int32".
std::vector<uint32_t> ReadTypes(const std::string& text) {
  std::vector<uint32_t> types;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    word.erase(std::remove(word.begin(), word.end(), ' '), word.end());
    if (!word.empty()) types.push_back(tw::dtype_number(word));
  }
  return types;
}

void Create(const tw_kernel_def& d, const tw_host* host, const std::string& op, const std::vector<uint32_t>& in,
            const std::vector<uint32_t>& out) {
  for (int k = 0; k < 4; ++k) {
    const Attributes attributes(k % 2, k / 2, op);
    std::vector<uint32_t> all(in);
    all.insert(all.end(), out.begin(), out.end());
    tw_node n{};
    n.size = sizeof n;
    n.host = host;
    n.name = n.op = op.data();
    n.name_len = n.op_len = op.size();
    n.attrs = attributes.list.data();
    n.n_attrs = uint32_t(attributes.list.size());
    n.types = all.data();
    n.n_in = uint32_t(in.size());
    n.n_out = uint32_t(out.size());
    void* state = nullptr;  // never destroyed, because the program ends soon
    if (d.create(&n, &state)) ++refused;
  }
}

// Ops with a list of inputs of one type have a program for each list length up to 8. Longer lists
// are added in several calls, so they also need programs for the first call; lengths up to 15 cover
// all of these.
bool TakesList(const std::string& op) { return op == "AddN" || op == "AccumulateNV2"; }

tw_status* AddKernel(tw_registrar* r, const tw_kernel_def* d) {
  const tw_host* host = *reinterpret_cast<const tw_host**>(r + 1);
  const std::string spec(d->spec, d->spec_len), head = spec.substr(0, spec.find('@')), op = head.substr(0, head.find_first_of("( "));
  const size_t open = head.find('('), arrow = head.find("->"), close = head.find(')');
  if (!d->create || open == head.npos) return nullptr;
  const std::vector<uint32_t> in = ReadTypes(head.substr(open + 1, std::min(arrow, close) - open - 1));
  const std::vector<uint32_t> out = arrow == head.npos ? std::vector<uint32_t>() : ReadTypes(head.substr(arrow + 2, close - arrow - 2));
  for (size_t n = 1; n <= (TakesList(op) ? 15 : 1); ++n) Create(*d, host, op, TakesList(op) ? std::vector<uint32_t>(n, in[0]) : in, out);
  return nullptr;
}

tw_status* Failed(const tw_host*, uint32_t, const char* text, uint64_t len, tw_status*) {
  std::cerr << "cuda_collect: " << std::string_view(text, len) << "\n";
  static char failed;
  return reinterpret_cast<tw_status*>(&failed);
}

// Leaves an unchanged file alone, so that nvcc does not run again for it.
bool Write(const std::string& file, const std::string& text) {
  std::ostringstream there;
  if (std::ifstream in(file); in && there << in.rdbuf() && there.str() == text) return true;
  return bool((std::ofstream(file) << text).flush());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::cerr << "cuda_collect FOLDER\n", 2;
  tw_status_api status{};
  status.size = sizeof status;
  status.make = Failed;
  tw_host host{};
  host.size = sizeof host;
  host.status = &status;
  struct {
    tw_registrar r;
    const tw_host* host;
  } registrar{};
  registrar.r.size = sizeof registrar.r;
  registrar.r.role = [](tw_registrar* r, const tw_role* d) { return AddKernel(r, static_cast<const tw_kernel_def*>(d->definition)); };
  registrar.host = &host;
  thalweg::cuda::RegisterKernels(&host, &registrar.r);

  std::vector<std::string> shards(thalweg::cuda::kShards, "// Made by cuda_collect.\n#include \"prelude.cuh\"\n");
  for (const auto& [text, names] : wanted) shards[thalweg::cuda::ShardOf(text)] += thalweg::cuda::ProgramSource(text, names);
  for (size_t k = 0; k < shards.size(); ++k)
    if (!Write(std::string(argv[1]) + "/shard_" + std::to_string(k) + ".cu", shards[k])) return 1;
  std::cout << "cuda_collect: " << wanted.size() << " programs\n";
  return refused ? 1 : 0;
}
