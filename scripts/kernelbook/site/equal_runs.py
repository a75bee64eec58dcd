"""How the rule of comparing fares on equal runs of the reference device: computed, never typed."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from kernelbook import codec, compare
from kernelbook.compare import RULE
from kernelbook.errors import PageError
from kernelbook.experiment import Text
from kernelbook.runner import aa
from kernelbook.runner.aa import Runs, Tally, tally
from kernelbook.site import cache

FOLDER = Path("tests/golden")
_CODE = (compare.__file__, aa.__file__)  # another rule gives other counts
# Runs by themselves, and runs whose buffers were put into different places on purpose.
FILES = (
    ("aa_pairs.json", Text("单独的两次运行", "two runs")),
    ("aa_places.json", Text("缓冲区位置不同", "buffers in other places")),
)


def rows(root: Path) -> tuple[tuple[Text, str], ...]:
    """What and how many; raises PageError where the repository lacks the runs."""
    found: list[tuple[Text, str]] = []
    for name, title in FILES:
        counts = _tally(root, root / FOLDER / name)
        lines = (
            (Text("相同运行的对数（两种先后）", "pairs, in both orders"), counts.pairs),
            (Text("误判为更慢或更快", "called slower or faster"), counts.different),
            (Text("判为相同", "called the same"), counts.same),
            (Text(f"人为变慢 {RULE.change:.0%}：发现", f"made {RULE.change:.0%} slower: caught"),
             counts.caught),
            (Text("人为变慢：不明确", "made slower: ambiguous"),
             counts.pairs - counts.caught - counts.hidden),
            (Text("人为变慢：判为相同", "made slower: called the same"), counts.hidden),
        )  # fmt: skip
        for what, count in lines:
            label = Text(f"{title.zh}：{what.zh}", f"{title.en}: {what.en}")
            found.append((label, f"{count:,}"))
        for row, count in counts.missed.items():
            label = Text(f"{title.zh}：未发现，{row}", f"{title.en}: not caught, {row}")
            found.append((label, f"{count:,}"))
    return tuple(found)


def _tally(root: Path, path: Path) -> Tally:
    if not path.is_file():
        raise PageError(f"there is no {path.relative_to(root)}", hint="CONTRIBUTING.md says how")

    def count() -> str:
        return json.dumps(asdict(tally(codec.from_file(Runs, path).runs)))

    texts = (Path(file).read_text(encoding="utf-8") for file in (*_CODE, path))
    text = cache.cached(cache.default_root(), cache.key_of("equal runs", *texts), count)
    return Tally(**json.loads(text))
