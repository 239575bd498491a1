// What the bench holds ours against: plain CUDA, pinned memory, a recorded graph. usage: raw tiny N | raw in BYTES | raw out BYTES
// Prints the seconds of the median of many runs, each waited for.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}
#define OK(call) check(call, #call)

__global__ void negate(const float* x, float* y, long long n) {
  for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < n; i += static_cast<long long>(gridDim.x) * blockDim.x)
    y[i] = -x[i];
}

template <class Work>
static void report(Work&& work) {
  std::vector<double> seconds;
  for (int k = 0; k < 30; ++k) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(seconds.begin() + 5, seconds.end());  // the first ones warm up
  std::printf("%.9f\n", seconds[seconds.size() / 2 + 2]);
}

static void tiny(int kernels) {
  float *x, *y;
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t recorded;
  OK(cudaMalloc(&x, 16));
  OK(cudaMalloc(&y, 16));
  OK(cudaStreamCreate(&stream));
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  for (int k = 0; k < kernels; ++k) negate<<<1, 32, 0, stream>>>(k % 2 ? y : x, k % 2 ? x : y, 4);
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphInstantiate(&recorded, graph, 0));
  report([&] {
    OK(cudaGraphLaunch(recorded, stream));
    OK(cudaStreamSynchronize(stream));
  });
}

static void copy(bool in, size_t bytes) {
  void *there, *here;
  cudaStream_t stream;
  OK(cudaMalloc(&there, bytes));
  OK(cudaMallocHost(&here, bytes));
  OK(cudaStreamCreate(&stream));
  std::memset(here, 1, bytes);
  report([&] {
    OK(in ? cudaMemcpyAsync(there, here, bytes, cudaMemcpyHostToDevice, stream)
          : cudaMemcpyAsync(here, there, bytes, cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
  });
}

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "tiny") == 0) return tiny(std::atoi(argv[2])), 0;
  if (argc == 3 && (std::strcmp(argv[1], "in") == 0 || std::strcmp(argv[1], "out") == 0))
    return copy(std::strcmp(argv[1], "in") == 0, std::strtoull(argv[2], nullptr, 10)), 0;
  std::fprintf(stderr, "usage: raw tiny N | raw in BYTES | raw out BYTES\n");
  return 2;
}
