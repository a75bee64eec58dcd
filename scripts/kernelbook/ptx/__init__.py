"""Read, execute and count PTX without a GPU."""

from .module import Instruction, Kernel, Module
from .parse import parse

__all__ = ["Instruction", "Kernel", "Module", "parse"]
