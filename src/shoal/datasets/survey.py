"""A made-up survey: few people, very many questions, and answers that hang together.

Hospitals and censuses have a handful of columns that others may know; a survey has dozens, and each of them tells a little. That
is where generalizing is hardest: this table is for trying it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from shoal.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

# What nobody says of themselves but everybody answers by: age, means, learning, outlook and health.
TRAITS = 5
FEWEST, MOST = 5, 60


class Question(NamedTuple):
    """A column: its kind of answer, how many answers there are, and how much each trait counts in it."""

    name: str
    kind: str  # number, scale, choice, place or date
    answers: int
    loads: tuple[int, ...]
    noise: int = 3


# The questions about the person come first in every survey, as far as there is room.
_PERSON = (
    Question("age", "number", 75, (8, 0, 0, 0, 0), 1),
    Question("sex", "choice", 2, (0, 0, 0, 0, 0), 3),
    Question("region", "place", 64, (0, 4, 1, 2, 0), 3),
    Question("education", "scale", 8, (-1, 2, 6, 0, 0), 2),
    Question("income", "number", 120, (2, 6, 3, 0, 1), 2),
    Question("occupation", "choice", 14, (1, 3, 5, 0, 0), 2),
    Question("household", "number", 8, (-3, 2, 0, 1, 0), 3),
    Question("hours", "number", 61, (-4, 3, 1, 0, 2), 2),
    Question("interviewed", "date", 120, (0, 0, 0, 0, 0), 3),
)
# What is asked after that goes round and round: how far they agree, what they choose, yes or no, how often, how much.
_OPINION = (("scale", 5), ("choice", 6), ("choice", 2), ("scale", 11), ("number", 31), ("choice", 4), ("scale", 7))
_VOTE = Question("vote", "choice", 7, (1, 2, 2, 6, 0), 2)
_FIRST_DAY = 19_800  # of the interviews, in days since 1970
_AGE, _HOUR_STEP, _INCOME_STEP = 18, 1, 250


def survey(n: int = 10_000, questions: int = 24, seed: int = 0) -> pl.DataFrame:
    """A made-up survey of `n` people (10000 by default) who answered `questions` questions (24 by default), and how they vote.

    The first nine are about the person (age, sex, region, education, income, occupation, household, hours, interviewed), the
    others, q10 and so on, are answers on scales, choices without an order, amounts. Everybody answers by five traits that
    no column shows, so that answers hang together, the more the nearer two questions are in what they ask. About 2 % of
    the incomes are missing. Nobody in it exists.

    Returns a polars frame; the same `n`, `questions` and `seed` (0 by default) give the same table.

    >>> from shoal.datasets import survey
    >>> survey(1_000, 5, seed=1).columns
    ['age', 'sex', 'region', 'education', 'income', 'vote']
    """
    import numpy as np
    import polars as pl

    for label, value, least in (("n", n, 0), ("seed", seed, 0), ("questions", questions, FEWEST)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ConfigError(f"survey: {label} = {value!r} is not possible; give a whole number from {least} up.")
    streams = [np.random.Generator(np.random.PCG64(s)) for s in np.random.SeedSequence(seed).spawn(2 + MOST + 1)]
    asked = asked_in(questions)
    # Sums of three draws are bell-shaped enough, and have the same bits on every machine.
    draws = streams[0].random((3, n, TRAITS))
    traits = draws[0] + draws[1] + draws[2] - 1.5
    columns = [
        _answered(question, traits, streams[2 + min(place, MOST)]) for place, question in enumerate([*asked, _VOTE])
    ]
    table = pl.DataFrame(columns)
    unknown = pl.Series(streams[1].random(n) < 0.02)
    return table.with_columns(income=pl.when(unknown).then(None).otherwise(pl.col("income")))


def survey_schema(questions: int = 24) -> dict[str, Any]:
    """Who the columns of such a survey (24 `questions` by default) are: all answers quasi-identifiers, the vote sensitive.

    Returns a dictionary as `shoal.anonymize(..., schema=…)` takes it.

    >>> from shoal.datasets import survey_schema
    >>> survey_schema(5)["region"]
    {'role': 'quasi', 'kind': 'category', 'taxonomy': {'prefix': [2, 1, 0]}}
    """
    schema: dict[str, Any] = {}
    for question in asked_in(questions):
        if question.kind == "place":
            schema[question.name] = {"role": "quasi", "kind": "category", "taxonomy": {"prefix": [2, 1, 0]}}
        else:
            kind = {"choice": "category", "date": "date"}.get(question.kind, "number")
            schema[question.name] = {"role": "quasi", "kind": kind}
    return schema | {_VOTE.name: {"role": "sensitive", "kind": "category"}}


def asked_in(questions: int) -> list[Question]:
    """The questions of a survey with so many."""
    if isinstance(questions, bool) or not isinstance(questions, int) or not FEWEST <= questions <= MOST:
        raise ConfigError(
            f"survey: questions = {questions!r} is not possible; give a whole number from {FEWEST} to {MOST}."
        )
    asked = list(_PERSON[:questions])
    for place in range(len(asked), questions):
        kind, answers = _OPINION[(place - len(_PERSON)) % len(_OPINION)]
        # Two neighbouring traits count in each, one more than the other, and now and then against it.
        loads = [0] * TRAITS
        loads[place % TRAITS] = 6
        loads[(place + 1) % TRAITS] = 3 if place % 3 else -3
        asked.append(Question(f"q{place + 1:02d}", kind, answers, tuple(loads), 2 + place % 3))
    return asked


def _answered(question: Question, traits: NDArray[np.float64], random: np.random.Generator) -> pl.Series:
    """What everybody answers to a question: traits and chance, cut into as many answers as there are."""
    import numpy as np
    import polars as pl

    draws = random.random((3, len(traits)))
    score = question.noise * (draws[0] + draws[1] + draws[2] - 1.5)
    for trait, load in enumerate(question.loads):
        score = score + load * traits[:, trait]
    # Almost all scores lie within two thirds of the most there can be; whoever is beyond gives the last answer.
    reach = sum(map(abs, question.loads)) + question.noise
    share = np.clip(0.5 + 0.5 * score / reach, 0.0, 1.0)
    answer = np.minimum((share * question.answers).astype(np.int64), question.answers - 1)
    if question.kind == "date":
        return pl.Series(question.name, (_FIRST_DAY + answer).astype(np.int32)).cast(pl.Date)
    if question.kind == "choice":
        return pl.Series(question.name, [chr(ord("a") + i) for i in range(question.answers)]).gather(answer)
    if question.kind == "place":
        return pl.Series(question.name, [f"{i // 16}{i // 4 % 4}{i % 4}" for i in range(question.answers)]).gather(
            answer
        )
    step = {"income": _INCOME_STEP, "hours": _HOUR_STEP}.get(question.name, 1)
    return pl.Series(question.name, (_AGE if question.name == "age" else 1) + step * answer)
