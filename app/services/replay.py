"""How an answer is written again: its runs with their seeds, and each change at its token.

An answer has one run, and one more each time it was continued. Each reads its prompt behind as
many remembered tokens as then. What was not written by a run that
is known (a beginning typed or chosen by hand) is given.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from app.strings import tr

if TYPE_CHECKING:
    from app.services.engine_service import EngineService

# What the record of an answer keeps of each run before the last.
OF_A_RUN = (
    *("sampling", "limits", "context", "sources", "system", "keeps_reasoning", "model", "mark"),
    *("seed", "changes", "start", "end", "n_run", "n_cached", "stop_type", "truncated"),
)
_TOLD = ("sources", "system", "keeps_reasoning")


def runs_of(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return all runs of an answer, the first one first; none if it was never written by one."""
    return [*record.get("runs", ()), record] if "sampling" in record or "seed" in record else []


def earlier_runs(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what the next run of an answer keeps of those before it."""
    return [{name: run[name] for name in OF_A_RUN if name in run} for run in runs_of(record)]


def steps_of(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the runs that write an answer again; [] if that is not known.

    Each has `start` (characters before it), `options` of a CompletionRequest without its prompt,
    and `told` for its record.
    """
    known: list[Mapping[str, Any]] = []
    for run in runs_of(record):
        if known and known[-1].get("end") != run.get("start"):
            known = []
        known = [*known, run] if "seed" in run else []
    return [_step(run) for run in known]


def _step(run: Mapping[str, Any]) -> dict[str, Any]:
    options = dict(run.get("limits", {}))
    # Read in other pieces, the same prompt leads to numbers that differ in their last digits.
    options["n_cached_most"] = run.get("n_cached", -1)
    options["params"] = {**run.get("sampling", {}), "seed": run["seed"]}
    changes = [(change["at"], dict(change["values"])) for change in run.get("changes") or ()]
    if "n_run" in run and run.get("stop_type") in ("cancelled", "limit"):
        options["n_predict"] = run["n_run"]
        for _, values in changes:
            values.pop("n_predict", None)
    options["changes"] = [(at, values) for at, values in changes if values]
    told = {name: run[name] for name in _TOLD if name in run}
    return {"start": run.get("start", 0), "options": options, "told": told}


def differences(record: Mapping[str, Any], engine: "EngineService") -> list[str]:
    """Return in sentences why an answer may not come out the same; [] if it will."""
    found: list[str] = []
    for run in runs_of(record):
        context = run.get("context", {})
        if run.get("mark") and engine.mark and run["mark"] != engine.mark:
            found.append(
                tr(
                    "“{then}” wrote this answer, and “{now}” is loaded.",
                    then=run.get("model", "?"),
                    now=engine.name,
                )
            )
        then, now = _types(context), _types(engine.context())
        if context and then != now:
            found.append(tr("K and V were kept as {then}, and are {now}.", then=then, now=now))
        if run.get("truncated"):
            found.append(tr("The context was full, and what it held then is not known."))
        if run.get("changes") and "n_run" not in run:
            found.append(
                tr("An older version of this program noted only roughly where values changed.")
            )
    return list(dict.fromkeys(found))


def _types(context: Mapping[str, Any]) -> str:
    types = dict.fromkeys(str(context.get(name, "")) for name in ("type_k", "type_v"))
    return tr(" and ").join(types)
