using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using static Thalweg.Low;
using static Thalweg.ThalwegException;

namespace Thalweg
{
    /// <summary>A model from a file: ONNX, a SavedModel, or what else a plugin imports. Any number of threads may run it at once.</summary>
    public sealed unsafe class Model : Handle
    {
        /// <summary>An input or output.</summary>
        public sealed class Value
        {
            internal Value(tw_model_value* v)
            {
                Name = Memory.String(v->name);
                DType = (DType)v->dtype;
                Shape = Graph.ShapeAt(v->shape);
                Optional = v->is_optional != 0;
            }

            public string Name { get; }
            public DType DType { get; }

            /// <summary>Sizes, of which -1 is unknown; null: not even the number of axes is known.</summary>
            public long[] Shape { get; }
            public bool Optional { get; }
        }

        /// <summary>One way to run a model.</summary>
        public sealed class Signature
        {
            internal Signature(tw_model_signature* s)
            {
                Name = Memory.String(s->name);
                Inputs = Values(s->inputs, s->n_inputs);
                Outputs = Values(s->outputs, s->n_outputs);
            }

            private static Value[] Values(tw_model_value** list, uint n)
            {
                Value[] all = new Value[n];
                for (uint i = 0; i < n; ++i) all[i] = new Value(list[i]);
                return all;
            }

            public string Name { get; }
            public Value[] Inputs { get; }
            public Value[] Outputs { get; }
        }

        private Model(IntPtr address) : base(address, tw_model_destroy) {}

        /// <summary>Loads a model file or folder. sessionOptions: "key=value", such as "threads=2".</summary>
        public static Model Load(string path, params string[] sessionOptions)
        {
            using (Memory memory = new Memory())
            {
                IntPtr model;
                tw_model_options o = new tw_model_options {size = (uint)sizeof(tw_model_options), session_options = memory.Texts(sessionOptions),
                    n_session_options = (uint)sessionOptions.Length};
                Check(tw_model_load(IntPtr.Zero, Memory.Name(path, "the path"), &o, &model));
                return new Model(model);
            }
        }

        /// <summary>The ways to run the model.</summary>
        public Signature[] Signatures
        {
            get
            {
                using (Used m = Use())
                {
                    Signature[] all = new Signature[tw_model_signature_count(m)];
                    for (uint i = 0; i < all.Length; ++i) all[i] = new Signature(tw_model_signature_at(m, i));
                    return all;
                }
            }
        }

        /// <summary>Runs a signature by the names in the file; null is the default one.</summary>
        public IDictionary<string, Tensor> Run(IDictionary<string, Tensor> inputs, string signature = null, TimeSpan? timeout = null,
            CancellationToken cancel = default(CancellationToken))
        {
            if (inputs == null) throw Invalid("the inputs are null");
            using (Used m = Use())
            {
                tw_model_signature* found;
                byte[] name = Memory.Utf8(signature);
                Check(tw_model_find(m, name, &found));
                Signature s = new Signature(found);
                string[] known = s.Inputs.Select(v => v.Name).ToArray();
                foreach (string key in inputs.Keys)
                    if (!known.Contains(key)) throw Invalid("signature '" + s.Name + "' has no input '" + key + "'; it has: " + string.Join(", ", known));
                Tensor[] given = known.Select(n => inputs.ContainsKey(n) ? inputs[n] : null).ToArray();
                using (UsedTensors tensors = new UsedTensors(given, true))
                using (RunOptions options = new RunOptions(timeout, cancel))
                {
                    tw_run_options o = options.Record;
                    IntPtr[] outputs = new IntPtr[s.Outputs.Length];
                    IntPtr status;
                    fixed (IntPtr* t = tensors.Addresses, f = outputs) status = tw_model_run(m, name, t, &o, f);
                    if (status != IntPtr.Zero) throw options.Of(status);
                    Tensor[] all = Tensor.Own(outputs);
                    return Enumerable.Range(0, all.Length).ToDictionary(i => s.Outputs[i].Name, i => all[i]);
                }
            }
        }
    }
}
