// What tests ask of the stub driver beside CUDA's functions; found in it by name, as these are. One state per process.
#pragma once

// Forgets everything and starts anew; nothing of it may be in use. options: "key=value ..." of
//   devices=1  version=13000  memory=BYTES (of a device)  delay=N (microseconds at most that each piece of work takes longer)  seed=1
//   capability=9 (the major one)  unstaged=1 (what copies read that is not pinned is read when they run)
//   peers=1 (0: no device reaches another)   no_driver_init=1 (cuInit fails)   fail=FUNCTION:N (call N of it fails)  with=NUMBER (the
//   error)   late=N (work N fails while it runs) mutant=NAME (see stub.cc)
extern "C" void stub_reset(const char* options);
// Everything that was wrong so far, a line each; "" if nothing. Lives until the next call.
extern "C" const char* stub_wrong();
// How often a function was called, or how many of `streams`, `events`, `memory` (bytes), `modules`, `graphs`, `work` there are or were.
extern "C" long long stub_count(const char* what);
