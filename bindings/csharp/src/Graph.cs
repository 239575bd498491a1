using System;
using System.Collections.Generic;
using static Thalweg.Low;
using static Thalweg.ThalwegException;

namespace Thalweg
{
    /// <summary>A value of a graph.</summary>
    public struct Output : IEquatable<Output>
    {
        internal readonly ulong Id;

        internal Output(ulong id)
        {
            Id = id;
        }

        public bool Equals(Output other)
        {
            return Id == other.Id;
        }

        public override bool Equals(object other)
        {
            return other is Output && Equals((Output)other);
        }

        public override int GetHashCode()
        {
            return Id.GetHashCode();
        }
    }

    /// <summary>One operation of a graph.</summary>
    public sealed unsafe class Operation
    {
        private readonly Graph graph;
        internal readonly IntPtr Address;

        internal Operation(Graph graph, IntPtr address)
        {
            this.graph = graph;
            Address = address;
        }

        public string Name
        {
            get { using (graph.Use()) return Memory.String(tw_operation_name(Address)); }
        }

        /// <summary>The name of the op.</summary>
        public string Type
        {
            get { using (graph.Use()) return Memory.String(tw_operation_type(Address)); }
        }

        public Output Output(int i)
        {
            using (graph.Use()) return new Output(tw_operation_output(Address, (uint)i));
        }

        public Output[] Outputs()
        {
            using (graph.Use())
            {
                Output[] all = new Output[tw_operation_output_count(Address)];
                for (int i = 0; i < all.Length; ++i) all[i] = new Output(tw_operation_output(Address, (uint)i));
                return all;
            }
        }
    }

    /// <summary>A variable of a graph: its handle, its name in checkpoints, its type, and its sizes, of which -1 is unknown.</summary>
    public sealed class Variable
    {
        internal Variable(Output handle, string name, DType dtype, long[] shape)
        {
            Handle = handle;
            Name = name;
            DType = dtype;
            Shape = shape;
        }

        public Output Handle { get; }
        public string Name { get; }
        public DType DType { get; }
        public long[] Shape { get; }
    }

    /// <summary>Operations, and the values between them. Any thread may use it.</summary>
    public sealed unsafe class Graph : Handle
    {
        public Graph() : base(Create(), tw_graph_destroy) {}

        private static IntPtr Create()
        {
            IntPtr graph;
            Check(tw_graph_create(IntPtr.Zero, &graph));
            return graph;
        }

        /// <summary>Makes a graph of a serialised GraphDef.</summary>
        public static Graph Import(byte[] bytes)
        {
            if (bytes == null) throw Invalid("the bytes are null");
            Graph graph = new Graph();
            using (Used g = graph.Use())
            using (Memory memory = new Memory())
                Check(tw_graph_import(g, memory.Bytes(bytes), (ulong)bytes.Length, null));
            return graph;
        }

        /// <summary>The graph as a serialised GraphDef.</summary>
        public byte[] Export()
        {
            using (Used g = Use())
            {
                IntPtr bytes;
                Check(tw_graph_export(g, &bytes));
                return Memory.Take(bytes);
            }
        }

        /// <summary>The number of operations.</summary>
        public int Count
        {
            get { using (Used g = Use()) return (int)tw_graph_count(g); }
        }

        /// <summary>Finds an operation by its name.</summary>
        public Operation Operation(string name)
        {
            using (Used g = Use())
            {
                IntPtr found;
                Check(tw_graph_find(g, Memory.Name(name), &found));
                return new Operation(this, found);
            }
        }

        /// <summary>Finds a value by its name: "x" or "x:1".</summary>
        public Output Output(string name)
        {
            using (Used g = Use())
            {
                ulong found;
                Check(tw_graph_find_output(g, Memory.Name(name), &found));
                return new Output(found);
            }
        }

        /// <summary>The sizes of a value, of which -1 is unknown; null: not even the number of axes is known.</summary>
        public long[] Shape(Output value)
        {
            using (Used g = Use())
            {
                uint dtype;
                tw_shape shape;
                Check(tw_graph_describe(g, value.Id, &dtype, &shape));
                return ShapeAt(&shape);
            }
        }

        internal static long[] ShapeAt(tw_shape* shape)
        {
            if (shape->rank < 0) return null;
            long[] dims = new long[shape->rank];
            for (int i = 0; i < dims.Length; ++i) dims[i] = shape->dims[i];
            return dims;
        }

        /// <summary>The variables that the graph has now.</summary>
        public IList<Variable> Variables()
        {
            using (Used g = Use())
            {
                IntPtr list;
                Check(tw_variables_create(g, &list));
                try
                {
                    Variable[] all = new Variable[tw_variables_count(list)];
                    for (uint i = 0; i < all.Length; ++i)
                    {
                        uint dtype;
                        tw_shape shape;
                        Check(tw_variables_describe(list, i, &dtype, &shape));
                        all[i] = new Variable(new Output(tw_variables_handle(list, i)), Memory.String(tw_variables_name(list, i)), (DType)dtype, ShapeAt(&shape));
                    }
                    return all;
                }
                finally
                {
                    tw_variables_destroy(list);
                }
            }
        }

        /// <summary>Begins to add operations, whose names have the prefix; "" for none.</summary>
        public Scope Scope(string prefix = "")
        {
            return new Scope(this, prefix);
        }
    }
}
