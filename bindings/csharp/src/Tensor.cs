using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.InteropServices;
using System.Text;
using static Thalweg.Low;
using static Thalweg.ThalwegException;

namespace Thalweg
{
    /// <summary>An array of one element type in the library's memory. Any thread may read it.</summary>
    public sealed unsafe class Tensor : Handle
    {
        private static readonly Dictionary<Type, DType> Types = new Dictionary<Type, DType> {
            {typeof(float), DType.Float}, {typeof(double), DType.Double}, {typeof(int), DType.Int32}, {typeof(byte), DType.UInt8},
            {typeof(short), DType.Int16}, {typeof(sbyte), DType.Int8}, {typeof(long), DType.Int64}, {typeof(bool), DType.Bool},
            {typeof(ushort), DType.UInt16}, {typeof(uint), DType.UInt32}, {typeof(ulong), DType.UInt64}};
        private static readonly Low.tw_tensor_create_from_const__release Unpin = user => GCHandle.FromIntPtr((IntPtr)user).Free();
        private static readonly IntPtr UnpinFunction = Marshal.GetFunctionPointerForDelegate(Unpin);

        private static readonly Action<IntPtr> Release = tw_tensor_release; // made once: that is slow

        internal Tensor(IntPtr address) : base(address, Release) {}

        internal static Tensor[] Own(IntPtr[] addresses)
        {
            Tensor[] all = new Tensor[addresses.Length];
            for (int i = 0; i < all.Length; ++i) all[i] = new Tensor(addresses[i]);
            return all;
        }

        /// <summary>Sizes, of which one may be -1 if the number of elements decides it; none: a vector.</summary>
        private static long[] Sizes(long n, long[] dims)
        {
            if (dims == null) throw Invalid("the sizes are null");
            if (dims.Length == 0) return new[] {n};
            string text = "[" + string.Join(", ", dims) + "]";
            long known = 1;
            int at = -1;
            for (int i = 0; i < dims.Length; ++i)
            {
                if (dims[i] == -1 && at < 0) at = i;
                else if (dims[i] < 0) throw Invalid("sizes " + text + ": one of them may be -1, the others are at least 0");
                else if (dims[i] > 0 && known > (1L << 62) / dims[i]) throw Invalid("sizes " + text + " are too large");
                else known *= dims[i];
            }
            if (at < 0 ? known != n : known == 0 || n % known != 0) throw Invalid(n + " elements do not fill sizes " + text);
            if (at < 0) return dims;
            long[] found = (long[])dims.Clone();
            found[at] = n / known;
            return found;
        }

        private static IntPtr Create(DType dtype, long[] dims)
        {
            IntPtr tensor;
            fixed (long* d = dims) Check(tw_tensor_create((uint)dtype, d, (uint)dims.Length, &tensor));
            return tensor;
        }

        private static DType TypeOf(Array data)
        {
            if (data == null) throw Invalid("a tensor cannot be made of null");
            DType dtype;
            if (!Types.TryGetValue(data.GetType().GetElementType(), out dtype)) throw Invalid("no tensor has elements of type " + data.GetType().GetElementType());
            return dtype;
        }

        /// <summary>Calls a function with the address of an array's elements, which stay there meanwhile.</summary>
        private static T Pinned<T>(Array data, Func<IntPtr, T> call)
        {
            GCHandle pin = GCHandle.Alloc(data, GCHandleType.Pinned);
            try
            {
                return call(pin.AddrOfPinnedObject());
            }
            finally
            {
                pin.Free();
            }
        }

        private static Tensor Copied(Array data, DType dtype, long[] dims)
        {
            return Pinned(data, from => {
                IntPtr tensor;
                fixed (long* d = dims) Check(tw_tensor_create_copy((uint)dtype, d, (uint)dims.Length, (void*)from, (ulong)Buffer.ByteLength(data), &tensor));
                return new Tensor(tensor);
            });
        }

        /// <summary>Copies an array of numbers or bools. dims: the size of each axis, of which one may be -1; none: a vector.</summary>
        public static Tensor Of<T>(T[] data, params long[] dims) where T : struct
        {
            DType dtype = TypeOf(data);
            return Copied(data, dtype, Sizes(data.Length, dims));
        }

        /// <summary>Copies an array with several axes, such as <c>float[,]</c>, which the tensor then has.</summary>
        public static Tensor Of(Array data)
        {
            DType dtype = TypeOf(data);
            return Copied(data, dtype, Enumerable.Range(0, data.Rank).Select(i => data.GetLongLength(i)).ToArray());
        }

        /// <summary>A tensor of strings.</summary>
        public static Tensor Of(string[] data, params long[] dims)
        {
            if (data == null) throw Invalid("a tensor cannot be made of null");
            Tensor tensor = new Tensor(Create(DType.String, Sizes(data.Length, dims)));
            using (Used t = tensor.Use())
                for (int i = 0; i < data.Length; ++i)
                {
                    if (data[i] == null) throw Invalid("text " + i + " is null");
                    byte[] bytes = Encoding.UTF8.GetBytes(data[i]);
                    Check(tw_tensor_set_string(t, (ulong)i, bytes, (ulong)bytes.Length));
                }
            return tensor;
        }

        /// <summary>A tensor without axes.</summary>
        public static Tensor Scalar<T>(T value) where T : struct
        {
            T[] data = {value};
            return Copied(data, TypeOf(data), new long[0]);
        }

        /// <summary>A tensor of zeros, which <see cref="Fill{T}"/> fills.</summary>
        public static Tensor Zeros(DType dtype, params long[] dims)
        {
            if (dims == null) throw Invalid("the sizes are null");
            return new Tensor(Create(dtype, dims));
        }

        /// <summary>Uses an array's own memory without a copy. The array stays in its place as long as the tensor; do not write to it meanwhile.</summary>
        public static Tensor Wrap<T>(T[] data, params long[] dims) where T : struct
        {
            DType dtype = TypeOf(data);
            long[] sizes = Sizes(data.Length, dims);
            GCHandle pin = GCHandle.Alloc(data, GCHandleType.Pinned); // freed by the library, also if the call fails
            IntPtr tensor;
            fixed (long* d = sizes)
                Check(tw_tensor_create_from_const((uint)dtype, d, (uint)sizes.Length, (void*)pin.AddrOfPinnedObject(), (ulong)Buffer.ByteLength(data),
                    UnpinFunction, (void*)GCHandle.ToIntPtr(pin), &tensor));
            return new Tensor(tensor);
        }

        public DType DType
        {
            get { using (Used t = Use()) return (DType)tw_tensor_dtype(t); }
        }

        public long[] Shape
        {
            get
            {
                using (Used t = Use())
                {
                    long[] dims = new long[tw_tensor_rank(t)];
                    for (int i = 0; i < dims.Length; ++i) dims[i] = tw_tensor_dim(t, (uint)i);
                    return dims;
                }
            }
        }

        /// <summary>The number of elements.</summary>
        public long Count
        {
            get { using (Used t = Use()) return (long)tw_tensor_count(t); }
        }

        private static void Expect(IntPtr t, Type want)
        {
            DType dtype;
            if (!Types.TryGetValue(want, out dtype) || (uint)dtype != tw_tensor_dtype(t)) throw Invalid("the tensor holds " + (DType)tw_tensor_dtype(t) + ", not " + want.Name);
            if (tw_tensor_device(t) != null) throw Failed("the tensor is in a device's memory");
        }

        /// <summary>Copies the elements, whose type must be the tensor's.</summary>
        public T[] ToArray<T>() where T : struct
        {
            using (Used t = Use())
            {
                Expect(t, typeof(T));
                T[] all = new T[tw_tensor_count(t)];
                CopyOut(t, all);
                return all;
            }
        }

        /// <summary>Copies the elements into an array, as many as the tensor has.</summary>
        public void CopyTo<T>(T[] to) where T : struct
        {
            using (Used t = Use())
            {
                Expect(t, typeof(T));
                if (to == null || to.LongLength != (long)tw_tensor_count(t)) throw Invalid("the array must have " + tw_tensor_count(t) + " elements");
                CopyOut(t, to);
            }
        }

        /// <summary>Copies the elements into an array with as many axes as the tensor: <c>(float[,])tensor.ToShaped&lt;float&gt;()</c>.</summary>
        public Array ToShaped<T>() where T : struct
        {
            using (Used t = Use())
            {
                Expect(t, typeof(T));
                Array all = Array.CreateInstance(typeof(T), Shape);
                CopyOut(t, all);
                return all;
            }
        }

        private static void CopyOut(IntPtr t, Array to)
        {
            long bytes = (long)tw_tensor_bytes(t);
            IntPtr from = (IntPtr)tw_tensor_data(t);
            if (bytes == 0) return;
            Pinned(to, at => {
                Buffer.MemoryCopy((void*)from, (void*)at, bytes, bytes);
                return 0;
            });
        }

        /// <summary>Writes all elements: only while nobody else has the tensor or its memory.</summary>
        public void Fill<T>(T[] data) where T : struct
        {
            using (Used t = Use())
            {
                Expect(t, typeof(T));
                if (data == null || data.LongLength != (long)tw_tensor_count(t)) throw Invalid("the array must have " + tw_tensor_count(t) + " elements");
                long bytes = (long)tw_tensor_bytes(t);
                if (bytes == 0) return;
                IntPtr to = (IntPtr)tw_tensor_mutable_data(t);
                if (to == IntPtr.Zero) throw Failed("the tensor is shared, or its memory is read-only");
                Pinned(data, from => {
                    Buffer.MemoryCopy((void*)from, (void*)to, bytes, bytes);
                    return 0;
                });
            }
        }

        /// <summary>The elements of a tensor of strings.</summary>
        public string[] ToStrings()
        {
            using (Used t = Use())
            {
                string[] all = new string[tw_tensor_count(t)];
                for (int i = 0; i < all.Length; ++i)
                {
                    byte* data;
                    ulong bytes;
                    Check(tw_tensor_get_string(t, (ulong)i, &data, &bytes));
                    all[i] = Memory.String(data, (long)bytes);
                }
                return all;
            }
        }

        /// <summary>The same elements under other sizes; the memory is shared.</summary>
        public Tensor Reshape(params long[] dims)
        {
            using (Used t = Use())
            {
                long[] sizes = Sizes((long)tw_tensor_count(t), dims);
                IntPtr tensor;
                fixed (long* d = sizes) Check(tw_tensor_reshape(t, d, (uint)sizes.Length, &tensor));
                return new Tensor(tensor);
            }
        }

        /// <summary>The elements as text, as many as fit a line or two.</summary>
        public override string ToString()
        {
            using (Used t = Use())
            {
                IntPtr text;
                Check(tw_tensor_text(t, 20, &text));
                return Encoding.UTF8.GetString(Memory.Take(text));
            }
        }
    }
}
