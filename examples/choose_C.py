"""Choose C by cross-validation with scikit-learn, then save the best model with its text features."""

from sklearn.model_selection import GridSearchCV

from manyclass import OneVsRestSVC, load_model, save_model
from manyclass.data import TextFeatures, load_wordnet

FILE = "hypernyms.manyclass"


def main() -> None:
    wordnet = load_wordnet(min_members=50)
    text = TextFeatures(min_df=2)
    X = text.fit_transform(wordnet.texts_train)

    # A rough fit is enough to rank the values of C; the last fit, on all rows, is an exact one.
    search = GridSearchCV(OneVsRestSVC(tol=0.1), {"C": [0.1, 0.3, 1, 3, 10]}, cv=3, refit=False)
    search.fit(X, wordnet.labels_train)
    for C, accuracy in zip(search.cv_results_["param_C"], search.cv_results_["mean_test_score"], strict=True):
        print(f"C = {C:<4}  accuracy {accuracy:.3f}")

    best = OneVsRestSVC(C=search.best_params_["C"]).fit(X, wordnet.labels_train)
    print(best.certificate_.message)
    best.model_.text = text
    save_model(best.model_, FILE)

    model = load_model(FILE)
    print(model.predict(model.text.transform(["a red wine from Italy"]))[0])


if __name__ == "__main__":
    main()
