"""What a promise says in plain words, model by model. Model names stand small beside the sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shoal.models import MODELS, Model
from shoal.report.markup import Html, escaped, joined, named, number, percent, plain, shown
from shoal.verifier import Check

Said = Callable[[Any, Html, str], Sequence[object]]

UNEVEN = ("t_closeness", "beta_likeness", "delta_disclosure")
"""Models that limit how far a class may differ from the table."""


def _diverse(model: Any, on: Html, many: str) -> Sequence[object]:
    if model.variant == "entropy":
        return "In every class the values of ", on, f" are as mixed as {number(model.l, 2)} equally frequent ones"
    if model.variant == "recursive":
        return (
            "In every class the most frequent value of ",
            on,
            f" has less than {number(model.c, 2)} times the {many} of the values from the {model.l}th on",
        )
    return f"Every class shows at least {model.l} different values of ", on


def _shares(model: Any, on: Html, many: str) -> Sequence[object]:
    of = ("no value of ", on) if model.values is None else ("none of ", named(model.values), " of ", on)
    return "In every class ", *of, f" has more than {percent(model.alpha)} of the {many}"


_SENTENCES: dict[str, Said] = {
    "k_anonymity": lambda m, on, many: (f"Every class has at least {m.k:,} {many}",),
    "p_sensitive": lambda m, on, many: (f"Every class shows at least {m.p} different values of ", on),
    "extended_p_sensitive": lambda m, on, many: (
        "Every class shows values of ",
        on,
        f" from at least {m.p} protected groups",
    ),
    "p_plus_sensitive": lambda m, on, many: (f"Every class shows at least {m.p} categories of ", on),
    "p_alpha_sensitive": lambda m, on, many: (
        f"Every class shows at least {m.p} different values of ",
        on,
        f", which weigh at least {number(m.alpha, 2)} together",
    ),
    "l_diversity": _diverse,
    "alpha_k": _shares,
    "k_e": lambda m, on, many: ("In every class the numbers of ", on, f" span at least {number(m.e, 2)}"),
    "t_closeness": lambda m, on, many: (
        "Every class has nearly the same distribution of ",
        on,
        f" as the whole table, at a distance of at most {number(m.t, 4)}",
    ),
    "delta_disclosure": lambda m, on, many: (
        "No class makes a value of ",
        on,
        f" much more or less frequent than the table does: the logarithm changes by less than {number(m.delta, 4)}",
    ),
    "beta_likeness": lambda m, on, many: (
        "In no class does the share of a value of ",
        on,
        f" exceed that in the table by more than {number(m.beta, 4)} times",
    ),
    "kpqr": lambda m, on, many: (
        "Every class with a rare value of ",
        on,
        f" shows at least {m.p} different ones, and numbers that vary enough",
    ),
    "personalized": lambda m, on, many: (
        "Of nobody’s class do more than ",
        percent(m.breach),
        " lie in the group of ",
        on,
        " that guards them",
    ),
}


def promise(model: Model | None, check: Check, many: str) -> Html:
    """What a rule asks, in a sentence without its full stop; `many` are the records or the persons that it counts."""
    if model is not None and model.name in _SENTENCES:
        return joined(_SENTENCES[model.name](model, shown(check.attribute), many))
    summary = MODELS[check.model].summary() if check.model in MODELS else check.rule
    on = (" (", shown(check.attribute), ")") if check.attribute else ()
    return joined([summary.rstrip(".").replace("`", ""), *on])


def model_of(check: Check, models: Sequence[Model]) -> Model | None:
    """The model of the policy that a rule comes from."""
    found = [model for model in models if model.name == check.model and check.rule.startswith(str(model))]
    return found[0] if found else None


def rule(check: Check) -> Html:
    """The rule as configurations and error messages write it."""
    return escaped(plain(check.rule, 160))
