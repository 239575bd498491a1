// The parts of the worker that row 33 asks: calls of a plugin's kernels without any runtime and virtual calls that do the same, and plans
// of such kernels.
#pragma once
extern "C" {
#include "worker.h"
}

constexpr int kNodes = 10000;

void LoadKernels(const char* plugin);  // boundary_calls.cc
// ns a call. argument: how many samples.
void AnswerBareCall(const char* argument);
void AnswerSugarCall(const char* argument);
void AnswerVirtualCall(const char* argument);
void AnswerBareCalls(const char* argument);  // the same of kNodes nodes that are called once each in turn
void AnswerSugarCalls(const char* argument);
void AnswerVirtualCalls(const char* argument);

void LoadIntoRuntime(const char* plugin);  // boundary_plans.cc
// ns a node of a plan of kNodes. argument: how many samples.
void AnswerBarePlan(const char* argument);
void AnswerSugarPlan(const char* argument);
void AnswerEmptyPlan(const char* argument);
void AnswerBuiltInPlan(const char* argument);
