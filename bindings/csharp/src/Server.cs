using System;
using System.Text;
using static Thalweg.Low;
using static Thalweg.ThalwegException;

namespace Thalweg
{
    /// <summary>One task of a cluster in this process.</summary>
    public sealed unsafe class Server : Handle
    {
        /// <summary>cluster: JSON such as {"worker": ["grpc:host:2222"]}. job: null means the JSON's task. options: "key=value".</summary>
        public Server(string cluster, string job, int task, params string[] options) : base(Create(cluster, job, task, options), tw_server_destroy) {}

        private static IntPtr Create(string cluster, string job, int task, string[] options)
        {
            using (Memory memory = new Memory())
            {
                IntPtr server;
                Check(tw_server_create(IntPtr.Zero, Memory.Name(cluster, "the cluster"), Memory.Utf8(job), (uint)task, memory.Texts(options),
                    (uint)options.Length, &server));
                return server;
            }
        }

        /// <summary>Listens and serves until <see cref="Stop"/>.</summary>
        public void Start()
        {
            using (Used s = Use()) Check(tw_server_start(s));
        }

        /// <summary>Ends the steps that run here and stops listening.</summary>
        public void Stop()
        {
            using (Used s = Use()) Check(tw_server_stop(s));
        }

        /// <summary>The address at which the server listens.</summary>
        public string Address
        {
            get
            {
                using (Used s = Use())
                {
                    IntPtr address;
                    Check(tw_server_address(s, &address));
                    return Encoding.UTF8.GetString(Memory.Take(address));
                }
            }
        }
    }
}
