/* C++17 sugar over the application API: handles that clean up after themselves, exceptions instead of statuses, vectors instead of
 * pointers with counts. Header only, so nothing of C++ crosses the library's boundary. Whatever is missing here is one `.c()` away.
 * This header only includes; each noun has one of its own.
 *
 *   tw::Graph graph;
 *   tw::Scope s(graph);
 *   tw_output x = s.placeholder("x", TW_FLOAT, {});
 *   tw_output y = s.op("Add", {s.op("Mul", {x, x}), s.scalar(TW_FLOAT, 1)});
 *   s.finish();
 *   tw::Session session(graph);
 *   std::cout << session.run({{x, tw::Tensor(3.0f)}}, {y})[0].text();
 *
 * Errors: tw::StatusError, with the status's code and message. Threads: as the C objects. Since 0.1. */
#ifndef THALWEG_CPP_THALWEG_HPP
#define THALWEG_CPP_THALWEG_HPP
#include "thalweg/cpp/dataset.hpp"
#include "thalweg/cpp/graph.hpp"
#include "thalweg/cpp/handle.hpp"
#include "thalweg/cpp/lbfgs.hpp"
#include "thalweg/cpp/model.hpp"
#include "thalweg/cpp/saver.hpp"
#include "thalweg/cpp/scope.hpp"
#include "thalweg/cpp/server.hpp"
#include "thalweg/cpp/session.hpp"
#include "thalweg/cpp/tensor.hpp"
#include "thalweg/thalweg.h"
#endif
