"""Names of options as Python spells them: in what the library answers, and where another word was typed."""
from __future__ import annotations

import difflib
import re
from typing import Collection, Match

from . import _declarations as c

# The arguments of the command that have a name here.
_ARGUMENTS = {"SRC": "source", "MODEL": "model", "FILE|DIR": "images"}

# What JSON and Python call differently.
_WORDS = {"null": "None", "true": "True", "false": "False", "an array": "a list", "an object": "a dict"}


def spelled(text: str) -> str:
    """A message of the library with its options as keywords: weight_decay for --weight-decay.

    Lines that show a command stay.
    """
    return "\n".join(line if re.search(r"\btandem [a-z]", line) else _spelled_line(line) for line in text.split("\n"))


def _spelled_line(line: str) -> str:
    if 'option "' in line:  # of the JSON that options travel as
        line = re.sub(r"\b(" + "|".join(_WORDS) + r")\b", lambda found: _WORDS[found[1]], line)
        line = re.sub(r'option "([\w-]+)"', r"option --\1", line)
    line = re.sub(r"(?<![\w./-])-o\b", "out", line)
    line = re.sub(r"(?<![\w./-])--split-(?:train|val|test)\b", "split", line)
    return re.sub(r"(?<![\w./-])--([a-z][a-z0-9-]*[a-z0-9]|[a-z])\b", lambda found: found[1].replace("-", "_"), line)


def meant(typed: str, known: Collection[str], function: str) -> str:
    """What to write for a keyword that a function lacks: by the words of other tools, or by the letters."""
    for word, target, use in c.HINTS:
        name = _ARGUMENTS.get(target, target.replace("-", "_"))
        if word == typed.lower().replace("_", "-") and name in known:
            use = re.sub(r"(?:--([a-z][a-z-]*)|-o)(?: (?!\()(\S*[^\s,;)]))?", _assignment, use or name)
            return "use " + re.sub(r"\b(SRC|MODEL)\b", lambda found: _ARGUMENTS[found[1]], use)
    near = difflib.get_close_matches(typed.lower(), sorted(known), 1, 0.75)
    return f"did you mean {near[0]}?" if near else f"help({function}) lists its options"


def _assignment(found: Match[str]) -> str:
    """split=(0.8, 0.2) for --split 0.8,0.2; words in capitals stand for values."""
    name, value = (found[1] or "out").replace("-", "_"), found[2]
    if name == "resume" or "(bool, " in c.TRAIN_HELP.get(name, ""):
        return f"{name}=True" + (f" {value}" if value else "")
    if value is None:
        return name
    if re.fullmatch(r"[\d.]+(,[\d.]+)+", value):
        value = f"({value.replace(',', ', ')})"
    elif not value.isupper() and not re.fullmatch(r"[\d.]+", value):
        value = f'"{value}"'
    return f"{name}={value}"
