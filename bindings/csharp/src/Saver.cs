using System;
using System.Collections.Generic;
using System.Linq;
using static Thalweg.Low;
using static Thalweg.ThalwegException;

namespace Thalweg
{
    /// <summary>Writes variables to checkpoints in TensorFlow's format and reads them back.</summary>
    public sealed unsafe class Saver : Handle
    {
        /// <summary>A saver for some variables; none: all that the graph has now.</summary>
        public Saver(Graph graph, params Output[] variables) : this(graph, Use(graph, "the graph"), variables) {}

        private Saver(Graph graph, Used kept, Output[] variables) : base(Create(kept, variables), address => {
            tw_saver_destroy(address);
            kept.Dispose(); // the graph outlives the saver
        }) {}

        private static IntPtr Create(Used graph, Output[] variables)
        {
            try
            {
                using (Memory memory = new Memory())
                {
                    IntPtr saver;
                    ulong* list = memory.Outputs(variables);
                    Check(tw_saver_create(graph, variables.Length == 0 ? null : list, (uint)variables.Length, &saver));
                    return saver;
                }
            }
            catch
            {
                graph.Dispose();
                throw;
            }
        }

        /// <summary>Writes the variables to the files prefix.*.</summary>
        public void Save(Session session, string prefix)
        {
            using (Used v = Use())
            using (Used s = Use(session, "the session"))
                Check(tw_saver_save(v, s, Memory.Name(prefix, "the prefix")));
        }

        /// <summary>Reads the variables.</summary>
        public void Restore(Session session, string prefix)
        {
            using (Used v = Use())
            using (Used s = Use(session, "the session"))
                Check(tw_saver_restore(v, s, Memory.Name(prefix, "the prefix")));
        }
    }

    /// <summary>Reads the tensors of a checkpoint.</summary>
    public sealed unsafe class Checkpoint : Handle
    {
        /// <summary>Opens the files prefix.*.</summary>
        public Checkpoint(string prefix) : base(Open(prefix), tw_checkpoint_close) {}

        private static IntPtr Open(string prefix)
        {
            IntPtr checkpoint;
            Check(tw_checkpoint_open(Memory.Name(prefix, "the prefix"), &checkpoint));
            return checkpoint;
        }

        public string[] Names
        {
            get
            {
                using (Used c = Use())
                {
                    string[] all = new string[tw_checkpoint_count(c)];
                    for (uint i = 0; i < all.Length; ++i) all[i] = Memory.String(tw_checkpoint_name(c, i));
                    return all;
                }
            }
        }

        public Tensor Read(string name)
        {
            using (Used c = Use())
            {
                IntPtr tensor;
                Check(tw_checkpoint_read(c, Memory.Name(name), &tensor));
                return new Tensor(tensor);
            }
        }

        /// <summary>Writes tensors to the files prefix.*.</summary>
        public static void Write(string prefix, IDictionary<string, Tensor> tensors)
        {
            if (tensors == null) throw Invalid("the tensors are null");
            string[] names = tensors.Keys.ToArray();
            using (UsedTensors used = new UsedTensors(names.Select(n => tensors[n]).ToArray()))
            using (Memory memory = new Memory())
                fixed (IntPtr* t = used.Addresses) Check(tw_checkpoint_write(Memory.Name(prefix, "the prefix"), memory.Texts(names), t, (uint)names.Length));
        }
    }
}
