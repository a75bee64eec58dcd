"""Which of ncu's counters answer which of our metrics, and reading them for an experiment.

The names on the left are those of `metrics`; where the emulator counts the same thing from PTX, the
name is the same, so that both numbers meet in one table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..errors import DeviceError
from ..profiler import ProfiledLaunch, profile

# What a resident warp can be doing in a cycle, most of it waiting; shares of one add up to 100 %.
STALLS = (
    "selected", "not_selected", "long_scoreboard", "short_scoreboard", "barrier", "lg_throttle",
    "mio_throttle", "math_pipe_throttle", "dispatch_stall", "wait", "no_instruction",
)  # fmt: skip
# Metric -> ncu's counter. Percentages are in percent, sizes in bytes (--print-units base).
COUNTERS: Mapping[str, str] = {
    "global_load_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "global_load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global_store_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "global_store_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "shared_load_instructions": "smsp__sass_inst_executed_op_shared_ld.sum",
    "shared_load_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared_store_instructions": "smsp__sass_inst_executed_op_shared_st.sum",
    "shared_store_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "ffma": "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "fadd": "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
    "fmul": "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",
    "warp_instructions": "smsp__inst_executed.sum",
    "threads_per_instruction": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "l1_hit_rate": "l1tex__t_sector_hit_rate.pct",
    "l2_hit_rate": "lts__t_sector_hit_rate.pct",
    "l2_bytes": "lts__t_bytes.sum",
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    "issue_active": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "fma_pipe": "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
    "lsu_pipe": "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active",
    "achieved_occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
    **{f"stall_{why}": f"smsp__warp_issue_stalled_{why}_per_warp_active.pct" for why in STALLS},
}
_UNKNOWN = re.compile(r"\b((?:sm|smsp|l1tex|lts|dram)__[\w.]+)")
_PERMISSION = "ERR_NVGPUCTRPERM"


@dataclass(frozen=True)
class Profiled:
    """Counters by row name, and a note: what could not be read, "" where everything was."""

    counters: Mapping[str, Mapping[str, float]]
    note: str = ""


def counters_of(launch: ProfiledLaunch) -> dict[str, float]:
    """The metrics of one launch; what ncu did not give is left out."""
    found = {name: launch.values[c] for name, c in COUNTERS.items() if c in launch.values}
    if {"ffma", "fadd", "fmul"} <= found.keys():
        found["flops"] = 2 * found["ffma"] + found["fadd"] + found["fmul"]
    return found


def read(
    command: Sequence[str],
    rows: Sequence[tuple[str, str]],
    *,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
    run: Callable[..., list[ProfiledLaunch]] = profile,
) -> Profiled:
    """Profile a command that launches each row's kernel once, in the order of ``rows``.

    ``rows`` are (row name, kernel entry). A counter that this card or this ncu does not have is
    left out, and ncu is asked again without it. Never raises for what ncu cannot do: that is a
    note.
    """
    wanted = list(COUNTERS.values())
    entries = "|".join(sorted({entry for _, entry in rows}))
    missing: list[str] = []
    while True:
        try:
            launches = run(
                command, wanted, kernel_regex=f"^({entries})$", timeout_s=timeout_s, env=env
            )
            break
        except DeviceError as error:
            unknown = {m for m in _UNKNOWN.findall(str(error)) if m in wanted}
            if _PERMISSION in str(error):
                return Profiled({}, "no permission to read the card's counters (ERR_NVGPUCTRPERM)")
            if not unknown:
                return Profiled({}, str(error))
            missing += sorted(unknown)
            wanted = [m for m in wanted if m not in unknown]
    if [launch.kernel.split("(")[0] for launch in launches] != [entry for _, entry in rows]:
        return Profiled({}, f"ncu saw {len(launches)} launches where {len(rows)} were made")
    names = [name for name, _ in rows]
    found = {n: counters_of(launch) for n, launch in zip(names, launches, strict=True)}
    return Profiled(found, "not known to this ncu: " + ", ".join(missing) if missing else "")
