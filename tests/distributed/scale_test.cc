// Many tasks in one process: the cluster's threads and descriptors grow with its tasks and links,
// and not with its steps. THALWEG_SCALE=10 uses 40 parameter servers and 400 workers.
#include <dirent.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include <sys/resource.h>

#include "tests/distributed/servers.h"

namespace thalweg::testing {
namespace {

int From(const char* name, int small) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : small;
}

int Entries(const char* folder) {
  int n = 0;
  DIR* d = opendir(folder);
  for (dirent* e; d && (e = readdir(d));) n += e->d_name[0] != '.';
  if (d) closedir(d);
  return n;
}

struct Cost {
  int threads = Entries("/proc/self/task"), descriptors = Entries("/proc/self/fd");
};

// Servers that share one runtime. Each worker reads the parameters of a few servers and updates
// them slightly.
class Crowd {
 public:
  Crowd(const tw::Runtime& runtime, int n_ps, int n_workers) : n_ps_(n_ps), n_workers_(n_workers) {
    static int count = 0;
    const std::string id = "x" + std::to_string(getpid()) + "-" + std::to_string(++count);
    cluster_ = "{\"ps\": [" + Addresses(id + "p", n_ps) + "], \"worker\": [" + Addresses(id + "w", n_workers) + "]}";
    for (int i = 0; i < n_ps; ++i) servers_.push_back(std::make_unique<tw::Server>(runtime, cluster_, "ps", uint32_t(i)));
    for (int i = 0; i < n_workers; ++i) servers_.push_back(std::make_unique<tw::Server>(runtime, cluster_, "worker", uint32_t(i)));
  }
  std::string target() const { return "target=" + first_worker_; }

  // Builds a step in which every worker takes part. Returns the operation, the initialisation, and
  // the sum of all parameters.
  void Build(tw::Scope& s, const tw_operation** step, const tw_operation** start, tw_output* sum) const {
    std::vector<tw_output> parameters, all;
    for (int p = 0; p < n_ps_; ++p) {
      s.on(("/job:ps/task:" + std::to_string(p)).c_str());
      parameters.push_back(s.variable(("v" + std::to_string(p)).c_str(), s.scalar(TW_FLOAT, 0)));
    }
    std::vector<const tw_operation*> adds;
    for (int w = 0; w < n_workers_; ++w) {
      for (int k = 0; k < kEach; ++k) {
        const tw_output v = parameters[size_t((w + k) % n_ps_)];
        s.on("");
        const tw_output read = s.read(v);
        s.on(("/job:worker/task:" + std::to_string(w)).c_str());
        const tw_output change = s.op("AddV2", {s.op("Sub", {read, read}), s.scalar(TW_FLOAT, 1)});
        s.on("");
        tw_op* op = tw_scope_begin(s.c(), "AssignAddVariableOp", nullptr);
        const tw_output in[] = {v, change};
        tw_op_add_inputs(op, in, 2);
        adds.push_back(tw_scope_end_operation(s.c(), op));
      }
    }
    tw_op* op = tw_scope_begin(s.c(), "NoOp", "step");
    for (const tw_operation* a : adds) tw_op_add_control(op, a);
    *step = tw_scope_end_operation(s.c(), op);
    for (tw_output v : parameters) all.push_back(s.read(v));
    *sum = s.op("AddN", all);
    *start = s.initializer();
  }
  static constexpr int kEach = 2;  // servers per worker

 private:
  std::string Addresses(const std::string& job, int n) {
    std::string text;
    for (int i = 0; i < n; ++i) {
      const std::string address = NewAddress(job + std::to_string(i));
      if (i == 0) first_worker_ = address;  // workers are added last
      text += (i ? ", \"" : "\"") + address + "\"";
    }
    return text;
  }
  const int n_ps_, n_workers_;
  std::string first_worker_, cluster_;
  std::vector<std::unique_ptr<tw::Server>> servers_;
};

TEST(Scale, ThreadsAndDescriptorsGrowWithTasksAndNotWithSteps) {
  const int scale = From("THALWEG_SCALE", 1), steps = From("THALWEG_STEPS", 30);
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  tw::Runtime stubs = NewRuntime({"threads=4"}), client = NewRuntime();
  Cost empty, after[2];
  for (int size = 0; size < 2; ++size) {
    const int part = size == 0 ? 2 : 1, n_ps = 4 * scale / part, n_workers = 40 * scale / part;
    Crowd crowd(stubs, n_ps, n_workers);
    tw::Graph graph(client);
    tw::Scope s(graph);
    const tw_operation *step, *start;
    tw_output sum;
    crowd.Build(s, &step, &start, &sum);
    s.finish();
    const std::string target = crowd.target();
    tw::Session session(graph, {target.c_str()});
    session.run({}, {}, {start});
    for (int i = 0; i < 3; ++i) session.run({}, {}, {step});
    const Cost early;
    for (int i = 3; i < steps; ++i) session.run({}, {}, {step});
    after[size] = Cost();
    // The pool adds threads for blocking work on demand, and a busy machine may lose and reopen a
    // link.
    EXPECT_LE(after[size].threads, 1.25 * early.threads + 8);
    EXPECT_LE(after[size].descriptors, 1.05 * early.descriptors + 8);
    EXPECT_EQ(session.run({}, {sum})[0].values<float>()[0], float(n_workers * Crowd::kEach * steps));
    std::printf("%d ps, %d workers: %d threads, %d descriptors, %d steps\n", n_ps, n_workers, after[size].threads, after[size].descriptors,
                steps);
  }
  // Twice the tasks cost about twice as much; a part is fixed per process.
  EXPECT_LE(after[1].threads - empty.threads, 2.3 * (after[0].threads - empty.threads) + 10);
  EXPECT_LE(after[1].descriptors - empty.descriptors, 2.3 * (after[0].descriptors - empty.descriptors) + 10);
}

}  // namespace
}  // namespace thalweg::testing
