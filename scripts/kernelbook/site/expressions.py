"""Expressions of ``{= … =}`` and ``{? … ?}``: a small part of Python, evaluated over quantities.

The text is parsed with `ast` and walked over a white list, so an article can compute and compare
and do nothing else. What a dotted name means is the scope's business (scope.py).
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from kernelbook.errors import PageError
from kernelbook.quantities import SCALAR, Quantity, UnitError

# Two numbers that differ by rounding only are equal in a claim.
EQUAL_RELATIVE = 1e-9
LONGEST = 1000  # characters; the longest of ours has some 150


@dataclass(frozen=True)
class Resolved:
    """What a name stands for, with how its metric is shown where an author says nothing."""

    quantity: Quantity
    show: str = ""
    unit: str | None = None


class Scope(Protocol):
    """Gives names their meaning; raises KernelbookError for what does not exist."""

    def unit(self, name: str) -> Quantity: ...

    def path(self, root: str, subscript: str | None, parts: Sequence[str]) -> Resolved: ...

    def members(self, name: str) -> Sequence[str]:
        """The experiments of a sweep, none where there is no sweep of this name."""
        ...


def number(text: str, scope: Scope) -> Resolved:
    """The quantity an expression gives; raises PageError, also where it is a comparison."""
    tree = _parse(text)
    if _is_path(tree):
        return _resolve(tree, scope)
    value = _guarded(tree, text, scope)
    if isinstance(value, bool):
        raise PageError(f"{text!r} is a comparison, not a number", hint="write {? … ?}")
    return Resolved(value)


def holds(text: str, scope: Scope) -> bool:
    """Whether a claim is true; raises PageError, also where it compares nothing."""
    value = _guarded(_parse(text), text, scope)
    if not isinstance(value, bool):
        raise PageError(f"{text!r} compares nothing", hint="a claim uses <, <=, >, >= or ==")
    return value


def _parse(text: str) -> ast.expr:
    if len(text) > LONGEST:
        raise PageError(f"{text[:40]!r}… is longer than {LONGEST} characters")
    try:
        return ast.parse(" ".join(text.split()), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise PageError(f"{text!r} is not an expression") from None


def _guarded(tree: ast.expr, text: str, scope: Scope) -> Quantity | bool:
    try:
        return _value(tree, scope)
    except (OverflowError, ZeroDivisionError, ValueError) as error:
        raise PageError(f"{text!r} cannot be computed: {error}") from None
    except RecursionError:
        raise PageError(f"{text[:40]!r}… is nested too deeply") from None


def _value(node: ast.expr, scope: Scope) -> Quantity | bool:
    if isinstance(node, ast.Compare):
        return _compare(node, scope)
    if isinstance(node, ast.BoolOp):
        # Every part is evaluated, so that a broken one is found while the others decide.
        parts = [_truth(part, scope) for part in node.values]
        return all(parts) if isinstance(node.op, ast.And) else any(parts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _truth(node.operand, scope)
    return _quantity(node, scope)


def _truth(node: ast.expr, scope: Scope) -> bool:
    value = _value(node, scope)
    if not isinstance(value, bool):
        raise PageError(f"{ast.unparse(node)!r} is a number where a comparison is needed")
    return value


def _quantity(node: ast.expr, scope: Scope) -> Quantity:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise PageError(f"{node.value!r} is not a number")
        return Quantity.of(float(node.value))
    if isinstance(node, ast.Name):
        return scope.unit(node.id)
    if _is_path(node):
        return _resolve(node, scope).quantity
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_quantity(node.operand, scope)
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _BINARY[type(node.op)](_quantity(node.left, scope), _quantity(node.right, scope))
    if isinstance(node, ast.Call):
        return _call(node, scope)
    raise PageError(f"{ast.unparse(node)!r} is not allowed in an expression")


_BINARY: dict[type[ast.operator], Callable[[Quantity, Quantity], Quantity]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}

_PLAIN: dict[str, Callable[[float], float]] = {
    "ceil": math.ceil,
    "floor": math.floor,
    "round": round,
    "sqrt": math.sqrt,
    "log2": math.log2,
}

_OVER_SWEEPS = ("lowest", "highest")
_FUNCTIONS = (*_PLAIN, "abs", "min", "max", *_OVER_SWEEPS)


def _call(node: ast.Call, scope: Scope) -> Quantity:
    name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
    if name not in _FUNCTIONS or node.keywords:
        raise PageError(f"no function {name!r}", hint="there are: " + ", ".join(_FUNCTIONS))
    if name in _OVER_SWEEPS:
        return _over_sweep(node, scope, largest=name == "highest")
    arguments = [_quantity(argument, scope) for argument in node.args]
    if name in ("min", "max"):
        if len(arguments) < 2:
            raise PageError(f"{name} needs at least two numbers")
        return _extreme(arguments, largest=name == "max")
    if len(arguments) != 1:
        raise PageError(f"{name} takes one number")
    (argument,) = arguments
    if name == "abs":
        return replace(argument, value=abs(argument.value), q1=None, q3=None)
    if argument.dims != SCALAR:
        raise UnitError(f"{name} needs a number without unit")
    return replace(argument, value=float(_PLAIN[name](argument.value)), q1=None, q3=None)


def _extreme(arguments: Sequence[Quantity], *, largest: bool) -> Quantity:
    # Which argument wins depends on all of them, so the grade is the weakest of all.
    total = arguments[0]
    for argument in arguments[1:]:
        total = total + argument
    values = [argument.value for argument in arguments]
    return replace(total, value=max(values) if largest else min(values))


@dataclass(frozen=True)
class _Member:
    """A scope in which the name of a sweep is that of one of its experiments."""

    scope: Scope
    sweep: str
    member: str

    def unit(self, name: str) -> Quantity:
        return self.scope.unit(name)

    def path(self, root: str, subscript: str | None, parts: Sequence[str]) -> Resolved:
        swept = parts[0] == self.sweep
        return self.scope.path(root, subscript, [self.member, *parts[1:]] if swept else parts)

    def members(self, name: str) -> Sequence[str]:
        return ()


def _over_sweep(node: ast.Call, scope: Scope, *, largest: bool) -> Quantity:
    """``lowest(EXPRESSION)`` over the sizes of the sweep that it names where it would name an
    experiment; ``lowest(EXPRESSION, CLAIM)`` over those for which the claim holds. The quantity
    is that of the size where it was found."""
    if not 1 <= len(node.args) <= 2:
        raise PageError(f"{ast.unparse(node.func)} takes a number and, if need be, a claim")
    named = {parts[0] for each in ast.walk(node) if _is_path(each) and (parts := _path_of(each)[2])}
    sweeps = sorted(name for name in named if scope.members(name))
    if len(sweeps) != 1:
        what = f"names {len(sweeps)} sweeps" if sweeps else "names no sweep"
        raise PageError(f"{ast.unparse(node)!r} {what}", hint="it needs one, as the experiment")
    found = []
    for member in scope.members(sweeps[0]):
        here = _Member(scope, sweeps[0], member)
        value = _quantity(node.args[0], here)
        if len(node.args) == 1 or _truth(node.args[1], here):
            found.append(value)
    if not found:
        raise PageError(f"{ast.unparse(node.args[1])!r} holds at no size of {sweeps[0]!r}")
    pick = max if largest else min
    return pick(found, key=lambda quantity: quantity.value)


_COMPARISONS: dict[type[ast.cmpop], Callable[[float, bool], bool]] = {
    # From (left - right, equal up to rounding) to the verdict.
    ast.Lt: lambda difference, equal: difference < 0 and not equal,
    ast.LtE: lambda difference, equal: difference < 0 or equal,
    ast.Gt: lambda difference, equal: difference > 0 and not equal,
    ast.GtE: lambda difference, equal: difference > 0 or equal,
    ast.Eq: lambda difference, equal: equal,
}


def _compare(node: ast.Compare, scope: Scope) -> bool:
    operands = [_quantity(part, scope) for part in (node.left, *node.comparators)]
    verdicts = []
    for op, left, right in zip(node.ops, operands, operands[1:], strict=False):
        if type(op) not in _COMPARISONS:
            raise PageError("a claim compares with <, <=, >, >= or ==")
        difference = left.compare(right)
        equal = math.isclose(left.value, right.value, rel_tol=EQUAL_RELATIVE)
        verdicts.append(_COMPARISONS[type(op)](difference, equal))
    return all(verdicts)


def _is_path(node: ast.AST) -> bool:
    while isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Subscript):
            return isinstance(node.value, ast.Name)
        node = node.value
        if isinstance(node, ast.Name):
            return True
    return False


def _resolve(node: ast.expr, scope: Scope) -> Resolved:
    root, subscript, parts = _path_of(node)
    if not parts:
        raise PageError(f"{ast.unparse(node)!r} names no number")
    return scope.path(root, subscript, parts)


def _path_of(node: ast.AST) -> tuple[str, str | None, list[str]]:
    """(root, what stands in [ ], parts) of a path."""
    parts: list[str] = []
    inner = node
    while isinstance(inner, ast.Attribute):
        parts.insert(0, inner.attr)
        inner = inner.value
    subscript = None
    if isinstance(inner, ast.Subscript):
        if not (isinstance(inner.slice, ast.Constant) and isinstance(inner.slice.value, str)):
            raise PageError(f"{ast.unparse(node)!r}: what stands in [ ] is a name in quotes")
        subscript, inner = inner.slice.value, inner.value
    assert isinstance(inner, ast.Name)
    return inner.id, subscript, parts
