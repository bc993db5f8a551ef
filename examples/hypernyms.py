"""Train on WordNet's definitions, then find out what kind of thing a plain English definition describes.

Pass your own definitions as arguments: `python examples/hypernyms.py "a small boat moved with oars"`.
"""

import sys

from manyclass import MulticlassSVC
from manyclass.data import TextFeatures, load_wordnet

QUESTIONS = ["a building where sick people are treated", "someone who writes poems", "to walk slowly"]


def main(questions: list[str]) -> None:
    wordnet = load_wordnet(min_members=5)
    text = TextFeatures()
    X = text.fit_transform(wordnet.texts_train)
    X_test = text.transform(wordnet.texts_test)

    svm = MulticlassSVC("cs", C=1.0, verbose=1).fit(X, wordnet.labels_train)
    print(f"{X.shape[0]} definitions, {len(svm.classes_)} classes: {svm.certificate_.message}")
    print(f"test error {1 - svm.score(X_test, wordnet.labels_test):.1%}")

    labels, scores = svm.predict_topk(text.transform(questions), k=5)
    for question, names, values in zip(questions, labels, scores, strict=True):
        print(f"\n{question}")
        for name, value in zip(names, values, strict=True):
            print(f"  {value:7.3f}  {name}")


if __name__ == "__main__":
    main(sys.argv[1:] or QUESTIONS)
