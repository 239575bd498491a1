// A cluster of one parameter server and two workers in one process, each with its own runtime, for
// tests of sessions; and helpers that place nodes on its tasks.
#pragma once
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/distributed/servers.h"

namespace thalweg::testing {

// A task; by default it has its own runtime.
struct Server : tw::Server {
  Server(const std::string& cluster, const char* job, uint32_t task, const std::vector<const char*>& options = {})
      : Server(NewRuntime(), cluster, job, task, options) {}
  Server(const tw::Runtime& runtime, const std::string& cluster, const char* job, uint32_t task,
         const std::vector<const char*>& options = {})
      : tw::Server(runtime, cluster, job, task, options) {}
};

// A cluster of one parameter server and two workers, at new addresses. The client has its own
// runtime, or shares the runtime of its target, worker 0.
class SessionTest : public ::testing::TestWithParam<bool> {
 protected:
  bool beside() const { return GetParam(); }
  std::unique_ptr<Server> NewTarget() const {
    return beside() ? std::make_unique<Server>(client_, cluster_, "worker", 0) : std::make_unique<Server>(cluster_, "worker", 0);
  }
  SessionTest() {
    static std::atomic<int> count{0};
    id_ = "t" + std::to_string(getpid()) + "-" + std::to_string(++count);
    p_ = NewAddress(id_ + "-p");
    at_w0_ = NewAddress(id_ + "-w0");
    at_w1_ = NewAddress(id_ + "-w1");
    cluster_ = R"({"ps": [")" + p_ + R"("], "worker": [")" + at_w0_ + R"(", ")" + at_w1_ + R"("]})";
  }
  void StartAll() {
    ps_ = std::make_unique<Server>(cluster_, "ps", 0);
    w0_ = NewTarget();
    w1_ = std::make_unique<Server>(cluster_, "worker", 1);
  }
  std::string Target() const { return "target=" + at_w0_; }
  tw::Session NewSession(const tw::Graph& graph, std::vector<const char*> options = {}) const {
    const std::string target = Target();
    options.push_back(target.c_str());
    return tw::Session(graph, options);
  }
  std::string id_, cluster_, p_, at_w0_, at_w1_;
  tw::Runtime client_ = NewRuntime();
  std::unique_ptr<Server> ps_, w0_, w1_;
};

constexpr const char *kPs = "/job:ps/task:0", *kW0 = "/job:worker/task:0", *kW1 = "/job:worker/task:1";

// Sets more of a node than its type, its inputs and its device.
using Describe = std::function<void(tw_op*)>;

// Adds a node on that device; "": the runtime chooses the device.
inline tw_output On(tw::Scope& s, const char* device, const char* type, const std::vector<tw_output>& in, const Describe& more = nullptr,
                    const char* name = nullptr) {
  const auto describe = [&](tw_op* op) {
    tw_op_set_device(op, device);
    if (more) more(op);
  };
  return s.op(type, in, describe, name);
}

// The same, but returns the operation.
inline const tw_operation* Do(tw::Scope& s, const char* device, const char* type, const std::vector<tw_output>& in,
                              const Describe& more = nullptr) {
  tw_op* op = tw_scope_begin(s.c(), type, nullptr);
  tw_op_add_inputs(op, in.data(), uint32_t(in.size()));
  tw_op_set_device(op, device);
  if (more) more(op);
  return tw_scope_end_operation(s.c(), op);
}

inline tw_output Variable(tw::Scope& s, const char* device, const std::string& name, const std::vector<int64_t>& dims = {}) {
  return On(s, device, "VarHandleOp", {}, [&](tw_op* op) {
    tw_op_set_type(op, "dtype", TW_FLOAT);
    tw_op_set_shape(op, "shape", dims.data(), int32_t(dims.size()));
    tw_op_set_string(op, "shared_name", name.data(), name.size());
  });
}
inline tw_output Read(tw::Scope& s, tw_output handle) {
  return On(s, "", "ReadVariableOp", {handle}, [](tw_op* op) { tw_op_set_type(op, "dtype", TW_FLOAT); });
}

// A queue that is empty until an element is enqueued.
struct Queue {
  Queue(tw::Scope& s, const char* device, const std::string& name)
      : handle(On(s, device, "FIFOQueueV2", {},
                  [&](tw_op* op) {
                    const uint32_t type = TW_FLOAT;
                    tw_op_set_types(op, "component_types", &type, 1);
                    tw_op_set_string(op, "shared_name", name.data(), name.size());
                  })),
        element(On(s, "", "QueueDequeueV2", {handle}, [](tw_op* op) {
          const uint32_t type = TW_FLOAT;
          tw_op_set_types(op, "component_types", &type, 1);
        })) {}
  tw_output handle, element;
};

}  // namespace thalweg::testing
