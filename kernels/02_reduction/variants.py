"""What chapter 02 compares: its kernels and the baselines, each as a row of a table."""

from __future__ import annotations

from dataclasses import replace

from kernelbook.experiment import Kernel, Library, Text, ceil_div, text

# ---- kernels ---------------------------------------------------------------------------------


SUM, MAX, DOT = ("x", "sum", "n"), ("x", "max", "n"), ("a", "b", "dot", "n")


def plain(
    source: str, zh: str, en: str, args: tuple[str, ...], block: int, segment: int = 0,
    name: str = "", **macros: int,
) -> Kernel:  # fmt: skip
    """A kernel of one block for each segment, or of one block in all."""
    return Kernel(
        name=name or source,
        source=f"{source}.cu",
        entry=source,
        args=args,
        grid=lambda s, t: (max(1, ceil_div(s["n"], segment)) if segment else 1, 1, 1),
        block=lambda s, t: (block, 1, 1),
        title=Text(zh, en),
        macros=macros,
    )


def coarse(source: str, args: tuple[str, ...], each: int = 16, name: str = "") -> Kernel:
    """A kernel of 256 threads a block that take ``each`` elements each."""
    return plain(
        source, f"每线程 {each} 个元素", f"{each} elements a thread", args, 256, 256 * each,
        name or source, BLOCK=256, COARSE=each,
    )  # fmt: skip


def coarsened_sum(each: int) -> Kernel:
    return coarse("coarsened_reduce_sum", SUM, each, f"coarsened_reduce_sum_{each}")


def renamed(kernel: Kernel, name: str, zh: str, en: str, **macros: int) -> Kernel:
    """The kernel with other macros, as another row."""
    return replace(kernel, name=name, title=Text(zh, en), macros={**kernel.macros, **macros})


# Chosen on the reference device from sweeps of threads, vectors and resident blocks.
BLOCK, VECTORS = 512, 4
BLOCKS_A_SM = {"sum": 3, "max": 3, "dot": 2}  # as many as its registers let be resident


def one_pass_grid(n: int, blocks_a_sm: int, sms: int) -> int:
    """One block as long as one round does it, which spares it the meeting. Else two vectors a
    thread until the card is full: more blocks have more loads under way."""
    if n <= BLOCK * VECTORS * 4:
        return 1
    return min(sms * blocks_a_sm, ceil_div(n, BLOCK * 2 * 4))


def one_pass(source: str, operation: str, zh: str, en: str) -> Kernel:
    """A kernel whose blocks stride over the inputs of "sum", "max" or "dot"."""
    inputs = ("a", "b") if operation == "dot" else ("x", "x")
    return Kernel(
        name=f"{source}_{operation}",
        source=f"{source}_reduce.cu",
        entry=f"{source}_reduce",
        args=(*inputs, operation, "n"),
        grid=lambda s, t: (one_pass_grid(s["n"], BLOCKS_A_SM[operation], t.sms), 1, 1),
        block=lambda s, t: (BLOCK, 1, 1),
        title=Text(zh, en),
        macros={
            "OP": ("sum", "max", "dot").index(operation),
            "BLOCK": BLOCK,
            "VECTORS": VECTORS,
        },
        scalars={"n": "int64"},
    )  # fmt: skip


def vectorized(operation: str) -> Kernel:
    return one_pass(
        "vectorized", operation,
        "float4 跨步循环，原子加", "float4 grid-stride loop, atomic addition",
    )  # fmt: skip


def last_block(operation: str) -> Kernel:
    return one_pass(
        "last_block", operation, "… 最后一个块收尾，领号", "… the last block finishes, ticket"
    )


def single_pass(operation: str) -> Kernel:
    return one_pass("single_pass", operation, "… 值与标记同一个字", "… value and mark in one word")


unordered = replace(
    renamed(last_block("sum"), "last_block_unordered", "… 领号不保序",
            "… a ticket that orders nothing", ORDERED=0),
    counter_example=True,
)  # fmt: skip

simple = plain("simple_reduce_sum", "分歧的树，全局内存", "divergent tree, global", SUM, 1024)
convergent = plain(
    "convergent_reduce_sum", "收敛的树，全局内存", "convergent tree, global", SUM, 1024
)
shared = plain("shared_reduce_sum", "收敛的树，共享内存", "convergent tree, shared", SUM, 1024)
shuffled = plain("shuffle_reduce_block", "warp 洗牌", "warp shuffles", SUM, 1024)
no_barrier = replace(
    renamed(shared, "shared_reduce_no_barrier", "共享内存的树，去掉屏障",
            "shared tree without its barrier", BARRIER=0),
    counter_example=True,
)  # fmt: skip
serial = plain("serial_reduce_sum", "串行", "serial", SUM, 1, COMPENSATED=0)
compensated = renamed(
    serial, "serial_compensated", "串行，Kahan 补偿", "serial, compensated", COMPENSATED=1
)

segmented = plain(
    "segmented_reduce_sum", "每块一棵树，原子加", "a tree a block, atomic addition",
    SUM, 1024, 2048, BLOCK=1024,
)  # fmt: skip
shuffle_sum = replace(
    coarse("shuffle_reduce_sum", SUM),
    title=Text("每线程 16 个元素，warp 洗牌", "16 elements a thread, shuffles"),
)
coarsened_max = coarse("coarsened_reduce_max", MAX)
shared_dot = plain(
    "shared_dot_product", "每线程一个乘积", "a product a thread", DOT, 1024, 1024, BLOCK=1024
)
coarsened_dot = coarse("coarsened_dot_product", DOT)
separate_dot = renamed(
    coarsened_dot, "coarsened_dot_product_separate", "每线程 16 个，禁止融合乘加",
    "16 a thread, never fused", SEPARATE=1,
)  # fmt: skip
fma_dot = renamed(
    coarse("fma_dot_product", DOT), "fma_dot_product", "每线程 16 个，fmaf", "16 a thread, fmaf"
)


# ---- baselines -------------------------------------------------------------------------------


def cub(operation: str, title: str) -> Library:
    """CUB by its name in baselines/cub_reduce.cu."""
    return Library(
        f"cub_{operation}",
        f"cub_{operation}",
        text(title),
        note=Text("主机代码直接调用，nvcc 编译", "called from host code that nvcc builds"),
        source="baselines/cub_reduce.cu",
    )


cub_sum = cub("reduce_sum", "CUB DeviceReduce::Sum")
cub_max = cub("reduce_max", "CUB DeviceReduce::Max")
cub_dot = cub("dot", "CUB DeviceReduce::TransformReduce")
cublas_dot = Library("cublas_sdot", "cublas_sdot", text("cuBLAS SDOT"))
cupy_sum = Library("cupy_sum", "cupy_sum", text("CuPy `x.sum()`"))


# Ways of reading that READINGS times. FASTEST was the fastest of an earlier sweep.
WAYS = (
    "256x8 4/SM", "512x4 3/SM", "512x8 2/SM", "256x2 stretch 1", "256x2 stretch 1 cached",
    "256x8 stretch 1", "512x1 stretch 4", "512x8 stretch 2",
)  # fmt: skip
FASTEST = "256x8 stretch 1"


def reading(way: str, name: str = "read_limit") -> Library:
    return Library(
        name,
        f"read_limit {way}",
        Text(f"只读（{way}）", f"read only ({way})"),
        note=Text("读一遍输入，什么也不留", "reads the inputs once and keeps nothing"),
        flops=lambda s: 0,
    )


def way_name(way: str) -> str:
    return "read_" + way.replace(" ", "_").replace("/SM", "_a_sm")


read_limit = reading(FASTEST)
