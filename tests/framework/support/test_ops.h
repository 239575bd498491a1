// A plugin linked into the tests of planner, engines and sessions: ops over float tensors, a device CPU with host memory, two devices FAKE
// whose memory only their own kernels can read, and a journal of executed kernels. One journal and one gate per process.
#pragma once
#include <cstdint>
#include <vector>

#include "tests/framework/support/test_graph.h"
#include "thalweg/plugin/plugin.h"

namespace thalweg::testing_support {

//  op                    computes            kernels
//  Add, Mul(x, y)        of equal shapes     CPU and FAKE, in place of either
//  Neg(x)                -x                  CPU and FAKE, cheap, in place
//  Next(x)               x + 1               CPU, never in place
//  OnCpu, OnFake(x)      2 x, 3 x            one device each; Nowhere has none
//  Traced(x; tag)        x                   CPU; writes the tag into the journal
//  Mark(; tag)           nothing, stateful   CPU and FAKE; writes the tag into the journal
//  Noise(x)              x + a new number    CPU, stateful
//  Born(x)               x                   CPU; journal -3 when its state is made, -4 when it is destroyed
//  Dice(x)               x                   CPU, nondeterministic; journal -1
//  Grow(x; shape)        x everywhere        CPU; journal: the number of elements
//  Picky(x)              x                   CPU; fails if x[0] < 0
//  Later(x)              x + 1               CPU, asynchronous, ends on another thread; fails if x[0] < 0
//  Gated, GatedAside(x)  x                   CPU; waits for OpenGate; GatedAside may block
//  Opens(x)              x                   CPU; opens the gate as soon as two calls wait at it
//  Crowd(x; tag)         x                   CPU; a slow loop for all threads; counts them, see MostInCrowd
//  CrowdAside(x; tag)    x                   CPU; the same, and may block
//  Stubborn(x)           x                   CPU; journal -5, then runs until the step is interrupted
//  Fresh()               a new number        CPU, once per session; journal -2
//  Flat(x)               x as a vector       CPU, a view
//  CountOf(x)            number of elements  CPU; as often as x has elements; reads only the shape of x
//  Cut(x; first, size)   x[first:] as U      CPU and FAKE; forwards a part of its input
//  Clip(x)               max(x, 0)           CPU; forwards its input if that is the result
//  Positive(x)           the elements > 0    CPU; its shape is known only at run time
//  Rows(x; columns)      x in rows           CPU; its schema declares two columns
//  Two(x)                x + 1, 2 x          CPU, the first in place
//  Sum(xs...)            their sum           CPU, in place of the first
//  Mirror(x)             x backwards         CPU, with scratch memory
//  LaterAside(x)         x + 1               CPU; as Later, and may block
//  LaterTraced(x; tag)   x + 1               CPU; as Later; writes the tag when it starts
//  Give(x; more)         x + 1               CPU; returns its own tensor, with `more` additional rows
//  SaveAs(x; prefix)     x                   CPU; writes x into a checkpoint; declared to access files
//  Phone(x; tag)         x                   CPU; writes the tag into the journal; declared to access the network
//  HandOn, Same(x)       x                   HandOn: CPU and FAKE, forwards its input; Same: FAKE, a view
//  Throws...(x)          nothing             CPU; throws: simple, may block (Aside), asynchronous (Later)
//  ThrowsLate(x)         nothing             CPU; asynchronous, may block; ends, then throws when the next such call runs; that call
//                                            does not throw
//  BornAfter(x; tag)     x                   CPU; the creation of its state throws unless the journal has the tag
//  Box(; key, shape)     a variable          CPU and FAKE
//  Put(v, x), Get(v)     v becomes x, v      CPU and FAKE
//  Bump(v)               v[0] + 1 into v     CPU, asynchronous, ends on another thread
//  ThrowsHolding...(v)   nothing             CPU; throws with v open: synchronous, or asynchronous (Later)
//  Tray(; key)           a tray of letters   CPU
//  Post(t, x)            adds letters        CPU
//  Await(t; letters)     so many letters     CPU, asynchronous; waits at the tray, and takes letters as they come
//  AwaitEmpty(t; tag)    nothing             CPU, asynchronous; waits until the tray is empty; writes the tag at each check
//  WaitsInTurn(t)        fails               CPU; waits although it is not asynchronous; WaitsForAnother(t) waits at a resource that it
//                                            has not opened
const tw_plugin* QueryTestOps(const tw_host_info* host);

std::vector<int64_t> Journal();
void ClearJournal();
int FakeCopies();  // between FAKE memory and the host, since the start
// Gated kernels wait from CloseGate on until OpenGate. AwaitGated returns when n calls wait.
void CloseGate();
void OpenGate();
void AwaitGated(int n);

// Returns the largest number of threads that were in kernels Crowd of this tag (0 to 3) at the same time
// since the last call.
int MostInCrowd(int64_t tag);

}  // namespace thalweg::testing_support
