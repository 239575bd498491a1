#include "tools/conformance/rules.h"

namespace thalweg::conformance {
namespace {

constexpr Rule kRules[] = {
    {1, "the file is a shared library for this machine, and loads", "abi.h"},
    {2, "it exports tw_plugin_query_v0 and nothing else", "plugin.h"},
    {3, "it imports nothing of the runtime", "plugin.h"},
    {4, "loading it and asking who it is starts no thread, opens no file and makes no process", "plugin.h"},
    {5, "the query answers the same constant record every time, whatever the host says of itself", "plugin.h"},
    {6, "the descriptor is complete", "plugin.h"},
    {7, "init registers what the host accepts, and the host leaves none of it out", "plugin.h"},
    {8, "two runtimes of one process can use it at once", "abi.h"},
    {9, "after shutdown none of its threads is left", "plugin.h"},
    {10, "load, init, shutdown and unload, over and over, do not grow", "plugin.h"},
    {11, "an init whose host calls fail answers that error, and works the next time", "plugin.h"},
    {12, "init works in a newer host, whose records are longer", "abi.h"},
    {13, "init works in the oldest host that it accepts", "abi.h"},
    {14, "loading, init and shutdown leave the process as it was, and its standard files alone", "abi.h"},
    {15, "init and shutdown, over and over, lose no memory and no status, also where a call of the host fails", "plugin.h"},

    {101, "enumerate lists each device once, under a uid that stays", "device.h"},
    {102, "allocate gives memory of any size, aligned as asked", "device.h"},
    {103, "bytes come back from the device as they went there", "device.h"},
    {104, "copies within the device move the bytes asked for and no others", "device.h"},
    {105, "blocks do not overlap, and what was released can be had again, in any order", "device.h"},
    {106, "too large an allocation is an error, and the device works on", "device.h"},
    {107, "several threads may allocate, copy and release at once", "abi.h"},
    {108, "enumerate passes on an error of the list", "abi.h"},

    {201, "a kernel computes what the op's CPU kernel computes", "kernel.h"},
    {202, "a kernel gives the same bits for the same inputs", "kernel.h"},
    {203, "shape rules with less knowledge promise nothing that turns out wrong", "op.h"},
    {204, "gradients agree with numeric differences", "op.h"},
    {205, "a kernel uses no frame, view or attribute after the call that it came with, on whatever thread", "kernel.h"},
    {206, "a kernel writes to its outputs and scratch, and nowhere else", "kernel.h"},
    {207, "one kernel may be executed several times at once", "kernel.h"},
    {208, "a kernel lets go of every tensor that it made or kept", "tensor.h"},
    {209, "a kernel looks at what its resources are: without a value, of another type, shape or kind, they do not lead it astray",
     "kernel.h"},
    {210, "kernels, made, called and destroyed over and over, do not grow, nor do their resources", "kernel.h"},
    {211, "what save wrote, restore turns into the same; damaged bytes do no harm", "resource.h"},
    {212, "kernels for ops of the plugin's own are for element types that these allow", "kernel.h"},
    {213, "a kernel takes the cases that its author supplies, and gives what they say", "op.h"},
    {214, "a kernel computes the same where an output takes the memory of an input, as its spec lets it", "kernel.h"},
    {215, "a kernel reads its inputs and nothing around them", "tensor.h"},
    {216, "a kernel writes all elements of its outputs, and nothing follows from what outputs and scratch held before", "kernel.h"},
    {217, "a kernel leaves the process as it was, and its standard files alone", "abi.h"},
    {218, "a kernel says the same each time it is asked whether it fits, and takes unknown shapes where it takes the known ones",
     "kernel.h"},
    {219, "sizes of results keep the limits that the schema's hints promise, and grow if it says so", "limits.h"},

    {301, "work of one stream is done in order", "device.h"},
    {302, "signal reaches the line's value once earlier work is over, and not before", "device.h"},
    {303, "streams do not wait for one another", "device.h"},
    {304, "wait holds later work back until the other line has its value", "device.h"},
    {305, "a stream that waited for a failed line still signals", "device.h"},
    {306, "destroy returns when all work is over and every value signalled", "device.h"},
    {307, "streams, made and destroyed over and over, leave no thread behind", "device.h"},
    {308, "an asynchronous kernel completes its token exactly once, unless it failed at once", "kernel.h"},
    {309, "a kernel whose host calls fail answers an error, and works the next time", "abi.h"},
    {310, "a kernel of a cancelled step ends soon, well or with that error", "kernel.h"},
    {311, "pinned memory is aligned and can be copied from and to", "device.h"},
    {312, "a device copies to its peers what its memory holds", "device.h"},
    {313, "events are reached when what was enqueued before is over", "device.h"},
    {314, "statistics are numbers under names", "device.h"},
    {315,
     "a recording does nothing until it is replayed, and then each time; one that is recorded into, or a part that is updated, is "
     "something else",
     "device.h"},
    {316, "spans of a profile lie within it, and none is added after stop", "device.h"},
    {317, "a device takes memory of its own kind that it is shown, and no range that leaves it", "device.h"},
    {318, "a kernel reads inputs in host memory before execute returns", "kernel.h"},
    {319, "a kernel that does not say `may_block` does not sleep", "kernel.h"},

    {401, "a compiler claims nodes that there are, each once in a set", "compiler.h"},
    {402, "a refusal names a node and has a reason", "compiler.h"},
    {403, "a compiled part computes what its nodes compute", "compiler.h"},
    {404, "what serialize wrote, load turns into the same", "compiler.h"},
    {405, "an artefact with an unknown tag is not usable", "compiler.h"},
    {406, "an artefact that is cut short is refused", "compiler.h"},
    {407, "a compiler keeps no pointer into a part or a frame", "compiler.h"},
    {408, "a compiler whose host calls fail answers an error", "abi.h"},

    {421, "a substitution names nodes, values and ops that there are, each once", "rewriter.h"},
    {422, "what stands for a value is equal to it", "rewriter.h"},
    {423, "a rewriter keeps no pointer into a part", "rewriter.h"},
    {424, "a rewriter ends when its substitutions are refused, and does the same afterwards", "rewriter.h"},

    {501, "listen says where it is reached", "transport.h"},
    {502, "connect to nobody is UNAVAILABLE, at once or at the first use", "transport.h"},
    {503, "requests from several threads are answered once each, with what the other side said, and answers are done", "transport.h"},
    {504, "heads and bodies of all sizes arrive whole, both ways", "transport.h"},
    {505, "calls are answered in any order, and those that wait hold up nobody", "transport.h"},
    {506, "cancel ends a call with CANCELLED, tells the peer, and does nothing when it is over", "transport.h"},
    {507, "a call may be cancelled at any moment; its memory is not touched when it is over", "transport.h"},
    {508, "a peer that is lost ends calls with UNAVAILABLE, which names it", "transport.h"},
    {509, "a body without a place is dropped, and its message is there without it", "transport.h"},
    {510, "close_peer ends the calls of that peer, and no others, with CANCELLED", "transport.h"},
    {511, "close returns when what went out is done and what came in is answered", "transport.h"},
    {512, "callbacks never come from inside an entry but poll", "transport.h"},
    {513, "a thread that is lent goes on when its wait is over, by what it did itself, by wake or by time", "transport.h"},

    {521, "what was appended is what a reader gets, over any range", "file_system.h"},
    {522, "create refuses a name that is taken", "file_system.h"},
    {523, "what is not there is NOT_FOUND", "file_system.h"},
    {524, "a read beyond the end is OUT_OF_RANGE", "file_system.h"},
    {525, "rename replaces the other file at once; a reader keeps what it opened", "file_system.h"},
    {526, "list puts the names in the folder, each once", "file_system.h"},
    {527, "a folder that is locked is not to be had twice", "file_system.h"},
    {528, "several threads read one file at once", "file_system.h"},
    {529, "identify gives equal bytes for one file with the same contents, and for no other", "file_system.h"},

    {541, "all_reduce gives every member the same, by every operation", "collective.h"},
    {542, "broadcast gives every member what the root has", "collective.h"},
    {543, "all_gather, all_to_all and permute order by rank", "collective.h"},
    {544, "reduce_scatter gives each member its part", "collective.h"},
    {545, "abort fails what runs", "collective.h"},
    {546, "a lost member fails the others within the deadline", "collective.h"},

    {561, "a value that was put can be got, under a revision that grows", "membership.h"},
    {562, "put and remove with an expected revision fail with ABORTED on another", "membership.h"},
    {563, "a watch tells what there is, then every change in order, until unwatch", "membership.h"},
    {564, "keys put with `mine` go with their member", "membership.h"},
    {565, "a key that is not there is NOT_FOUND", "membership.h"},

    {581, "recognise gives the same answer for the same contents, at most 100", "importer.h"},
    {582, "load fails for contents that recognise does not know, and ends for damaged ones", "importer.h"},
    {583, "two loads of one file make equal models", "importer.h"},

    {591, "a profiler takes every step: without spans, failed, with empty texts, with kinds that it does not know", "profiler.h"},
    {592, "a profiler keeps no pointer into a record or an argument", "abi.h"},
    {593, "profiles are apart: one may end while others go on, and two are called at the same time", "profiler.h"},
    {594, "start and stop, over and over, leave no thread, no open file and no memory behind", "profiler.h"},
};

}  // namespace

std::span<const Rule> Rules() { return kRules; }

const Rule* FindRule(int number) {
  for (const Rule& r : kRules) {
    if (r.number == number) return &r;
  }
  return nullptr;
}

}  // namespace thalweg::conformance
