// The graph of an ONNX file that is being written, and the view of one of our operations that a translator has.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "message.h"
#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::cli::onnx {

using Name = std::string;  // of a value of the file
using Sizes = std::vector<int64_t>;

// Thrown by translators for a form of an operation that ONNX does not have.
struct NoTwin {
  std::string reason;
};

class Net {
 public:
  // Names of values begin with `prefix`, the name of an operation of ours, until the next call.
  void Begin(const std::string& prefix) { prefix_ = prefix; }

  // Adds a node. Its outputs get names of their own.
  std::vector<Name> AddMany(const char* op, const std::vector<Name>& inputs, size_t outputs, const std::vector<Attr>& attrs = {});
  Name Add(const char* op, const std::vector<Name>& inputs, const std::vector<Attr>& attrs = {}) {
    return AddMany(op, inputs, 1, attrs)[0];
  }
  // Adds a node whose output has the given name.
  void AddNamed(const char* op, const std::vector<Name>& inputs, const Name& output);

  // Adds a constant, which the file has if a node reads it. name: "" means a name made from the prefix.
  Name Constant(const tw::Tensor& tensor, const Name& name = "");
  Name Ints(const Sizes& values);             // int64 [n]; equal lists share one constant
  Name Scalar(uint32_t dtype, double value);  // []
  Name Cast(const Name& value, uint32_t dtype);
  Name Transpose(const Name& value, const Sizes& order) { return Add("Transpose", {value}, {{"perm", order}}); }
  // Reserves a name.
  Name Unique(const Name& wanted);

  void Input(const Name& name, uint32_t dtype, const tw_shape& shape, const char* const* symbols);
  void Output(const Name& name, uint32_t dtype, const tw_shape& shape, const char* const* symbols);
  // Returns the bytes of the file.
  std::string Model(const std::string& producer_version) const;

 private:
  Message graph_;
  std::vector<std::pair<Name, Message>> constants_;
  std::set<Name> read_;
  std::string prefix_;
  std::set<Name> taken_;
  std::map<Sizes, Name> ints_;
  std::map<std::pair<uint32_t, double>, Name> scalars_;
};

// The names of one value of ours: with channels last, as most graphs of ours have images, and with channels first, as ONNX has them.
// At least one is there.
struct Held {
  Name last, first;
};
using HeldValues = std::map<tw_output, Held>;

class Op {
 public:
  Op(const tw_graph* graph, const tw_operation* op, Net* to, HeldValues* held) : net(*to), graph_(graph), op_(op), held_(*held) {}
  Net& net;

  uint32_t inputs() const { return tw_operation_input_count(op_); }
  Name in(uint32_t i) { return name(tw_operation_input(op_, i)); }
  std::vector<Name> all();
  uint32_t dtype(uint32_t i) const;
  uint32_t out_dtype(uint32_t i) const;
  int32_t rank(uint32_t i) const { return shape(tw_operation_input(op_, i)).rank; }
  int32_t known_rank(uint32_t i) const;                  // throws NoTwin if it is unknown
  Sizes dims(uint32_t i) const;                          // as known: -1 is unknown
  Sizes out_dims(uint32_t i) const;                      // likewise; empty if the rank is unknown
  std::optional<Sizes> ints(uint32_t i) const;           // the value of an input that is a constant of integers
  Sizes known_ints(uint32_t i, const char* what) const;  // throws NoTwin if it is none
  Name longs(uint32_t i);                                // the input as int64
  Name vector(uint32_t i);                               // the input as int64 [n], also if it is a scalar

  // Images. `first` is the input with channels first; prefers_first says that it is there in that form only.
  bool prefers_first(uint32_t i) const;
  Name first(uint32_t i);
  void out(uint32_t i, const Name& value) { held_[tw_operation_output(op_, i)].last = value; }
  void out_first(uint32_t i, const Name& value) { held_[tw_operation_output(op_, i)].first = value; }

  int64_t i(const char* attr) const { return *value<int64_t>(attr); }
  double f(const char* attr) const { return *value<double>(attr); }
  bool b(const char* attr) const { return *value<uint8_t>(attr) != 0; }
  uint32_t type(const char* attr) const { return *value<uint32_t>(attr); }
  std::string s(const char* attr) const;
  Sizes list(const char* attr) const;
  bool has(const char* attr) const;
  tw::Tensor tensor(const char* attr) const;

  [[noreturn]] static void Unsupported(const std::string& reason) { throw NoTwin{reason}; }

 private:
  Name name(tw_output value);
  tw_shape shape(tw_output value) const;
  template <class T>
  const T* value(const char* attr) const {
    const void* values = nullptr;
    tw::raise(tw_operation_attr(op_, attr, nullptr, nullptr, nullptr, &values));
    return static_cast<const T*>(values);
  }

  const tw_graph* graph_;
  const tw_operation* op_;
  HeldValues& held_;
};

// The order of axes that moves channels, of an image of that rank, from the last to the first place after the batch, and back.
Sizes ToFirst(int32_t rank);
Sizes ToLast(int32_t rank);

}  // namespace thalweg::cli::onnx
