// Replaces cuDNN in a build without its headers.
#include "dnn.h"

namespace thalweg::cuda {

struct DnnLibrary {};
struct Dnn::Way {};
struct Dnn::Lstm {
  DnnLstmMemory memory;
};

std::shared_ptr<DnnLibrary> MakeDnnLibrary() { return nullptr; }
Dnn::Dnn(std::shared_ptr<DnnLibrary> library, const Vendors& vendors, std::string architecture)
    : library_(std::move(library)), vendors_(vendors), architecture_(std::move(architecture)) {}
Dnn::~Dnn() { static_cast<void>(vendors_), static_cast<void>(tried_), static_cast<void>(handle_); }
std::shared_ptr<const Dnn::Way> Dnn::Find(const tw_host*, const DnnGraph&) { return nullptr; }
uint64_t Dnn::Workspace(const Way&) { return 0; }
void Dnn::Enqueue(const Way&, CUstream, const std::vector<CUdeviceptr>&, CUdeviceptr) {}
std::shared_ptr<const Dnn::Lstm> Dnn::Find(const tw_host*, const DnnLstm&) { return nullptr; }
const DnnLstmMemory& Dnn::Memory(const Lstm& way) { return way.memory; }
void Dnn::Enqueue(const Lstm&, CUstream, CUdeviceptr, CUdeviceptr, CUdeviceptr, CUdeviceptr, CUdeviceptr, CUdeviceptr) {}
bool Dnn::Softmax(const tw_host*, CUstream, uint32_t, int64_t, int64_t, bool, CUdeviceptr, CUdeviceptr) { return false; }

}  // namespace thalweg::cuda
