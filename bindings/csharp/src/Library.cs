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

        /// <summary>Reads the numbers of a file with commas between them: an array for each line.</summary>
        public static float[][] ReadCsv(string path)
        {
            return File.ReadLines(path).Select(line => line.Split(',').Select(cell => float.Parse(cell, CultureInfo.InvariantCulture)).ToArray()).ToArray();
        }
    }
}
