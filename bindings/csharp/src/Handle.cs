using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;

namespace Thalweg
{
    /// <summary>The address of an object of C. It is freed once the handle is closed, or forgotten, and the last call has left it.</summary>
    internal sealed class NativeHandle : SafeHandle
    {
        private readonly Action<IntPtr> free;

        internal NativeHandle(IntPtr address, Action<IntPtr> free) : base(IntPtr.Zero, true)
        {
            this.free = free;
            SetHandle(address);
        }

        public override bool IsInvalid
        {
            get { return handle == IntPtr.Zero; }
        }

        internal IntPtr Address
        {
            get { return handle; }
        }

        protected override bool ReleaseHandle()
        {
            free(handle);
            return true;
        }
    }

    /// <summary>An object of C in a call, which keeps it.</summary>
    internal struct Used : IDisposable
    {
        private readonly NativeHandle native;

        internal Used(NativeHandle native)
        {
            this.native = native;
        }

        public static implicit operator IntPtr(Used used)
        {
            return used.native.Address;
        }

        public void Dispose()
        {
            native.DangerousRelease();
        }
    }

    /// <summary>An object of C. <c>Dispose</c> ends it, and so does the garbage collector, later. A call that uses the object keeps it until the
    /// call has returned, so that any thread may close it at any time; calls after that fail.</summary>
    public abstract class Handle : IDisposable
    {
        private readonly NativeHandle native;
        private volatile bool closed;

        internal Handle(IntPtr address, Action<IntPtr> free)
        {
            native = new NativeHandle(address, free);
        }

        /// <summary>The address for a call, which must dispose of the result.</summary>
        internal Used Use()
        {
            bool added = false;
            try
            {
                if (!closed) native.DangerousAddRef(ref added);
            }
            catch (ObjectDisposedException)
            {
                added = false;
            }
            if (!added) throw ThalwegException.Failed("the " + GetType().Name + " is closed");
            return new Used(native);
        }

        /// <summary>Ends a use.</summary>
        internal void Leave()
        {
            native.DangerousRelease();
        }

        /// <summary>The same of a handle that a program gave.</summary>
        internal static Used Use(Handle handle, string what)
        {
            if (handle == null) throw ThalwegException.Invalid(what + " is null");
            return handle.Use();
        }

        /// <summary>Ends the object. Closing twice is fine.</summary>
        public void Dispose()
        {
            closed = true;
            native.Dispose();
        }
    }

    /// <summary>A list of tensors in a call, which keeps them.</summary>
    internal sealed class UsedTensors : IDisposable
    {
        private readonly Used[] used;
        private readonly int n;
        internal readonly IntPtr[] Addresses;

        /// <summary>allowNull: a tensor may be missing, whose address is then zero.</summary>
        internal UsedTensors(IList<Tensor> all, bool allowNull = false)
        {
            if (all == null) throw ThalwegException.Invalid("a list of tensors is null; give an empty one");
            used = new Used[all.Count];
            Addresses = new IntPtr[all.Count];
            try
            {
                for (int i = 0; i < all.Count; ++i)
                {
                    if (all[i] == null && allowNull) continue;
                    if (all[i] == null) throw ThalwegException.Invalid("tensor " + i + " is null");
                    used[n] = all[i].Use();
                    Addresses[i] = used[n++];
                }
            }
            catch
            {
                Dispose();
                throw;
            }
        }

        public void Dispose()
        {
            for (int i = 0; i < n; ++i) used[i].Dispose();
        }
    }
}
