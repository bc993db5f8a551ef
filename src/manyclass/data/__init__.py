"""Read, check and store rows and labels; built-in and synthetic data sets."""

from .bad_file import BadFileError
from .block_store import BlockStore, StoreError
from .hashed_text import HashedText
from .label_sets import encode_known_sets, encode_label_sets, has_label_sets
from .labels import encode_known, encode_labels
from .matrix import RowMatrix, check_matrix
from .steps import Chain
from .svmlight import ParseError, load_svmlight, save_svmlight
from .synthetic import TextShape, iter_text_like, make_text_like
from .text import read_table
from .text_features import TextFeatures
from .unit_rows import UnitRows
from .wordnet import WordNet, load_wordnet
from .xmc import load_xmc, save_xmc
