using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using static Thalweg.Low;
using static Thalweg.ThalwegException;
using File = System.Runtime.CompilerServices.CallerFilePathAttribute;
using Line = System.Runtime.CompilerServices.CallerLineNumberAttribute;

namespace Thalweg
{
    /// <summary>Adds operations to a graph. A failure is thrown where the wrong operation is added, and the scope goes on. One thread at a time.
    /// Class <c>Ops</c> has a method of scopes for each op. The compiler fills in <c>file</c> and <c>line</c>, the place of each
    /// operation.</summary>
    public sealed unsafe partial class Scope
    {
        /// <summary>The C scope, which finishes when it is forgotten. It keeps the graph, which must outlive it.</summary>
        private sealed class State
        {
            internal IntPtr Address;
            internal readonly NativeHandle Handle;

            internal State(Graph graph)
            {
                Used g = graph.Use();
                Handle = new NativeHandle(new IntPtr(-1), unused => {
                    if (Address != IntPtr.Zero) tw_status_release(tw_scope_finish(Address));
                    g.Dispose();
                });
            }
        }

        private readonly Graph graph;
        private readonly State state; // null: of a function of elements
        private IntPtr inner;

        internal Scope(Graph graph, string prefix)
        {
            this.graph = graph;
            byte[] text = string.IsNullOrEmpty(prefix) ? null : Memory.Utf8(prefix);
            using (Used g = graph.Use())
            {
                state = new State(graph);
                state.Address = tw_scope_create(g, text);
            }
        }

        private Scope(Graph graph, IntPtr inner)
        {
            this.graph = graph;
            this.inner = inner;
        }

        public Graph Graph
        {
            get { return graph; }
        }

        /// <summary>Calls C with the line of the program on record, and throws the failure that the scope then has.</summary>
        private T Add<T>(string file, int line, Func<IntPtr, T> call)
        {
            using (Used g = graph.Use())
            {
                IntPtr s = state == null ? inner : state.Address;
                if (s == IntPtr.Zero) throw Failed("the scope of a function of elements has ended");
                tw_scope_set_place(s, Memory.Utf8(string.IsNullOrEmpty(file) ? "" : Path.GetFileName(file.Replace('\0', ' ')) + ":" + line));
                T result = call(s);
                if (tw_scope_code(s) != TW_OK) Fail(g, s);
                if (state != null) GC.KeepAlive(state.Handle);
                return result;
            }
        }

        /// <summary>A scope of C keeps its first failure and adds nothing more, so that this one goes on with a new one.</summary>
        private void Fail(IntPtr g, IntPtr failed)
        {
            if (state == null) throw new ThalwegException((Code)tw_scope_code(failed), "the function of elements has failed");
            string prefix = Memory.String(tw_scope_prefix(failed)), device = Memory.String(tw_scope_device(failed));
            state.Address = tw_scope_create(g, string.IsNullOrEmpty(prefix) ? null : Memory.Utf8(prefix.Substring(0, prefix.Length - 1)));
            if (!string.IsNullOrEmpty(device)) tw_scope_set_device(state.Address, Memory.Utf8(device));
            Check(tw_scope_finish(failed));
        }

        private Output Value(string file, int line, Func<IntPtr, ulong> call)
        {
            return new Output(Add(file, line, call));
        }

        private Operation Done(string file, int line, Func<IntPtr, IntPtr> call)
        {
            return new Operation(graph, Add(file, line, call));
        }

        /// <summary>Sets the device of the operations that follow, such as "CPU:0"; "" for any.</summary>
        public void SetDevice(string device)
        {
            Add("", 0, s => {
                tw_scope_set_device(s, Memory.Name(device, "the device"));
                return 0;
            });
        }

        private static ulong[] Ids(IList<Output> all)
        {
            if (all == null) throw Invalid("a list of values is null; give an empty one");
            return all.Select(x => x.Id).ToArray();
        }

        /// <summary>Adds an operation with default attributes and returns its first value.</summary>
        public Output Op(string type, Output[] inputs, [File] string file = "", [Line] int line = 0)
        {
            return Value(file, line, s => {
                fixed (ulong* ids = Ids(inputs)) return tw_scope_op(s, Memory.Name(type), ids, (uint)inputs.Length);
            });
        }

        /// <summary>Adds a value that each run feeds. -1 is an unknown size.</summary>
        public Output Placeholder(string name, DType dtype, long[] dims, [File] string file = "", [Line] int line = 0)
        {
            return Value(file, line, s => {
                if (dims == null) throw Invalid("the sizes are null");
                fixed (long* d = dims) return tw_scope_placeholder(s, Memory.Name(name), (uint)dtype, d, dims.Length);
            });
        }

        public Output Constant(Tensor tensor, [File] string file = "", [Line] int line = 0)
        {
            return Value(file, line, s => {
                using (Used t = Handle.Use(tensor, "a constant")) return tw_scope_constant(s, t);
            });
        }

        /// <summary>Adds a constant number of a type.</summary>
        public Output Scalar(DType dtype, double number, [File] string file = "", [Line] int line = 0)
        {
            return Value(file, line, s => tw_scope_scalar(s, (uint)dtype, number));
        }

        /// <summary>Adds a constant vector of int32: sizes, axes.</summary>
        public Output Ints(int[] values, [File] string file = "", [Line] int line = 0)
        {
            return Value(file, line, s => {
                if (values == null) throw Invalid("the numbers are null");
                fixed (int* v = values) return tw_scope_ints(s, v, (uint)values.Length);
            });
        }

        /// <summary>Gives a value a name, by which it can be fed, fetched and found.</summary>
        public Output Name(string name, Output x, [File] string file = "", [Line] int line = 0)
        {
            return Value(file, line, s => tw_scope_name(s, Memory.Name(name), x.Id));
        }

        /// <summary>Adds an operation that runs others.</summary>
        public Operation Group(string name, IList<Operation> operations, [File] string file = "", [Line] int line = 0)
        {
            return Done(file, line, s => {
                using (Memory memory = new Memory()) return tw_scope_group(s, Memory.Utf8(name), memory.Operations(operations), (uint)operations.Count);
            });
        }

        /// <summary>Adds a variable that <see cref="Initializer"/> sets to a value.</summary>
        public Output Variable(string name, Output initial, [File] string file = "", [Line] int line = 0)
        {
            return Value(file, line, s => tw_variable_create(s, Memory.Name(name), initial.Id));
        }

        public Output Read(Output variable, [File] string file = "", [Line] int line = 0)
        {
            return Value(file, line, s => tw_variable_read(s, variable.Id));
        }

        public Operation Assign(Output variable, Output x, [File] string file = "", [Line] int line = 0)
        {
            return Done(file, line, s => tw_variable_assign(s, variable.Id, x.Id));
        }

        /// <summary>Adds the operation that sets all variables that the graph has now to their first values.</summary>
        public Operation Initializer(string name = "init", [File] string file = "", [Line] int line = 0)
        {
            return Done(file, line, s => tw_variable_initializer(s, Memory.Name(name)));
        }

        /// <summary>Gives a value other sizes, of which one may be -1.</summary>
        public Output Reshape(Output x, int[] dims, [File] string file = "", [Line] int line = 0)
        {
            return Op("Reshape", new[] {x, Ints(dims, file, line)}, file, line);
        }

        private long[] Sizes(Output x)
        {
            long[] sizes = Add("", 0, s => {
                uint dtype;
                tw_shape shape;
                Check(tw_graph_describe(tw_scope_graph(s), x.Id, &dtype, &shape));
                return Graph.ShapeAt(&shape);
            });
            if (sizes == null) throw Invalid("the number of axes must be known");
            return sizes;
        }

        private Output Axes(Output x, string file, int line)
        {
            return Ints(Enumerable.Range(0, Sizes(x).Length).ToArray(), file, line);
        }

        /// <summary>The mean of all elements.</summary>
        public Output Mean(Output x, [File] string file = "", [Line] int line = 0)
        {
            return Op("Mean", new[] {x, Axes(x, file, line)}, file, line);
        }

        /// <summary>The sum of all elements.</summary>
        public Output Sum(Output x, [File] string file = "", [Line] int line = 0)
        {
            return Op("Sum", new[] {x, Axes(x, file, line)}, file, line);
        }
    }
}
