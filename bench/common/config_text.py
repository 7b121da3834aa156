"""Configs as text, "family:tunable=value,..": choices written out, and how far two of them are apart. Knows no GPU."""
import itertools
import math


def expand(text):
    """'f:br=64|128,bc=32' -> ['f:br=64,bc=32', 'f:br=128,bc=32']"""
    family, _, rest = text.partition(":")
    choices = []
    for word in (w for w in rest.split(",") if w):
        name, equals, values = word.partition("=")
        choices.append([f"{name}{equals}{v}" for v in values.split("|")])
    return [family + ":" + ",".join(c) if c else family for c in itertools.product(*choices)]


def tunables(config):
    """(family, {name: value})"""
    family, _, rest = config.partition(":")
    return family, dict(w.partition("=")[::2] for w in rest.split(",") if w)


def varied(config, choices):
    """The configs that differ from this one in values of these choices alone, itself included; tunables that it has not are left out."""
    family, own = tunables(config)
    out = []
    for text in expand("f:" + choices):
        some = {n: v for n, v in tunables(text)[1].items() if n in own}
        out.append(family + ":" + ",".join(f"{n}={v}" for n, v in {**own, **some}.items()))
    return list(dict.fromkeys([config, *out]))


def is_part(text, config):
    """Whether text, which may leave tunables out, can mean the whole config."""
    (f, some), (g, whole) = tunables(text), tunables(config)
    return f == g and some.items() <= whole.items()


def distance(a, b):
    """How many tunables of two whole configs differ."""
    (f, x), (g, y) = tunables(a), tunables(b)
    return sum(x.get(n) != y.get(n) for n in x.keys() | y.keys()) if f == g else math.inf
