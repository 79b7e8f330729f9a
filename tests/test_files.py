"""`pool`, `outcomes`, `prior`: what is written is read; what cannot be vouched for is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from priorkit import parquet, schema
from priorkit.beta import BetaPrior
from priorkit.columns import as_ids
from priorkit.errors import (
    MismatchError,
    OutcomesFileError,
    OutputError,
    PoolFileError,
    PriorFileError,
    SettingError,
)
from priorkit.exchange import export_text, import_prior
from priorkit.outcomes import Outcome, OutcomeLog, read_outcomes, write_outcomes
from priorkit.pool import Pool, pool_from_columns, read_pool, row_hash, write_pool
from priorkit.prior import (
    anchor_prior,
    fit_to_pool,
    publish_prior,
    read_prior,
    write_prior,
)
from priorkit.rates import RateColumns, read_rates
from priorkit.rows import PoolColumns

GOLDEN = Path(__file__).parent / "golden"


def small_pool(n: int = 4) -> Pool:
    return pool_from_columns(
        {
            "prompt_id": [f"p{i}" for i in range(n)],
            "prompt": [f"What is {i} + 1?" for i in range(n)],
            "answer": [str(i + 1) for i in range(n)],
            "level": [1, 2, None, 3][:n],
        },
        "memory",
    )


def small_prior(pool: Pool) -> BetaPrior:
    successes = np.arange(len(pool))
    return BetaPrior.from_counts(
        pool.prompt_id,
        successes,
        np.full(len(pool), 16),
        row_hash=pool.row_hash,
        n_truncated=np.zeros(len(pool), dtype=np.int64),
        n_error=np.zeros(len(pool), dtype=np.int64),
        kind="anchor",
        provenance={"anchor": {"name": "m", "revision": "r"}},
    )


def outcome(prompt_id: str, sample: int, status: str = "correct", **changes: object) -> Outcome:
    row = {
        "prompt_id": prompt_id,
        "sample": sample,
        "model": "m",
        "status": status,
        "correct": {"correct": True, "wrong": False, "truncated": False, "no_answer": False}.get(
            status
        ),
        "n_tokens": 3,
        "think_tokens": None,
        "extracted": "4",
        "finish_reason": "stop",
        "response": "so \\boxed{4}",
    }
    return Outcome(**{**row, **changes})


def equal_fields(one: object, other: object, names: tuple[str, ...]) -> None:
    for name in names:
        a, b = getattr(one, name), getattr(other, name)
        assert (a is None) == (b is None), name
        if a is not None:
            assert np.asarray(a).tolist() == np.asarray(b).tolist(), name


PRIOR_FIELDS = (
    "prompt_id", "row_hash", "alpha", "beta", "rate", "successes", "trials", "n_truncated",
    "n_error",
)  # fmt: skip
POOL_FIELDS = (
    "prompt_id", "prompt", "answer", "level", "subject", "source", "verifier", "split", "row_hash",
)  # fmt: skip


# Round trips


def test_a_pool_reads_back_as_it_was_written(tmp_path):
    pool = small_pool()
    back = read_pool(write_pool(tmp_path / "pool.parquet", pool, {"seed": 0}))
    equal_fields(pool, back, POOL_FIELDS)
    assert back.fingerprint == pool.fingerprint
    assert back.order_hash == pool.order_hash


def test_chat_prompts_and_several_answers_read_back(tmp_path):
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2+2?"}]
    pool = pool_from_columns(
        {"prompt_id": ["a", "b"], "prompt": [chat, "3+3?"], "answer": [["4", "four"], 6]}, "memory"
    )
    back = read_pool(write_pool(tmp_path / "pool.parquet", pool, {}))
    assert back.prompt[0] == tuple(chat)
    assert back.prompt[1] == "3+3?"
    assert back.answer.tolist() == [("4", "four"), "6"]
    assert back.fingerprint == pool.fingerprint


def test_a_prior_reads_back_as_it_was_written(tmp_path):
    prior = small_prior(small_pool())
    back = read_prior(write_prior(tmp_path / "prior.parquet", prior))
    equal_fields(prior, back, PRIOR_FIELDS)
    assert back.kind == "anchor"
    assert back.provenance["anchor"] == {"name": "m", "revision": "r"}


def test_a_prior_made_in_memory_says_unknown_where_nobody_knows(tmp_path):
    prior = BetaPrior.from_rates(["a", "b"], [0.1, 0.9])
    back = read_prior(write_prior(tmp_path / "prior.parquet", prior))
    assert {back.provenance[name] for name in schema.PRIOR_PROVENANCE} == {"unknown"}
    equal_fields(prior, back, PRIOR_FIELDS)


def test_outcomes_read_back_as_they_were_written(tmp_path):
    rows = [
        outcome("a", 0),
        outcome("a", 1, "truncated", response=None),
        outcome("b", 0, "engine_error"),
    ]
    back = read_outcomes(write_outcomes(tmp_path / "o.parquet", rows, {"k": 2}))
    assert list(back.rows()) == rows
    counts = back.counts(as_ids(["b", "a", "c"]))
    assert counts.trials.tolist() == [0, 2, 0]
    assert counts.successes.tolist() == [0, 1, 0]
    assert counts.n_truncated.tolist() == [0, 1, 0]
    assert counts.n_error.tolist() == [1, 0, 0]


def test_the_same_rows_make_the_same_bytes(tmp_path):
    prior = small_prior(small_pool())
    one, other = (write_prior(tmp_path / name, prior) for name in ("a.parquet", "b.parquet"))
    assert one.read_bytes() == other.read_bytes()


# Golden files: version 1 for ever


def test_the_golden_pool_reads():
    pool = read_pool(GOLDEN / "pool-v1.parquet", split=None)
    assert pool.prompt_id.tolist() == ["g0", "g1", "g2"]
    assert pool.prompt.tolist() == ["What is 1 + 1?", "What is 2 · 3?", "What is 10 / 4?"]
    assert pool.answer.tolist() == ["2", ("6", "six"), "5/2"]
    assert pool.split.tolist() == ["train", "train", "eval"]
    assert pool.level is not None
    assert pool.level.tolist() == [1, 2, -1]
    assert pool.row_hash.tolist() == [
        "a50b34fa1a2a7199",
        "8043ffec9617607a",
        "6a2bc28db30f78e3",
    ]


def test_the_golden_outcomes_read():
    outcomes = read_outcomes(GOLDEN / "outcomes-v1.parquet")
    assert [(r.prompt_id, r.sample, r.status, r.correct) for r in outcomes.rows()] == [
        ("g0", 0, "correct", True),
        ("g0", 1, "wrong", False),
        ("g1", 0, "truncated", False),
        ("g1", 1, "verifier_timeout", None),
    ]
    assert outcomes.provenance["k"] == 2


def test_the_golden_prior_reads():
    prior = read_prior(GOLDEN / "prior-v1.parquet")
    assert prior.kind == "anchor"
    assert prior.prompt_id.tolist() == ["g0", "g1"]
    assert prior.alpha.tolist() == [2.001, 0.001]
    assert prior.beta.tolist() == [2.001, 4.001]
    assert prior.trials is not None
    assert prior.trials.tolist() == [2, 1]


# Refusals: one error, naming the file and the place


def columns_of(**changes: object) -> dict[str, object]:
    found = {"prompt_id": ["a", "b"], "prompt": ["1+1?", "2+2?"], "answer": ["2", "4"]}
    return {name: values for name, values in {**found, **changes}.items() if values is not None}


@pytest.mark.parametrize(
    ("columns", "word"),
    [
        (columns_of(prompt_id=None), "prompt_id' or 'id'"),
        (columns_of(prompt_id=["a", None]), "row 1 has no prompt_id"),
        (columns_of(prompt_id=["a", " "]), "row 1 has no prompt_id"),
        (columns_of(prompt_id=["a", "a"]), "rows 0 and 1"),
        (columns_of(prompt_id=[], prompt=[], answer=[]), "empty"),
        (columns_of(prompt=["", "x"]), "row 0 has no prompt"),
        (columns_of(prompt=[[{"role": "user"}], "x"]), "row 0 has no prompt"),
        (columns_of(prompt=["\ud800", "x"]), "Unicode"),
        (columns_of(answer=["2", None]), "'b'.*has no answer"),
        (columns_of(answer=["2", float("nan")]), "has no answer"),
        (columns_of(answer=["2", []]), "has no answer"),
        (columns_of(answer=None), "--answer-column"),
        (columns_of(split=["train", "dev"]), "split 'dev'"),
    ],
)
def test_a_broken_pool_is_refused_with_its_place(columns, word):
    with pytest.raises(PoolFileError, match=word):
        pool_from_columns(columns, "pool.jsonl")


def test_rows_without_an_answer_can_be_left_out():
    pool = pool_from_columns(
        columns_of(answer=["2", None]), "memory", PoolColumns(drop_unanswered=True)
    )
    assert pool.prompt_id.tolist() == ["a"]


def tampered(tmp_path: Path, **changes: object) -> Path:
    """A prior file with some columns or footer fields replaced by hand."""
    path = write_prior(tmp_path / "prior.parquet", small_prior(small_pool()), force=True)
    table = pq.read_table(path)
    footer = json.loads(table.schema.metadata[schema.FOOTER_KEY])
    for name, value in changes.items():
        if name in table.column_names:
            at = table.column_names.index(name)
            table = table.remove_column(at) if value is None else table.set_column(at, name, value)
        else:
            footer[name] = value
    pq.write_table(table.replace_schema_metadata({schema.FOOTER_KEY: json.dumps(footer)}), path)
    return path


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"alpha": pa.array([1.0, float("nan"), 1.0, 1.0])}, "'alpha' must be above zero.*row 1"),
        ({"alpha": pa.array([1.0, 1.0, 0.0, -1.0])}, "2 of 4 rows.*row 2, prompt 'p2'"),
        ({"beta": pa.array([1.0, 1.0, 1.0, float("inf")])}, "'beta'"),
        ({"beta": pa.array([1.0, 1.0, 1.0, None])}, "null"),
        ({"alpha": None}, "'alpha' is missing"),
        ({"alpha": pa.array(["1", "1", "1", "1"])}, "must be float64"),
        ({"alpha": pa.array([1.0] * 4, type=pa.float32())}, "must be float64, found float"),
        ({"prompt_id": pa.array(["a", "b", "a", "c"])}, "rows 0 and 2"),
        ({"prompt_id": pa.array(["a", "b", "", "c"])}, "non-empty"),
        ({"version": 2}, "newer than this priorkit knows"),
        ({"version": "1"}, "format version"),
        ({"version": 0}, "format version"),
        ({"kind": "pool"}, "found kind 'pool'"),
        ({"prior_kind": "guess"}, "'guess'"),
        ({"provenance": None}, "provenance"),
        ({"trials": pa.array([16, None, 16, 16], type=pa.int32())}, "null in some rows"),
    ],
)
def test_a_broken_prior_is_refused_with_its_place(tmp_path, changes, word):
    with pytest.raises(PriorFileError, match=word) as caught:
        read_prior(tampered(tmp_path, **changes))
    assert "prior.parquet" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("keep", [0, 3, 40, 0.5, 0.99])
def test_a_file_cut_short_is_refused(tmp_path, keep):
    path = write_prior(tmp_path / "prior.parquet", small_prior(small_pool()))
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep) if keep < 1 and keep else int(keep)])
    with pytest.raises(PriorFileError, match=r"prior\.parquet"):
        read_prior(path)


@pytest.mark.parametrize("flip", range(0, 6000, 41))
def test_a_flipped_byte_never_escapes_as_a_foreign_error(tmp_path, flip):
    path = write_prior(tmp_path / "prior.parquet", small_prior(small_pool()))
    data = bytearray(path.read_bytes())
    data[flip % len(data)] ^= 0xFF
    path.write_bytes(bytes(data))
    whole = small_prior(small_pool())
    try:
        back = read_prior(path)
    except PriorFileError as error:
        assert "prior.parquet" in str(error)
    else:  # the flip fell where nothing of ours is kept
        equal_fields(whole, back, PRIOR_FIELDS)


def test_what_is_no_parquet_file_of_ours_is_refused(tmp_path):
    text = tmp_path / "text.parquet"
    text.write_text('{"a": 1}')
    foreign = tmp_path / "foreign.parquet"
    pq.write_table(pa.table({"prompt_id": ["a"], "alpha": [1.0], "beta": [1.0]}), foreign)
    for path, word in [
        (text, "not a readable Parquet"),
        (foreign, "prior import"),
        (tmp_path / "absent.parquet", "no such file"),
        (tmp_path, "folder"),
    ]:
        with pytest.raises(PriorFileError, match=word):
            read_prior(path)


def test_outcomes_with_a_sample_twice_or_a_strange_status_are_refused(tmp_path):
    twice = write_outcomes(tmp_path / "a.parquet", [outcome("a", 0), outcome("a", 0)], {})
    with pytest.raises(OutcomesFileError, match="twice"):
        read_outcomes(twice)
    strange = write_outcomes(tmp_path / "b.parquet", [outcome("a", 0, "fine")], {})
    with pytest.raises(OutcomesFileError, match="status 'fine'"):
        read_outcomes(strange)
    lying = write_outcomes(tmp_path / "c.parquet", [outcome("a", 0, "wrong", correct=True)], {})
    with pytest.raises(OutcomesFileError, match="correct = True"):
        read_outcomes(lying)


# Writing: whole or not at all


def test_an_existing_file_is_replaced_only_when_forced(tmp_path):
    prior = small_prior(small_pool())
    path = write_prior(tmp_path / "prior.parquet", prior)
    with pytest.raises(OutputError, match="--force"):
        write_prior(path, prior)
    write_prior(path, prior, force=True)
    assert [p.name for p in tmp_path.iterdir()] == ["prior.parquet"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    prior = small_prior(small_pool())
    path = write_prior(tmp_path / "prior.parquet", prior)
    before = path.read_bytes()

    def full(table: pa.Table, where: Path, **_: object) -> None:
        Path(where).write_bytes(b"PAR1half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parquet.pq, "write_table", full)
    with pytest.raises(OutputError, match="no space left"):
        write_prior(path, prior, force=True)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["prior.parquet"]


# Identity


def test_the_row_hash_moves_with_text_answer_and_verifier_only():
    base = row_hash("2+2?", "4")
    assert row_hash("2+2? ", "4") != base
    assert row_hash("2+2?", "5") != base
    assert row_hash("2+2?", "4", "exact") != base
    assert row_hash("2+2?", ("4", "four")) != base
    assert len(base) == 16


def test_a_lone_user_message_is_the_same_prompt_as_its_text():
    message = [{"role": "user", "content": "2+2?"}]
    one = pool_from_columns({"id": ["a"], "prompt": [message], "answer": ["4"]}, "memory")
    other = pool_from_columns({"id": ["a"], "prompt": ["2+2?"], "answer": ["4"]}, "memory")
    assert one.fingerprint == other.fingerprint


def test_order_changes_the_order_hash_and_not_the_fingerprint():
    pool = small_pool()
    turned = pool.take(np.array([3, 2, 1, 0]))
    assert turned.fingerprint == pool.fingerprint
    assert turned.order_hash != pool.order_hash


def test_a_prior_serves_a_pool_in_any_order_and_a_part_of_its_own():
    pool = small_pool()
    prior = small_prior(pool)
    part = pool.take(np.array([2, 0]))
    fitted = fit_to_pool(prior, part)
    assert fitted.prior.prompt_id.tolist() == ["p2", "p0"]
    assert fitted.prior.successes is not None
    assert fitted.prior.successes.tolist() == [2, 0]
    assert (fitted.n_missing, fitted.n_extra, fitted.hashes_known) == (0, 2, True)


def test_a_prior_of_another_pool_or_of_an_edited_prompt_is_refused():
    pool = small_pool()
    prior = small_prior(pool)
    other = pool_from_columns({"id": ["x"], "prompt": ["1+1?"], "answer": ["2"]}, "memory")
    with pytest.raises(MismatchError, match="another pool"):
        fit_to_pool(prior, other)
    edited = pool_from_columns(
        {
            "prompt_id": pool.prompt_id.tolist(),
            "prompt": [*pool.prompt[:3].tolist(), "What is 3 + 1 ?"],
            "answer": pool.answer.tolist(),
        },
        "memory",
    )
    with pytest.raises(MismatchError, match="row 3, prompt 'p3'"):
        fit_to_pool(prior, edited)


@pytest.mark.parametrize(("rule", "expected"), [("mean", None), ("beta11", (1.0, 1.0))])
def test_absent_prompts_are_refused_or_filled_by_rule(rule, expected):
    pool = small_pool()
    prior = small_prior(pool).take(np.array([0, 2]))
    with pytest.raises(MismatchError, match=r"lacks 2.*row 1, 'p1'"):
        fit_to_pool(prior, pool)
    fitted = fit_to_pool(prior, pool, rule)
    assert fitted.n_missing == 2
    mean = float(prior.mean.mean())
    wanted = expected or (4 * mean + 1e-3, 4 * (1 - mean) + 1e-3)
    assert (fitted.prior.alpha[1], fitted.prior.beta[1]) == pytest.approx(wanted)
    assert fitted.prior.alpha[2] == prior.alpha[1]
    with pytest.raises(SettingError, match="missing must be one of"):
        fit_to_pool(prior, pool, "zero")  # type: ignore[arg-type]


def test_a_prompt_without_any_verdict_is_refused_or_filled(tmp_path):
    pool = small_pool(2)
    rows = [outcome("p0", 0), outcome("p1", 0, "verifier_error")]
    outcomes = read_outcomes(write_outcomes(tmp_path / "o.parquet", rows, {}))
    counts = outcomes.counts(pool.prompt_id)
    with pytest.raises(MismatchError, match=r"no sample with a verdict.*'p1'"):
        anchor_prior(counts, pool, {})
    prior, filled = anchor_prior(counts, pool, {}, missing="beta11")
    assert filled == 1
    assert prior.alpha.tolist() == [4.001, 1.0]
    assert prior.n_error is not None
    assert prior.n_error.tolist() == [0, 1]
    assert read_prior(write_prior(tmp_path / "p.parquet", prior)).provenance["missing"] == "beta11"


# Shards


def test_a_torn_last_line_is_dropped_and_the_rest_kept(tmp_path):
    log = OutcomeLog(tmp_path / "shards")
    log.append(outcome("a", 0))
    log.append(outcome("a", 1, response="two\nlines \u2028 and \ud83d\ude00"))
    log.close()
    shard = tmp_path / "shards" / "000001.jsonl"
    data = shard.read_bytes()
    for cut in range(len(data.splitlines(keepends=True)[0]), len(data)):
        shard.write_bytes(data[:cut])
        assert list(OutcomeLog(tmp_path / "shards").read()) == [("a", 0)]


def test_a_new_session_never_appends_to_a_torn_line(tmp_path):
    for sample in range(3):
        log = OutcomeLog(tmp_path / "shards")
        log.append(outcome("a", sample))
        log.close()
    assert [key for key in OutcomeLog(tmp_path / "shards").read()] == [("a", 0), ("a", 1), ("a", 2)]
    assert len(list((tmp_path / "shards").iterdir())) == 3


# Other people's files


def test_a_pool_is_read_from_csv_jsonl_and_the_trainers_layout(tmp_path):
    (tmp_path / "a.csv").write_text('id,question,answer\n007,"1+1, please",2\n')
    (tmp_path / "a.jsonl").write_text('{"id": "007", "problem": "1+1, please", "answer": 2}\n\n')
    trainer = pa.table(
        {
            "data_source": ["gsm"],
            "prompt": [[{"role": "user", "content": "1+1, please"}]],
            "reward_model": [{"ground_truth": "2", "style": "rule"}],
            "extra_info": [{"index": 7, "split": "train"}],
        }
    )
    pq.write_table(trainer, tmp_path / "a.parquet")
    pools = [read_pool(tmp_path / name) for name in ("a.csv", "a.jsonl", "a.parquet")]
    assert [p.prompt_id[0] for p in pools] == ["007", "007", "gsm/7"]
    assert len({p.fingerprint for p in pools}) == 1


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        ("a.jsonl", '{"id": 1}\n{"id":', "line 2 is not JSON"),
        ("a.jsonl", "[1]\n", "row 0 is a list"),
        ("a.jsonl", "", "empty"),
        ("a.csv", "", "empty"),
        ("a.csv", "id,prompt,answer\n1,2\n", "row 0 has 2 fields"),
        ("a.json", "{}", "expected a JSON list"),
        ("a.txt", "hi", "cannot tell its format"),
        ("a.json", "[" * 100_000, "nested too deeply|not JSON"),
    ],
)
def test_a_broken_table_is_refused_with_its_place(tmp_path, name, text, word):
    (tmp_path / name).write_text(text)
    with pytest.raises(PoolFileError, match=word):
        read_pool(tmp_path / name)


def test_rates_come_from_columns_counts_and_maps(tmp_path):
    pool = small_pool()
    (tmp_path / "a.csv").write_text("prompt_id,pass_rate\np0,0.25\np1,1.0\n")
    rates = read_rates(tmp_path / "a.csv", RateColumns(trials="16"))
    prior = import_prior(rates, tmp_path / "a.csv")
    assert prior.successes is not None
    assert prior.successes.tolist() == [4, 16]
    assert prior.provenance["anchor"] == "unknown"
    for keys in (["p0", "p1", "p2", "p3"], ["0", "1", "2", "3"], pool.prompt.tolist()):
        path = tmp_path / "map.json"
        path.write_text(json.dumps(dict(zip(keys, [0.0, 0.5, 0.75, 1.0], strict=True))))
        found = read_rates(path, pool=pool)
        assert found.prompt_id.tolist() == pool.prompt_id.tolist()
        assert found.rate.tolist() == [0.0, 0.5, 0.75, 1.0]
    with pytest.raises(SettingError, match="--pool"):
        read_rates(tmp_path / "map.json")
    (tmp_path / "map.json").write_text('{"p9": 0.5}')
    with pytest.raises(MismatchError, match="'p9'"):
        read_rates(tmp_path / "map.json", pool=pool)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("id,rate\na,1.5\n", r"lie in \[0, 1\].*row 0, prompt 'a'"),
        ("id,rate\na,x\n", "must be a number"),
        ("id,rate\na,0.5\na,0.5\n", "unique"),
        ("id,successes,trials\na,3,2\n", "0..trials"),
        ("id,successes,trials\na,1.5,2\n", "whole numbers"),
        ("id,successes,trials\na,0,0\n", "whole numbers from 1"),
        ("name,rate\na,0.5\n", "--id-column"),
        ("id,score\na,0.5\n", "--rate-column"),
    ],
)
def test_broken_rates_are_refused_with_their_place(tmp_path, text, word):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(OutcomesFileError, match=word):
        read_rates(tmp_path / "a.csv")


def test_a_prior_survives_its_own_exports(tmp_path):
    prior = small_prior(small_pool())
    (tmp_path / "a.csv").write_text(export_text(prior, "csv"))
    (tmp_path / "a.jsonl").write_text(export_text(prior, "jsonl"))
    for name in ("a.csv", "a.jsonl"):
        back = import_prior(read_rates(tmp_path / name), tmp_path / name)
        equal_fields(prior, back, ("prompt_id", "alpha", "beta", "successes", "trials"))
    assert json.loads(export_text(prior, "json")) == {f"p{i}": i / 16 for i in range(4)}
    with pytest.raises(SettingError, match="csv, jsonl or json"):
        export_text(prior, "xml")


def test_publishing_replaces_only_an_anchor_prior_of_the_same_pool(tmp_path):
    pool = small_pool()
    prior = small_prior(pool)
    source, target = tmp_path / "prior.parquet", tmp_path / "priors.parquet"
    write_prior(source, prior)
    assert publish_prior(source, target, prior)
    assert publish_prior(source, target, prior)
    from dataclasses import replace

    other = replace(prior, provenance={"pool": {"fingerprint": "elsewhere"}})
    write_prior(target, other, force=True)
    assert not publish_prior(source, target, prior)
    write_prior(target, replace(prior, kind="import"), force=True)
    assert not publish_prior(source, target, prior)
    target.write_text("notes of mine")
    assert not publish_prior(source, target, prior)
    assert target.read_text() == "notes of mine"


def test_a_hub_data_set_is_read_from_the_local_cache(tmp_path, monkeypatch):
    """The hub's own layout of a cached snapshot; no network is asked."""
    home = tmp_path / "hub" / "datasets--some-org--sums"
    snapshot = home / "snapshots" / ("0" * 40)
    (snapshot / "main").mkdir(parents=True)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text("0" * 40)
    for split, number in (("train", 2), ("test", 3)):
        table = pa.table(
            {"id": [f"{split}-1"], "question": [f"{number}+1?"], "answer": [str(number + 1)]}
        )
        pq.write_table(table, snapshot / "main" / f"{split}-00000-of-00001.parquet")
    code = (
        "from priorkit import read_pool; p = read_pool('some-org/sums:main');"
        "print(p.prompt_id.tolist(), p.answer.tolist())\n"
        "try: read_pool('some-org/nothing')\n"
        "except Exception as e: print(type(e).__name__, e)"
    )
    environment = {**os.environ, "HF_HUB_CACHE": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    first, second = ran.stdout.splitlines()
    assert first == "['train-1'] ['3']"
    assert second.startswith("PoolFileError some-org/nothing: no such file")


# What an attacker found


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"rate": pa.array([0.0, 7.0, 0.5, 0.5])}, "'rate' must lie in"),
        ({"rate": pa.array([0.0, -3.0, 0.5, 0.5])}, "'rate' must lie in"),
        ({"successes": pa.array([0, 99, 1, 1], type=pa.int32())}, "must not exceed"),
        ({"successes": pa.array([0, -5, 1, 1], type=pa.int32())}, "negative"),
        ({"trials": pa.array([-1, 16, 16, 16], type=pa.int32())}, "negative"),
        ({"alpha": pa.array([1e308, 1.0, 1.0, 1.0])}, "'alpha'"),
        ({"prior_kind": ["anchor"]}, "its kind is"),
    ],
)
def test_impossible_figures_in_a_prior_are_refused(tmp_path, changes, word):
    with pytest.raises(PriorFileError, match=word):
        read_prior(tampered(tmp_path, **changes))


def test_a_rate_that_is_not_known_reads_as_nan(tmp_path):
    prior = read_prior(tampered(tmp_path, rate=pa.array([0.0, None, 0.5, 0.5])))
    assert prior.rate is not None
    assert np.isnan(prior.rate).tolist() == [False, True, False, False]
    assert prior.measured.tolist() == [0.0, 0.5, 0.5]


def test_strange_parquet_files_are_refused_in_our_own_words(tmp_path):
    column = pa.array(["a"])
    twice = pa.Table.from_arrays([column, column, column], names=["prompt_id", "prompt", "prompt"])
    pq.write_table(twice, tmp_path / "twice.parquet")
    with pytest.raises(PoolFileError, match="'prompt' is there twice"):
        read_pool(tmp_path / "twice.parquet")
    deep = pa.table({"a": column}).replace_schema_metadata({schema.FOOTER_KEY: "[" * 200_000})
    pq.write_table(deep, tmp_path / "deep.parquet")
    with pytest.raises(PriorFileError, match="not a JSON object"):
        read_prior(tmp_path / "deep.parquet")
    late = pa.table(
        {
            "id": column,
            "prompt": column,
            "answer": column,
            "when": pa.array([10**15], type=pa.timestamp("ms")),
        }
    )
    pq.write_table(late, tmp_path / "late.parquet")
    with pytest.raises(PoolFileError, match="cannot be read"):
        read_pool(tmp_path / "late.parquet")


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path):
    for name in ("f.parquet", "f.csv", "f.jsonl"):
        os.mkfifo(tmp_path / name)
        with pytest.raises(PoolFileError, match="regular file"):
            read_pool(tmp_path / name)
    prior = small_prior(small_pool())
    with pytest.raises(OutputError, match="regular"):
        write_prior(tmp_path / "f.parquet", prior, force=True)


def test_an_output_link_is_kept_and_its_target_written(tmp_path):
    prior = small_prior(small_pool())
    (tmp_path / "link.parquet").symlink_to(tmp_path / "real.parquet")
    with pytest.raises(OutputError, match="--force"):
        write_prior(tmp_path / "link.parquet", prior)
    write_prior(tmp_path / "link.parquet", prior, force=True)
    assert (tmp_path / "link.parquet").is_symlink()
    assert len(read_prior(tmp_path / "real.parquet")) == 4


def test_a_long_file_name_can_be_written(tmp_path):
    path = tmp_path / ("日" * 80 + ".p")
    assert write_prior(path, small_prior(small_pool())).is_file()


@pytest.mark.parametrize(
    ("level", "expected"),
    [(3, 3), ("3", 3), ("Level 5", 5), (2.0, 2), ("2.0", 2), ("2.5", -1), ("1e3", -1), (-3, -1),
     ("?", -1), (True, -1), (None, -1), (float("nan"), -1)],
)  # fmt: skip
def test_levels_are_whole_numbers_or_not_known(level, expected):
    pool = pool_from_columns(columns_of(level=[level, 7]), "memory")
    assert pool.level is not None
    assert pool.level.tolist() == [expected, 7]


@pytest.mark.parametrize("answer", [[["1", "2"], "3"], float("inf"), {"a": 1}, True, [None]])
def test_answers_of_no_plain_kind_are_refused(answer):
    with pytest.raises(PoolFileError, match="has no answer"):
        pool_from_columns(columns_of(answer=["2", answer]), "memory")


def test_line_separators_inside_csv_fields_stay_there(tmp_path):
    text = 'id,prompt,answer\r\na,"one\r\ntwo",1\r\nb,x\u2028y\x85z,2\r\n'
    (tmp_path / "a.csv").write_bytes(text.encode())
    pool = read_pool(tmp_path / "a.csv")
    assert pool.prompt.tolist() == ["one\r\ntwo", "x\u2028y\x85z"]
    (tmp_path / "b.csv").write_text("id,prompt,answer,answer\na,b,c,d\n")
    with pytest.raises(PoolFileError, match="'answer' is there twice"):
        read_pool(tmp_path / "b.csv")


def test_ids_with_line_breaks_do_not_collide_in_the_order_hash():
    from priorkit.columns import order_hash

    assert order_hash(as_ids(["a\nb", "c"])) != order_hash(as_ids(["a", "b\nc"]))


@pytest.mark.parametrize("value", ["true", "null", "[1]", '" "', '"\\ud800"'])
def test_rates_need_ids_that_can_be_ids(tmp_path, value):
    (tmp_path / "r.jsonl").write_text(f'{{"id": {value}, "rate": 0.5}}\n')
    with pytest.raises(OutcomesFileError, match="no usable id"):
        read_rates(tmp_path / "r.jsonl")


@pytest.mark.parametrize("number", ["1" + "0" * 400, "Infinity", "3e9", "1e19"])
def test_numbers_too_large_to_count_with_are_refused(tmp_path, number):
    (tmp_path / "r.jsonl").write_text(f'{{"id": "a", "rate": 0.5, "trials": {number}}}\n')
    with pytest.raises(OutcomesFileError, match="trials"):
        read_rates(tmp_path / "r.jsonl")


def test_eval_rows_that_repeat_a_training_prompt_are_left_out():
    from priorkit.spread import make_pool

    source = pool_from_columns(
        columns_of(
            prompt_id=["a", "b", "c"],
            prompt=["Same?", "same?", "Other?"],
            answer=["1", "1", "2"],
            split=["train", "eval", "eval"],
        ),
        "memory",
    )
    assert make_pool(source, None, None, 0).of_split("eval").prompt_id.tolist() == ["c"]


def test_a_pool_of_chats_and_answer_lists_of_one_length_keeps_its_rows(tmp_path):
    chats = [
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": f"{i}+1?"}]
        for i in range(3)
    ]
    pool = pool_from_columns(
        {
            "id": list("abc"),
            "prompt": chats,
            "answer": [["1", "one"], ["2", "two"], ["3", "three"]],
        },
        "memory",
    )
    assert pool.prompt[2] == tuple(chats[2])
    assert pool.answer[1] == ("2", "two")
    back = read_pool(write_pool(tmp_path / "p.parquet", pool, {}))
    assert back.fingerprint == pool.fingerprint
    assert back.answer.tolist() == pool.answer.tolist()
