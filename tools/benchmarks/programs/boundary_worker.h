// The parts of row 33's worker: calls of a plugin's kernels without a runtime, virtual calls that
// do the same work, and plans of such kernels.
#pragma once
extern "C" {
#include "worker.h"
}

constexpr int kNodes = 10000;

void LoadKernels(const char* plugin);  // boundary_calls.cc
// Replies with ns per call. argument: number of samples.
void AnswerBareCall(const char* argument);
void AnswerSugarCall(const char* argument);
void AnswerVirtualCall(const char* argument);
void AnswerBareCalls(const char* argument);  // the same over kNodes nodes that are called once each in turn
void AnswerSugarCalls(const char* argument);
void AnswerVirtualCalls(const char* argument);

void LoadIntoRuntime(const char* plugin);  // boundary_plans.cc
// Replies with ns per node of a plan of kNodes. argument: number of samples.
void AnswerBarePlan(const char* argument);
void AnswerSugarPlan(const char* argument);
void AnswerEmptyPlan(const char* argument);
void AnswerBuiltInPlan(const char* argument);
