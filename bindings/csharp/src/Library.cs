using System;
using System.Globalization;
using System.IO;
using System.Linq;
using static Thalweg.Low;
using static Thalweg.ThalwegException;

namespace Thalweg
{
    /// <summary>What belongs to no object.</summary>
    public static unsafe class Library
    {
        /// <summary>The version of the library.</summary>
        public static string Version
        {
            get { return Memory.String(tw_version_string()); }
        }

        /// <summary>The names of the devices.</summary>
        public static string[] Devices()
        {
            IntPtr list;
            Check(tw_devices_create(IntPtr.Zero, &list));
            string[] names = new string[tw_devices_count(list)];
            for (uint i = 0; i < names.Length; ++i) names[i] = Memory.String(tw_devices_name(list, i));
            tw_devices_destroy(list);
            return names;
        }

        /// <summary>Loads a plugin that the runtime does not find by itself.</summary>
        public static void LoadPlugin(string path)
        {
            Check(tw_plugin_load(IntPtr.Zero, Memory.Name(path, "the path")));
        }

        /// <summary>Empties a container of this process without a session, as <see cref="Session.Reset"/> does. container: null or "" means
        /// localhost.</summary>
        public static ulong ResetContainer(string container = null)
        {
            ulong count;
            Check(tw_runtime_reset(IntPtr.Zero, Memory.Utf8(container), &count));
            return count;
        }

        /// <summary>Empties a container of state on every task of a cluster, as <see cref="Session.Reset"/> does, and returns the number of
        /// objects that it held. target: the address of any task. container: null or "" means localhost, that of sessions which name none.
        /// timeout: within which tasks must answer; null means five seconds. options: as of a session, such as "insecure=true". If a task does
        /// not answer, the exception names it, all others have emptied theirs, and the call may be repeated.</summary>
        public static ulong ResetCluster(string target, string container = null, TimeSpan? timeout = null, params string[] options)
        {
            if (target == null || options == null) throw Invalid("the target, or the array of options, is null");
            string[] all = new[] {"target=" + target}.Concat(options).ToArray();
            using (Memory memory = new Memory())
            {
                ulong count;
                long limit = timeout == null ? 0 : Math.Max(1, timeout.Value.Ticks * 100);
                Check(tw_cluster_reset(IntPtr.Zero, memory.Texts(all), (uint)all.Length, Memory.Utf8(container), limit, &count));
                return count;
            }
        }

        /// <summary>Reads the numbers of a file with commas between them: an array for each line.</summary>
        public static float[][] ReadCsv(string path)
        {
            return File.ReadLines(path).Select(line => line.Split(',').Select(cell => float.Parse(cell, CultureInfo.InvariantCulture)).ToArray()).ToArray();
        }
    }
}
