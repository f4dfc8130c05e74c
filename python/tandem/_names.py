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


# Values that are words; further ones are the choices of an option, or have a digit in them or capitals.
_VALUES = ("all", "auto", "base", "cpu", "cuda", "none")

_COMMAND = r"('tandem [^']*'|\btandem [a-z]+(?: --?[a-z][a-z-]*)*)"
_OPTION = r"(?<![\w./-])--([a-z](?:[a-z0-9-]*[a-z0-9])?)\b(?: (\w(?:[\w.+:=,-]*\w)?))?"


def spelled(text: str) -> str:
    """A message of the library with its options as keywords: weight_decay for --weight-decay.

    Commands stay, and lines that begin with one.
    """
    return "\n".join(line if re.match(r"\s*tandem [a-z]+ ", line) else _spelled_line(line) for line in text.split("\n"))


def _spelled_line(line: str) -> str:
    parts = re.split(_COMMAND, line)  # each second one is a command
    return "".join(part if i % 2 else _spelled_part(part) for i, part in enumerate(parts))


def _spelled_part(line: str) -> str:
    if 'option "' in line:  # of the JSON that options travel as
        line = re.sub(r"\b(" + "|".join(_WORDS) + r")\b", lambda found: _WORDS[found[1]], line)
        line = re.sub(r'option "([\w-]+)"', r"option --\1", line)
    line = re.sub(r"(?<![\w./-])-o\b", "--out", line)
    line = re.sub(r"(?<![\w./-])--split-(?:train|val|test)\b", "--split", line)
    return re.sub(_OPTION, _keyword, line)


def _keyword(found: Match[str]) -> str:
    """An option in a sentence: the word that follows is its value, or one of the sentence."""
    name, value = found[1].replace("-", "_"), found[2] or ""
    before, after = found.string[:found.start()], found.string[found.end():]
    if _is_switch(name):
        is_set = re.search(r"(\bwith|--[a-z][a-z-]* \S+) $", before)
        return name + ("=True" if is_set else "") + (f" {value}" if value else "")
    if re.search(r"\d", value) or value.isupper() or value in _VALUES or f'"{value}"' in c.TRAIN_HELP.get(name, ""):
        return _assignment(found) + ("," if after.startswith(" --") else "")
    return name + (f" {value}" if value else "")


def _is_switch(name: str) -> bool:
    return name in ("resume", "fetch") or "(bool, " in c.TRAIN_HELP.get(name, "")


def meant(typed: str, known: Collection[str], function: str) -> str:
    """What to write for a keyword that a function lacks: by the words of other tools, or by the letters."""
    for word, target, use in c.HINTS:
        name = _ARGUMENTS.get(target, target.replace("-", "_"))
        if word == typed.lower().replace("_", "-") and name in known:
            use = re.sub(r"\btandem ([a-z]+) ([A-Z]+(?: [A-Z]+)*)",
                         lambda found: f"tandem.{found[1]}({', '.join(found[2].split())})", use or name)
            use = re.sub(r"(?:--([a-z][a-z-]*)|-o)(?: (?!\()(\S*[^\s,;)]))?", _assignment, use)
            return "use " + re.sub(r"\b(SRC|MODEL)\b", lambda found: _ARGUMENTS[found[1]], use)
    near = difflib.get_close_matches(typed.lower(), sorted(known), 1, 0.75)
    return f"did you mean {near[0]}?" if near else f"help({function}) lists its options"


def _assignment(found: Match[str]) -> str:
    """split=(0.8, 0.2) for --split 0.8,0.2; words in capitals stand for values."""
    name, value = (found[1] or "out").replace("-", "_"), found[2]
    if _is_switch(name):
        return f"{name}=True" + (f" {value}" if value else "")
    if value is None:
        return name
    if re.fullmatch(r"[\d.]+(,[\d.]+)+", value):
        value = f"({value.replace(',', ', ')})"
    elif not value.isupper() and not re.fullmatch(r"[\d.]+(e[+-]?\d+)?", value):
        value = f'"{value}"'
    return f"{name}={value}"
