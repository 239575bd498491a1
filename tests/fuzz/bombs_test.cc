// Bombs: small inputs that claim to be huge, or that cost far more than their size. Each is run in
// a child process, which must end within 5 seconds and use at most 8 times the input plus 64 MiB. A
// refusal must have a readable message with the number that was too large.
#include "tests/fuzz/bombs.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include <sys/resource.h>
#include <sys/wait.h>

#include "framework/proto/graph.pb.h"
#include "tests/c_api/dlpack_structs.h"
#include "thalweg/thalweg.h"

namespace {

using thalweg::fuzz::Bomb;
using thalweg::fuzz::Told;
using thalweg::proto::GraphDef;
using thalweg::proto::NodeDef;

std::string Import(const std::string& bytes) {
  tw_graph* graph = nullptr;
  std::string told = Told(tw_graph_create(nullptr, &graph));
  if (told.empty()) told = Told(tw_graph_import(graph, bytes.data(), bytes.size(), nullptr));
  tw_graph_destroy(graph);
  return told;
}

// Imports the graph, then runs its last node.
std::string ImportAndRun(const std::string& bytes) {
  tw_graph* graph = nullptr;
  tw_session* session = nullptr;
  const char* options[] = {"memory_limit=32M"};
  std::string told = Told(tw_graph_create(nullptr, &graph));
  if (told.empty()) told = Told(tw_graph_import(graph, bytes.data(), bytes.size(), nullptr));
  if (told.empty()) told = Told(tw_session_create(graph, options, 1, &session));
  if (told.empty()) {
    const tw_operation* last = tw_graph_operation(graph, tw_graph_count(graph) - 1);
    const tw_output fetch = tw_operation_output(last, 0);
    tw_signature what = {};
    what.size = sizeof what;
    what.fetches = &fetch;
    what.n_fetches = 1;
    tw_tensor* out = nullptr;
    told = Told(tw_session_run(session, &what, nullptr, nullptr, &out));
    tw_tensor_release(out);
  }
  tw_session_destroy(session);
  tw_graph_destroy(graph);
  return told;
}

// ---- Making them ----

std::string Varint(uint64_t n) {
  std::string out;
  for (; n >= 0x80; n >>= 7) out += char(n | 0x80);
  return out + char(n);
}
// Encodes a field of bytes.
std::string Field(int number, const std::string& bytes) { return Varint(uint64_t(number) << 3 | 2) + Varint(bytes.size()) + bytes; }

NodeDef* Add(GraphDef* g, const char* op, const std::string& name, const std::vector<std::string>& inputs = {}) {
  NodeDef* n = g->add_node();
  n->set_op(op);
  n->set_name(name);
  for (const std::string& input : inputs) n->add_input(input);
  return n;
}
void SetType(NodeDef* n, const char* attr, int type) { (*n->mutable_attr())[attr].set_type(thalweg::proto::DataType(type)); }

// Makes a constant of those dims; `fill` sets its content.
std::string Const(int type, const std::vector<int64_t>& dims, const std::function<void(thalweg::proto::TensorProto*)>& fill) {
  GraphDef g;
  NodeDef* n = Add(&g, "Const", "c");
  SetType(n, "dtype", type);
  auto* t = (*n->mutable_attr())["value"].mutable_tensor();
  t->set_dtype(thalweg::proto::DataType(type));
  for (int64_t d : dims) t->mutable_tensor_shape()->add_dim()->set_size(d);
  fill(t);
  return g.SerializeAsString();
}
void One(thalweg::proto::TensorProto* t) { t->add_float_val(1); }
void OneString(thalweg::proto::TensorProto* t) { t->add_string_val("x"); }
void OneBool(thalweg::proto::TensorProto* t) { t->add_bool_val(true); }
void FourBytes(thalweg::proto::TensorProto* t) { t->set_tensor_content("abcd"); }

void AddInts(GraphDef* g, const std::string& name, const std::vector<int64_t>& values, bool scalar = false) {
  NodeDef* n = Add(g, "Const", name);
  SetType(n, "dtype", TW_INT64);
  auto* t = (*n->mutable_attr())["value"].mutable_tensor();
  t->set_dtype(thalweg::proto::DataType(TW_INT64));
  if (!scalar) t->mutable_tensor_shape()->add_dim()->set_size(int64_t(values.size()));
  for (int64_t v : values) t->add_int64_val(v);
}
void AddFloat(GraphDef* g, const std::string& name) {
  NodeDef* n = Add(g, "Const", name);
  SetType(n, "dtype", TW_FLOAT);
  auto* t = (*n->mutable_attr())["value"].mutable_tensor();
  t->set_dtype(thalweg::proto::DataType(TW_FLOAT));
  t->add_float_val(1);
}

// Makes an op of constants whose output is far larger than its inputs; constant folding must not
// evaluate it.
std::string Blown(const std::function<void(GraphDef*)>& build) {
  GraphDef g;
  build(&g);
  return g.SerializeAsString();
}

std::string FilledTo(const std::vector<int64_t>& dims) {
  return Blown([&](GraphDef* g) {
    AddInts(g, "dims", dims);
    AddFloat(g, "value");
    NodeDef* n = Add(g, "Fill", "y", {"dims", "value"});
    SetType(n, "T", TW_FLOAT);
    SetType(n, "index_type", TW_INT64);
  });
}
std::string RangeTo(int64_t limit) {
  return Blown([&](GraphDef* g) {
    AddInts(g, "a", {0}, true);
    AddInts(g, "b", {limit}, true);
    AddInts(g, "c", {1}, true);
    SetType(Add(g, "Range", "y", {"a", "b", "c"}), "Tidx", TW_INT64);
  });
}
std::string OneThrough(const char* op, const char* attr, const std::vector<int64_t>& how) {
  return Blown([&](GraphDef* g) {
    AddFloat(g, "x");
    AddInts(g, "shape", std::vector<int64_t>(how.size(), 1));
    SetType(Add(g, "Reshape", "r", {"x", "shape"}), "Tshape", TW_INT64);
    AddInts(g, "how", how);
    NodeDef* n = Add(g, op, "y", {"r", "how"});
    SetType(n, "T", TW_FLOAT);
    SetType(n, attr, TW_INT64);
  });
}
// A node that only claims its number of outputs or inputs.
std::string Counted(const char* op, const char* attr, int64_t n, int inputs) {
  return Blown([&](GraphDef* g) {
    AddFloat(g, "x");
    NodeDef* node = Add(g, op, "y", std::vector<std::string>(size_t(inputs), "x"));
    SetType(node, "T", TW_FLOAT);
    (*node->mutable_attr())[attr].set_i(n);
  });
}

// `depth` functions, each an attribute of the enclosing one.
std::string NestedFunctions(int depth) {
  std::string attr;  // an AttrValue
  for (int i = 0; i < depth; ++i) attr = Field(10, Field(1, "f") + Field(2, Field(1, "g") + Field(2, attr)));
  return Field(1, Field(1, "n") + Field(2, "NoOp") + Field(5, Field(1, "_f") + Field(2, attr)));
}
// The same with lists, and with tensors of variants, which nest differently.
std::string NestedLists(int depth) {
  std::string attr;
  for (int i = 0; i < depth; ++i) attr = Field(1, Field(9, Field(1, "f") + Field(2, Field(1, "g") + Field(2, attr))));
  return Field(1, Field(1, "n") + Field(2, "NoOp") + Field(5, Field(1, "_f") + Field(2, attr)));
}
std::string NestedTensors(int depth) {
  std::string tensor;
  for (int i = 0; i < depth; ++i) tensor = Field(15, Field(3, tensor));
  return Field(1, Field(1, "n") + Field(2, "Const") + Field(5, Field(1, "value") + Field(2, Field(8, tensor))));
}

std::string Nodes(int n, const std::string& more = "") {
  std::string out;
  for (int i = 0; i < n; ++i) out += Field(1, Field(1, "n" + std::to_string(i)) + Field(2, "NoOp") + more);
  return out;
}
std::string Chain(int n) {
  GraphDef g;
  AddFloat(&g, "n0");
  for (int i = 1; i < n; ++i) SetType(Add(&g, "Neg", "n" + std::to_string(i), {"n" + std::to_string(i - 1)}), "T", TW_FLOAT);
  return g.SerializeAsString();
}
std::string Library(int n) {
  std::string functions;
  for (int i = 0; i < n; ++i) functions += Field(1, Field(1, Field(1, "f" + std::to_string(i))));
  return Nodes(1) + Field(2, functions);
}
std::string Node(const std::string& rest) { return Field(1, Field(1, "n") + Field(2, "NoOp") + rest); }
std::string Repeated(int n, const std::function<std::string(int)>& part) {
  std::string out;
  for (int i = 0; i < n; ++i) out += part(i);
  return Node(out);
}
std::string OfAttr(const std::string& value) { return Node(Field(5, Field(1, "_a") + Field(2, value))); }

// ---- DLPack: dims that cost the producer nothing because of the strides ----

std::string Broadcast(int64_t size) {
  static float one = 1;
  int64_t shape[] = {size, size}, strides[] = {0, 0};
  DLManagedTensor m = {{&one, 1, 0, 2, 2, 32, 1, shape, strides, 0}, nullptr, nullptr};
  tw_tensor* t = nullptr;
  const std::string told = Told(tw_tensor_from_dlpack(&m, &t));
  tw_tensor_release(t);
  return told;
}

// ---- Long names ----

constexpr size_t kLong = 16 << 20;
const std::string& LongName() {
  static const std::string name(kLong, 'n');
  return name;
}
std::string InputNamed(const std::string& input) {
  return Blown([&](GraphDef* g) { Add(g, "Neg", "y", {input}); });
}
std::string OnDevice(const std::string& device) {
  return Blown([&](GraphDef* g) {
    AddInts(g, "shape", {1});
    NodeDef* n = Add(g, "RandomUniform", "y", {"shape"});
    SetType(n, "T", TW_INT64);
    SetType(n, "dtype", TW_FLOAT);
    n->set_device(device);
  });
}
std::string ReadOfVariable(const std::string& name) {
  return Blown([&](GraphDef* g) {
    NodeDef* v = Add(g, "VarHandleOp", "v");
    SetType(v, "dtype", TW_FLOAT);
    (*v->mutable_attr())["shape"].mutable_shape();
    (*v->mutable_attr())["shared_name"].set_s(name);
    SetType(Add(g, "ReadVariableOp", "y", {"v"}), "dtype", TW_FLOAT);
  });
}
std::string FailingNode(const std::string& name) {
  return Blown([&](GraphDef* g) {
    NodeDef* n = Add(g, "Placeholder", name);
    SetType(n, "dtype", TW_FLOAT);
  });
}
std::string PaddedBy(const std::string& text) {
  return Blown([&](GraphDef* g) {
    AddFloat(g, "x");
    NodeDef* n = Add(g, "MaxPool", "y", {"x"});
    SetType(n, "T", TW_FLOAT);
    for (const char* sizes : {"ksize", "strides"}) {
      for (int i = 0; i < 4; ++i) (*n->mutable_attr())[sizes].mutable_list()->add_i(1);
    }
    (*n->mutable_attr())["padding"].set_s(text);
  });
}

std::vector<Bomb> Bombs() {
  const int64_t k40 = int64_t{1} << 40;
  const auto nothing = [] { return std::string(); };
  return {
      {"ConstOf2To40", [=] { return Const(TW_FLOAT, {k40}, One); }, "1099511627775 more of 4 bytes; 67108864 bytes are left", Import},
      {"ConstOf2To20By2To20", [] { return Const(TW_FLOAT, {1 << 20, 1 << 20}, One); }, "1099511627775 more", Import},
      {"ConstOf32GiB", [] { return Const(TW_FLOAT, {int64_t{1} << 33}, One); }, "8589934591 more", Import},
      {"ConstOf1GiB", [] { return Const(TW_FLOAT, {1 << 28}, One); }, "268435455 more", Import},
      {"ConstWhoseSizeOverflows", [] { return Const(TW_FLOAT, {int64_t{1} << 62, 4}, One); }, "more than 2^63-1 elements", Import},
      {"ConstOfManyStrings", [=] { return Const(TW_STRING, {k40}, OneString); }, "more of 17 bytes", Import},
      {"ConstOfManyBools", [] { return Const(TW_BOOL, {int64_t{1} << 36}, OneBool); }, "68719476735 more of 1 bytes", Import},
      {"ConstWithTooFewBytes", [=] { return Const(TW_FLOAT, {k40}, FourBytes); }, "takes 4398046511104 bytes, but tensor_content has 4",
       Import},
      {"ConstOfRank255", [] { return Const(TW_FLOAT, std::vector<int64_t>(255, 1), One); }, "at most 254", Import},
      {"ConstOfRank100000", [] { return Const(TW_FLOAT, std::vector<int64_t>(100000, 1), One); }, "too many messages", Import},
      {"ConstOfNegativeSize", [] { return Const(TW_FLOAT, {INT64_MIN}, One); }, "below -1", Import},
      {"ConstOfNothingButHuge", [=] { return Const(TW_FLOAT, {0, k40, k40}, FourBytes); }, "more than 2^63-1 elements", Import},
      {"FunctionsInFunctions", [] { return NestedFunctions(2000); }, nullptr, Import},
      {"FunctionsInLists", [] { return NestedLists(2000); }, nullptr, Import},
      {"TensorsInTensors", [] { return NestedTensors(5000); }, "nested more than 100 deep", Import},
      {"ALibraryOf100000", [] { return Library(100000); }, nullptr, Import},
      {"TenMillionNodes", [] { return Nodes(10000000); }, "more than 1048576 nodes", Import},
      {"AMillionInputs", [] { return Repeated(1000000, [](int) { return Field(3, "x"); }); }, "no node 'x'", Import},
      {"AMillionControls", [] { return Nodes(1) + Repeated(1000000, [](int) { return Field(3, "^n0"); }); }, nullptr, Import},
      {"AMillionAttributes",
       [] { return Repeated(1000000, [](int i) { return Field(5, Field(1, "_" + std::to_string(i)) + Field(2, "")); }); }, nullptr, Import},
      {"ANameOf64MB", [] { return Field(1, Field(1, std::string(64 << 20, 'n')) + Field(2, "NoOp")); }, nullptr, Import},
      {"AnOpOf64MB", [] { return Field(1, Field(1, "n") + Field(2, std::string(64 << 20, 'n'))); }, "defines op 'nnnn", Import},
      {"AnAttributeNameOf64MB", [] { return Node(Field(5, Field(1, std::string(64 << 20, 'n')) + Field(2, ""))); }, "INVALID_ARGUMENT",
       Import},
      {"AnInputNameOf16MB", [] { return InputNamed(LongName()); }, "no node 'nnnn", Import},
      {"AnInputThatIsNoNameOf16MB", [] { return InputNamed(":" + LongName()); }, "which is none of", Import},
      {"ADeviceOf16MB", [] { return OnDevice(LongName()); }, "device '/device:NNNN", ImportAndRun},
      {"AStringForAPaddingOf16MB", [] { return PaddedBy(LongName()); }, "attribute 'padding' is", Import},
      {"AVariableNameOf16MB", [] { return ReadOfVariable(LongName()); }, "is not initialised", ImportAndRun},
      {"ANodeNameOf16MBThatFails", [] { return FailingNode(LongName()); }, "no value is fed", ImportAndRun},
      {"ANameThatIsThereTwiceOf16MB", [] { return FailingNode(LongName()) + FailingNode(LongName()); }, "names must differ", Import},
      {"AStringOf128MB", [] { return OfAttr(Field(2, std::string(128 << 20, 's'))); }, nullptr, Import},
      {"TenMillionNumbers", [] { return OfAttr(Field(1, Field(3, std::string(10000000, '\1')))); }, nullptr, Import},
      {"TenMillionTypes", [] { return OfAttr(Field(1, Field(6, std::string(10000000, '\1')))); }, nullptr, Import},
      {"AddNOf2To31", [] { return Counted("AddN", "N", INT32_MAX, 1); }, "takes 2147483647 inputs but got 1", Import},
      {"AddNOf2To62", [] { return Counted("AddN", "N", int64_t{1} << 62, 1); }, "takes 4611686018427387904 inputs but got 1", Import},
      {"UnpackTo2To31", [] { return Counted("Unpack", "num", INT32_MAX, 1); }, "cannot have 2147483647 outputs", Import},
      {"ShapeNOf2To31", [] { return Counted("ShapeN", "N", INT32_MAX, 1); }, "takes 2147483647 inputs but got 1", Import},
      {"ALengthOf2GiB", [] { return Varint(1 << 3 | 2) + Varint((uint64_t{1} << 31) - 1) + "x"; }, "cut short at its byte 0", Import},
      {"ALengthOf2To60", [] { return Varint(1 << 3 | 2) + Varint(uint64_t{1} << 60) + "x"; }, "cut short at its byte 0", Import},
      {"AStringPastTheEnd", [] { return Field(1, Varint(1 << 3 | 2) + Varint(1000000) + "n"); }, "cut short at its byte 0", Import},
      {"AChainOf50000", [] { return Chain(50000); }, nullptr, ImportAndRun},
      {"FillOf2To40", [=] { return FilledTo({k40}); }, "4398046511440 bytes more are too many", ImportAndRun},
      {"FillOf1GiB", [] { return FilledTo({1 << 28}); }, "1073742160 bytes more are too many", ImportAndRun},
      {"FillThatOverflows", [=] { return FilledTo({k40, k40}); }, "more than 2^63-1 elements", ImportAndRun},
      {"RangeOf2To40", [=] { return RangeTo(k40); }, "bytes of its memory_limit", ImportAndRun},
      {"RangeOf1GiB", [] { return RangeTo(1 << 27); }, "bytes of its memory_limit", ImportAndRun},
      {"TileOf2To40", [=] { return OneThrough("Tile", "Tmultiples", {k40}); }, "bytes of its memory_limit", ImportAndRun},
      {"TileThatOverflows", [=] { return OneThrough("Tile", "Tmultiples", {k40, k40}); }, "more than 2^63-1 elements", ImportAndRun},
      {"BroadcastTo2To40", [=] { return OneThrough("BroadcastTo", "Tidx", {k40}); }, "bytes of its memory_limit", ImportAndRun},
      {"DlpackOf2To62Bytes", nothing, "cannot allocate 4611686018427387904 bytes",
       [](const std::string&) { return Broadcast(int64_t{1} << 30); }},
      {"DlpackThatOverflows", nothing, "more than 2^63-1 elements", [](const std::string&) { return Broadcast(int64_t{1} << 40); }},
  };
}

// Reads a number of kilobytes from /proc/self/status.
long StatusKb(const std::string& key) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.compare(0, key.size(), key) == 0) return std::atol(line.c_str() + key.size());
  }
  return 0;
}

// Runs the bomb and returns the child's exit status; prints the fault on standard output.
int Meet(const Bomb& bomb) {
  const std::string bytes = bomb.make();
  std::ofstream("/proc/self/clear_refs") << "5";  // resets the peak
  const long before = StatusKb("VmRSS:");
  const auto start = std::chrono::steady_clock::now();
  const std::string told = bomb.meet(bytes);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const long kb = StatusKb("VmHWM:") - before;
  std::printf("%s: %zu bytes, %.2f s, %ld KB: %.200s\n", bomb.name, bytes.size(), seconds, kb, told.c_str());
  bool good = true;
  if (seconds > 5) good = std::printf("  took more than 5 s\n") < 0;
#ifndef THALWEG_SANITIZED  // sanitizers use memory of their own
  const long most = long(8 * bytes.size() / 1024) + 64 * 1024;
  if (kb > most) good = std::printf("  took more than %ld KB\n", most) < 0;
#endif
  if ((bomb.says == nullptr) != told.empty()) good = std::printf("  expected %s\n", bomb.says ? bomb.says : "success") < 0;
  if (told.size() > 2000) good = std::printf("  told in %zu bytes\n", told.size()) < 0;
  if (bomb.says && told.find(bomb.says) == told.npos) good = std::printf("  expected '%s'\n", bomb.says) < 0;
  std::fflush(stdout);
  return good ? 0 : 1;
}

class BombTest : public testing::TestWithParam<Bomb> {
 protected:
  // Made before the children, which inherit it.
  static void SetUpTestSuite() {
    tw_runtime* runtime = nullptr;
    ASSERT_EQ(Told(tw_runtime_default(&runtime)), "");
    tw_runtime_release(runtime);
    EXPECT_EQ(Import(Const(TW_FLOAT, {1}, One)), "");
  }
};

TEST_P(BombTest, IsRefusedSoonAndInLittleMemory) {
  std::fflush(nullptr);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    _exit(Meet(GetParam()));
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

std::string NameOf(const testing::TestParamInfo<Bomb>& bomb) { return bomb.param.name; }
INSTANTIATE_TEST_SUITE_P(All, BombTest, testing::ValuesIn(Bombs()), NameOf);
INSTANTIATE_TEST_SUITE_P(Checkpoint, BombTest, testing::ValuesIn(thalweg::fuzz::CheckpointBombs()), NameOf);

}  // namespace
