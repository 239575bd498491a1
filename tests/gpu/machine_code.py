"""Compiles the CUDA kernels to machine code for each architecture: machine_code.py NVCC "ARCHITECTURES" PROGRAM... -- OPTIONS...
A build without a GPU compiles most of them only to PTX."""
import concurrent.futures
import os
import subprocess
import sys
import tempfile

END = sys.argv.index("--")
NVCC, ARCHITECTURES, PROGRAMS, OPTIONS = sys.argv[1], sys.argv[2].split(), sys.argv[3:END], sys.argv[END + 1:]


def assemble(program, architecture, folder):
    """Returns the compiler's complaints, and the size of the machine code in bytes."""
    out = os.path.join(folder, f"{os.path.basename(program)}.{architecture}.cubin")
    done = subprocess.run([NVCC, "-cubin", f"-arch=sm_{architecture}", *OPTIONS, "-o", out, program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    return ("", os.path.getsize(out)) if done.returncode == 0 else (done.stdout or f"status {done.returncode}", 0)


def main():
    wrong, bytes_of_all = [], 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        pairs = [(p, a) for p in PROGRAMS for a in ARCHITECTURES]
        for (program, architecture), (said, size) in zip(pairs, pool.map(lambda pair: assemble(*pair, folder), pairs)):
            if said or size == 0:
                wrong.append(f"{program} for sm_{architecture}: {said or 'no machine code'}")
            bytes_of_all += size
    print("\n".join(wrong) or f"{len(pairs)} files of machine code, {bytes_of_all} bytes")
    return 1 if wrong or not pairs else 0


sys.exit(main())
