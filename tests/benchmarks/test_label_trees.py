from benchmarks import label_trees


def test_a_table_of_recall_by_beam(monkeypatch):
    monkeypatch.setattr(label_trees, "TIMED_AT_LEAST", 0.0)
    model, X = label_trees.clustered_model(400, 50)
    lines = label_trees.report(model, X, 8, [2, 400])
    found = [[field.strip() for field in line.split("|")[1:4]] for line in lines[4:]]
    assert found[1] == ["400", "100.0 %", "100.0 %"] and found[2] == ["exact", "100 %", "100 %"]
    assert 0 < float(found[0][2].split()[0]) < 100
