"""Row 6: single matrix products, from 64^3 to 2048^3, with vectors, and those of known networks, against the fastest of the available
libraries: oneDNN by both of its interfaces, OpenBLAS, and Eigen compiled for this machine. All must have the same results. Then the CPU
plugin's own kernels, without the kernel pack, are compared with that Eigen."""
from bench import Goal

from . import libraries

NUMBER = 6
TITLE = "matrix products"
LIBRARIES = {"oneDNN sgemm": "sgemm", "oneDNN matmul": "matmul", "OpenBLAS": "openblas", "Eigen": "eigen"}
PRODUCTS = [  # name, "M N K TRANSPOSE_A TRANSPOSE_B TYPE"
    ("64^3", "64 64 64 0 0 float"),
    ("128^3", "128 128 128 0 0 float"),
    ("256^3", "256 256 256 0 0 float"),
    ("512^3", "512 512 512 0 0 float"),
    ("1024^3", "1024 1024 1024 0 0 float"),
    ("2048^3", "2048 2048 2048 0 0 float"),
    ("1x1024x4096", "1 4096 1024 0 0 float"),
    ("32x1024x4096", "32 4096 1024 0 0 float"),
    ("perceptron, 100x784x100", "100 100 784 0 0 float"),
    ("its gradient, 784x100x100", "784 100 100 1 0 float"),
    ("BERT, 128x768x3072", "128 3072 768 0 0 float"),
    ("BERT, 128x3072x768", "128 768 3072 0 0 float"),
    ("attention, 128x64x128", "128 128 64 0 1 float"),
]


OWN = ("128^3", "512^3", "1024^3", "1x1024x4096", "BERT, 128x3072x768")
WITHOUT_PACK = "disabled_plugins=org.thalweg.onednn"


def installed(bench):
    """Returns the installed libraries; tools/setup --peers installs OpenBLAS."""
    return {name: command for name, command in LIBRARIES.items() if name != "OpenBLAS" or bench.use_peers}


def run(bench):
    for threads in (1, 2):
        ours, theirs = bench.ours(threads), libraries.start(bench, threads)
        for what, product in PRODUCTS:
            m, n, k = map(int, product.split()[:3])
            best = "a library"
            if theirs:
                found = installed(bench)
                for name, command in found.items():
                    libraries.check_same(ours, f"product_sum {product}", name, theirs, f"{command}_sum {product}")
                best = min(found, key=lambda name: theirs.ask(f"{found[name]} {product}")[0])
            goal = Goal(1 / 0.97, floor=1 / 0.95 if what == "1024^3" else None)
            bench.compare(f"{what}, {libraries.where(threads)}", ("Thalweg", ours, f"product {product}"),
                          (best, theirs, f"{LIBRARIES.get(best)} {product}"), unit="us", goal=goal, threads=threads,
                          probe=libraries.limit(bench, 2 * m * n * k, threads))
        own = bench.ours(threads, WITHOUT_PACK)
        for what, product in PRODUCTS:
            if what in OWN and theirs:
                bench.compare(f"{what}, own kernels, {libraries.where(threads)}", ("Thalweg", own, f"product {product}"),
                              ("Eigen", theirs, f"eigen {product}"), unit="us", goal=Goal(1, floor=1 / 0.9), threads=threads)
