"""What can be said of a file before anything runs: diagnostics, weights, costs.

In:  a path or a text of vwn.     Out: objects of Python.
The one idea: the library reports in JSON lines, and these are read.
"""
from __future__ import annotations

import ctypes as C
import json
from typing import Any, Dict, Iterable, List, Optional

from ._library import NUMBERS, Context, Diagnostic, ReportOptions, Settings, Text, UsageError, encoded, lib, masked, \
    strings


def check(file: Any, set: Settings = None, deny: Iterable[str] = ()) -> List[Diagnostic]:
    """Everything that vwn says of a file, warnings among it; an empty list is a file without any.

    `file`: a path, or the text of a file, which has a line break. `set`: overrides, as {"D": 256} or ["D=256"].
    `deny`: lints that count as errors; "warnings" is all of them. A `check` of the file that is false is an error, too.

        >>> [d.code for d in vwn.check("model m {\\n  widht = 3\\n}\\n")]
        ['E0101']
    """
    context = Context()
    try:
        if isinstance(deny, (str, bytes)):
            raise TypeError("deny is a list of names")
        rows, n = strings(encoded(d, "a lint") for d in deny)
        context.keep(rows)
        status, _ = context.check(file, set, deny=rows, n_deny=n)
        if status not in (NUMBERS["VWN_OK"], NUMBERS["VWN_INPUT"], NUMBERS["VWN_CHECK"]):
            raise context.error(status)
        said = list(context.diagnostics())
        if status == NUMBERS["VWN_INPUT"] and not any(d.level == "error" for d in said):
            raise context.error(status)
        return said
    finally:
        context.close()


def _report(file: Any, set: Settings, what: str, model_only: bool = False, **how: Any) -> Dict[str, Any]:
    context = Context()
    try:
        status, unit = context.check(file, set, model_only=model_only)
        context.ok(status)
        out, options = Text(), ReportOptions(json=True, **how)
        context.ok(masked(lib.vwn_write_report, unit, NUMBERS[what], C.byref(options), C.byref(out.raw)))
        return json.loads(str(out))
    finally:
        context.close()


_BY = {None: "VWN_REPORT_PARAMS", "layer": "VWN_REPORT_PARAMS_BY_LAYER", "node": "VWN_REPORT_PARAMS_BY_NODE",
       "group": "VWN_REPORT_PARAMS_BY_GROUP", "tensor": "VWN_REPORT_PARAMS_BY_TENSOR"}


def params(file: Any, set: Settings = None, by: Optional[str] = None) -> Dict[str, Any]:
    """The weights of a model, as `vwn params --json` has them: "stored", "live", "dead", "active", and "rows" by path.

    `by`: "layer", "node", "group" or "tensor"; None is a summary. Raises InputError for a file with errors."""
    if by not in _BY:
        raise UsageError(f"by is one of {', '.join(repr(b) for b in _BY)}, and {by!r} was given")
    return _report(file, set, _BY[by], model_only=True)


def cost(file: Any, set: Settings = None, batch: int = 0) -> Dict[str, Any]:
    """What a model costs, as `vwn cost --json` has it: "flops_per_token", "bytes_total", ... of training as planned.

    `batch`: sequences at once; 0 is the file's. Raises InputError for a file with errors."""
    if not isinstance(batch, int) or isinstance(batch, bool):
        raise TypeError("batch is an integer")
    if not 0 <= batch < 1 << 31:
        raise UsageError("batch is from 0 to 2^31")
    return _report(file, set, "VWN_REPORT_COST", batch_seqs=batch)
