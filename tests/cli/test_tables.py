"""Tables of every format are read alike by every command, from files and from pipes."""

import csv
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from manyclass.data import ParseError, read_table
from manyclass.model import load_model

WORDS = {"animals": "cat dog horse sheep", "food": "bread cheese soup apple"}
ROWS = [
    {"key": 100 + n, "topic": topic, "body": f"a {word}, and\nanother {word}"}
    for n, (topic, word) in enumerate((topic, word) for topic in WORDS for word in 3 * WORDS[topic].split())
]
COLUMNS = ("--text-column", "body", "--label-column", "topic")
FORMATS = ("csv", "tsv", "jsonl", "parquet")


def write(path, rows=ROWS, delimiter=None):
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        with open(path, "w", newline="") as out:
            writer = csv.DictWriter(
                out, rows[0], delimiter=delimiter or {".tsv": "\t"}.get(path.suffix, ","), lineterminator="\n"
            )
            writer.writeheader()
            writer.writerows(rows)
    return path


@pytest.fixture
def news(tmp_path):
    """The same rows in every format, and CSV with other delimiters."""
    for format in FORMATS:
        write(tmp_path / f"news.{format}")
    write(tmp_path / "semicolons.csv", delimiter=";")
    write(tmp_path / "bars.txt", delimiter="|")
    return tmp_path


@pytest.fixture
def model(shell, news):
    shell("train", "news.csv", *COLUMNS, "-q", "-m", "m")
    return "m"


# ---- Every format


@pytest.mark.parametrize("format", FORMATS)
def test_all_commands_read_it(shell, news, model, format):
    name = f"news.{format}"
    shell("train", name, *COLUMNS, "-q", "-m", "same")
    assert (load_model("same").matrix != load_model(model).matrix).sum() == 0
    assert shell.json("inspect", name, *COLUMNS)["rows"] == len(ROWS)
    assert shell.json("cv", name, *COLUMNS, "--C", "1", "--folds", 2)["rows"] == len(ROWS)
    assert shell.json("evaluate", model, name)["error"] == 0
    assert shell("predict", model, name).stdout.split() == [row["topic"] for row in ROWS]
    assert shell.json("convert", name, "store", *COLUMNS, "--hash-bits", 8)["rows"] == len(ROWS)


@pytest.mark.parametrize(("name", "delimiter"), [("semicolons.csv", ";"), ("bars.txt", "|"), ("news.tsv", r"\t")])
def test_fields_may_be_separated_by_anything(shell, news, model, name, delimiter):
    given = ("--delimiter", delimiter)
    shell("train", name, *COLUMNS, *given, "-q", "-m", "same")
    assert (load_model("same").matrix != load_model(model).matrix).sum() == 0
    assert shell.json("inspect", name, *COLUMNS, *given)["rows"] == len(ROWS)
    assert shell.json("evaluate", model, name, *given)["error"] == 0
    assert shell("predict", model, name, *given).stdout.split() == [row["topic"] for row in ROWS]
    assert shell.json("convert", name, "store", *COLUMNS, *given, "--hash-bits", 8)["rows"] == len(ROWS)
    assert shell.json("convert", name, "store", *given, "--append")["rows"] == 2 * len(ROWS)


def test_python_reads_them_too(news):
    expected = read_table(news / "news.csv", text="body", label="topic")
    assert read_table(news / "news.parquet", text="body", label="topic") == expected
    assert read_table(news / "semicolons.csv", text="body", label="topic", delimiter=";") == expected
    with open(news / "news.parquet", "rb") as stream:
        assert read_table(stream, text="body", label="topic", format="parquet") == expected
    with pytest.raises(ValueError, match="jsonl has no delimiter"):
        read_table(news / "news.jsonl", delimiter=";")
    with pytest.raises(ValueError, match="one character"):
        read_table(news / "news.csv", delimiter="||")


def test_long_texts_are_no_error(tmp_path):
    write(tmp_path / "long.csv", [{"text": "word " * 100_000, "label": "a"}])
    assert len(read_table(tmp_path / "long.csv")[0][0]) == 500_000


@pytest.mark.parametrize(
    ("line", "place"),
    [("[" * 100_000, 1), ('{"text": "a", "label": ' + "1" * 10_000 + "}", 1), ('{"text": null, "label": 1}', 1)],
)
def test_json_that_nobody_can_mean_is_refused_with_its_line(tmp_path, line, place):
    (tmp_path / "bad.jsonl").write_text(line + "\n")
    with pytest.raises(ParseError, match=rf"bad\.jsonl:{place}:") as caught:
        read_table(tmp_path / "bad.jsonl")
    assert len(str(caught.value)) < 400


def test_parquet_that_is_not_utf8_is_refused_with_its_row(tmp_path):
    texts = pa.array([b"good", b"caf\xe9"]).view(pa.string())
    pq.write_table(pa.table({"text": texts, "label": ["a", "b"]}), tmp_path / "bad.parquet")
    with pytest.raises(ParseError, match=r"bad\.parquet:1:"):
        read_table(tmp_path / "bad.parquet")


# ---- Pipes


@pytest.mark.parametrize("options", [("--format", "csv"), ("--text-column", "body"), ("--id-column", "key")])
def test_the_header_of_a_piped_table_is_no_text(shell, news, model, options):
    piped = shell("predict", model, "-", *options, stdin=(news / "news.csv").read_text())
    assert piped.stdout == shell("predict", model, "news.csv", *options).stdout
    assert not piped.stderr


def test_a_pipe_holds_texts_unless_something_says_otherwise(shell, model):
    assert shell("predict", model, "-", stdin="a cat\na soup, a dog, and a body\n").stdout.count("\n") == 2


@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl"])
def test_a_header_that_is_taken_as_a_text_is_pointed_out(shell, news, model, format):
    content = (news / f"news.{format}").read_text()
    said = shell("predict", model, "-", stdin=content).stderr
    assert (
        "<stdin>: each line is read as a text, but the first line looks like the header of a table; "
        f"try --format {format}" in said
    )
    assert not shell("predict", model, "-", "--format", "lines", stdin=content).stderr


def test_tables_are_trained_on_from_a_pipe(shell, news, model):
    shell("train", "-", *COLUMNS, "-q", "-m", "same", stdin=(news / "news.csv").read_text())
    assert (load_model("same").matrix != load_model(model).matrix).sum() == 0


# ---- Ids


@pytest.mark.parametrize("format", FORMATS)
def test_ids_go_with_the_predictions(shell, news, model, format):
    fields = [
        line.split("\t")
        for line in shell("predict", model, f"news.{format}", "--id-column", "key").stdout.splitlines()
    ]
    assert fields == [[str(row["key"]), row["topic"]] for row in ROWS]
    out = shell("predict", model, f"news.{format}", "--id-column", "key", "--scores", "--json").stdout
    records = [json.loads(line) for line in out.splitlines()]
    kind = int if format in ("jsonl", "parquet") else str
    assert [record["id"] for record in records] == [kind(row["key"]) for row in ROWS]
    assert list(records[0]) == ["id", "labels", "scores"]


def test_ids_of_many_rows_stay_with_their_rows(shell, tmp_path, model):
    rows = [ROWS[n * 7 % len(ROWS)] | {"key": f"id\t{n}"} for n in range(5000)]
    write(tmp_path / "many.jsonl", rows)
    lines = shell("predict", model, "many.jsonl", "--id-column", "key").stdout.splitlines()
    assert lines == [f"id\\t{n}\t{row['topic']}" for n, row in enumerate(rows)]


def test_ids_of_any_kind_can_be_written(shell, tmp_path, model):
    import datetime

    rows = [{"key": key, "body": "a cat"} for key in (datetime.date(2026, 1, 2), None)]
    write(tmp_path / "new.parquet", rows)
    assert shell("predict", model, "new.parquet", "--id-column", "key").stdout == "2026-01-02\tanimals\n\tanimals\n"
    first, second = shell("predict", model, "new.parquet", "--id-column", "key", "--json").stdout.splitlines()
    assert json.loads(first)["id"] == "2026-01-02" and json.loads(second)["id"] is None


# ---- What does not fit together


FEATURES = "1 1:0.5 3:2\n2 2:1e-3 # a comment\n"


@pytest.mark.parametrize(
    ("arguments", "content", "message"),
    [
        (["predict", "m", "x.svm"], FEATURES, "x.svm: svmlight holds rows of features, but the model was"),
        (["predict", "m", "x.svm.gz"], FEATURES, "svmlight holds rows of features"),
        (["predict", "m", "x.txt"], FEATURES, "x.txt: these look like rows of features"),
        (["predict", "m", "x.txt"], "2 9 9\n3,4 1:0.5\n 1:1\n", "x.txt: these look like rows of features"),
        (["predict", "m", "-"], FEATURES, "<stdin>: these look like rows of features"),
        (
            ["evaluate", "m", "x.svm"],
            FEATURES,
            "x.svm: svmlight holds rows of features, but the model was",
        ),
        (["evaluate", "m", "-"], FEATURES, "--format if its name does not show"),
        (["predict", "m", "rows"], "", "rows was made from rows of features, but the model was trained on texts"),
        (["evaluate", "m", "rows"], "", "rows was made from rows of features, but the model was trained on texts"),
        (["predict", "f", "news.parquet"], "", "parquet holds texts, but the model was trained on rows of features"),
        (["predict", "f", "-"], "a cat\n", "<stdin>:1:1: expected a label, found 'a'"),
        (["predict", "f", "-"], "a cat\n", "the model was trained on rows of features: pass svmlight or XMC text"),
        (["evaluate", "f", "-"], "a cat\n", "the model was trained on rows of features"),
        (["predict", "f", "texts"], "", "texts was made from texts, but the model was trained on rows of features"),
        (["train", "x.txt"], "a cat\n", "for a table of texts pass --text-column"),
        (["train", "x.svm", "--text-column", "body"], FEATURES, "--text-column does not apply to svmlight"),
        (["train", "texts", "--delimiter", ";"], "", "texts: --delimiter does not apply to a store"),
        (["train", "news.jsonl", "--delimiter", ";"], "", "--delimiter does not apply to jsonl"),
        (["train", "semicolons.csv", *COLUMNS], "", "pass the field separator with --delimiter"),
        (["predict", "m", "-", "--format", "parquet"], "", "Parquet cannot be read from a pipe"),
        (
            ["predict", "m", "news.csv", "--id-column", "no"],
            "",
            "no column 'no'; the columns are 'key', 'topic'",
        ),
        (["predict", "m", "-", "--format", "lines", "--id-column", "key"], "a\n", "does not apply to lines"),
    ],
)
def test_what_does_not_fit_together_is_refused(shell, news, model, arguments, content, message):
    (news / "f.svm").write_text("1 1:1\n2 2:1\n" * 5)
    shell("train", "f.svm", "-q", "-m", "f")
    shell("convert", "f.svm", "rows")
    shell("convert", "news.csv", "texts", *COLUMNS, "--hash-bits", 8)
    for name in ("x.svm", "x.txt", "x.svm.gz"):
        (news / name).write_text(content)
    result = shell(*arguments, stdin=content, code=2)
    assert message in result.stderr and not result.stdout


def test_delimiters_are_checked(shell, news):
    assert "one character" in shell("train", "news.csv", "--delimiter", "||", code=2).stderr
