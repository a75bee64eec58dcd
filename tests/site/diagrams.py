"""Articles and pages that several tests of the diagrams look at."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import markdown

import kernelbook

BARRIERS = """sequenceDiagram
    autonumber
    participant T0 as 线程 0（快）
    participant T511 as 线程 511（慢）
    participant S as 共享内存
    T0->>S: 写完自己那一格
    rect rgb(191, 223, 255)
    T511->>S: 还在从全局内存搬运……
    end
    Note over T0,T511: 屏障：所有线程都搬完之后，才允许任何一个线程开始计算
    loop 每个 k
    T0->>T0: value += a × b
    end
    activate T511
    T511-->>T0: 完成
    deactivate T511
"""

DATA_FLOW = """graph TD
    classDef far fill:#f9d0c4,stroke:#333,stroke-width:2px;
    classDef near fill:#1b1464,color:#ffffff;
    classDef plain fill:#fff,stroke:#333;
    subgraph "全局内存（HBM3e）"
        A["矩阵 A 的一个分块"]:::far
    end
    subgraph "片上共享内存与寄存器"
        S["tile_a 32×32（4 KB）"]:::near
        R{"还有下一个分块？"}:::plain
        Q(["累加器 value"])
    end
    A -- "1024 个线程协作搬运" --> S
    S -- "约 30 个周期" --> R
    R -. "有" .-> Q
    linkStyle 0 stroke:#ff0000
"""

LADDER = """xychart-beta
  title "每一步优化之后的吞吐（TFLOPS）"
  x-axis ["朴素实现", "线程粗化四倍", "二维寄存器分块", "双缓冲流水线", "cuBLAS 库"]
  y-axis "吞吐（TFLOPS）" 0 --> 65
  bar [6.56, 7.05, 14.06, 28.79, 57.49]
  line [6.56, 7.05, 14.06, 28.79, 57.49]
"""

STATES = """stateDiagram-v2
    [*] --> 空闲
    空闲 --> 正在执行指令: 发射
    正在执行指令 --> [*]
"""

ALL = {"sequence": BARRIERS, "flowchart": DATA_FLOW, "xychart": LADDER, "state": STATES}


def fenced(source: str, caption: str = "") -> str:
    """The diagram as an article writes it."""
    header = f'mermaid caption="{caption}"' if caption else "mermaid"
    return f"```{header}\n{source}```\n"


def convert(article: str, cache: Path) -> str:
    """The article's HTML, diagrams cached below ``cache``."""
    return markdown.markdown(
        article,
        extensions=["pymdownx.superfences", "kernelbook.site.mermaid", "kernelbook.site.math"],
        extension_configs={"kernelbook.site.mermaid": {"cache": str(cache)}},
    )


def write_site(folder: Path, article: str) -> Path:
    """A small MkDocs project with the one article; returns the article's path."""
    (folder / "docs").mkdir(parents=True)
    (folder / "mkdocs.yml").write_text(
        "site_name: test\n"
        "theme: mkdocs\n"
        "extra_css: [assets/kernelbook/diagram.css, assets/kernelbook/katex/katex.css]\n"
        "markdown_extensions:\n"
        "  - pymdownx.superfences\n"
        "  - kernelbook.site.mermaid\n"
        "  - kernelbook.site.math\n",
        encoding="utf-8",
    )
    page = folder / "docs" / "index.md"
    page.write_text(article, encoding="utf-8")
    return page


def build_site(folder: Path) -> subprocess.CompletedProcess[str]:
    """``mkdocs build --strict`` in ``folder``, with the package these tests run on."""
    package_root = Path(kernelbook.__file__).parents[1]
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(package_root)},
        capture_output=True,
        text=True,
        check=False,
    )
