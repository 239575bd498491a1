using System;
using System.Collections.Generic;
using System.Linq;
using static Thalweg.Low;
using static Thalweg.ThalwegException;
using File = System.Runtime.CompilerServices.CallerFilePathAttribute;
using Line = System.Runtime.CompilerServices.CallerLineNumberAttribute;

namespace Thalweg
{
    /// <summary>Where elements come from and what happens to them: a value of a graph. An element is one or more tensors.</summary>
    public sealed unsafe class Dataset
    {
        /// <summary>Gives the results for an element; it adds operations through its scope.</summary>
        public delegate IList<Output> Function(Scope scope, Output[] element);

        private readonly Scope scope;

        internal Dataset(Scope scope, Output value)
        {
            this.scope = scope;
            Value = value;
        }

        public Output Value { get; }

        private Dataset Then(string file, int line, Func<IntPtr, ulong> call)
        {
            return scope.AddDataset(file, line, call);
        }

        public Dataset Take(long n, [File] string file = "", [Line] int line = 0)
        {
            return Then(file, line, s => tw_dataset_take(s, Value.Id, n));
        }

        public Dataset Skip(long n, [File] string file = "", [Line] int line = 0)
        {
            return Then(file, line, s => tw_dataset_skip(s, Value.Id, n));
        }

        public Dataset Shard(long shards, long index, [File] string file = "", [Line] int line = 0)
        {
            return Then(file, line, s => tw_dataset_shard(s, Value.Id, shards, index));
        }

        /// <summary>All elements again; -1: without end.</summary>
        public Dataset Repeat(long n = -1, [File] string file = "", [Line] int line = 0)
        {
            return Then(file, line, s => tw_dataset_repeat(s, Value.Id, n));
        }

        /// <summary>Draws each element from a buffer, in another order in each epoch.</summary>
        public Dataset Shuffle(long buffer, long seed = 0, [File] string file = "", [Line] int line = 0)
        {
            return Then(file, line, s => tw_dataset_shuffle(s, Value.Id, buffer, seed, 1));
        }

        public Dataset Batch(long n, [File] string file = "", [Line] int line = 0)
        {
            return Then(file, line, s => tw_dataset_batch(s, Value.Id, n, 0));
        }

        public Dataset Prefetch(long n, [File] string file = "", [Line] int line = 0)
        {
            return Then(file, line, s => tw_dataset_prefetch(s, Value.Id, n));
        }

        public Dataset Map(Function function, [File] string file = "", [Line] int line = 0)
        {
            return scope.AddFunction(Value, function, file, line, (s, d, block) => tw_dataset_map(s, d, block, TW_DATASET_AUTO));
        }

        /// <summary>Keeps the elements for which a function gives true.</summary>
        public Dataset Filter(Function function, [File] string file = "", [Line] int line = 0)
        {
            return scope.AddFunction(Value, function, file, line, tw_dataset_filter);
        }

        /// <summary>Runs the dataset in a session of its own. options: "key=value".</summary>
        public Batches Batches(params string[] options)
        {
            using (Used g = scope.Graph.Use())
            using (Memory memory = new Memory())
            {
                tw_dataset_iterator_options o;
                tw_iterator* iterator;
                tw_dataset_iterator_options_init(&o);
                o.session = memory.Texts(options);
                o.n_session = (uint)options.Length;
                Check(tw_dataset_iterator_create(g, Value.Id, &o, &iterator));
                return new Batches(iterator);
            }
        }
    }

    public sealed unsafe partial class Scope
    {
        /// <summary>Has an element for each row of values with equal first sizes.</summary>
        public Dataset Rows(Output[] components, [File] string file = "", [Line] int line = 0)
        {
            return AddDataset(file, line, s => {
                fixed (ulong* c = Ids(components)) return tw_dataset_rows(s, c, (uint)components.Length);
            });
        }

        /// <summary>Has the numbers from start to stop, as int64.</summary>
        public Dataset Numbers(long start, long stop, long step = 1, [File] string file = "", [Line] int line = 0)
        {
            return AddDataset(file, line, s => tw_dataset_range(s, start, stop, step));
        }

        /// <summary>Has the lines of text files. files: a vector of strings.</summary>
        public Dataset Lines(Output files, [File] string file = "", [Line] int line = 0)
        {
            return AddDataset(file, line, s => tw_dataset_lines(s, files.Id));
        }

        /// <summary>Has the records of TFRecord files.</summary>
        public Dataset Records(Output files, [File] string file = "", [Line] int line = 0)
        {
            return AddDataset(file, line, s => tw_dataset_records(s, files.Id));
        }

        internal Dataset AddDataset(string file, int line, Func<IntPtr, ulong> call)
        {
            return new Dataset(this, Value(file, line, call));
        }

        internal Dataset AddFunction(Output dataset, Dataset.Function function, string file, int line, Func<IntPtr, ulong, IntPtr, ulong> end)
        {
            if (function == null) throw Invalid("the function is null");
            return AddDataset(file, line, s => {
                ulong[] arguments = new ulong[tw_dataset_component_count(tw_scope_graph(s), dataset.Id)];
                IntPtr block;
                fixed (ulong* a = arguments) block = tw_dataset_block(s, dataset.Id, a);
                Scope scope = new Scope(graph, tw_block_scope(block));
                try
                {
                    ulong[] results = Ids(function(scope, arguments.Select(a => new Output(a)).ToArray()));
                    fixed (ulong* r = results) tw_block_give(block, r, (uint)results.Length);
                }
                catch
                {
                    tw_block_destroy(block);
                    throw;
                }
                finally
                {
                    scope.inner = IntPtr.Zero;
                }
                return end(s, dataset.Id, block);
            });
        }
    }
}
