using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Text;
using static Thalweg.Low;

namespace Thalweg
{
    /// <summary>Texts and lists for one call, in memory of C that ends with it.</summary>
    internal sealed unsafe class Memory : IDisposable
    {
        private readonly List<IntPtr> blocks = new List<IntPtr>();

        public void Dispose()
        {
            foreach (IntPtr block in blocks) Marshal.FreeHGlobal(block);
            blocks.Clear();
        }

        /// <summary>Zeroed memory.</summary>
        internal void* Room(long bytes)
        {
            IntPtr block = Marshal.AllocHGlobal(new IntPtr(Math.Max(bytes, 8)));
            blocks.Add(block);
            byte* at = (byte*)block;
            for (long i = 0; i < bytes; ++i) at[i] = 0;
            return at;
        }

        internal byte* Bytes(byte[] bytes)
        {
            byte* room = (byte*)Room(bytes.Length + 1);
            Marshal.Copy(bytes, 0, (IntPtr)room, bytes.Length);
            return room;
        }

        /// <summary>A text for a record; null is NULL.</summary>
        internal byte* Text(string text)
        {
            return text == null ? null : Bytes(Utf8(text));
        }

        internal byte** Texts(IList<string> all)
        {
            if (all == null) throw ThalwegException.Invalid("a list of texts is null; give an empty one");
            byte** room = (byte**)Room(8L * all.Count);
            for (int i = 0; i < all.Count; ++i)
            {
                if (all[i] == null) throw ThalwegException.Invalid("text " + i + " is null");
                room[i] = Text(all[i]);
            }
            return room;
        }

        internal ulong* Outputs(IList<Output> all)
        {
            if (all == null) throw ThalwegException.Invalid("a list of values is null; give an empty one");
            ulong* room = (ulong*)Room(8L * all.Count);
            for (int i = 0; i < all.Count; ++i) room[i] = all[i].Id;
            return room;
        }

        internal IntPtr* Operations(IList<Operation> all)
        {
            if (all == null) throw ThalwegException.Invalid("a list of operations is null; give an empty one");
            IntPtr* room = (IntPtr*)Room(8L * all.Count);
            for (int i = 0; i < all.Count; ++i)
            {
                if (all[i] == null) throw ThalwegException.Invalid("operation " + i + " is null");
                room[i] = all[i].Address;
            }
            return room;
        }

        internal long* Longs(long[] all)
        {
            long* room = (long*)Room(8L * all.Length);
            Marshal.Copy(all, 0, (IntPtr)room, all.Length);
            return room;
        }

        /// <summary>Texts with lengths, which may hold zeros.</summary>
        internal tw_string* Strings(string[] all)
        {
            tw_string* room = (tw_string*)Room(sizeof(tw_string) * (long)all.Length);
            for (int i = 0; i < all.Length; ++i)
            {
                if (all[i] == null) throw ThalwegException.Invalid("text " + i + " is null");
                byte[] bytes = Encoding.UTF8.GetBytes(all[i]);
                room[i].data = Bytes(bytes);
                room[i].size = (ulong)bytes.Length;
            }
            return room;
        }

        /// <summary>A text of C; null for NULL.</summary>
        internal static string String(byte* text)
        {
            if (text == null) return null;
            long n = 0;
            while (text[n] != 0) ++n;
            return String(text, n);
        }

        internal static string String(byte* text, long n)
        {
            return Encoding.UTF8.GetString(Copy(text, n));
        }

        internal static byte[] Copy(void* from, long n)
        {
            byte[] bytes = new byte[n];
            if (n > 0) Marshal.Copy((IntPtr)from, bytes, 0, bytes.Length);
            return bytes;
        }

        /// <summary>A text for C, with its zero; null for null. A text with a zero inside would end early, and is refused.</summary>
        internal static byte[] Utf8(string text)
        {
            if (text == null) return null;
            if (text.IndexOf('\0') >= 0) throw ThalwegException.Invalid("'" + text.Replace("\0", "\\0") + "' has a zero character");
            byte[] bytes = new byte[Encoding.UTF8.GetByteCount(text) + 1];
            Encoding.UTF8.GetBytes(text, 0, text.Length, bytes, 0);
            return bytes;
        }

        /// <summary>A text that a program must give.</summary>
        internal static byte[] Name(string text, string what = "a name")
        {
            if (text == null) throw ThalwegException.Invalid(what + " is null");
            return Utf8(text);
        }

        /// <summary>The contents of a buffer of C, which is released.</summary>
        internal static byte[] Take(IntPtr buffer)
        {
            byte[] bytes = Copy(tw_buffer_data(buffer), (long)tw_buffer_bytes(buffer));
            tw_buffer_release(buffer);
            return bytes;
        }
    }
}
