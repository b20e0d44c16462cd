"""Inputs and answers as Arrow tables: what pyarrow, polars and pandas see, and whose memory it is."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import slablab
from conftest import DUMP, RECORDING, TRACE


@pytest.fixture(scope="module")
def replay() -> slablab.Replay:
    return slablab.replay(RECORDING, ["slub@6.1", "slub@7.1"])


def plain(table: pa.Table) -> pa.Table:
    """The table with texts instead of dictionaries of them."""
    texts = [pa.types.is_dictionary(field.type) for field in table.schema]
    columns = [
        column.cast(pa.string()) if text else column
        for column, text in zip(table.columns, texts, strict=True)
    ]
    return pa.table(columns, names=table.schema.names)


def test_a_recordings_rows_are_those_of_its_trace(tmp_path) -> None:
    output = tmp_path / "t.parquet"
    imported = slablab.import_recording(RECORDING, output)
    expected = pq.read_table(output)
    for recording in (imported, slablab.read_recording(RECORDING)):
        rows = plain(pa.table(recording))
        assert len(rows) == len(recording) == 193_094
        assert rows.schema.names == expected.schema.names
        for name in expected.schema.names:
            assert rows[name].type == expected[name].type, name
            assert rows[name].equals(expected[name]), name


def test_some_columns_in_their_order() -> None:
    recording = slablab.read_recording(TRACE)
    rows = recording.rows(["cache", "time_ns"])
    assert rows.columns == ["cache", "time_ns"]
    table = pa.table(rows)
    assert table.schema.names == ["cache", "time_ns"]
    # Each reader begins at the first row.
    assert pa.table(rows).equals(table)
    assert len(table) == len(recording) == len(rows)
    whole = plain(pa.table(recording))
    assert plain(table).equals(whole.select(["cache", "time_ns"]))


def test_pyarrow_polars_and_pandas_read_the_same(replay) -> None:
    for table in (replay.engines, replay.caches, replay.timeline):
        arrow, polars = pa.table(table), pl.DataFrame(table)
        pandas = pd.DataFrame.from_arrow(table)
        assert arrow.to_pydict() == polars.to_dict(as_series=False) == table.to_dict()
        assert list(pandas.columns) == table.columns and len(pandas) == len(table) > 0
        assert pandas["slab_bytes" if "slab_bytes" in table.columns else "allocs"].tolist() == (
            table["slab_bytes" if "slab_bytes" in table.columns else "allocs"]
        )


def test_no_copy_is_made(replay) -> None:
    table = replay.caches
    first, second = (pa.table(table)["slab_bytes"].chunk(0) for _ in range(2))
    address = first.buffers()[1].address
    assert second.buffers()[1].address == address
    polars = pl.DataFrame(table)["slab_bytes"].to_numpy(allow_copy=False)
    assert polars.__array_interface__["data"][0] == address
    # What reads a table keeps its memory.
    del table
    expected = replay.caches["slab_bytes"]
    assert first.to_pylist() == expected


def test_a_stream_nobody_reads_is_released() -> None:
    recording = slablab.read_recording(TRACE)
    for _ in range(100):
        recording.__arrow_c_stream__()
        recording.rows(["cpu"]).__arrow_c_stream__()


def test_sums_of_rows_are_the_replays(replay) -> None:
    caches, engines = pl.DataFrame(replay.caches), pl.DataFrame(replay.engines)
    sums = caches.group_by("engine", maintain_order=True).agg(pl.col("alloc_slab").sum())
    assert sums["alloc_slab"].to_list() == engines["slabs_taken"].to_list()
    assert sums["engine"].to_list() == engines["engine"].to_list() == ["slub@6.1", "slub@7.1"]


def test_the_parts_of_a_measure_add_up_to_its_change() -> None:
    parts = pl.DataFrame(slablab.explain(TRACE, "slub@6.1", "slub@6.12").parts)
    sums = parts.group_by("measure").agg(pl.col("part").sum(), pl.col("change").first())
    assert len(sums) > 10
    assert (sums["part"] - sums["change"]).abs().max() < 1e-6
    assert sums["change"].abs().max() > 0


def test_a_dumps_tables() -> None:
    dump = slablab.read_dump(DUMP)
    assert (dump.release, dump.cpus_online, dump.page_size_bytes) == ("6.1.0-50-amd64", 4, 4096)
    caches = pa.table(dump.caches)
    assert len(dump) == len(caches) == 145
    answer = slablab.whatif(dump, max_order=[0, 1], cpus=[4, 64])
    changes, predicted = pa.table(answer.changes), pa.table(answer.caches)
    assert len(changes) == 4 and len(predicted) == 4 * 145
    today = pc.sum(caches["slab_bytes"]).as_py()
    assert changes["total_bytes_today"].to_pylist() == [today] * 4
    low, high = changes["total_low_bytes"].to_pylist(), changes["total_high_bytes"].to_pylist()
    whole = changes["total_bytes"].to_pylist()
    assert all(a <= b <= c for a, b, c in zip(low, whole, high, strict=True))


def test_what_grew_between_two_dumps() -> None:
    before = slablab.read_dump(DUMP.with_name("amd64_smp4.before.tar.xz"))
    grown = pl.DataFrame(slablab.doctor(DUMP, since=[before]).caches)
    sizes = pl.DataFrame(before.caches).select("cache", "ordinal", pl.col("slab_bytes").alias("before"))
    both = grown.join(sizes, on=["cache", "ordinal"])
    assert (both["slab_bytes"] - both["before"]).to_list() == both["growth_bytes"].to_list()
    assert both["growth_bytes"].sum() > 0
