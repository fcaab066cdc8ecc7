"""Measures, comparisons, prices."""

from __future__ import annotations

from dataclasses import dataclass

from conf.schema.node import value


@dataclass
class Compare:
    name: str = value("name of the comparison, and of its folder")
    collections: dict[str, list[str]] = value("name -> overrides that choose a corpus; empty: the corpus of the command line")
    variants: dict[str, list[str]] = value("name -> overrides that make a method")
    methods: list[str] = value("the variants to compare, in the order of the table; empty: all")
    seeds: list[int] = value("values of run_seed; runs that no seed changes are made once")
    significance: float = value("p below which a paired t-test is marked", minimum=0.0, maximum=1.0)


@dataclass
class Metrics:
    measures: list[str] = value("pytrec_eval measures, for example ndcg_cut_10")


@dataclass
class Price:
    prompt_price: float = value("of a million prompt tokens", minimum=0.0)
    cached_price: float = value("of a million prompt tokens that were in the prefix cache", minimum=0.0)
    generated_price: float = value("of a million generated tokens", minimum=0.0)
    prompt_speed: float = value("prompt tokens per second", minimum=0.001)
    generated_speed: float = value("generated tokens per second", minimum=0.001)


@dataclass
class Prices:
    currency: str = value("of the prices")
    reasoning_tokens: int = value("tokens that an answer with a reasoning trace is taken to have beforehand", minimum=0)
    description_tokens: int = value("tokens that a group's description is taken to have beforehand, for each document", minimum=0)
    models: dict[str, Price] = value("by the model's name; default: any other")
