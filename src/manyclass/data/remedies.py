"""What to do about text that cannot be read, in the words of Python; the command line has its own."""

REMEDIES = {
    "several_labels": "read the file with multilabel=True, or give every row one label",
    "index_zero": 'read the file with zero_based=True or "auto"',
    "too_large": "read with dtype=float64, or scale the feature",
    "too_large_for_float64": "scale the feature",
    "nonfinite": "remove the feature, or read with allow_nonfinite=True",
    "unknown_feature": 'raise n_features, leave it out, or pass unknown_features="ignore"',
    "columns": "name the ones to read with text= and label=",
    "delimiter": "say what separates the fields with delimiter=",
    "unlabelled": 'fill them in, or leave these rows out with unlabelled="skip"',
}
