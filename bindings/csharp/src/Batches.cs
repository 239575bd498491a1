using System;
using System.Collections;
using System.Collections.Generic;
using System.Runtime.ExceptionServices;
using System.Runtime.InteropServices;
using System.Text;
using static Thalweg.Low;
using static Thalweg.ThalwegException;

namespace Thalweg
{
    /// <summary>Keeps what a function of the program threw, because nothing may be thrown through C, and the call of C fails.</summary>
    internal sealed class Thrown
    {
        private ExceptionDispatchInfo first;

        /// <summary>Calls a function of the program; returns a status, or zero.</summary>
        internal IntPtr Call(Action function)
        {
            try
            {
                function();
                return IntPtr.Zero;
            }
            catch (Exception e)
            {
                first = first ?? ExceptionDispatchInfo.Capture(e);
                return tw_status_create(TW_UNKNOWN, Encoding.UTF8.GetBytes(("a function threw " + e.GetType().Name + ": " + e.Message).Replace('\0', ' ') + "\0"));
            }
        }

        /// <summary>Throws what was thrown, if something was.</summary>
        internal void Rethrow()
        {
            ExceptionDispatchInfo found = first;
            first = null;
            if (found != null) found.Throw();
        }
    }

    /// <summary>The batches of a training loop; iterating gives those of the rest of the epoch. One thread at a time.</summary>
    public sealed unsafe class Batches : Handle, IEnumerable<Tensor[]>
    {
        /// <summary>Gives the next batch; null at the end of an epoch.</summary>
        public delegate Tensor[] Source();

        private readonly int width;
        private readonly Thrown thrown; // of a source of the program

        internal Batches(tw_iterator* iterator) : base((IntPtr)iterator, address => tw_iterator_destroy((tw_iterator*)address))
        {
            width = (int)iterator->n_tensors;
        }

        private Batches(Functions functions, int width) : base(functions.Record, address => functions.Free())
        {
            this.width = width;
            thrown = functions.Thrown;
        }

        /// <summary>The record of C for a source of the program, with the delegates that it refers to.</summary>
        private sealed class Functions
        {
            private readonly Low.tw_iterator__next next;
            private readonly Low.tw_iterator__reset reset;
            internal readonly Thrown Thrown = new Thrown();
            internal readonly IntPtr Record = Marshal.AllocHGlobal(sizeof(tw_iterator));

            internal Functions(int n, Source source, Action<long> begin)
            {
                next = (user, tensors, end) => Thrown.Call(() => {
                    Tensor[] batch = source();
                    if (batch == null)
                    {
                        *end = 1;
                        return;
                    }
                    if (batch.Length != n) throw Invalid("the source returned " + batch.Length + " tensors, not " + n);
                    using (UsedTensors used = new UsedTensors(batch))
                        for (int i = 0; i < n; ++i)
                        {
                            tw_tensor_retain(used.Addresses[i]);
                            tensors[i] = used.Addresses[i];
                        }
                });
                reset = (user, epoch) => Thrown.Call(() => {
                    if (begin != null) begin(epoch);
                    else if (epoch > 0) throw new ThalwegException(Code.Unimplemented, "the source has one epoch only");
                });
                *(tw_iterator*)Record = new tw_iterator {
                    size = (uint)sizeof(tw_iterator), n_tensors = (uint)n, n_batches = -1, next = Marshal.GetFunctionPointerForDelegate(next),
                    reset = Marshal.GetFunctionPointerForDelegate(reset)};
            }

            internal void Free()
            {
                Marshal.FreeHGlobal(Record);
                GC.KeepAlive(next);
                GC.KeepAlive(reset);
            }
        }

        /// <summary>Gives rows of tensors with equal first sizes.</summary>
        public static Batches Of(int size, bool shuffle, long seed, params Tensor[] tensors)
        {
            using (UsedTensors used = new UsedTensors(tensors))
            {
                tw_batch_options o;
                tw_iterator* iterator;
                tw_batch_options_init(&o);
                o.batch = size;
                o.seed = seed;
                o.shuffle = shuffle ? 1u : 0u;
                fixed (IntPtr* t = used.Addresses) Check(tw_iterator_create_batches(t, (uint)tensors.Length, &o, &iterator));
                return new Batches(iterator);
            }
        }

        /// <summary>Gives what a source of the program returns: arrays of n tensors. What it throws ends the loop that called it. begin: begins an
        /// epoch; null: there is one epoch.</summary>
        public static Batches From(int n, Source source, Action<long> begin = null)
        {
            if (n < 1 || source == null) throw Invalid("an iterator needs a source, and batches of at least one tensor");
            return new Batches(new Functions(n, source, begin), n);
        }

        /// <summary>Throws what the source threw, if it did.</summary>
        internal void Rethrow()
        {
            if (thrown != null) thrown.Rethrow();
        }

        /// <summary>Throws what the source threw, or the failure of a status.</summary>
        internal void CheckCall(IntPtr status)
        {
            if (status == IntPtr.Zero) return;
            ThalwegException failure = ThalwegException.Of(status);
            Rethrow();
            throw failure;
        }

        /// <summary>The next batch; null at the end of the epoch.</summary>
        public Tensor[] Next()
        {
            using (Used i = Use())
            {
                IntPtr[] found = new IntPtr[width];
                uint end = 0;
                IntPtr status;
                fixed (IntPtr* f = found) status = tw_iterator_next((tw_iterator*)(IntPtr)i, f, &end);
                CheckCall(status);
                return end != 0 ? null : Tensor.Own(found);
            }
        }

        /// <summary>Begins an epoch.</summary>
        public void Reset(long epoch)
        {
            using (Used i = Use()) CheckCall(tw_iterator_reset((tw_iterator*)(IntPtr)i, epoch));
        }

        public IEnumerator<Tensor[]> GetEnumerator()
        {
            for (Tensor[] batch; (batch = Next()) != null;) yield return batch;
        }

        IEnumerator IEnumerable.GetEnumerator()
        {
            return GetEnumerator();
        }
    }
}
