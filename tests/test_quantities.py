"""Units, grades and how they travel through arithmetic."""

import pytest

from kernelbook.quantities import Grade, Quantity, Source, UnitError, format_number


def test_a_rate_is_bytes_over_time_and_is_shown_in_decimal_gigabytes() -> None:
    moved = Quantity.of(805_306_368, "B")
    time = Quantity.of(863.0, "µs", Grade.MEASURED)
    assert (moved / time).to("GB/s") == pytest.approx(933.147, abs=0.001)
    assert (moved / time).grade is Grade.MEASURED


def test_a_size_is_shown_in_binary_units() -> None:
    assert Quantity.of(2 * 1024**3 * 4, "B").to("GiB") == 8.0
    assert Quantity.of(2 * 1024**3 * 4, "B").to("GB") == pytest.approx(8.589934592)


def test_the_weakest_input_gives_the_grade() -> None:
    order = [Grade.CITED, Grade.MEASURED, Grade.COUNTED, Grade.COMPILED, Grade.THEORY]
    assert sorted(order) == order
    product = Quantity.of(1, "", Grade.COUNTED) * Quantity.of(1, "", Grade.CITED)
    assert product.grade is Grade.CITED


def test_one_stale_source_makes_the_result_stale() -> None:
    old = Quantity.of(1, "s", Grade.MEASURED, (Source(Grade.MEASURED, "old", stale=True),))
    assert (Quantity.of(2, "B") / old).stale
    assert not Quantity.of(2, "B").stale


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Quantity.of(1, "B") + Quantity.of(1, "s"),
        lambda: Quantity.of(1, "B").compare(Quantity.of(1, "FLOP")),
        lambda: Quantity.of(1, "B").to("ms"),
        lambda: Quantity.of(1, "furlong"),
        lambda: Quantity.of(1, "B") / Quantity.of(0, "s"),
        lambda: Quantity.of(2, "B") ** Quantity.of(0.5, ""),
    ],
)
def test_units_that_do_not_fit_are_refused(wrong: object) -> None:
    with pytest.raises(UnitError):
        wrong()  # type: ignore[operator]


def test_powers_multiply_exponents() -> None:
    assert (Quantity.of(3, "B") ** Quantity.of(2, "")).dims == (2, 0, 0, 0)


@pytest.mark.parametrize(
    ("value", "spec", "shown"),
    [(1234567, "", "1,234,567"), (0.0833333, "", "0.0833"), (23.147, ".1f", "23.1")],
)
def test_numbers_are_shown_as_people_write_them(value: float, spec: str, shown: str) -> None:
    assert format_number(value, spec) == shown


def test_a_number_that_is_no_number_is_never_shown() -> None:
    with pytest.raises(UnitError):
        format_number(float("nan"))
