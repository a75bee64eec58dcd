"""``/// tile-picture | ladder_4096 fast_gemm``: block, warp and thread tile of a matrix product."""

from __future__ import annotations

from html import escape

from kernelbook.errors import PageError
from kernelbook.experiment import Kernel
from kernelbook.pictures.tiles import Tiling, panels
from kernelbook.site.blocks import BookBlock
from kernelbook.site.scope import constants_of


class TilePictureBlock(BookBlock):
    """Drawn from the constants the kernel is compiled with, with a sentence a panel."""

    NAME = "tile-picture"
    ARGUMENT_FORM = "an experiment and a variant"

    def html(self) -> str:
        words = self.argument.split()
        if len(words) != 2:
            raise PageError(f"{self.argument!r} is no variant", hint="write EXPERIMENT VARIANT")
        experiment = self.page.project.book.catalog.experiment(words[0])
        kernel = experiment.variant(words[1])
        if not isinstance(kernel, Kernel):
            raise PageError(f"{kernel.name} is no kernel and has no tiles")
        tiling = Tiling.of(constants_of(experiment, kernel))
        drawn = "".join(panels(tiling, self.page.language))
        name = f"<code>{escape(kernel.name)}</code>"
        return f'<div class="kb-tiles"><p>{name}</p><div>{drawn}</div></div>'
