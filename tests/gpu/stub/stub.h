// The stub driver's interface for tests, beside CUDA's functions; looked up by name like those. One
// state per process.
#pragma once

// Resets all state; none of it may be in use. options: "key=value ..." of
//   devices=1  version=13000  memory=BYTES (per device)  delay=N (maximum delay of each piece of work in microseconds)  seed=1
//   capability=9 (the major one)  unstaged=1 (copies read pageable memory when they run)
//   peers=1 (0: no device reaches another)   no_driver_init=1 (cuInit fails)   fail=FUNCTION:N (call N of it fails)
//   with=NUMBER (the error)   late=N (work N fails while it runs) mutant=NAME (see stub.cc)
extern "C" void stub_reset(const char* options);
// Returns all recorded faults, one per line; "" if there are none. Valid until the next call.
extern "C" const char* stub_wrong();
// Returns the number of calls of a function, the number of live `streams`, `events`, `modules`,
// `graphs` or `pinned` blocks, the bytes of `memory` in use, or the pieces of `work` run since the
// reset.
extern "C" long long stub_count(const char* what);
