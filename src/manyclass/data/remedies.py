"""Advice on files that cannot be read, for Python users; the command line has its own."""

REMEDIES = {
    "several_labels": "read the file with multilabel=True, or give every row one label",
    "index_zero": 'read the file with zero_based=True or "auto"',
    "too_large": "read with dtype=float64, or scale the feature",
    "too_large_for_float64": "scale the feature",
    "nonfinite": "remove the feature, or read with allow_nonfinite=True",
    "unknown_feature": 'raise n_features, omit it, or pass unknown_features="ignore"',
    "columns": "select the columns with text= and label=",
    "delimiter": "set the field delimiter with delimiter=",
    "unlabelled": 'fill them in, or skip these rows with unlabelled="skip"',
}
