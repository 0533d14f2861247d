"""Run a chapter's cells on records, and in their midst the reader's answers: `python -m ffilab.press.run_exercise < ORDER`.

ORDER is a JSON object: cells (code; those of the reader have a label) and the name of the reader's file. The last line that is
printed is a JSON object: `exercises`, with `lines` and `solved` by label, or `failed`.
"""

import contextlib
import io
import json
import os
import re
import sys
import traceback

from ffilab import draw


def printed_table(frame, caption: str = "", *_, **__) -> None:
    """In place of a table on a page."""
    print(f"{caption}\n{frame.to_string(index=False)}")


def run(order: dict) -> dict:
    draw.table, draw.figure = printed_table, lambda *_, **__: None
    space, printed = {"__name__": "__main__"}, {}
    for cell in order["cells"]:
        label, out = cell.get("label"), io.StringIO()
        try:
            with contextlib.redirect_stdout(out):
                exec(compile(cell["code"], order["name"] if label else "<the chapter>", "exec"), space)
        except (Exception, SystemExit) as error:
            traceback.print_exc()
            if not label:
                return {"failed": f"A cell of the chapter stopped with {type(error).__name__}: {error}"}
            lines = [one.lineno for one in traceback.extract_tb(error.__traceback__) if one.filename == order["name"]]
            where = f"{order['name']}, line {lines[-1]}: " if lines else ""
            out.write(f"\nNot run: {where}{type(error).__name__}: {error}")
        if label:
            printed.setdefault(label, []).extend(line for line in out.getvalue().splitlines() if line.strip())
    solved = space["exercise"].SOLVED
    return {
        "exercises": {
            label: {
                "lines": lines,
                "solved": bool(re.search(solved[label], "".join(f"{line}\n" for line in lines), re.M)),
            }
            for label, lines in printed.items()
        }
    }


if __name__ == "__main__":
    sys.path.insert(0, os.getcwd())
    print("\n" + json.dumps(run(json.loads(sys.stdin.read()))))
