"""Every block an article can use."""

from __future__ import annotations

from kernelbook.site import (
    bank_block,
    code_blocks,
    data_blocks,
    device_blocks,
    gains_block,
    levels_block,
    method_block,
    series_blocks,
    sweep_block,
    tile_block,
)
from kernelbook.site.blocks import BookBlock

BLOCKS: tuple[type[BookBlock], ...] = (
    code_blocks.ExcerptBlock,
    code_blocks.SourceBlock,
    code_blocks.SourcesBlock,
    data_blocks.ResultsBlock,
    data_blocks.StepsBlock,
    data_blocks.CountsBlock,
    data_blocks.CountersBlock,
    data_blocks.CompiledBlock,
    data_blocks.KernelsBlock,
    data_blocks.HardwareBlock,
    data_blocks.ChaptersBlock,
    data_blocks.ChartBlock,
    data_blocks.FigureIfBlock,
    method_block.MethodBlock,
    levels_block.LevelsBlock,
    sweep_block.SweepBlock,
    tile_block.TilePictureBlock,
    bank_block.BankMapBlock,
    gains_block.GainsBlock,
    device_blocks.DeviceBlock,
    device_blocks.OwnDevicesBlock,
    device_blocks.DevicesBlock,
    series_blocks.NavigationBlock,
    series_blocks.ListBlock,
    series_blocks.GraphBlock,
    series_blocks.PathsBlock,
    series_blocks.TagsBlock,
)
